//! An element's text as a reader sees it. What the text means is read elsewhere.

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

/// The text inside the element with white space folded. Blocks and line breaks part words; scripts, styles and
/// templates inside it are not text.
pub fn visible(element: ElementRef<'_>) -> String {
    let mut text = String::new();
    let mut hidden = 0_usize;
    for edge in element.traverse() {
        match edge {
            Edge::Open(node) => {
                hidden += usize::from(node.id() != element.id() && is_hidden(node));
                push(&mut text, node, hidden == 0);
            }
            Edge::Close(node) => {
                hidden -= usize::from(node.id() != element.id() && is_hidden(node));
                if parts_words(node) {
                    text.push(' ');
                }
            }
        }
    }
    folded(&text)
}

/// The text with every run of white space as one space, none at the ends, and without characters of no width.
pub fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let mut seen = word.chars().filter(|c| !matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}')).peekable();
        if seen.peek().is_some() && !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(seen);
    }
    folded
}

fn push(text: &mut String, node: NodeRef<'_, Node>, seen: bool) {
    if parts_words(node) {
        text.push(' ');
    }
    if let (Node::Text(part), true) = (node.value(), seen) {
        text.push_str(part);
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
            assert_eq!(visible(Html::parse_fragment(html).root_element()), text, "{html}");
        }
    }

    #[test]
    fn a_script_that_is_asked_for_has_its_text() {
        let html = Html::parse_fragment("<script>let x = 1;</script>");
        let script = Selector::parse("script").expect("a selector");
        assert_eq!(html.select(&script).next().map(visible).as_deref(), Some("let x = 1;"));
    }
}
