//! The links of a page that its rule follows. Whether they are in scope is decided elsewhere.

use std::collections::HashSet;

use ego_tree::NodeId;
use scraper::{ElementRef, Html};
use url::Url;

use super::html::Base;
use crate::site::{Follow, MetaRobots};

/// The links that `follow` names, in document order, each once, without fragments.
///
/// A selector names the element that has the `href`, or one that holds it: then its first link counts. `"*"` names
/// `a`, `area`, and `link` of the relations `next` and `prev`. Links marked `nofollow` are left out where that is obeyed.
pub fn links(html: &Html, follow: &Follow, base: &Base, obey: MetaRobots) -> Vec<Url> {
    let mut seen = HashSet::new();
    followed(html, follow)
        .into_iter()
        .filter(|link| obey == MetaRobots::Ignore || !has_rel(*link, "nofollow"))
        .filter_map(|link| address(link, base))
        .filter(|url| seen.insert(url.clone()))
        .collect()
}

fn followed<'a>(html: &'a Html, follow: &Follow) -> Vec<ElementRef<'a>> {
    let elements = html.tree.root().descendants().filter_map(ElementRef::wrap);
    match follow {
        Follow::Nothing => Vec::new(),
        Follow::Everything => elements.filter(|element| leads_on(*element)).collect(),
        Follow::Selected(selectors) => {
            let found: HashSet<NodeId> =
                selectors.iter().flat_map(|css| css.select(html)).map(|element| element.id()).collect();
            elements.filter(|element| found.contains(&element.id())).filter_map(link_in).collect()
        }
    }
}

/// What `"*"` names.
fn leads_on(element: ElementRef<'_>) -> bool {
    match element.value().name() {
        "a" | "area" => true,
        "link" => has_rel(element, "next") || has_rel(element, "prev"),
        _ => false,
    }
}

fn link_in(element: ElementRef<'_>) -> Option<ElementRef<'_>> {
    if element.attr("href").is_some() {
        return Some(element);
    }
    let is_link = |e: &ElementRef| e.value().name() == "a" && e.attr("href").is_some();
    element.descendants().filter_map(ElementRef::wrap).find(is_link)
}

/// Whether one of the element's relations is this one.
pub(super) fn has_rel(element: ElementRef<'_>, relation: &str) -> bool {
    let rel = element.attr("rel").unwrap_or_default();
    rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(relation))
}

fn address(link: ElementRef<'_>, base: &Base) -> Option<Url> {
    let href = link.attr("href")?.trim_matches(|c: char| c <= ' ');
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let mut url = base.resolve(href)?;
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;

    use super::*;
    use crate::extract::html::Tree;
    use crate::site::Css;

    const PAGE: &str = r##"
        <link rel="next" href="?page=2"><link rel="stylesheet" href="/s.css">
        <nav><a href="/b#top">b</a><a href="#top">top</a><a href="">self</a><a>none</a></nav>
        <map><area href="/area"></map>
        <ul><li class="item"><h3>x</h3><a name="n"></a><a href="/1">1</a><a href="/1b">1b</a></li>
            <li class="item"><a href="/2" rel="UGC NoFollow">2</a></li>
            <li class="item">no link</li>
            <li class="item"><a href="/b">b again</a></li></ul>
        <a href="mailto:a@b.example">mail</a><a href="ftp://x.example/">ftp</a><noscript><a href=/n>n</a></noscript>"##;

    fn paths(follow: &Follow, obey: MetaRobots) -> Vec<String> {
        let url = Url::parse("https://shop.example/list").expect("a URL");
        let html = Tree::parse(PAGE).html;
        let found = links(&html, follow, &Base::of(&html, &url, UTF_8), obey);
        found.iter().map(|url| url.as_str().trim_start_matches("https://shop.example").to_owned()).collect()
    }

    fn selected(css: &[&str]) -> Follow {
        Follow::Selected(css.iter().map(|css| Css::parse(css).expect("a selector")).collect())
    }

    #[test]
    fn every_link_of_a_page_is_found_once_and_in_order() {
        let found = paths(&Follow::Everything, MetaRobots::Obey);
        assert_eq!(found, ["/list?page=2", "/b", "/area", "/1", "/1b", "/n"]);
        assert_eq!(paths(&Follow::Everything, MetaRobots::Ignore)[5], "/2");
        assert!(paths(&Follow::Nothing, MetaRobots::Obey).is_empty());
    }

    #[test]
    fn a_selector_names_the_link_or_what_holds_it() {
        for (css, found) in [
            (&["li.item"][..], &["/1", "/b"][..]),
            (&["li.item a"], &["/1", "/1b", "/b"]),
            (&["li.item", "nav a"], &["/b", "/1"]),
            (&["link[rel=next]"], &["/list?page=2"]),
            (&[".none"], &[]),
        ] {
            assert_eq!(paths(&selected(css), MetaRobots::Obey), found, "{css:?}");
        }
    }
}
