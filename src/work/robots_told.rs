//! What is said of a host's `robots.txt` once it is settled: that it blocks the site, and what it changes. That it can't be
//! had is said where it was asked for.

use tracing::{info, warn};

use super::crew::Crew;
use crate::frontier::FrontierError;
use crate::robots::change;
use crate::task::{Lease, Outcome, RobotsAccess, RobotsRecord, Settlement};

impl Crew {
    /// The record whose place a settlement's is to take; none where it brings no rules to compare, or it can't be read.
    pub(super) async fn robots_before(
        &self,
        settlement: &Settlement,
    ) -> Result<Option<RobotsRecord>, FrontierError> {
        let Outcome::Robots(now) = &settlement.outcome else { return Ok(None) };
        if matches!(now.access, RobotsAccess::Unreachable(_)) {
            return Ok(None);
        }
        let origin = settlement.lease.url.origin();
        match self.outages.frontier.patiently(|| self.frontier.robots(&origin)).await {
            Err(error) if error.is_transient() => Err(error),
            answer => Ok(answer.ok().flatten().map(|known| known.record)),
        }
    }
}

/// Says what a record that was kept means for the site, where it is news.
pub(super) fn tell_of_robots(lease: &Lease, before: Option<&RobotsRecord>, now: &RobotsRecord) {
    let site = &lease.site;
    if let Some(what) = change(before, now, lease.interval) {
        info!(site, "robots.txt of {} {what}", lease.url.origin());
    }
    if let Some(why) = &now.refuses {
        warn!(site, wait_s = now.holds_for.as_secs(), "the site is left alone: {why}");
    }
}
