//! The page as a tree, grown piece by piece so that a hostile page costs no more than a large one.

use ego_tree::NodeRef;
use html5ever::driver::{ParseOpts, Parser, parse_document};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use scraper::{Html, HtmlTreeSink, Node};

/// Elements inside elements: past this the rest of the page is left out. Browsers stop at 512 as well.
pub const MAX_DEPTH: usize = 512;
/// Nodes of one page: past this the rest is left out. A few bytes may ask for hundreds of nodes.
pub const MAX_NODES: usize = 500_000;
/// Marks between attributes that one tag or comment may hold: each attribute is compared with all before it.
pub const MAX_MARKS: usize = 30_000;

const PIECE: usize = 4 * 1024;

/// A parsed page, as much of it as was worth parsing.
#[derive(Debug)]
pub struct Tree {
    /// The elements.
    pub html: Html,
    /// The page went past a limit, and the rest of it is missing.
    pub cut: bool,
}

impl Tree {
    /// Parses the page as a browser without scripts does: what `<noscript>` holds are elements.
    pub fn parse(text: &str) -> Self {
        let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let opts = ParseOpts { tree_builder, ..ParseOpts::default() };
        let mut parser = parse_document(HtmlTreeSink::new(Html::new_document()), opts);
        let mut guard = Guard::default();
        let mut cut = false;
        for piece in pieces(text) {
            parser.process(StrTendril::from(piece));
            cut = guard.trips(&parser, piece);
            if cut {
                break;
            }
        }
        Self { html: parser.finish(), cut }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, tail) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Looks at the tree after each piece.
#[derive(Default)]
struct Guard {
    nodes: usize,
    text: usize,
    marks: usize,
}

impl Guard {
    fn trips(&mut self, parser: &Parser<HtmlTreeSink>, piece: &str) -> bool {
        let mut html = parser.tokenizer.sink.sink.0.borrow_mut();
        // A binary page brings an error a byte, and nobody reads them.
        html.errors.clear();
        let nodes = html.tree.values().len();
        let fresh = nodes - self.nodes;
        let text = html.tree.values().next_back().and_then(Node::as_text).map_or(0, |text| text.len());
        let stands = fresh == 0 && text == self.text;
        self.marks = if stands { self.marks } else { 0 } + marks(piece);
        (self.nodes, self.text) = (nodes, text);
        let is_deep = |node: NodeRef<'_, Node>| node.ancestors().nth(MAX_DEPTH).is_some();
        let deep = nodes > MAX_DEPTH && html.tree.nodes().rev().take(fresh).any(is_deep);
        deep || nodes > MAX_NODES || self.marks > MAX_MARKS
    }
}

/// Counted in bytes by portions that fit one, which a processor does many at a time.
fn marks(piece: &str) -> usize {
    let mark = |b: &u8| u8::from(matches!(b, b' ' | b'\t' | b'\n' | b'/' | b'"' | b'\''));
    let portion = |bytes: &[u8]| usize::from(bytes.iter().map(mark).sum::<u8>());
    piece.as_bytes().chunks(usize::from(u8::MAX)).map(portion).sum()
}

#[cfg(test)]
mod tests {
    use scraper::Selector;

    use super::*;

    fn count(tree: &Tree, css: &str) -> usize {
        tree.html.select(&Selector::parse(css).expect("a selector")).count()
    }

    #[test]
    fn an_ordinary_page_is_whole() {
        let page = format!("<title>x</title>{}", "<div><p>text <b>bold</b></p></div>".repeat(5000));
        let tree = Tree::parse(&page);
        assert!(!tree.cut);
        assert_eq!(count(&tree, "b"), 5000);
    }

    #[test]
    fn a_hundred_thousand_nested_divs_are_cut_and_the_head_is_kept() {
        let tree = Tree::parse(&format!("<title>x</title>{}", "<div>".repeat(100_000)));
        assert!(tree.cut);
        assert_eq!(count(&tree, "title"), 1);
        assert!(count(&tree, "div") < 2000);
    }

    #[test]
    fn depth_is_seen_behind_shallow_nodes() {
        let tree = Tree::parse(&format!("{}</body><!-- -->", "<div>".repeat(700)).repeat(100));
        assert!(tree.cut);
    }

    #[test]
    fn formatting_that_multiplies_is_cut() {
        let formats = (0..400).map(|n| format!("<b a={n}>")).collect::<Vec<_>>().concat();
        let tree = Tree::parse(&format!("<p>{formats}{}", "<p>x".repeat(100_000)));
        assert!(tree.cut);
        assert!(tree.html.tree.values().len() < 2 * MAX_NODES);
    }

    #[test]
    fn a_tag_of_a_million_attributes_is_cut() {
        let attributes = (0..1_000_000).map(|n| format!(" a{n}")).collect::<Vec<_>>().concat();
        assert!(Tree::parse(&format!("<h1>kept</h1><p{attributes}>")).cut);
    }

    #[test]
    fn long_text_and_large_inline_images_are_no_attack() {
        let image = format!(
            "<img src='data:image/png;base64,{}'><i></i>",
            "iVBORw0KGgoAAAANSUhEUgAA+/".repeat(25_000)
        );
        let tree = Tree::parse(&format!("<p>{}</p>{image}", "some words of text ".repeat(100_000)));
        assert_eq!((tree.cut, count(&tree, "i")), (false, 1));
    }

    #[test]
    fn what_noscript_holds_are_elements() {
        let tree = Tree::parse("<body><noscript><a href=/x>x</a></noscript>");
        assert_eq!(count(&tree, "noscript a"), 1);
    }

    #[test]
    fn an_empty_and_a_binary_page_have_a_tree() {
        let binary: String = (0..200_000_u32).filter_map(|n| char::from_u32(n % 256)).collect();
        for page in ["", "\0", &binary] {
            assert_eq!(count(&Tree::parse(page), "html"), 1);
        }
    }
}
