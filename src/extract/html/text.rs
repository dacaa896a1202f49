//! An element's text as a reader sees it. What the text means is read elsewhere.

use std::mem::take;

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

use crate::budget::Budget;

/// Bytes of a value, at most: a description of a megabyte is no description.
pub const MOST_OF_A_VALUE: usize = 1 << 20;
/// Bytes that are read between two looks at the budget.
pub const PIECE: usize = 64 << 10;

/// The text inside the element with white space folded. Blocks and line breaks part words; scripts, styles and
/// templates inside it are not text. Each node and letter is paid for. A text that is longer than a value may be ends soon behind
/// that.
pub fn visible(element: ElementRef<'_>, budget: &Budget) -> String {
    let mut text = FoldedText::default();
    let mut hidden = 0_usize;
    for edge in element.traverse() {
        if text.is_long() || !budget.pays(2) {
            break;
        }
        let (Edge::Open(node) | Edge::Close(node)) = edge;
        if parts_words(node) {
            text.part();
        }
        let hides = usize::from(node.id() != element.id() && is_hidden(node));
        match edge {
            Edge::Close(_) => hidden -= hides,
            Edge::Open(_) => {
                hidden += hides;
                if let (Node::Text(part), 0) = (node.value(), hidden) {
                    text.read(part, budget);
                }
            }
        }
    }
    text.text
}

/// The text with every run of white space as one space, none at the ends, and without characters of no width.
pub fn folded(text: &str) -> String {
    let mut folded =
        FoldedText { text: String::with_capacity(text.len().min(MOST_OF_A_VALUE)), ..FoldedText::default() };
    folded.push(text);
    folded.text
}

/// As much of a text as tells that it is longer than a value may be.
pub fn as_long_as_a_value(text: &str) -> &str {
    &text[..text.ceil_char_boundary(MOST_OF_A_VALUE + 1)]
}

/// The text in pieces of a bounded length.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Text that is folded as it comes, up to where it is longer than a value may be.
#[derive(Default)]
struct FoldedText {
    text: String,
    /// White space was met since the last letter.
    is_parted: bool,
}

impl FoldedText {
    fn part(&mut self) {
        self.is_parted = true;
    }

    fn is_long(&self) -> bool {
        self.text.len() > MOST_OF_A_VALUE
    }

    fn read(&mut self, text: &str, budget: &Budget) {
        for piece in pieces(text) {
            if self.is_long() || !budget.reads(2 * piece.len()) {
                return;
            }
            self.push(piece);
        }
    }

    fn push(&mut self, text: &str) {
        self.is_parted |= text.starts_with(char::is_whitespace);
        for (nth, word) in text.split_whitespace().enumerate() {
            self.is_parted |= nth > 0;
            let mut seen =
                word.chars().filter(|c| !matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}')).peekable();
            if seen.peek().is_some() {
                if take(&mut self.is_parted) && !self.text.is_empty() {
                    self.text.push(' ');
                }
                self.text.extend(seen);
            }
        }
        self.is_parted |= text.ends_with(char::is_whitespace);
    }
}

fn is_hidden(node: NodeRef<'_, Node>) -> bool {
    let name = node.value().as_element().map(scraper::node::Element::name);
    matches!(name, Some("script" | "style" | "template"))
}

fn parts_words(node: NodeRef<'_, Node>) -> bool {
    const INLINE: [&str; 41] = [
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
        "i", "img", "ins", "kbd", "label", "mark", "meta", "link", "nobr", "q", "ruby", "s", "samp",
        "script", "small", "span", "strike", "strong", "style", "sub", "sup", "template", "time", "tt", "u",
        "var", "wbr",
    ];
    node.value().as_element().is_some_and(|element| !INLINE.contains(&element.name()))
}

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};

    use super::*;

    #[test]
    fn the_text_is_what_a_reader_sees() {
        for (html, text) in [
            ("<p> A\n\t<b>B</b>C </p>", "A BC"),
            ("A<br>B", "A B"),
            ("<p>A</p><p>B</p>", "A B"),
            ("<ul><li>A</li><li>B</li></ul>", "A B"),
            ("<table><tr><td>1<td>2</table>", "1 2"),
            ("<span>&pound;</span><span>51</span><sup>.77</sup>", "£51.77"),
            ("A<script>x()</script><style>y{}</style><template>z</template><!-- c -->B", "AB"),
            ("1&nbsp;234&#8239;&euro;", "1 234 €"),
            ("soft&shy;ware, zero&#8203;width &#8203; x", "software, zerowidth x"),
            ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
            ("", ""),
        ] {
            assert_eq!(
                visible(Html::parse_fragment(html).root_element(), &Budget::without_end()),
                text,
                "{html}"
            );
        }
    }

    #[test]
    fn a_text_in_pieces_is_folded_as_a_whole_and_ends_soon_behind_the_longest_value() {
        let parts = [" a", "\u{200b}", "b\u{ad} ", " ", "\u{feff}", " c", "d", "", "e\n"];
        let mut pieced = FoldedText::default();
        for part in parts {
            pieced.push(part);
        }
        assert_eq!((pieced.text.as_str(), folded(&parts.concat()).as_str()), ("ab cde", "ab cde"));
        let long = "é ".repeat(400_000);
        assert_eq!(pieces(&long).collect::<Vec<_>>().concat(), long);
        let html = Html::parse_fragment(&format!("<p>{long}</p><i>{}</i>", " x".repeat(3 << 20)));
        let text = visible(html.root_element(), &Budget::without_end());
        assert!((MOST_OF_A_VALUE + 1..MOST_OF_A_VALUE + PIECE).contains(&text.len()), "{}", text.len());
        assert_eq!(as_long_as_a_value(&long).len(), MOST_OF_A_VALUE + 1);
        assert_eq!(as_long_as_a_value("é"), "é");
    }

    #[test]
    fn a_script_that_is_asked_for_has_its_text() {
        let html = Html::parse_fragment("<script>let x = 1;</script>");
        let script = Selector::parse("script").expect("a selector");
        assert_eq!(
            html.select(&script).next().map(|script| visible(script, &Budget::without_end())).as_deref(),
            Some("let x = 1;")
        );
    }
}
