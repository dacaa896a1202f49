//! What people and other programs see of a frontier: how sites, tasks, dead letters and processes stand.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::paused::{self, KnownPause, KnownWall};
use super::session_view::HeldSession;
use super::state::{StageCounts, WorkScope};
use super::step::Act;
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{DeadLetter, Failure, Priority, RobotsRecord, Stage, StoredPage, TaskOrder};

/// A process that claims, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// What it works on.
    pub scope: WorkScope,
    /// Its leases are over.
    pub dead: bool,
}

/// A portion of the names of all sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteNames {
    /// Some names; one that is there from the first portion to the last is in one of them, or more.
    pub(crate) names: Vec<String>,
    /// Where the next portion begins; none behind the last.
    pub(crate) next: Option<String>,
}

impl SiteNames {
    /// The most in a portion, or as many as the server has at one place.
    pub(crate) const MOST: u32 = 1_000;
}

impl Owner {
    /// Whether it lives and may have tasks of a site in hand.
    pub fn works_on(&self, site: &str) -> bool {
        !self.dead && self.scope.includes(site)
    }
}

/// What is known of an origin's `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRobots {
    /// What was found.
    pub record: RobotsRecord,
    /// Until when it holds.
    pub until: Timestamp,
    /// Unreachable records in a row.
    pub failures: u32,
}

/// How a site stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub site: String,
    /// Its pace unit.
    pub unit: String,
    /// When this was read.
    pub at: Timestamp,
    /// The run, from 1; 0 before the first.
    pub run: i64,
    /// When the run began.
    pub run_began: Timestamp,
    /// Whether the run is over: all its seeds are put, nothing of it is left, and nobody is giving it up.
    pub finished: bool,
    /// The interval in force, in ms.
    pub interval: i64,
    /// The most requests in flight, as in force.
    pub parallel: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// The download stage's books.
    pub download: StageCounts,
    /// The parse stage's books.
    pub parse: StageCounts,
    /// When the oldest waiting download was put.
    pub oldest: Option<Timestamp>,
    /// Response time, a moving average in ms.
    pub response: Option<i64>,
    /// Starts granted in this run that stand.
    pub starts: u64,
    /// The last start that stands.
    pub last_start: Option<Timestamp>,
    /// The earliest next start.
    pub due: Timestamp,
    /// Blocked until then.
    pub blocked_until: Option<Timestamp>,
    /// Why it is blocked.
    pub blocked_why: Option<String>,
    /// The pauses in force: those of downloads first, then its own before those that it shares.
    pub pauses: Vec<KnownPause>,
    /// Version of its rules.
    pub version: i64,
    /// What has a say in the pace.
    pub says: Says,
    /// Where not all seeds of the run are put: so many are, of so many.
    pub seeds: Option<(u32, u32)>,
    /// Its run is being given up.
    pub is_given_up: bool,
    /// Which of its tasks goes first in a lane.
    pub order: TaskOrder,
    /// It refuses, by itself or with its unit.
    pub wall: Option<KnownWall>,
    /// It was left alone for long: so many starts come before the usual pace is in force.
    pub slow_starts: u32,
    /// Sessions that a dead step holds, the first by name.
    pub held: Vec<HeldSession>,
    /// How many they are in all.
    pub held_in_all: u64,
}

impl View {
    /// Whether it is paused, by whichever mark.
    pub fn is_paused(&self) -> bool {
        self.pauses.iter().any(|pause| pause.stage == Stage::Download)
    }

    /// When its last pause ends by itself; none where it isn't paused, and where one doesn't.
    pub fn paused_until(&self) -> Option<Timestamp> {
        paused::end_of(&self.pauses, Stage::Download)
    }

    /// Whether a stage of it is paused until a time.
    pub fn goes_on_by_itself(&self) -> bool {
        let ends = |stage| paused::end_of(&self.pauses, stage).is_some();
        // What is paused and has nothing to do is waited for by nobody.
        let awaits_parses = self.parse.waiting > 0 && self.download.is_finished();
        ends(Stage::Download) || awaits_parses && ends(Stage::Parse)
    }

    /// Whose pauses it has and why, in words.
    pub fn paused(&self) -> Option<String> {
        paused::told(&self.pauses, &self.unit, Stage::Download)
    }

    /// That it is paused, until when, whose pause it is, and why.
    pub fn pause(&self) -> Option<String> {
        self.told_pause(Stage::Download, "paused")
    }

    /// The same of its parses.
    pub fn parse_pause(&self) -> Option<String> {
        self.told_pause(Stage::Parse, "parses are paused")
    }

    fn told_pause(&self, stage: Stage, what: &str) -> Option<String> {
        let why = paused::told(&self.pauses, &self.unit, stage)?;
        let until = paused::end_of(&self.pauses, stage).map(|until| format!(" until {until}"));
        Some(format!("{what}{}: {why}", until.unwrap_or_default()))
    }

    /// Starts a second that the pace allows; none without a pace.
    pub fn allowed(&self) -> Option<f64> {
        let interval = Duration::from_millis(self.interval.unsigned_abs());
        (!interval.is_zero()).then(|| interval.as_secs_f64().recip())
    }

    /// When its next request starts: the one that was granted ahead, or else the earliest that may be. None while it is paused,
    /// and where nothing waits.
    pub fn next_start(&self) -> Option<Timestamp> {
        let is_own = self.unit == self.site;
        match self.last_start.filter(|granted| is_own && *granted > self.at) {
            Some(granted) => Some(granted),
            None if self.is_paused() && self.paused_until().is_none() => None,
            None if self.download.waiting == 0 => None,
            None => Some(self.due.max(self.at)),
        }
    }

    /// Whether it was paused, blocked for longer or slowed down since it was seen `before`.
    pub fn holds_more_than(&self, before: Option<&Self>) -> bool {
        let Some(before) = before else {
            return self.is_paused() || self.blocked_until.is_some() || self.wall.is_some();
        };
        self.interval > before.interval
            || self.wall.is_some() && before.wall.is_none()
            || self.blocked_until > before.blocked_until
            || self.is_paused() && !before.is_paused()
    }

    /// Why nothing of it may start just now, where it is paused, blocked or walled.
    pub fn left_alone(&self) -> Option<String> {
        self.held_back().or_else(|| self.wall.as_ref().map(|wall| wall.told(self.at)))
    }

    /// The same, where it is paused or blocked: a wall is probed.
    pub fn held_back(&self) -> Option<String> {
        if let Some(pause) = self.pause() {
            return Some(pause);
        }
        let (until, why) = (self.blocked_until?, self.blocked_why.as_deref());
        Some(format!("blocked until {until}: {}", why.unwrap_or("no reason is known")))
    }

    /// Pages that ever came and were handed to the parse stage; it never falls.
    pub fn pages(&self) -> u64 {
        self.parse.created + self.parse.revived + self.parse.coalesced + self.parse.deferred
    }

    /// How long the downloads that are left take at the pace in force; none where that can't be told, as the run is over or
    /// all of them are kept back for later.
    pub fn eta(&self) -> Option<Duration> {
        let behind = if self.held_in_all > 0 { 0 } else { self.download.behind };
        let (waiting, delayed) = (self.download.waiting + behind, self.download.delayed);
        let all_are_kept_back =
            self.download.ready() == 0 && self.in_flight == 0 && delayed + self.download.parked > 0;
        let is_paused_for_good = self.is_paused() && self.paused_until().is_none();
        if self.finished || all_are_kept_back || is_paused_for_good {
            return None;
        }
        let blocked =
            self.blocked_until.max(self.paused_until()).map_or(Duration::ZERO, |until| until.since(self.at));
        Some(
            blocked + Duration::from_millis((waiting + delayed).saturating_mul(self.interval.unsigned_abs())),
        )
    }
}

#[cfg(test)]
impl View {
    /// A site in its first run, of which nothing waits.
    pub(crate) fn example() -> Self {
        let at = Timestamp::from_millis(1_800_000_000_000);
        Self {
            site: "shop".to_owned(),
            unit: "shop".to_owned(),
            at,
            run: 1,
            run_began: at,
            finished: false,
            interval: 1_000,
            parallel: 8,
            in_flight: 0,
            download: StageCounts::default(),
            parse: StageCounts::default(),
            oldest: None,
            response: None,
            starts: 1,
            last_start: None,
            due: at,
            blocked_until: None,
            blocked_why: None,
            pauses: Vec::new(),
            version: 1,
            says: Says::default(),
            seeds: None,
            is_given_up: false,
            order: TaskOrder::Strict,
            wall: None,
            slow_starts: 0,
            held: Vec::new(),
            held_in_all: 0,
        }
    }
}

/// What has a say in a site's pace; the values in force follow from these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// The file's interval, in ms.
    pub interval: i64,
    /// Set while it runs, wins over the file's, in ms.
    pub tuned_interval: Option<i64>,
    /// The most that a `robots.txt` of its hosts asks for, in ms, and of which origin; a floor.
    pub robots: Option<(i64, String)>,
    /// Its group's interval, in ms; a floor.
    pub group: Option<i64>,
    /// The file's `parallel`.
    pub parallel: u32,
    /// Set while it runs, wins over the file's.
    pub tuned_parallel: Option<u32>,
    /// The least interval that may be set while it runs, in ms.
    pub least_interval: i64,
    /// The most requests in flight that may be set while it runs.
    pub most_parallel: u32,
    /// The file's most pages of a run.
    pub max_pages: Option<u64>,
    /// The same, as it was set while it runs.
    pub tuned_max_pages: Option<u64>,
    /// The lane, as it was set while it runs.
    pub tuned_lane: Option<String>,
}

impl Says {
    /// The most pages of a run, as in force: never fewer than the file says.
    pub fn most_pages(&self) -> Option<u64> {
        self.max_pages.map(|of_file| self.tuned_max_pages.unwrap_or(0).max(of_file))
    }
}

/// What a person did, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedAct {
    /// When.
    pub at: Timestamp,
    /// What, who and why.
    #[serde(flatten)]
    pub act: Act,
}

/// Where a dead letter stands among those of its site, which are in order of death.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterPlace {
    /// When it died, in ms.
    pub died_at: i64,
    /// Where.
    pub stage: Stage,
    /// Which page.
    pub url: CanonicalUrl,
}

impl LetterPlace {
    /// The place of a letter.
    pub fn of(letter: &DeadLetter) -> Self {
        Self { died_at: letter.died_at.as_millis(), stage: letter.stage, url: letter.url.clone() }
    }
}

/// Where a URL stands in a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlStatus {
    /// Its tasks, at most one a stage.
    pub tasks: Vec<UnitStatus>,
    /// Its dead letters, at most one a stage.
    pub letters: Vec<DeadLetter>,
    /// The page as it was last kept.
    pub latest: Option<LatestPage>,
    /// When it is asked for again.
    pub recrawl_at: Option<Timestamp>,
    /// It was met in the present run.
    pub is_known: bool,
}

impl UrlStatus {
    /// Where its newest stored body is kept.
    pub fn stored(&self) -> Option<&StoredPage> {
        self.latest.as_ref().map(|latest| &latest.stored)
    }

    /// Links between a seed and this page, as its task has it, else as it was fetched.
    pub fn depth(&self) -> Option<u32> {
        let of_page = || self.latest.as_ref().map(|latest| latest.depth);
        self.tasks.first().map(|task| task.depth).or_else(of_page)
    }
}

/// A page as it was last kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestPage {
    /// Where its body is.
    pub stored: StoredPage,
    /// Links between a seed and this page, as it was fetched.
    pub depth: u32,
}

/// A task as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitStatus {
    /// Download or parse.
    pub stage: Stage,
    /// `waiting`, `parked`, `behind`, `delayed`, `scheduled` or `running`.
    pub place: String,
    /// Delayed: until then. Running: when the lease ends, unless it is renewed.
    pub until: Option<Timestamp>,
    /// Running: the process that has it.
    pub owner: Option<String>,
    /// How urgent.
    pub priority: Priority,
    /// When it was put.
    pub put_at: Timestamp,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Attempts that failed.
    pub attempts: u32,
    /// Leases that were lost.
    pub losses: u32,
    /// The last failure.
    pub failure: Option<Failure>,
    /// Its lane, unless that is the one that is always there.
    pub lane: Option<String>,
    /// Whom it is for, where that isn't whom its site is for.
    pub tenant: Option<String>,
    /// The session that it is a step of.
    pub session: Option<String>,
}

impl UnitStatus {
    /// By when it is to go at the latest, where its site goes by deadlines; none: before all others.
    pub fn go_by(&self) -> Option<Timestamp> {
        let allowance = Duration::from_millis(self.priority.allowance().unsigned_abs());
        (self.priority != Priority::ROBOTS).then(|| self.put_at.plus(allowance))
    }
}

/// How many pages of a site were fetched, or confirmed, no longer than their `recrawl` ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Those that are.
    pub fresh: u64,
    /// All that have a `recrawl`.
    pub all: u64,
    /// When that one of them was fetched, or confirmed, for which this is longest ago.
    pub oldest: Option<Timestamp>,
}

impl Freshness {
    /// The share in percent; none where no page has a `recrawl`.
    pub fn percent(self) -> Option<u64> {
        (self.all > 0).then(|| self.fresh * 100 / self.all)
    }
}

/// Everything in a frontier, for tests of small ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Site, stage, URL and place of every task.
    pub tasks: Vec<(String, Stage, String, String)>,
    /// Stage, unit and score of every entry of the due index.
    pub due: Vec<(Stage, String, i64)>,
    /// Site, stage and URL of every dead letter.
    pub dead: Vec<(String, Stage, String)>,
    /// Fingerprints of known pages.
    pub known: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_start_is_the_one_granted_ahead_or_the_earliest_that_may_be() {
        let at = View::example().at;
        let after = |ms| Some(at.plus(Duration::from_millis(ms)));
        let view = View {
            download: StageCounts { waiting: 3, ..StageCounts::default() },
            last_start: Some(at),
            due: at.plus(Duration::from_millis(900)),
            ..View::example()
        };
        assert_eq!(view.next_start(), after(900));
        let ahead = View { last_start: after(30), ..view.clone() };
        assert_eq!(ahead.next_start(), after(30));
        let in_group = View { unit: "shops".to_owned(), ..ahead.clone() };
        assert_eq!(in_group.next_start(), after(900), "that one may be another site's");
        assert_eq!(View { due: Timestamp::from_millis(0), ..view.clone() }.next_start(), Some(at), "now");
        assert_eq!(View { pauses: vec![KnownPause::of("holidays")], ..view.clone() }.next_start(), None);
        assert_eq!(View { download: StageCounts::default(), ..view }.next_start(), None, "nothing waits");
    }

    #[test]
    fn a_site_holds_more_once_it_is_paused_blocked_for_longer_or_slowed_down() {
        let view = View::example();
        let blocked =
            |ms| View { blocked_until: Some(view.at.plus(Duration::from_millis(ms))), ..view.clone() };
        let paused = View { pauses: vec![KnownPause::of("holidays")], ..view.clone() };
        let slow = View { interval: 2_000, ..view.clone() };
        for (before, after, more) in [
            (Some(&view), &view, false),
            (Some(&view), &paused, true),
            (Some(&paused), &paused, false),
            (Some(&paused), &view, false),
            (Some(&view), &blocked(5), true),
            (Some(&blocked(5)), &blocked(9), true),
            (Some(&blocked(9)), &view, false),
            (Some(&view), &slow, true),
            (Some(&slow), &view, false),
            (None, &view, false),
            (None, &paused, true),
            (None, &blocked(5), true),
        ] {
            assert_eq!(after.holds_more_than(before), more, "{before:?} {after:?}");
        }
    }
}
