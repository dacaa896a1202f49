//! What the tokenizer finds in a text, made into the tokens from which the tree is built.
//!
//! The tokenizer is html5gum's, as html5ever's own takes most of the time of a page; the tree is built by html5ever's rules
//! ([WHATWG HTML, 13.2.6](https://html.spec.whatwg.org/multipage/parsing.html#tree-construction)).

use std::mem::take;

use ego_tree::{NodeId, Tree};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Doctype, Tag, TagKind, Token, TokenSink, TokenSinkResult};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, QualName, local_name, ns};
use html5gum::{Emitter, Error, State};
use scraper::{Html, HtmlTreeSink, Node};

use super::gathered::{JoinedText, tendril};
use super::guard::{Guard, MAX_ATTRIBUTES};
use super::names::{KnownNames, RawName};
use super::text::PIECE;
use crate::budget::Budget;

/// Tags between two looks at the tree.
const LOOK: usize = 32;
/// What a token costs.
const STEPS_A_TOKEN: usize = 16;
/// Errors that are kept.
const MOST_ERRORS: usize = 1_024;

/// Gathers a token at a time and hands it to the builder of the tree.
pub(super) struct Tokens<'a> {
    builder: &'a TreeBuilder<NodeId, HtmlTreeSink>,
    /// The text that is read, and whether there are zero bytes in it.
    page: &'a StrTendril,
    has_zeroes: bool,
    guard: Guard,
    budget: &'a Budget,
    /// Bytes that were read and are to be paid for with the next token.
    unpaid: usize,
    tags: usize,
    /// Attributes of all tags `html` and `body`.
    of_roots: usize,
    /// The page went past a limit: nothing more is wanted.
    cut: bool,
    text: JoinedText,
    kind: TagKind,
    name: RawName,
    last_start: RawName,
    self_closing: bool,
    attributes: Vec<Attribute>,
    attribute: RawName,
    value: JoinedText,
    names: KnownNames,
    comment: JoinedText,
    doctype: DoctypeNames,
}

/// A doctype's name and identifiers.
#[derive(Default)]
struct DoctypeNames {
    name: Vec<u8>,
    public: Option<Vec<u8>>,
    system: Option<Vec<u8>>,
    force_quirks: bool,
}

/// A builder of an empty tree, with room for so many nodes, for a browser without scripts: what `<noscript>` holds are elements.
pub(super) fn builder(room: usize) -> TreeBuilder<NodeId, HtmlTreeSink> {
    let opts = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let tree = Tree::with_capacity(Node::Document, room);
    TreeBuilder::new(HtmlTreeSink::new(Html { tree, ..Html::new_document() }), opts)
}

impl<'a> Tokens<'a> {
    pub(super) fn of(
        page: &'a StrTendril,
        builder: &'a TreeBuilder<NodeId, HtmlTreeSink>,
        budget: &'a Budget,
    ) -> Self {
        Self {
            builder,
            page,
            has_zeroes: page.contains('\0'),
            guard: Guard::default(),
            budget,
            unpaid: 0,
            tags: 0,
            of_roots: 0,
            cut: false,
            text: JoinedText::default(),
            kind: TagKind::StartTag,
            name: RawName::default(),
            last_start: RawName::default(),
            self_closing: false,
            attributes: Vec::new(),
            attribute: RawName::default(),
            value: JoinedText::default(),
            names: KnownNames::default(),
            comment: JoinedText::default(),
            doctype: DoctypeNames::default(),
        }
    }

    fn hand(&mut self, token: Token) -> TokenSinkResult<NodeId> {
        // Open elements are compared with a tag, hundreds at most, mostly a few.
        self.cut |= !self.budget.pays(STEPS_A_TOKEN + take(&mut self.unpaid) / 16);
        let result = self.builder.process_token(token, 1);
        let errors = &mut self.builder.sink.0.borrow_mut().errors;
        if errors.len() > MOST_ERRORS {
            // A binary page brings an error a byte, and nobody reads them.
            errors.clear();
        }
        result
    }

    /// The text since the last token; a zero byte is a token of its own.
    fn hand_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = self.text.take(self.page);
        if !self.has_zeroes {
            return self.hand_characters(text);
        }
        for (nth, part) in text.split('\0').take_while(|_| !self.budget.is_spent()).enumerate() {
            if nth > 0 {
                let _ = self.hand(Token::NullCharacterToken);
            }
            self.hand_characters(StrTendril::from_slice(part));
        }
    }

    /// A long text piece by piece: some places of the tree look at each of its words.
    fn hand_characters(&mut self, text: StrTendril) {
        if text.len() > PIECE {
            return self.hand_piecewise(text);
        }
        if !text.is_empty() {
            let _ = self.hand(Token::CharacterTokens(text));
        }
    }

    /// Each piece shares the page's memory.
    #[cold]
    fn hand_piecewise(&mut self, mut rest: StrTendril) {
        while !rest.is_empty() && !self.cut {
            let after = rest.len() - rest.floor_char_boundary(PIECE);
            let mut piece = rest.clone();
            piece.pop_back(u32::try_from(after).unwrap_or_default());
            rest.pop_front(piece.len32());
            self.read(piece.as_bytes());
            let _ = self.hand(Token::CharacterTokens(piece));
        }
    }

    /// Counts bytes of the page: names come byte by byte, so that they are paid for token by token, and piece by piece in a long one.
    #[inline]
    fn read(&mut self, bytes: &[u8]) {
        self.unpaid += bytes.len();
        if self.unpaid >= PIECE {
            self.pay();
        }
    }

    #[cold]
    fn pay(&mut self) {
        let mut unpaid = take(&mut self.unpaid);
        while unpaid > 0 && !self.cut {
            let piece = unpaid.min(PIECE);
            unpaid -= piece;
            self.cut = !self.budget.reads(piece);
        }
    }

    /// Puts the attribute that was read to its tag; of two with one name the first counts.
    fn keep_attribute(&mut self) {
        if self.attribute.is_empty() {
            return;
        }
        let name = self.names.get(&self.attribute);
        self.attribute.clear();
        let value = self.value.take(self.page);
        if !self.attributes.iter().any(|other| other.name.local == name) {
            self.attributes.push(Attribute { name: QualName::new(None, ns!(), name), value });
        }
        self.cut |= self.attributes.len() > MAX_ATTRIBUTES || !self.budget.pays(1 + self.attributes.len());
    }

    fn look_at_the_tree(&mut self) {
        self.tags += 1;
        if self.tags.is_multiple_of(LOOK) {
            self.cut |= self.guard.trips(&self.builder.sink.0.borrow(), self.budget);
        }
    }
}

/// Mostly a single byte, which needs no copying of memory.
fn add(to: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [byte] => to.push(*byte),
        bytes => to.extend_from_slice(bytes),
    }
}

/// How the text after a tag is to be read, where the tag says so.
fn state_after(result: &TokenSinkResult<NodeId>) -> Option<State> {
    match result {
        TokenSinkResult::Plaintext => Some(State::PlainText),
        TokenSinkResult::RawData(RawKind::Rcdata) => Some(State::RcData),
        TokenSinkResult::RawData(RawKind::Rawtext) => Some(State::RawText),
        TokenSinkResult::RawData(_) => Some(State::ScriptData),
        _ => None,
    }
}

impl Emitter for Tokens<'_> {
    type Token = ();

    fn set_last_start_tag(&mut self, last_start_tag: Option<&[u8]>) {
        self.last_start.clear();
        self.last_start.push(last_start_tag.unwrap_or_default());
    }

    fn emit_eof(&mut self) {
        self.hand_text();
    }

    fn emit_error(&mut self, _: Error) {}

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    /// Something where the reading is to end.
    fn pop_token(&mut self) -> Option<()> {
        self.cut.then_some(())
    }

    fn emit_string(&mut self, bytes: &[u8]) {
        self.read(bytes);
        self.text.push(self.page, bytes);
    }

    fn init_start_tag(&mut self) {
        self.init_end_tag();
        self.kind = TagKind::StartTag;
    }

    fn init_end_tag(&mut self) {
        self.kind = TagKind::EndTag;
        self.name.clear();
        self.self_closing = false;
        self.attributes.clear();
        self.attribute.clear();
        self.value.clear();
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.keep_attribute();
        self.hand_text();
        let tag = Tag {
            kind: self.kind,
            name: self.names.get(&self.name),
            self_closing: self.self_closing,
            attrs: take(&mut self.attributes),
            had_duplicate_attributes: false,
        };
        if self.kind == TagKind::StartTag {
            self.last_start.clone_from(&self.name);
        }
        // What comes once more of these two tags is put to the first one, name by name.
        if matches!(tag.name, local_name!("html") | local_name!("body")) {
            self.of_roots += tag.attrs.len();
            self.cut |= self.of_roots > MAX_ATTRIBUTES;
        }
        let result = self.hand(Token::TagToken(tag));
        self.look_at_the_tree();
        state_after(&result)
    }

    fn init_comment(&mut self) {
        self.comment.clear();
    }

    fn push_comment(&mut self, bytes: &[u8]) {
        self.read(bytes);
        self.comment.push(self.page, bytes);
    }

    fn emit_current_comment(&mut self) {
        self.hand_text();
        let comment = self.comment.take(self.page);
        let _ = self.hand(Token::CommentToken(comment));
        self.look_at_the_tree();
    }

    fn init_doctype(&mut self) {
        self.doctype = DoctypeNames::default();
    }

    fn emit_current_doctype(&mut self) {
        self.hand_text();
        let DoctypeNames { name, public, system, force_quirks } = take(&mut self.doctype);
        let _ = self.hand(Token::DoctypeToken(Doctype {
            name: (!name.is_empty()).then(|| tendril(&name)),
            public_id: public.as_deref().map(tendril),
            system_id: system.as_deref().map(tendril),
            force_quirks,
        }));
    }

    fn set_self_closing(&mut self) {
        self.self_closing = true;
    }

    fn set_force_quirks(&mut self) {
        self.doctype.force_quirks = true;
    }

    fn push_tag_name(&mut self, bytes: &[u8]) {
        self.read(bytes);
        self.name.push(bytes);
    }

    fn push_doctype_name(&mut self, bytes: &[u8]) {
        self.read(bytes);
        add(&mut self.doctype.name, bytes);
    }

    fn init_attribute(&mut self) {
        self.keep_attribute();
    }

    fn push_attribute_name(&mut self, bytes: &[u8]) {
        self.read(bytes);
        self.attribute.push(bytes);
    }

    fn push_attribute_value(&mut self, bytes: &[u8]) {
        self.read(bytes);
        self.value.push(self.page, bytes);
    }

    fn set_doctype_public_identifier(&mut self, value: &[u8]) {
        self.doctype.public = Some(value.to_vec());
    }

    fn set_doctype_system_identifier(&mut self, value: &[u8]) {
        self.doctype.system = Some(value.to_vec());
    }

    fn push_doctype_public_identifier(&mut self, bytes: &[u8]) {
        self.read(bytes);
        add(self.doctype.public.get_or_insert_default(), bytes);
    }

    fn push_doctype_system_identifier(&mut self, bytes: &[u8]) {
        self.read(bytes);
        add(self.doctype.system.get_or_insert_default(), bytes);
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.kind == TagKind::EndTag && !self.last_start.is_empty() && self.last_start == self.name
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}
