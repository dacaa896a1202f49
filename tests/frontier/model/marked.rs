//! Pauses, booked: a site's own, its group's, and that of all sites (I11).

use paced::internals::frontier::state::{DropMark, FOR_GOOD};
use paced::internals::frontier::{GroupPaused, Pause};
use paced::internals::task::Stage;

use super::ledger::{Ledger, NEVER, Unit, differs};
use crate::world::START;

/// When a pause ends, in ms, or [`NEVER`].
pub fn end_of(pause: Option<&Pause>) -> Option<i64> {
    pause.map(|pause| pause.until.map_or(NEVER, |until| until - START))
}

impl Ledger {
    /// The group is known where a site is in it.
    pub fn pause_group(
        &mut self,
        group: &str,
        stage: Stage,
        pause: Option<&Pause>,
        answer: GroupPaused,
    ) -> Result<(), String> {
        let is_known = self.sites.values().any(|site| site.unit == group);
        let now = self.now;
        let unit = self.unit(group);
        let was = unit.paused.get(&stage).is_some_and(|until| *until > now);
        match answer {
            GroupPaused::Unknown if is_known || was => differs("a group that is paused", "known", answer),
            GroupPaused::Was(told) if told != was => differs("a pause of a group before", was, told),
            GroupPaused::Unknown => Ok(()),
            GroupPaused::Was(_) => {
                set(&mut unit.paused, stage, pause);
                Ok(())
            }
        }
    }

    /// Of the last ten minutes, the newest of each, a thousand at most.
    pub fn check_drops(&self, told: &[DropMark]) -> Result<(), String> {
        let told: Vec<_> = told.iter().map(|mark| (mark.at - START, mark.of.clone())).collect();
        let kept: Vec<_> = self.drops.iter().filter(|(at, _)| *at > self.now - 600_000).cloned().collect();
        let kept = &kept[kept.len().saturating_sub(1_000)..];
        if told == kept { Ok(()) } else { differs("C13: requests to be dropped", kept, told) }
    }

    pub fn pause_all(&mut self, stage: Stage, pause: Option<&Pause>, answer: bool) -> Result<(), String> {
        let was = self.paused.get(&stage).is_some_and(|until| *until > self.now);
        set(&mut self.paused, stage, pause);
        if was == answer { Ok(()) } else { differs("a pause of all before", was, answer) }
    }

    /// Until when a unit's stage is paused by its group or with all, in ms; nobody knows when: [`NEVER`].
    pub fn shared_pause(&self, unit: &str, stage: Stage) -> Option<i64> {
        let group = self.units.get(unit).and_then(|unit: &Unit| unit.paused.get(&stage));
        group.into_iter().chain(self.paused.get(&stage)).max().copied()
    }

    /// The same as a time that a unit waits until.
    pub fn shared_wait(&self, unit: &str, stage: Stage) -> i64 {
        let until = self.shared_pause(unit, stage).unwrap_or(i64::MIN);
        if until == NEVER { FOR_GOOD - START } else { until }
    }

    /// Whether nothing of a site's stage may start at that time, in ms.
    pub fn is_paused(&self, site: &str, stage: Stage, at: i64) -> bool {
        let site = &self.sites[site];
        let own = if stage == Stage::Parse { site.parse_paused } else { site.paused };
        own.max(self.shared_pause(&site.unit, stage)).is_some_and(|until| until > at)
    }

    /// Whether its downloads wait for somebody to end a pause that they share.
    pub fn awaits_resume(&self, site: &str) -> bool {
        self.shared_pause(&self.sites[site].unit, Stage::Download) == Some(NEVER)
    }

    /// Whether no parse of a site is granted before the next claim looks at its own pause.
    pub fn holds_parses(&self, site: &str) -> bool {
        let site = &self.sites[site];
        let shared = self.shared_pause(&site.unit, Stage::Parse);
        site.parse_paused.is_some() || shared.is_some_and(|until| until > self.now)
    }

    /// When a waiting parse of a site can be claimed, in ms; none where its pause has no end.
    pub fn parse_is_due(&self, site: &str) -> Option<i64> {
        let site = &self.sites[site];
        let until = site.parse_paused.max(self.shared_pause(&site.unit, Stage::Parse)).unwrap_or(i64::MIN);
        (until != NEVER).then(|| until.max(self.now))
    }

    /// Pauses of parses that are over.
    pub fn look_at_parse_pauses(&mut self) {
        for site in self.sites.values_mut() {
            site.parse_paused.take_if(|until| *until <= self.now);
        }
    }
}

fn set(paused: &mut std::collections::BTreeMap<Stage, i64>, stage: Stage, pause: Option<&Pause>) {
    match end_of(pause) {
        Some(until) => drop(paused.insert(stage, until)),
        None => drop(paused.remove(&stage)),
    }
}
