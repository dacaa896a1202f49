//! CSS selectors of a site file. Each knows what its elements must have, so that most of a page is passed over at a glance.

use html5ever::{LocalName, local_name};
use scraper::error::SelectorErrorKind;
use scraper::node::Element;
use scraper::{ElementRef, Html, Selector};

/// A compiled selector, or several with commas between.
#[derive(Clone, Debug)]
pub struct Css {
    selector: Selector,
    /// An entry for each selector between commas; `None`: anything may match.
    needs: Option<Vec<Needs>>,
}

/// What an element must have that the last part of a selector names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Needs {
    tag: Option<LocalName>,
    class: Option<String>,
    id: Option<String>,
}

impl Css {
    /// Compiles a selector list (Selectors Level 4).
    pub fn parse(text: &str) -> Result<Self, SelectorErrorKind> {
        Ok(Self { selector: Selector::parse(text)?, needs: needs(text) })
    }

    /// The elements of the page that match, in the order in which the parser made them.
    pub fn select<'a>(&'a self, html: &'a Html) -> Box<dyn Iterator<Item = ElementRef<'a>> + 'a> {
        let Some(needs) = &self.needs else {
            // It remembers what `:nth-child` and its like counted.
            return Box::new(html.select(&self.selector));
        };
        let candidates = html.tree.nodes().filter(|node| {
            node.value().as_element().is_some_and(|element| needs.iter().any(|needs| needs.are_met(element)))
        });
        let inside = candidates.filter_map(ElementRef::wrap).filter(|element| element.parent().is_some());
        Box::new(inside.filter(|element| self.selector.matches(element)))
    }
}

impl Needs {
    fn are_met(&self, element: &Element) -> bool {
        let has = |name: &LocalName, wanted: &str| {
            let named = element.attrs.iter().filter(|(attribute, _)| attribute.local == *name);
            named.flat_map(|(_, value)| value.split_ascii_whitespace()).any(|word| word == wanted)
        };
        self.tag.as_ref().is_none_or(|tag| element.name.local == *tag)
            && self.class.as_ref().is_none_or(|class| has(&local_name!("class"), class))
            && self.id.as_ref().is_none_or(|id| has(&local_name!("id"), id))
    }
}

/// What the selectors between commas need; none where the text isn't read to its end. What isn't told needs nothing: `selector`
/// decides in any case.
fn needs(text: &str) -> Option<Vec<Needs>> {
    let (mut all, mut last) = (Vec::new(), Needs::default());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        rest = match first {
            ',' => {
                all.push(std::mem::take(&mut last));
                behind.trim_ascii_start()
            }
            '*' => behind,
            '.' => {
                let (class, behind) = name(behind)?;
                last.class = Some(class.to_owned());
                behind
            }
            '#' => {
                let (id, behind) = name(behind)?;
                last.id = Some(id.to_owned());
                behind
            }
            '[' => attribute_end(behind)?,
            '>' | '+' | '~' | ' ' | '\t' | '\n' | '\r' | '\u{c}' => {
                let behind = behind.trim_ascii_start();
                if !behind.is_empty() && !behind.starts_with(',') {
                    last = Needs::default();
                }
                behind
            }
            _ => {
                let (tag, behind) = name(rest)?;
                // Another spelling than the page's is compared without regard to case, in HTML.
                let exact = !tag.contains(|c: char| c.is_ascii_uppercase());
                last.tag = exact.then(|| LocalName::from(tag));
                behind
            }
        };
    }
    all.push(last);
    Some(all)
}

/// A plain name, without escapes, and what is behind it.
fn name(text: &str) -> Option<(&str, &str)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What is behind an attribute's closing bracket.
fn attribute_end(text: &str) -> Option<&str> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            // A slash without quotes begins a comment.
            ('\\', _) | ('/', None) => return None,
            (']', None) => return Some(&text[at + 1..]),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_part_of_a_selector_tells_what_it_needs() {
        let told = |css: &str| {
            let needs = needs(css)?;
            let text = |Needs { tag, class, id }: Needs| {
                let parts = [
                    tag.map(|tag| tag.to_string()),
                    class.map(|class| format!(".{class}")),
                    id.map(|id| format!("#{id}")),
                ];
                parts.into_iter().flatten().collect::<String>()
            };
            Some(needs.into_iter().map(text).collect::<Vec<_>>().join(" "))
        };
        for (css, needs) in [
            ("h1", Some("h1")),
            (" h1 ", Some("h1")),
            ("DIV.a", Some(".a")),
            ("div#x .y > a.b[href='a] b'].c", Some("a.c")),
            ("a , b+c~d", Some("a d")),
            ("*", Some("")),
            ("[href]", Some("")),
            ("ul > *", Some("")),
            ("a:first-child", None),
            ("svg|a", None),
            ("a\\.b", None),
            ("ä", None),
            ("a/**/b", None),
            ("[a/*].x", None),
            ("[a/*\"*/], .z[c/*\"*/].y", None),
            ("[a='/x'].y", Some(".y")),
            ("[a='\\'']", None),
        ] {
            assert_eq!(told(css).as_deref(), needs, "{css}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_the_selector_finds_by_itself(
            parts in prop::collection::vec(prop::sample::select(&[
                "a", "b", "svg", "LI", "Path", ".x", ".y", ".X", "#x", "#y", "*", "[x]", "[x='y z']", "[x/*].y", "/*", " ", ">", "+", "~", ",",
                " , ", ":first-child", ":not(.x)", ":has(b)", "\n",
            ]), 1..7),
            page in prop::collection::vec(prop::sample::select(&[
                "<a class=x>", "<a class='y x' id=x>", "<b id=y x='y z'>", "<b class=X>", "<li class=\"a\ty\">", "</a>", "</b>", "</li>",
                "<svg class=x>", "<path id=x>", "</svg>", "<table>", "<a>", "</table>", "<template>", "</template>", "text",
            ]), 0..30),
        ) {
            let Ok(css) = Css::parse(&parts.concat()) else { return Ok(()) };
            let html = Html::parse_document(&page.concat());
            let ours: Vec<_> = css.select(&html).map(|element| element.id()).collect();
            let own: Vec<_> = html.select(&css.selector).map(|element| element.id()).collect();
            prop_assert_eq!(ours, own);
        }
    }
}
