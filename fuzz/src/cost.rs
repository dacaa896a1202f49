//! What an input may cost: so many steps or bytes in any case, and so many more for each of its own bytes.

use paced::internals::budget::{Budget, Scarce};
use paced::internals::extract::html::{Tree, charset};
use paced::internals::extract::{Extract, Fetched, extract_within};
use paced::internals::site::Site;

/// A bound that grows with the input as a line does, and no faster.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// What the smallest input may cost.
    pub least: u64,
    /// What each byte of it may cost beside that.
    pub each: u64,
}

impl Linear {
    /// The most that an input of so many bytes may cost.
    pub fn most(self, input: usize) -> u64 {
        self.least + self.each * input as u64
    }

    /// A budget of so many steps: work that wants more of them ends there, and says at what.
    pub fn budget(self, input: usize) -> Budget {
        Budget::of_steps(self.most(input))
    }

    /// Panics where an input of so many bytes cost more than it may.
    pub fn holds(self, cost: usize, input: usize, of: &str) {
        let most = self.most(input);
        assert!(cost as u64 <= most, "{cost} {of} for {input} bytes, more than {most}");
    }
}

/// Bytes that a node is mostly written with, at least, as `<b>` is. Of fewer come those that a parser makes anew: elements of
/// formatting that are open, in each paragraph.
const BYTES_A_NODE: usize = 3;

/// What the site's first rule makes of a page, within so many steps for each of its bytes: more are a find. Where its nodes are
/// more than its bytes could write, they stand for bytes. None where it takes more memory than a page may.
pub fn extracted(page: &Fetched<'_>, site: &Site, steps: Linear) -> Option<Extract> {
    let within = |weight: usize| extract_within(&steps.budget(weight), page, &site.pages[0], site);
    let read = within(page.body.len()).or_else(|spent| match nodes(page) * BYTES_A_NODE {
        weight if weight > page.body.len() && matches!(spent.of, Scarce::Steps(_)) => within(weight),
        _ => Err(spent),
    });
    match read {
        Ok(extract) => Some(extract),
        Err(spent) if matches!(spent.of, Scarce::Memory(_)) => None,
        Err(spent) => panic!("{} bytes: {spent}", page.body.len()),
    }
}

/// The nodes of the page's tree, which has a limit of its own.
fn nodes(page: &Fetched<'_>) -> usize {
    let (text, _) = charset::text(page.body, page.headers.get("content-type"), None);
    Tree::parse(&text, &Budget::without_end()).html.tree.values().len()
}
