//! A site's record: its values, its books, its fence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counts::without_zeroes;
use super::tuned::{LONGEST_INTERVAL, MOST_PAGES, TuneReply, Tuned, Tuning};
use super::{EPOCH, FED_WAITING, Place, SlowStart, StageCounts, Start, Task, Wall, WorkScope, is_default};
use crate::canonical_url::CanonicalUrl;
use crate::task::{LANE, PageKey, Stage, TaskOrder};

/// For how long one process tells people how a site stands, in ms.
pub const TOLD_MS: i64 = 60_000;
/// A response time counts for one part in so many of the average.
pub const AVERAGED: i64 = 8;

/// What a site's file says to the frontier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSettings {
    /// Least time between starts, in ms; 0 is no pace.
    pub interval: i64,
    /// Most requests in flight.
    pub parallel: u32,
    /// Attempts before a task is dead.
    pub attempts: u32,
    /// Whether `robots.txt` is obeyed.
    pub robots: bool,
    /// `max_pages` of the rules by name, and of the site under the empty name.
    pub budgets: BTreeMap<String, u64>,
    /// The least interval that may be set while it runs, in ms; 0 is the file's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_interval: i64,
    /// The most requests in flight that may be set while it runs; 0 is four times the file's own, up to 256.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_parallel: u32,
    /// The lane that its tasks wait in unless a rule says otherwise; none is the one that is always there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lane: Option<String>,
    /// Whom its tasks are for unless a put names somebody else.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tenant: Option<String>,
}

impl SiteSettings {
    /// Of `parallel`, so many times may be set where the file doesn't say, and so much at most.
    pub const MOST_PARALLEL: (u32, u32) = (4, 256);

    /// The least interval that may be set while it runs, in ms.
    pub fn least_interval(&self) -> i64 {
        if self.min_interval > 0 { self.min_interval } else { self.interval }
    }

    /// The most requests in flight that may be set while it runs.
    pub fn most_parallel(&self) -> u32 {
        let (times, most) = Self::MOST_PARALLEL;
        let usual = self.parallel.saturating_mul(times).min(most).max(self.parallel);
        if self.max_parallel > 0 { self.max_parallel } else { usual }
    }
}

/// A site's record: it goes only by being forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteState {
    /// The site's name.
    pub name: String,
    /// The pace unit it belongs to: its group, or itself.
    pub unit: String,
    /// Rises with each change of the site's file, and never restarts.
    pub version: i64,
    /// The file's values.
    pub settings: SiteSettings,
    /// Values set while it runs; they win over the file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tuned: Tuned,
    /// The pass over the site; 0 before the first.
    pub run: i64,
    /// When the run began, in ms.
    pub run_began: i64,
    /// Which of its tasks goes first in a lane, as was agreed on when the run began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: TaskOrder,
    /// How far its seeds are put, if it has some.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seeding: Option<Seeding>,
    /// Its run is being given up: nothing is granted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub given_up: bool,
    /// Its own last start that stands, whatever other sites of its unit did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<Start>,
    /// The start before it, for when the last one is given back unused.
    #[serde(default, skip_serializing_if = "is_default")]
    pub before: Option<Start>,
    /// The last fence given.
    pub fence: i64,
    /// Requests in flight.
    pub running: u32,
    /// The lease of the `robots.txt` task under way: nothing else of the site is granted meanwhile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub errand: Option<u64>,
    /// The pace that each origin's `robots.txt` asks for, in ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub floors: BTreeMap<String, i64>,
    /// Outputs and counters of the download stage.
    #[serde(serialize_with = "without_zeroes")]
    pub download: StageCounts,
    /// Outputs and counters of the parse stage.
    #[serde(serialize_with = "without_zeroes")]
    pub parse: StageCounts,
    /// Pages put in this run, by rule and, under the empty name, in all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: BTreeMap<String, u64>,
    /// Starts granted in this run that stand.
    #[serde(default)]
    pub starts: u64,
    /// Response time, a moving average in ms.
    pub response: Option<i64>,
    /// The last position given.
    #[serde(default)]
    pub position: i64,
    /// It refuses by itself, whatever other sites of its unit do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wall: Option<Wall>,
    /// Nobody there answers: no start of its own before then, whatever other sites of its unit do, in ms; 0 where that never was.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked_until: i64,
    /// Why.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked_why: Option<String>,
    /// It was walled or away, and is asked slowly at first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slow: Option<SlowStart>,
    /// Its sessions that a dead step holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: u64,
    /// It is listed by lane as well: workers for lanes find it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_lane: bool,
}

/// How far the putting of a run's seeds is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeding {
    /// What tells their list from another one.
    pub list: u64,
    /// So many are put.
    pub put: u32,
    /// Of so many.
    pub of: u32,
}

impl Seeding {
    /// All of them are.
    pub fn is_done(&self) -> bool {
        self.put >= self.of
    }
}

impl SiteState {
    /// How long its waiting downloads last at the least, in ms: one start an interval.
    pub fn supply(&self) -> i64 {
        i64::try_from(self.download.ready()).unwrap_or(i64::MAX).saturating_mul(self.interval())
    }

    /// How many more requests may be in flight.
    pub fn places(&self) -> u32 {
        self.parallel().saturating_sub(self.running)
    }

    /// Whether its last start is that lease's, and the first of its time.
    pub fn is_told_by(&self, token: u64) -> bool {
        let turn = |at: i64| at.div_euclid(TOLD_MS);
        let is_first = |last: &Start| last.after.is_none_or(|(before, _)| turn(before) != turn(last.at));
        self.last.as_ref().is_some_and(|last| last.token == token && is_first(last))
    }

    /// One of its pages.
    pub fn page<'a>(&'a self, url: &'a CanonicalUrl) -> PageKey<'a> {
        PageKey { site: &self.name, url }
    }

    /// A site that was never seen before.
    pub fn new(name: &str, unit: &str, settings: SiteSettings) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), settings, ..Self::default() }
    }

    /// The least time between starts as in force: tuned wins over the file, robots' floor over both, and a slow start takes a
    /// multiple of that. In ms.
    pub fn interval(&self) -> i64 {
        let tuned = self.tuned.interval.map(|tuned| tuned.max(self.settings.least_interval()));
        let wanted = tuned.unwrap_or(self.settings.interval);
        SlowStart::lengthens(self.slow, wanted.max(self.floor()))
    }

    /// What the `robots.txt` of its hosts ask for at least, in ms.
    fn floor(&self) -> i64 {
        if self.settings.robots { self.floors.values().copied().max().unwrap_or(0) } else { 0 }
    }

    /// Why a value can't be set while it runs, with what can; its group waits so long, in ms.
    pub fn refuses(&self, tuning: &Tuning, group: i64) -> Option<TuneReply> {
        match tuning {
            Tuning::Interval(Some(interval)) => {
                let least = self.settings.least_interval().max(self.floor()).max(group);
                let may_be = (least..=LONGEST_INTERVAL.max(least)).contains(interval);
                (!may_be).then_some(TuneReply::Interval(least, LONGEST_INTERVAL.max(least)))
            }
            Tuning::Parallel(Some(parallel)) => {
                let most = self.settings.most_parallel();
                (!(1..=most).contains(parallel)).then_some(TuneReply::Parallel(1, most))
            }
            Tuning::MaxPages(Some(most)) => match self.max_pages() {
                None => Some(TuneReply::Unbounded),
                Some(least) if (least..=MOST_PAGES.max(least)).contains(most) => None,
                Some(least) => Some(TuneReply::MaxPages(least, MOST_PAGES.max(least))),
            },
            _ => None,
        }
    }

    /// The most pages of a run as in force: never fewer than the file says.
    pub fn max_pages(&self) -> Option<u64> {
        let of_file = *self.settings.budgets.get("")?;
        Some(self.tuned.max_pages.map_or(of_file, |tuned| tuned.max(of_file)))
    }

    /// The lane that its tasks wait in unless a rule says otherwise, as in force; none is the one that is always there.
    pub fn lane(&self) -> Option<&str> {
        self.tuned.lane.as_deref().or(self.settings.lane.as_deref())
    }

    /// Until when its own wait lasts, in ms: its last start's, a block's, a wall's, or a pause's that ends by itself.
    pub fn waits_until(&self) -> i64 {
        let probe = self.wall.as_ref().map_or(0, |wall| wall.probe_at);
        self.paced_until().max(probe).max(self.blocked_until).max(self.tuned.paused_until.unwrap_or(0))
    }

    /// Until when its last start is waited for, in ms.
    pub fn paced_until(&self) -> i64 {
        self.last.map_or(0, |start| start.ends(self.interval()))
    }

    /// The most requests in flight as in force.
    pub fn parallel(&self) -> u32 {
        let tuned = self.tuned.parallel.map(|tuned| tuned.min(self.settings.most_parallel()));
        tuned.unwrap_or(self.settings.parallel)
    }

    /// Whether a claim of this stage could be given a task (I9).
    pub fn is_ready(&self, stage: Stage) -> bool {
        match stage {
            Stage::Parse => self.parse.waiting > 0 && !self.given_up && self.tuned.parse_paused.is_none(),
            Stage::Download => {
                self.download.ready() > 0
                    && !self.given_up
                    && !self.tuned.is_paused_for_good()
                    && self.places() > 0
                    && self.errand.is_none()
            }
        }
    }

    /// Whether a claim of this scope and stage could be given a task of it.
    pub fn is_ready_for(&self, stage: Stage, scope: &WorkScope) -> bool {
        let in_lanes = || self.by_lane && self.counted(stage).ready_lanes().any(|lane| scope.serves(lane));
        let is_of_lanes = matches!(scope, WorkScope::Lanes(_));
        self.is_ready(stage) && scope.includes(&self.name) && (!is_of_lanes || in_lanes())
    }

    /// Whether pages that are to be fetched again may be put now: a flood in another lane than theirs takes them no room (F5).
    pub fn has_room(&self) -> bool {
        self.download.waiting_in(self.lane().unwrap_or(LANE)) < FED_WAITING
    }

    /// The run is over: its seeds are put, and nothing is waiting, delayed by back-off or running, in both stages.
    pub fn is_finished(&self) -> bool {
        self.seeding.is_none_or(|seeding| seeding.is_done())
            && self.download.is_finished()
            && self.parse.is_finished()
    }

    /// The counters of a stage, to be looked at.
    pub fn counted(&self, stage: Stage) -> &StageCounts {
        match stage {
            Stage::Download => &self.download,
            Stage::Parse => &self.parse,
        }
    }

    /// The counters of a stage.
    pub fn counts(&mut self, stage: Stage) -> &mut StageCounts {
        match stage {
            Stage::Download => &mut self.download,
            Stage::Parse => &mut self.parse,
        }
    }

    /// Books a task into the place where it stands.
    pub fn enters(&mut self, task: &Task) {
        self.counts(task.stage).enters(task);
    }

    /// Books a task out of the place where it stands.
    pub fn leaves(&mut self, task: &Task) {
        self.counts(task.stage).leaves(task);
        if let Place::Running(run) = &task.place
            && run.in_flight
        {
            self.running = self.running.saturating_sub(1);
        }
    }

    /// The next fence: larger than any before, and than any that a lost record may have held.
    pub fn next_fence(&mut self, now: i64) -> i64 {
        self.fence = (self.fence + 1).max(now);
        self.fence
    }

    /// Other rules. Processes keep rules by name and version, so a version is above all that its name had in this partition: it is
    /// the time, in ms since [`EPOCH`].
    pub fn renew_version(&mut self, now: i64) {
        self.version = (self.version + 1).max(now - EPOCH);
    }

    /// The first version under its name, which another site may have had: above `freed`, the newest one of a name that got free.
    pub fn first_version(&mut self, freed: i64, now: i64) {
        self.version = self.version.max(freed);
        self.renew_version(now);
    }

    /// Whether the clock hasn't passed its version yet.
    pub fn is_ahead_of(&self, now: i64) -> bool {
        self.version >= now - EPOCH
    }

    /// The next position: after all that were given before, and no earlier than now.
    pub fn next_position(&mut self, now: i64) -> i64 {
        self.position = (self.position + 1).max(now - EPOCH);
        self.position
    }

    /// Whether a link of this rule still fits the budgets.
    pub fn has_budget(&self, rule: Option<&str>) -> bool {
        let fits = |name: &str, most: Option<u64>| {
            most.is_none_or(|most| self.spent.get(name).copied().unwrap_or(0) < most)
        };
        let of_rule = |name| fits(name, self.settings.budgets.get(name).copied());
        fits("", self.max_pages()) && rule.is_none_or(of_rule)
    }

    /// Books a page against the budgets; names without one aren't kept.
    pub fn spend(&mut self, rule: Option<&str>) {
        for name in ["", rule.unwrap_or("")].iter().take(if rule.is_some() { 2 } else { 1 }) {
            if self.settings.budgets.contains_key(*name) {
                *self.spent.entry((*name).to_owned()).or_default() += 1;
            }
        }
    }

    /// Takes one more response time into the average.
    pub fn observe(&mut self, response: i64) {
        self.response =
            Some(self.response.map_or(response, |average| (average * (AVERAGED - 1) + response) / AVERAGED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteState {
        let budgets = BTreeMap::new();
        let settings =
            SiteSettings { interval: 0, parallel: 1, attempts: 1, budgets, ..SiteSettings::default() };
        SiteState::new("a", "a", settings)
    }

    #[test]
    fn a_position_is_the_time_of_putting_and_a_burst_runs_ahead_of_it() {
        let mut site = site();
        let burst: Vec<i64> = (0..3).map(|_| site.next_position(EPOCH + 5_000)).collect();
        assert_eq!(burst, [5_000, 5_001, 5_002]);
        assert_eq!(site.next_position(EPOCH + 5_001), 5_003, "never one that was given");
        assert_eq!(site.next_position(EPOCH + 9_000), 9_000);
    }

    #[test]
    fn positions_rise_under_a_clock_before_their_epoch_too() {
        let mut site = site();
        assert_eq!([0, -7, 3].map(|now| site.next_position(now)), [1, 2, 3]);
    }

    #[test]
    fn positions_fit_39_bits_until_2043() {
        let year_2043 = 2_303_596_800_000;
        assert!(site().next_position(year_2043) < 1 << 39);
    }
}
