//! What an input may cost: so many steps or bytes in any case, and so many more for each of its own bytes.

use paced::internals::budget::{Budget, Scarce};
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

/// What the site's first rule makes of a page, within so many steps: more are a find. None where it takes more memory than a
/// page may.
pub fn extracted(page: &Fetched<'_>, site: &Site, steps: Linear) -> Option<Extract> {
    match extract_within(&steps.budget(page.body.len()), page, &site.pages[0], site) {
        Ok(extract) => Some(extract),
        Err(spent) if matches!(spent.of, Scarce::Memory(_)) => None,
        Err(spent) => panic!("{} bytes: {spent}", page.body.len()),
    }
}
