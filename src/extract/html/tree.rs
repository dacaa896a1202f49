//! The page as a tree, of no more than is worth having.

use ego_tree::NodeRef;
use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Token, TokenSink};
use html5ever::tree_builder::TreeSink;
use html5gum::Tokenizer;
use scraper::{ElementRef, Html, Node};

use super::tokens::{Tokens, builder};
use crate::budget::Budget;
use crate::site::Css;

/// A shop's page has a node about every so many bytes.
const BYTES_A_NODE: usize = 32;
/// The nodes that a tree begins with room for, at most.
const MOST_ROOM: usize = 4_096;
/// Bytes of a page that are looked at, at most: a tendril counts its own in 32 bits.
const LONGEST: usize = 1 << 30;

/// A parsed page, as much of it as was worth parsing, and the budget that each walk over it is paid from.
#[derive(Debug)]
pub struct Tree {
    /// The elements.
    pub html: Html,
    /// The page went past a limit, and the rest of it is missing.
    pub cut: bool,
    /// What is left for it.
    pub budget: Budget,
}

impl Tree {
    /// Parses the page as a browser without scripts does: what `<noscript>` holds are elements.
    pub fn parse(text: &str, budget: &Budget) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (text, is_long) = beginning(text, LONGEST);
        let page = StrTendril::from_slice(text);
        let builder = builder((text.len() / BYTES_A_NODE).min(MOST_ROOM));
        // It stops with something only where a limit was passed.
        let cut = Tokenizer::new_with_emitter(&*page, Tokens::of(&page, &builder, budget)).next().is_some();
        let _ = builder.process_token(Token::EOFToken, 1);
        builder.end();
        Self { html: builder.sink.finish(), cut: cut || is_long, budget: budget.clone() }
    }

    /// The elements in the order of the page.
    pub fn elements(&self) -> impl Iterator<Item = ElementRef<'_>> {
        self.each(self.html.tree.root().descendants())
    }

    /// The element and all in it, in the order of the page.
    pub fn inside<'a>(&'a self, element: ElementRef<'a>) -> impl Iterator<Item = ElementRef<'a>> {
        self.each(element.descendants())
    }

    /// The elements right inside this one.
    pub fn children<'a>(&'a self, element: ElementRef<'a>) -> impl Iterator<Item = ElementRef<'a>> {
        self.each(element.children())
    }

    /// The elements of that name, in the order in which the parser made them.
    pub fn named(&self, name: LocalName) -> impl Iterator<Item = ElementRef<'_>> {
        let elements = self.each(self.html.tree.nodes());
        elements.filter(move |element| element.value().name.local == name && element.parent().is_some())
    }

    /// The elements that the selector finds.
    pub fn select<'a>(&'a self, css: &'a Css) -> impl Iterator<Item = ElementRef<'a>> {
        css.select(&self.html, &self.budget)
    }

    /// The elements among these nodes; each node is paid for.
    fn each<'a>(
        &'a self,
        nodes: impl Iterator<Item = NodeRef<'a, Node>>,
    ) -> impl Iterator<Item = ElementRef<'a>> {
        nodes.take_while(|_| self.budget.pays(1)).filter_map(ElementRef::wrap)
    }
}

/// As much of the text as is looked at, and whether that isn't all.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    (&text[..text.floor_char_boundary(most)], text.len() > most)
}

#[cfg(test)]
mod tests {
    use html5ever::driver::{ParseOpts, parse_document};
    use html5ever::tendril::TendrilSink;
    use html5ever::tree_builder::TreeBuilderOpts;
    use proptest::prelude::*;
    use scraper::{HtmlTreeSink, Selector};

    use super::super::guard::MAX_NODES;
    use super::*;

    fn parsed(text: &str) -> Tree {
        Tree::parse(text, &Budget::without_end())
    }

    fn count(tree: &Tree, css: &str) -> usize {
        tree.html.select(&Selector::parse(css).expect("a selector")).count()
    }

    #[test]
    fn an_ordinary_page_is_whole() {
        let page = format!("<title>x</title>{}", "<div><p>text <b>bold</b></p></div>".repeat(5000));
        let tree = parsed(&page);
        assert!(!tree.cut);
        assert_eq!(count(&tree, "b"), 5000);
    }

    #[test]
    fn a_hundred_thousand_nested_divs_are_cut_and_the_head_is_kept() {
        let tree = parsed(&format!("<title>x</title>{}", "<div>".repeat(100_000)));
        assert!(tree.cut);
        assert_eq!(count(&tree, "title"), 1);
        assert!(count(&tree, "div") < 2000);
    }

    #[test]
    fn depth_is_seen_behind_shallow_nodes() {
        let tree = parsed(&format!("{}</body><!-- -->", "<div>".repeat(700)).repeat(100));
        assert!(tree.cut);
    }

    #[test]
    fn formatting_that_multiplies_is_cut() {
        let formats = (0..400).map(|n| format!("<b a={n}>")).collect::<Vec<_>>().concat();
        let tree = parsed(&format!("<p>{formats}{}", "<p>x".repeat(100_000)));
        assert!(tree.cut);
        assert!(tree.html.tree.values().len() < 2 * MAX_NODES);
    }

    #[test]
    fn a_tag_of_a_million_attributes_is_cut() {
        let attributes = (0..1_000_000).map(|n| format!(" a{n}")).collect::<Vec<_>>().concat();
        assert!(parsed(&format!("<h1>kept</h1><p{attributes}>")).cut);
    }

    #[test]
    fn attributes_that_are_put_to_the_first_tag_or_cloned_with_each_node_are_cut() {
        let names =
            |from: usize| (from..from + 400).rev().map(|n| format!(" a{n}")).collect::<Vec<_>>().concat();
        for tag in ["html", "body"] {
            let page: Vec<_> = (0..100).rev().map(|nth| format!("<{tag}{}>", names(nth * 400))).collect();
            assert!(parsed(&page.concat()).cut, "{tag}");
        }
        let formats: Vec<_> = (0..100).map(|nth| format!("<b{}>", names(nth * 400))).collect();
        let tree = parsed(&format!("<p>{}{}", formats.concat(), "<p>x".repeat(10_000)));
        assert!(tree.cut && tree.html.tree.values().len() < 20_000);
    }

    #[test]
    fn errors_of_a_binary_page_are_thrown_away() {
        let tree = parsed(&"\0".repeat(100_000));
        assert!(tree.html.errors.len() < 2_000, "{}", tree.html.errors.len());
    }

    #[test]
    fn long_text_and_large_inline_images_are_no_attack() {
        let image = format!(
            "<img src='data:image/png;base64,{}'><i></i>",
            "iVBORw0KGgoAAAANSUhEUgAA+/".repeat(25_000)
        );
        let tree = parsed(&format!("<p>{}</p>{image}", "some words of text ".repeat(100_000)));
        assert_eq!((tree.cut, count(&tree, "i")), (false, 1));
    }

    #[test]
    fn what_is_repeated_thousands_of_times_costs_neither_stack_nor_squares() {
        let more = [
            "<p",
            " a",
            " a=b",
            " a='b'",
            " a=\"b\"/",
            "-",
            "<!--a",
            "</",
            "&",
            "&a",
            "&#",
            "]]>",
            "<!doctype",
        ];
        for bit in BITS.iter().chain(&more) {
            for before in ["", "<p ", "<!--", "<svg><![CDATA[", "<textarea>", "<script><!--", "<!doctype "] {
                let page = format!("{before}{}", bit.repeat(6_000));
                let small = std::thread::Builder::new().stack_size(1 << 19);
                let parsing = small.spawn(move || parsed(&page).html.tree.values().len());
                let nodes = parsing.expect("a thread").join().expect("no panic");
                assert!(nodes < 2 * MAX_NODES, "{before}{bit}");
            }
        }
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_whole_character() {
        assert_eq!(beginning("one ä", 6), ("one ä", false));
        assert_eq!(beginning("one ä", 5), ("one ", true));
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        for page in ["\u{feff}", "\u{feff}<!doctype html><p>x", "\u{feff}\u{feff}x"] {
            assert!(is_as_by_html5ever(page), "{page:?}");
        }
    }

    #[test]
    fn what_noscript_holds_are_elements() {
        let tree = parsed("<body><noscript><a href=/x>x</a></noscript>");
        assert_eq!(count(&tree, "noscript a"), 1);
    }

    #[test]
    fn an_empty_and_a_binary_page_have_a_tree() {
        let binary: String = (0..200_000_u32).filter_map(|n| char::from_u32(n % 256)).collect();
        for page in ["", "\0", &binary] {
            assert_eq!(count(&parsed(page), "html"), 1);
        }
    }

    /// The tree that html5ever makes by itself.
    fn by_html5ever(text: &str) -> Html {
        let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let opts = ParseOpts { tree_builder, ..ParseOpts::default() };
        parse_document(HtmlTreeSink::new(Html::new_document()), opts).one(text)
    }

    fn is_as_by_html5ever(text: &str) -> bool {
        let (ours, theirs) = (parsed(text).html, by_html5ever(text));
        ours.tree == theirs.tree && ours.quirks_mode == theirs.quirks_mode
    }

    const BITS: &[&str] = &[
        "<div>",
        "</div>",
        "<p>",
        "</p>",
        "<a href=/x>",
        "<a href='a&amp;b' x=\"1\" x=2>",
        "</a>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<table>",
        "<tr>",
        "<td>",
        "</table>",
        "<script>",
        "</script>",
        "</script >",
        "<!--",
        "-->",
        "--!>",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "</titl",
        "<textarea>\n",
        "</textarea>",
        "<pre>\n",
        "<svg>",
        "<math>",
        "</svg>",
        "<![CDATA[",
        "]]>",
        "<foreignObject>",
        "<!doctype html>",
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\" 'x'>",
        "<!doctype>",
        "<plaintext>",
        "<select>",
        "<option>",
        "<template>",
        "</template>",
        "<noscript>",
        "</noscript>",
        "<br/>",
        "</br>",
        "<img src=x alt>",
        "<svg/>",
        "<frameset>",
        "<body class=x>",
        "<html lang=de>",
        "<head>",
        "</head>",
        "<meta charset=utf-8>",
        "<form>",
        "</form>",
        "<input>",
        "&amp;",
        "&lt",
        "&notit;",
        "&#x41;",
        "&#0;",
        "&#128;",
        "&#xD800;",
        "&;",
        "&nosuch;",
        "&ampx=",
        "=",
        "'",
        "\"",
        ">",
        "<",
        "/",
        "!",
        "?",
        " ",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\u{c}",
        "\0",
        "a",
        "Z",
        "ä",
        "日本",
        "\u{1F600}",
        "\u{FFFF}",
        "\u{80}",
        "text",
        "<A HREF=Y B>",
        "<x-y a=b/c>",
        "<p a = 'b' c=\"d\"e>",
        "</p x=y>",
        "<1>",
        "</1>",
        "<?pi?>",
        "<!x>",
        "<li>",
        "<ul>",
        "</ul>",
        "<h1>",
        "</h2>",
        "<button>",
        "<nobr>",
        "<iframe>",
        "</iframe>",
        "<xmp>",
        "<caption>",
        "<colgroup>",
        "<ruby>",
        "<rt>",
        "<image>",
        "<isindex>",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn any_soup_of_tags_makes_the_tree_that_html5ever_makes(
            bits in prop::collection::vec(prop::sample::select(BITS), 0..40),
        ) {
            let soup = bits.concat();
            prop_assert!(is_as_by_html5ever(&soup), "{soup:?}");
        }

        #[test]
        fn any_text_makes_the_tree_that_html5ever_makes(text in "\\PC{0,60}|[<>a-c/='\" &;!\\-\\[\\]\0\r\n]{0,60}") {
            prop_assert!(is_as_by_html5ever(&text), "{text:?}");
        }
    }
}
