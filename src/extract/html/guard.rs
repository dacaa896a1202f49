//! Limits of a tree, so that a hostile page costs no more than a large one.

use ego_tree::NodeRef;
use scraper::{Html, Node};

use crate::budget::Budget;

/// Elements inside elements: past this the rest of the page is left out. Browsers stop at 512 as well.
pub const MAX_DEPTH: usize = 512;
/// Nodes of one page, and their attributes: past this the rest is left out. A few bytes may ask for hundreds of nodes.
/// The list of nodes doubles at 262,144, and its old half would stay in memory beside the new one.
pub const MAX_NODES: usize = 260_000;
/// Attributes of one tag: each is compared with all before it.
pub const MAX_ATTRIBUTES: usize = 500;

/// Looks at a tree that grows, each time at what is new.
#[derive(Default)]
pub(super) struct Guard {
    nodes: usize,
    attributes: usize,
}

impl Guard {
    pub(super) fn trips(&mut self, html: &Html, budget: &Budget) -> bool {
        let nodes = html.tree.values().len();
        let fresh = nodes - self.nodes;
        self.nodes = nodes;
        let attributes = |node: &Node| node.as_element().map_or(0, |element| element.attrs.len());
        self.attributes += html.tree.values().rev().take(fresh).map(attributes).sum::<usize>();
        let is_deep = |node: NodeRef<'_, Node>| node.ancestors().nth(MAX_DEPTH).is_some();
        let deep = nodes > MAX_DEPTH && html.tree.nodes().rev().take(fresh).any(is_deep);
        !budget.pays(fresh * MAX_DEPTH / 16) || deep || nodes + self.attributes > MAX_NODES
    }
}
