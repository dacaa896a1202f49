//! Elements whose every step to another one is counted, so that no selector takes longer than its page may.
//!
//! Where the budget is spent no element has a neighbour any more: what is being compared ends, and its answer means nothing.

use ego_tree::NodeRef;
use html5ever::{Namespace, local_name};
use scraper::selector::{CssLocalName, CssString, NonTSPseudoClass, PseudoElement, Simple};
use scraper::{ElementRef, Node};
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::matching::{
    self, ElementSelectorFlags, MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags,
    QuirksMode, SelectorCaches,
};
use selectors::{Element, OpaqueElement, SelectorList};

use crate::budget::Budget;

/// Compares elements of one page with a selector list. It remembers what `:nth-child` and its like counted.
pub(super) struct Matcher<'a> {
    selectors: &'a SelectorList<Simple>,
    budget: &'a Budget,
    caches: SelectorCaches,
}

impl<'a> Matcher<'a> {
    pub(super) fn of(selectors: &'a SelectorList<Simple>, budget: &'a Budget) -> Self {
        Self { selectors, budget, caches: SelectorCaches::default() }
    }

    /// Whether one of the selectors matches.
    pub(super) fn matches(&mut self, element: ElementRef<'a>) -> bool {
        let element = CountedElement { element, budget: self.budget };
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut self.caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        let mut selectors = self.selectors.slice().iter();
        selectors.any(|selector| matching::matches_selector(selector, 0, None, &element, &mut context))
    }
}

/// An element that pays for each look at another one, and for the bytes of each value.
#[derive(Clone, Debug)]
struct CountedElement<'a> {
    element: ElementRef<'a>,
    budget: &'a Budget,
}

impl<'a> CountedElement<'a> {
    fn of(&self, node: NodeRef<'a, Node>) -> Option<Self> {
        ElementRef::wrap(node).map(|element| Self { element, budget: self.budget })
    }

    /// The first of these nodes that is an element.
    fn first(&self, nodes: impl Iterator<Item = NodeRef<'a, Node>>) -> Option<Self> {
        nodes
            .take_while(|_| self.budget.pays(1))
            .find(|node| node.value().is_element())
            .and_then(|node| self.of(node))
    }
}

impl Element for CountedElement<'_> {
    type Impl = Simple;

    fn opaque(&self) -> OpaqueElement {
        self.element.opaque()
    }

    fn parent_element(&self) -> Option<Self> {
        self.first(self.element.parent().into_iter())
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.first(self.element.prev_siblings())
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.first(self.element.next_siblings())
    }

    fn first_element_child(&self) -> Option<Self> {
        self.first(self.element.children())
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&Namespace>,
        name: &CssLocalName,
        operation: &AttrSelectorOperation<&CssString>,
    ) -> bool {
        let bytes = |(_, value): (_, &str)| value.len();
        self.budget.reads(self.element.value().attrs().map(bytes).sum())
            && self.element.attr_matches(namespace, name, operation)
    }

    fn has_id(&self, id: &CssLocalName, case: CaseSensitivity) -> bool {
        self.budget.pays(1) && self.element.has_id(id, case)
    }

    /// Word by word: to look each class up among all names is slow where a page brings many.
    fn has_class(&self, class: &CssLocalName, case: CaseSensitivity) -> bool {
        let classes =
            self.element.value().attrs.iter().filter(|(name, _)| name.local == local_name!("class"));
        let is_it = |word: &str| case.eq(word.as_bytes(), class.0.as_bytes());
        let mut values = classes.map(|(_, value)| value);
        values.any(|value| self.budget.reads(value.len()) && value.split_ascii_whitespace().any(is_it))
    }

    fn is_empty(&self) -> bool {
        let mut children = self.element.children().take_while(|_| self.budget.pays(1));
        !children.any(|child| child.value().is_element() || child.value().is_text())
    }

    // What follows looks at this element alone.

    fn is_same_type(&self, other: &Self) -> bool {
        self.element.is_same_type(&other.element)
    }

    fn has_local_name(&self, name: &CssLocalName) -> bool {
        self.element.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.element.has_namespace(namespace)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.element.is_html_element_in_html_document()
    }

    fn is_link(&self) -> bool {
        self.element.is_link()
    }

    fn is_root(&self) -> bool {
        self.element.is_root()
    }

    fn is_html_slot_element(&self) -> bool {
        self.element.is_html_slot_element()
    }

    // A page without scripts has none of these.

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn is_part(&self, _: &CssLocalName) -> bool {
        false
    }

    fn imported_part(&self, _: &CssLocalName) -> Option<CssLocalName> {
        None
    }

    fn has_custom_state(&self, _: &CssLocalName) -> bool {
        false
    }

    fn match_non_ts_pseudo_class(&self, _: &NonTSPseudoClass, _: &mut MatchingContext<'_, Simple>) -> bool {
        false
    }

    fn match_pseudo_element(&self, _: &PseudoElement, _: &mut MatchingContext<'_, Simple>) -> bool {
        false
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}
