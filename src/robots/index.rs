//! The rules of a `robots.txt`, found by the letters with which a path begins: a file may have tens of thousands, and a page as
//! many links.

use super::pattern::{Pattern, Spelling};
use crate::budget::Budget;

/// Rules in one spelling, by the letters before their first `*`.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleIndex(Vec<Beginning>);

/// Letters with which paths begin, and the rules that begin so.
#[derive(Clone, Debug)]
struct Beginning {
    letters: String,
    /// The longest other beginning that these letters begin with.
    shorter: Option<usize>,
    /// The first of those that fit decides (RFC 9309 section 2.2.2).
    rules: Vec<Rank>,
}

/// How much a rule counts: one of more octets more; of two as long, the one that allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    octets: usize,
    allows: bool,
    rule: usize,
}

impl RuleIndex {
    /// The rules in the order of the file, each with whether it allows.
    pub(super) fn of<'a>(rules: impl Iterator<Item = (&'a Pattern, bool)>, spelling: Spelling) -> Self {
        let mut all: Vec<(&str, Rank)> = rules
            .enumerate()
            .map(|(rule, (pattern, allows))| {
                let text = pattern.text(spelling);
                (beginning(text), Rank { octets: text.len(), allows, rule })
            })
            .collect();
        all.sort_unstable();
        let (mut index, mut open) = (Vec::<Beginning>::new(), Vec::<usize>::new());
        for (letters, rank) in all {
            if let Some(last) = index.last_mut().filter(|last| last.letters == letters) {
                last.rules.push(rank);
                continue;
            }
            while open.last().is_some_and(|at| !letters.starts_with(&index[*at].letters)) {
                open.pop();
            }
            index.push(Beginning {
                letters: letters.to_owned(),
                shorter: open.last().copied(),
                rules: vec![rank],
            });
            open.push(index.len() - 1);
        }
        for beginning in &mut index {
            beginning.rules.reverse();
        }
        Self(index)
    }

    /// The rule that decides about a path, spelled as the index is: its number in the file, and whether it allows. None where no
    /// rule speaks of it, or the budget is spent.
    pub(super) fn decides(
        &self,
        path: &str,
        fits: impl Fn(usize) -> bool,
        budget: &Budget,
    ) -> Option<(usize, bool)> {
        let mut next = self.0.partition_point(|beginning| *beginning.letters <= *path).checked_sub(1);
        let mut best: Option<Rank> = None;
        while let Some(beginning) = next.map(|at| &self.0[at]) {
            if !budget.reads(beginning.letters.len()) {
                return None;
            }
            if path.starts_with(&beginning.letters) {
                let better = beginning.rules.iter().take_while(|rank| best.is_none_or(|best| **rank > best));
                let mut paid = better.take_while(|rank| budget.pays(1 + path.len() / 16 + rank.octets / 2));
                best = paid.find(|rank| fits(rank.rule)).copied().or(best);
            }
            next = beginning.shorter;
        }
        best.filter(|_| !budget.is_spent()).map(|rank| (rank.rule, rank.allows))
    }
}

/// What a path begins with that fits.
fn beginning(pattern: &str) -> &str {
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    &pattern[..pattern.find('*').unwrap_or(pattern.len())]
}
