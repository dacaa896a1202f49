//! The links of a page that its rule follows. Whether they are in scope is decided elsewhere.

use std::collections::HashSet;

use ego_tree::NodeId;
use scraper::ElementRef;
use url::Url;

use super::html::{Base, Tree};
use crate::canonical_url::MOST_BYTES;
use crate::site::{Follow, MetaRobots};

/// Links of a page that are put, at most; whoever needs more of them has more than one listing.
pub const MOST_LINKS: usize = 10_000;

/// Links of a page, and how many were dropped behind them.
#[derive(Debug, Default)]
pub struct Links {
    /// In document order, each once, without fragments.
    pub kept: Vec<Url>,
    /// Those past [`MOST_LINKS`], and those that are longer than a URL may be.
    pub dropped: usize,
}

/// The links that `follow` names.
///
/// A selector names the element that has the `href`, or one that holds it: then its first link counts. `"*"` names
/// `a`, `area`, and `link` of the relations `next` and `prev`. Links marked `nofollow` are left out where that is obeyed.
pub fn links(tree: &Tree, follow: &Follow, base: &Base, obey: MetaRobots) -> Links {
    let (mut links, mut seen) = (Links::default(), HashSet::new());
    let found = followed(tree, follow).into_iter();
    for href in
        found.filter(|link| obey == MetaRobots::Ignore || !has_rel(*link, "nofollow")).filter_map(href)
    {
        if tree.budget.is_spent() {
            break;
        }
        if links.kept.len() == MOST_LINKS || href.len() > MOST_BYTES {
            links.dropped += 1;
            continue;
        }
        let Some(mut url) = base.resolve(href) else { continue };
        url.set_fragment(None);
        if tree.budget.takes(2 * (size_of::<Url>() + url.as_str().len())) && seen.insert(url.clone()) {
            links.kept.push(url);
        }
    }
    links
}

fn followed<'a>(tree: &'a Tree, follow: &Follow) -> Vec<ElementRef<'a>> {
    let elements = tree.elements();
    match follow {
        Follow::Nothing => Vec::new(),
        Follow::Everything => elements.filter(|element| leads_on(*element)).collect(),
        Follow::Selected(selectors) => {
            let found: HashSet<NodeId> =
                selectors.iter().flat_map(|css| tree.select(css)).map(|element| element.id()).collect();
            let holders = elements.filter(|element| found.contains(&element.id()));
            holders.filter_map(|element| link_in(tree, element)).collect()
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

fn link_in<'a>(tree: &'a Tree, element: ElementRef<'a>) -> Option<ElementRef<'a>> {
    if element.attr("href").is_some() {
        return Some(element);
    }
    let is_link = |e: &ElementRef| e.value().name() == "a" && e.attr("href").is_some();
    tree.inside(element).find(is_link)
}

/// Whether one of the element's relations is this one.
pub(super) fn has_rel(element: ElementRef<'_>, relation: &str) -> bool {
    let rel = element.attr("rel").unwrap_or_default();
    rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(relation))
}

/// Where a link leads, as written; none where that is this page.
fn href(link: ElementRef<'_>) -> Option<&str> {
    let href = link.attr("href")?.trim_matches(|c: char| c <= ' ');
    (!href.is_empty() && !href.starts_with('#')).then_some(href)
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;

    use super::*;
    use crate::budget::Budget;
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
        let tree = Tree::parse(PAGE, &Budget::without_end());
        let found = links(&tree, follow, &Base::of(&tree, &url, UTF_8), obey).kept;
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
    fn what_is_past_ten_thousand_links_or_longer_than_a_url_is_dropped_and_counted() {
        let url = Url::parse("https://shop.example/list").expect("a URL");
        let of = |page: &str| {
            let tree = Tree::parse(page, &Budget::without_end());
            let Links { kept, dropped } =
                links(&tree, &Follow::Everything, &Base::of(&tree, &url, UTF_8), MetaRobots::Obey);
            (kept.len(), dropped, kept.last().map(|url| url.path().len()))
        };
        let many = (0..10_003).map(|n| format!("<a href=/{n}>")).collect::<Vec<_>>().concat();
        assert_eq!(of(&many), (10_000, 3, Some(5)));
        let long = "x".repeat(9_000);
        assert_eq!(of(&format!("<a href=/{long}><a href=/short>")), (1, 1, Some(6)));
        assert_eq!(
            of(&format!("<base href=/{long}/><a href=b>")),
            (1, 0, Some(2)),
            "the base counts for nothing"
        );
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
