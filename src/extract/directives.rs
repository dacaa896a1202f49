//! What a page says of itself to robots: in `<meta name="robots">` and in the `X-Robots-Tag` header field.

use html5ever::local_name;

use super::html::Tree;
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
    /// No copy of it is to be shown.
    pub noarchive: bool,
}

impl PageDirectives {
    /// Reads the page's header and head.
    pub fn of(tree: &Tree, headers: &Headers) -> Self {
        let mut directives = Self::default();
        for meta in tree.named(local_name!("meta")) {
            let name = meta.attr("name").unwrap_or_default().trim();
            if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(TOKEN) {
                let content = meta.attr("content").unwrap_or_default();
                if tree.budget.reads(4 * content.len()) {
                    directives.add_meta(content);
                }
            }
        }
        headers.all("x-robots-tag").for_each(|value| directives.add_header(value));
        directives
    }

    fn add(&mut self, word: &str) {
        match word.to_ascii_lowercase().as_str() {
            "nofollow" => self.nofollow = true,
            "noindex" => self.noindex = true,
            "noarchive" => self.noarchive = true,
            "none" => (self.nofollow, self.noindex) = (true, true),
            _ => {}
        }
    }

    /// Here a word with a colon has a value and is no robot's name.
    fn add_meta(&mut self, content: &str) {
        let mut rest = content;
        while let Some(word) = next_word(&mut rest) {
            if word.has_colon {
                skip_value(&mut rest);
            } else {
                self.add(word.text);
            }
        }
    }

    /// `noindex, nofollow` is for everybody; after `name:` the rest of the value is for that robot.
    fn add_header(&mut self, value: &str) {
        let (mut rest, mut for_us) = (value, true);
        while let Some(word) = next_word(&mut rest) {
            if word.has_colon && takes_value(word.text) {
                skip_value(&mut rest);
            } else if word.has_colon && is_robot(word.text) {
                for_us = word.text.eq_ignore_ascii_case(TOKEN) || word.text == "*";
            } else if for_us {
                self.add(word.text);
            }
        }
    }
}

/// Words are parted by commas; many write semicolons or nothing but blanks.
struct Word<'a> {
    text: &'a str,
    has_colon: bool,
}

fn parts_words(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ';')
}

fn next_word<'a>(rest: &mut &'a str) -> Option<Word<'a>> {
    let from = rest.trim_start_matches(parts_words);
    let end = from.find(|c| parts_words(c) || c == ':').unwrap_or(from.len());
    let (text, behind) = from.split_at(end);
    let value = behind.trim_start().strip_prefix(':');
    *rest = value.unwrap_or(behind);
    (!from.is_empty()).then_some(Word { text, has_colon: value.is_some() })
}

/// What a value has behind its first blank, as a date may, is read as words that mean nothing.
fn skip_value(rest: &mut &str) {
    *rest = rest.trim_start().trim_start_matches(|c| !parts_words(c));
}

fn takes_value(name: &str) -> bool {
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]
        .iter()
        .any(|directive| directive.eq_ignore_ascii_case(name))
}

/// A robot's name is a product token; digits alone are the hour of a date.
fn is_robot(name: &str) -> bool {
    let is_token = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    name == "*" || is_token && name.bytes().any(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    fn flags(html: &str, tags: &[&str]) -> String {
        let fields = tags.iter().map(|tag| ("x-robots-tag".to_owned(), tag.as_bytes().to_vec()));
        let found =
            PageDirectives::of(&Tree::parse(html, &Budget::without_end()), &Headers(fields.collect()));
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
            ("<meta name=robots content='noindex nofollow'>", &[], "nofollow noindex"),
            ("<meta name=robots content='noindex;nofollow ; noarchive'>", &[], "nofollow noindex noarchive"),
            ("<meta name=robots content='max-image-preview:none, noarchive'>", &[], "noarchive"),
            ("<meta name=robots content='max-image-preview : none noarchive'>", &[], "noarchive"),
            ("<meta name=robots content='otherbot: noindex, nofollow'>", &[], "nofollow"),
            (
                "<meta name=robots content='unavailable_after: 25 Jun 2025 15:00:00 GMT, none'>",
                &[],
                "nofollow noindex",
            ),
            ("<meta name=robots content=' :, ;: '>", &[], ""),
            ("", &["noindex, nofollow"], "nofollow noindex"),
            ("", &["noindex nofollow; noarchive"], "nofollow noindex noarchive"),
            ("", &["otherbot: noindex, nofollow"], ""),
            ("", &["paced: noindex, nofollow", "noarchive"], "nofollow noindex noarchive"),
            ("", &["otherbot: noindex, Paced: nofollow"], "nofollow"),
            ("", &["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], "noindex"),
            ("", &["unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noarchive"], "noarchive"),
            ("", &["unavailable_after: 2025-06-25T15:00:00+00:00, noarchive"], "noarchive"),
            ("", &["Otherbot: unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noarchive"], ""),
            ("", &["otherbot: noindex, *: unavailable_after: 25-Jun-25 15:00:00 UTC, nofollow"], "nofollow"),
            ("", &["max-image-preview: none, max-snippet:-1, max-video-preview:, noarchive"], "noarchive"),
            ("", &["otherbot : noindex, other/2.0: nofollow; 360-bot_x:noarchive"], ""),
            ("", &["(a robot): noindex"], "noindex"),
            ("<meta name=robots content=noindex>", &["noarchive"], "noindex noarchive"),
        ] {
            assert_eq!(flags(html, tags), expected, "{html} {tags:?}");
        }
    }
}
