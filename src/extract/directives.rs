//! What a page says of itself to robots: in `<meta name="robots">` and in the `X-Robots-Tag` header field.

use html5ever::local_name;
use scraper::Html;

use super::tree::named;
use crate::page::Headers;

/// The name under which a page may speak to this crawler alone.
const TOKEN: &str = "paced";

/// What a page asks of robots. All of its statements count: the strictest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageDirectives {
    /// Its links are not to be followed.
    pub nofollow: bool,
    /// It is not to be indexed.
    pub noindex: bool,
    /// No copy of it is to be kept.
    pub noarchive: bool,
}

impl PageDirectives {
    /// Reads the page's header and head.
    pub fn of(html: &Html, headers: &Headers) -> Self {
        let mut directives = Self::default();
        for meta in named(html, local_name!("meta")) {
            let name = meta.attr("name").unwrap_or_default().trim();
            if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(TOKEN) {
                meta.attr("content").unwrap_or_default().split(',').for_each(|word| directives.add(word));
            }
        }
        headers.all("x-robots-tag").for_each(|value| directives.add_header(value));
        directives
    }

    fn add(&mut self, word: &str) {
        match word.trim().to_ascii_lowercase().as_str() {
            "nofollow" => self.nofollow = true,
            "noindex" => self.noindex = true,
            "noarchive" => self.noarchive = true,
            "none" => (self.nofollow, self.noindex) = (true, true),
            _ => {}
        }
    }

    /// `noindex, nofollow` is for everybody; after `name:` the rest of the value is for that robot.
    fn add_header(&mut self, value: &str) {
        let mut for_us = true;
        for part in value.split(',') {
            let (name, word) = part.split_once(':').map_or(("", part), |(name, word)| (name.trim(), word));
            if takes_value(name) {
                continue;
            }
            if !name.is_empty() {
                for_us = name.eq_ignore_ascii_case(TOKEN) || name == "*";
            }
            if for_us {
                self.add(word);
            }
        }
    }
}

fn takes_value(name: &str) -> bool {
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
        .iter()
        .any(|directive| directive.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::tree::Tree;

    fn flags(html: &str, tags: &[&str]) -> String {
        let fields = tags.iter().map(|tag| ("x-robots-tag".to_owned(), tag.as_bytes().to_vec()));
        let found = PageDirectives::of(&Tree::parse(html).html, &Headers(fields.collect()));
        let names =
            [(found.nofollow, "nofollow"), (found.noindex, "noindex"), (found.noarchive, "noarchive")];
        names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn meta_and_header_add_up() {
        for (html, tags, expected) in [
            ("", &[][..], ""),
            ("<meta name=robots content='index, follow'>", &[], ""),
            ("<META NAME=Robots CONTENT='NoIndex , NOFOLLOW'>", &[], "nofollow noindex"),
            ("<meta name=robots content=none>", &[], "nofollow noindex"),
            ("<meta name=paced content=noarchive>", &[], "noarchive"),
            ("<meta name=googlebot content=noindex>", &[], ""),
            (
                "<meta name=robots content=noindex><meta name=robots content=noarchive>",
                &[],
                "noindex noarchive",
            ),
            ("", &["noindex, nofollow"], "nofollow noindex"),
            ("", &["otherbot: noindex, nofollow"], ""),
            ("", &["paced: noindex, nofollow", "noarchive"], "nofollow noindex noarchive"),
            ("", &["otherbot: noindex, Paced: nofollow"], "nofollow"),
            ("", &["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "noindex"),
            ("<meta name=robots content=noindex>", &["noarchive"], "noindex noarchive"),
        ] {
            assert_eq!(flags(html, tags), expected, "{html} {tags:?}");
        }
    }
}
