//! Pages that wait to be downloaded, as a verb reads them: in the order in which they go, and by what they are.

use std::collections::VecDeque;
use std::fmt;

use clap::Args;

use super::Trouble;
use super::batches::batch_name;
use super::lanes::{must_be_there, ready_by_lane, tenant};
use crate::frontier::{Frontier, QueuePlace, Queued};
use crate::site::{Site, UrlPattern};
use crate::task::{LANE, Priority};

/// Pages read in one step.
const PORTION: u32 = 1_000;

/// Which waiting pages are meant: all of them without an option.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct WaitingFilter {
    /// Those of this lane
    #[arg(long, value_name = "LANE")]
    pub(in crate::cli) lane: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) page: PageFilter,
}

/// The same, in whichever lane.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct PageFilter {
    /// Those whose path and query fit this pattern, as in a site file: `*` stops at / and ?, `**` doesn't, `re:` before a
    /// regular expression
    #[arg(long = "match", value_name = "GLOB", value_parser = |text: &str| UrlPattern::whole(text))]
    pattern: Option<UrlPattern>,
    /// Those for this tenant
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<String>,
    /// Those of this batch
    #[arg(long, value_name = "NAME", value_parser = batch_name)]
    batch: Option<String>,
    /// Those of exactly this priority
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<Priority>,
}

impl PageFilter {
    /// Whether it leaves none out.
    pub(in crate::cli) fn takes_all(&self) -> bool {
        self.pattern.is_none() && self.tenant.is_none() && self.batch.is_none() && self.priority.is_none()
    }

    pub(in crate::cli) fn takes(&self, page: &Queued, site: &Site) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&page.url))
            && self.tenant.as_deref().is_none_or(|tenant| tenant_of(page, site) == Some(tenant))
            && self.batch.as_deref().is_none_or(|batch| page.batches.contains(batch))
            && self.priority.is_none_or(|priority| page.priority == priority)
    }
}

impl WaitingFilter {
    /// The lane, in the words of what is told.
    pub(in crate::cli) fn in_lane(&self) -> String {
        self.lane.as_ref().map(|lane| format!(" of lane {lane}")).unwrap_or_default()
    }
}

/// The options that name it, as they are written.
impl fmt::Display for PageFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pattern) = &self.pattern {
            write!(f, " --match {}", pattern.as_str())?;
        }
        if let Some(tenant) = &self.tenant {
            write!(f, " --tenant {tenant}")?;
        }
        if let Some(batch) = &self.batch {
            write!(f, " --batch {batch}")?;
        }
        self.priority.map_or(Ok(()), |priority| write!(f, " --priority {priority}"))
    }
}

/// Pages that wait at a site, lane after lane, a portion at a time.
pub(in crate::cli) struct WaitingPages<'a> {
    frontier: &'a Frontier,
    site: &'a str,
    /// The lane that is read and those to come, each with how many wait in it.
    lanes: VecDeque<(String, u64)>,
    after: Option<QueuePlace>,
    portion: u32,
}

impl<'a> WaitingPages<'a> {
    /// Those of all lanes, or of one.
    pub(in crate::cli) async fn of(
        lane: Option<&str>,
        site: &'a str,
        frontier: &'a Frontier,
    ) -> Result<Self, Trouble> {
        let view = frontier.view(site).await?.ok_or_else(|| gone(site))?;
        let lanes = ready_by_lane(&view.download).into_iter().map(|(lane, count)| (lane.to_owned(), count));
        let mut lanes: VecDeque<(String, u64)> = lanes.collect();
        if let Some(lane) = lane {
            lanes.retain(|(known, _)| known == lane);
            // Pages may wait in one that is gone.
            if lanes.is_empty() {
                must_be_there(lane, frontier).await?;
            }
        }
        Ok(Self { frontier, site, lanes, after: None, portion: PORTION })
    }

    /// Reads so many at once, if those are fewer.
    pub(in crate::cli) fn read_at_most(&mut self, most: u32) {
        self.portion = most.min(PORTION);
    }

    /// How many there are, as far as is known.
    pub(in crate::cli) fn count(&self) -> u64 {
        self.lanes.iter().map(|(_, count)| count).sum()
    }

    /// The next of them; none behind the last.
    pub(in crate::cli) async fn next(&mut self) -> Result<Option<Vec<Queued>>, Trouble> {
        while let Some((lane, _)) = self.lanes.front() {
            let pages = self.frontier.queued(self.site, lane, self.after, self.portion).await?;
            let pages = pages.ok_or_else(|| gone(self.site))?;
            self.after = pages.last().map(Queued::place);
            if self.after.is_some() {
                return Ok(Some(pages));
            }
            self.lanes.pop_front();
        }
        Ok(None)
    }
}

/// Its lane.
pub(in crate::cli) fn lane_of(page: &Queued) -> &str {
    page.lane.as_deref().unwrap_or(LANE)
}

/// Whom a page is for: its own tenant, or else its site's.
pub(in crate::cli) fn tenant_of<'a>(page: &'a Queued, site: &'a Site) -> Option<&'a str> {
    page.tenant.as_deref().or(site.tenant.as_deref())
}

pub(in crate::cli) fn gone(name: &str) -> Trouble {
    Trouble::failed(format!("site `{name}` is gone"))
}
