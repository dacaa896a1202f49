//! A site or a pace unit that refuses: what is known of that, and what is left of it afterwards.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::manners::slow_start::{self, FORGIVEN_AFTER};
use crate::manners::wall::probe_wait;
use crate::task::WallSighting;

/// A site or a unit that refuses without saying for how long: nothing is asked there but one probe at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// What it answered.
    pub why: String,
    /// What tells that from a page of the site's own.
    pub looks: u32,
    /// When that was first seen, in ms.
    pub since: i64,
    /// The site of the page that it refused first.
    pub site: String,
    /// That page, which is asked for again.
    pub url: String,
    /// How long the first probe waits, in ms.
    pub first: i64,
    /// No probe before this time, in ms.
    pub probe_at: i64,
    /// By how many probes the next wait is doubled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probes: u32,
    /// The start that was granted ahead and counts as the first probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Probes that were refused.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refused: u32,
    /// The last one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probe: Option<Probe>,
}

/// A request that tries whether a wall is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Its lease.
    pub token: u64,
    /// Its site.
    pub site: String,
    /// Its page, or a `robots.txt` that was to be read first.
    pub url: String,
}

/// What follows a wall or a long block: longer intervals at first, and a memory of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowStart {
    /// Starts until the usual pace is in force.
    pub left: u32,
    /// When all of it is forgotten, in ms.
    pub until: i64,
    /// By how many probes the first wait of another wall is doubled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probes: u32,
}

impl Wall {
    /// One that is found now. What is left of the one before tells how long it is left alone. The last start may have been granted
    /// ahead to somebody who can't be told in time any more: it counts as the first probe.
    pub fn found(
        (site, url): (&str, &str),
        refusal: &WallSighting,
        (before, ahead): (Option<SlowStart>, Option<u64>),
        now: i64,
    ) -> Self {
        let probes = before.filter(|slow| now < slow.until).map_or(0, |slow| slow.probes);
        let probes = probes.saturating_add(u32::from(ahead.is_some()));
        Self {
            why: refusal.why.clone(),
            looks: refusal.looks,
            since: now,
            site: site.to_owned(),
            url: url.to_owned(),
            first: refusal.first,
            probe_at: now + probe_wait(refusal.first, probes, refusal.dice),
            probes,
            ahead,
            refused: 0,
            probe: None,
        }
    }

    /// A probe starts: the next one comes after twice the time, whatever becomes of this one.
    pub fn probed(&mut self, at: i64, dice: u32) {
        self.probes = self.probes.saturating_add(1);
        self.probe_at = at + probe_wait(self.first, self.probes, dice);
    }

    /// Its probe under that lease was never sent: the next one is due. Nor was the start that was granted ahead: the first probe
    /// waits no longer for it.
    pub fn unprobed(&mut self, token: u64, now: i64) {
        if self.ahead.take_if(|ahead| *ahead == token).is_some() && self.probe.is_none() {
            self.probes = self.probes.saturating_sub(1);
            self.probe_at -= (self.probe_at - self.since) / 2;
        }
        if self.probe.take_if(|probe| probe.token == token).is_some() {
            self.probes = self.probes.saturating_sub(1);
            self.probe_at = now;
        }
    }

    /// The page that it refused first, where that is asked for next: every other probe is of another page, as that one alone
    /// may be refused.
    pub fn asks_for(&self) -> Option<&str> {
        self.refused.is_multiple_of(2).then_some(&self.url)
    }

    /// Whether its probe runs under that lease.
    pub fn is_probed_by(&self, token: u64) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.token == token)
    }

    /// What is left of it, as it ends now.
    pub fn left_behind(&self, now: i64) -> SlowStart {
        let probes = self.probes.saturating_sub(1);
        SlowStart { left: slow_start::STARTS, until: now + FORGIVEN_AFTER, probes }
    }
}

impl SlowStart {
    /// What follows a block until then, after what was left of something before.
    pub fn after_block(until: i64, before: Option<Self>, now: i64) -> Self {
        let probes = before.filter(|slow| now < slow.until).map_or(0, |slow| slow.probes);
        Self { left: slow_start::STARTS, until: until + FORGIVEN_AFTER, probes }
    }

    /// What is left of it after a start that is granted now.
    #[must_use]
    pub fn after_start(self, now: i64) -> Option<Self> {
        (now < self.until).then_some(Self { left: self.left.saturating_sub(1), ..self })
    }

    /// A wait as it is in force.
    pub fn lengthens(slow: Option<Self>, wait: i64) -> i64 {
        slow.map_or(wait, |slow| wait.saturating_mul(slow_start::factor(slow.left)))
    }
}
