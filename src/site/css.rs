//! CSS selectors of a site file. Each knows what its elements must have, so that most of a page is passed over at a glance.

use std::mem::take;

use cssparser::{Parser, Token};
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

/// What the selectors between commas need; none where something stands in them that isn't known here. What isn't told needs
/// nothing: `selector` decides in any case.
fn needs(text: &str) -> Option<Vec<Needs>> {
    let mut tokens = Parser::new(text);
    let (mut all, mut last, mut is_past) = (Vec::new(), Needs::default(), false);
    while let Ok(token) = tokens.next_including_whitespace().cloned() {
        match token {
            Token::WhiteSpace(_) | Token::Delim('>' | '+' | '~') => {
                is_past = true;
                continue;
            }
            Token::Comma => {
                all.push(take(&mut last));
                is_past = false;
                continue;
            }
            // It is only known now that the part before wasn't the last one.
            _ if take(&mut is_past) => last = Needs::default(),
            _ => {}
        }
        match token {
            // The block's own tokens are stepped over.
            Token::Delim('*') | Token::SquareBracketBlock => {}
            // A tag in capitals is compared without regard to case, in HTML.
            Token::Ident(tag) => {
                last.tag = (!tag.contains(|c: char| c.is_ascii_uppercase())).then(|| LocalName::from(&*tag));
            }
            Token::IDHash(id) => last.id = Some(id.to_string()),
            Token::Delim('.') => match tokens.next_including_whitespace() {
                Ok(Token::Ident(class)) => last.class = Some(class.to_string()),
                _ => return None,
            },
            _ => return None,
        }
    }
    all.push(last);
    Some(all)
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
            ("a\\.b", Some("a.b")),
            ("ä.ö", Some("ä.ö")),
            (".a/* .b */.c", Some(".c")),
            ("[a/*].x", Some("")),
            ("[a/*\"*/], .z[c/*\"*/].y", Some(" .y")),
            ("[a='\\''].x", Some(".x")),
            ("a:first-child", None),
            ("svg|a", None),
            ("a & b", None),
        ] {
            assert_eq!(told(css).as_deref(), needs, "{css}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_the_selector_finds_by_itself(
            parts in prop::collection::vec(prop::sample::select(&[
                "a", "b", "svg", "LI", "Path", ".x", ".y", ".X", "#x", "#y", "*", "[x]", "[x='y z']", "[x/*].y", "/*", "*/", ".\\78 ", " ", ">", "+", "~", ",",
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
