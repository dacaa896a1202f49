//! What came of a crawl.

use crate::frontier::{Run, View};
use crate::monitor::Tally;
use crate::task::Exclusion;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left.
    Finished,
    /// Nothing is left but sites that were given up.
    GivenUp,
    /// Its time was over.
    Deadline,
    /// It has the most pages it may have.
    MaxPages,
    /// It was told to stop, or can't bring tasks to their end.
    Stopped,
    /// Somebody drained it: the frontier asked it to end.
    Drained,
    /// It was to end once nothing is left, and lacks the password of a site.
    Lacking,
}

/// How a crawl went.
#[derive(Clone, Debug)]
pub struct CrawlReport {
    /// Why it ended.
    pub ending: Ending,
    /// What came of each site.
    pub sites: Vec<SiteReport>,
    /// Sites given up, and why each made no start.
    pub given_up: Vec<(String, String)>,
}

/// What came of one site.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// How it stood when the crawl began.
    pub found: View,
    /// The run that the crawl began, or went on with.
    pub run: Run,
    /// How it stands now.
    pub view: View,
    /// What this process did for it.
    pub tally: Tally,
}

impl CrawlReport {
    /// Dead letters of all sites.
    pub fn dead(&self) -> u64 {
        self.sites.iter().map(|site| site.view.download.letters + site.view.parse.letters).sum()
    }

    /// Whether a dead step holds a session of one of its sites.
    pub fn has_held(&self) -> bool {
        self.sites.iter().any(|site| site.view.held_in_all > 0)
    }

    /// The first site of which more pages died in the run than came, and how many of each.
    pub fn mostly_dead(&self) -> Option<(&str, u64, u64)> {
        let counted = self.sites.iter().map(|site| {
            let dead = site.dead_of_run();
            (site.view.site.as_str(), dead, site.pages_of_run().saturating_sub(site.parses_dead_of_run()))
        });
        counted.into_iter().find(|(_, dead, came)| dead > came)
    }

    /// Whether no page at all came of the sites' runs, though some were asked for.
    ///
    /// Of a run that goes on where it was, what came of it before isn't told apart from what came of earlier ones.
    pub fn is_fruitless(&self) -> bool {
        self.sites.iter().all(|site| site.pages_of_run() == 0)
    }
}

impl SiteReport {
    /// Downloads that came to an end since the crawl began, in whatever process.
    pub fn done(&self) -> u64 {
        self.view.download.done.saturating_sub(self.found.download.done)
    }

    /// Downloads left out for this reason since the crawl began.
    pub fn excluded(&self, why: Exclusion) -> u64 {
        let of = |view: &View| view.download.excluded.get(&why).copied().unwrap_or(0);
        of(&self.view).saturating_sub(of(&self.found))
    }

    fn dead_of_run(&self) -> u64 {
        self.view.download.dead.saturating_sub(self.found.download.dead) + self.parses_dead_of_run()
    }

    fn parses_dead_of_run(&self) -> u64 {
        self.view.parse.dead.saturating_sub(self.found.parse.dead)
    }

    fn pages_of_run(&self) -> u64 {
        let is_new = self.run.begun || self.found.starts == 0;
        self.view.pages().saturating_sub(if is_new { self.found.pages() } else { 0 })
    }
}
