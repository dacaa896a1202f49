//! CSS selectors of a site file. Each knows what its elements must have, so that most of a page is passed over at a glance.

mod counted;

use std::mem::take;

use cssparser::{Parser, Token};
use html5ever::{LocalName, local_name};
use scraper::error::SelectorErrorKind;
use scraper::node::Element;
use scraper::selector::{self, Simple};
use scraper::{ElementRef, Html};
use selectors::SelectorList;
use selectors::parser::ParseRelative;

use crate::budget::Budget;
use counted::Matcher;

/// A compiled selector, or several with commas between.
#[derive(Clone, Debug)]
pub struct Css {
    selectors: SelectorList<Simple>,
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
        let selectors = SelectorList::parse(&selector::Parser, &mut Parser::new(text), ParseRelative::No)?;
        Ok(Self { selectors, needs: needs(text) })
    }

    /// The elements of the page that match, in the order in which the parser made them; no more once the budget is spent.
    pub fn select<'a>(&'a self, html: &'a Html, budget: &'a Budget) -> impl Iterator<Item = ElementRef<'a>> {
        let mut matcher = Matcher::of(&self.selectors, budget);
        let nodes = html.tree.nodes().take_while(|_| budget.pays(1));
        let elements = nodes.filter_map(ElementRef::wrap).filter(|element| element.parent().is_some());
        elements.filter(move |element| self.may_match(element.value(), budget) && matcher.matches(*element))
    }

    fn may_match(&self, element: &Element, budget: &Budget) -> bool {
        self.needs.as_ref().is_none_or(|all| all.iter().any(|needs| needs.are_met(element, budget)))
    }
}

impl Needs {
    fn are_met(&self, element: &Element, budget: &Budget) -> bool {
        let has = |name: &LocalName, wanted: &str| {
            let mut named = element.attrs.iter().filter(|(attribute, _)| attribute.local == *name);
            named.any(|(_, value)| budget.reads(value.len()) && has_word(value, wanted))
        };
        self.tag.as_ref().is_none_or(|tag| element.name.local == *tag)
            && self.class.as_ref().is_none_or(|class| has(&local_name!("class"), class))
            && self.id.as_ref().is_none_or(|id| has(&local_name!("id"), id))
    }
}

fn has_word(value: &str, wanted: &str) -> bool {
    value.split_ascii_whitespace().any(|word| word == wanted)
}

/// What the selectors between commas need; none where something stands in them that isn't known here. What isn't told needs
/// nothing: `selectors` decide in any case.
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
    use scraper::Selector;

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

    #[test]
    fn siblings_that_are_all_compared_cost_their_steps_and_no_more_than_there_are() {
        let html = Html::parse_document(&format!("<p>{}", "<b></b>".repeat(20_000)));
        let css = Css::parse("i ~ b").expect("a selector");
        let budget = Budget::of_steps(1_000_000);
        assert_eq!(css.select(&html, &budget).count(), 0);
        assert!(budget.spent().is_some() && budget.steps() < 1_100_000, "{}", budget.steps());
        let budget = Budget::without_end();
        assert_eq!(css.select(&html, &budget).count(), 0);
        assert!(budget.steps() > 100_000_000 && budget.most_at_once() < 100);
    }

    #[test]
    fn a_long_attribute_costs_its_length_each_time_that_it_is_compared() {
        let long = "y ".repeat(500_000);
        let html = Html::parse_document(&format!("<div class='{long}' x='{long}'>{}", "<b></b>".repeat(100)));
        for css in [".x b", "[x*=z] b", "div:not(.x) > b", "#x b"] {
            let budget = Budget::without_end();
            let _ = Css::parse(css).expect("a selector").select(&html, &budget).count();
            assert!(css.contains('#') || budget.steps() > 60_000, "{css}: {}", budget.steps());
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
            let (budget, selector) = (Budget::without_end(), Selector::parse(&parts.concat()).expect("a selector"));
            let ours: Vec<_> = css.select(&html, &budget).map(|element| element.id()).collect();
            let own: Vec<_> = html.select(&selector).map(|element| element.id()).collect();
            prop_assert_eq!(ours, own);
        }
    }
}
