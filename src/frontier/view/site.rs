//! How a site stands.

use std::time::Duration;

use super::held_back::{self, KnownPause, KnownWall};
use super::sessions::HeldSession;
use crate::clock::Timestamp;
use crate::frontier::state::StageCounts;
use crate::task::{Stage, TaskOrder};

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
        held_back::end_of(&self.pauses, Stage::Download)
    }

    /// Whether a stage of it is paused until a time.
    pub fn goes_on_by_itself(&self) -> bool {
        let ends = |stage| held_back::end_of(&self.pauses, stage).is_some();
        // What is paused and has nothing to do is waited for by nobody.
        let awaits_parses = self.parse.waiting > 0 && self.download.is_finished();
        ends(Stage::Download) || awaits_parses && ends(Stage::Parse)
    }

    /// Whose pauses it has and why, in words.
    pub fn paused(&self) -> Option<String> {
        held_back::told(&self.pauses, &self.unit, Stage::Download)
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
        let why = held_back::told(&self.pauses, &self.unit, stage)?;
        let until = held_back::end_of(&self.pauses, stage).map(|until| format!(" until {until}"));
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
    /// Its group's interval, as it was set while its sites run, in ms; a floor.
    pub tuned_group: Option<i64>,
}

impl Says {
    /// The most pages of a run, as in force: never fewer than the file says.
    pub fn most_pages(&self) -> Option<u64> {
        self.max_pages.map(|of_file| self.tuned_max_pages.unwrap_or(0).max(of_file))
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
