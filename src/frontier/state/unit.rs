//! A pace unit: its last start, its block, its timed mutex.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{FOR_GOOD, SharedPauses, SlowStart, Wall, is_default};
use crate::clock::millis;
use crate::frontier::MutexKey;
use crate::manners::departure::MOST_AHEAD;
use crate::manners::{ahead_ms, grace_ms};
use crate::task::{Departure, Stage};

/// What shares one pace: a group of sites, or a site that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// The unit's name.
    pub name: String,
    /// What it waits between its starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wait: UnitWait,
    /// The last start that stands.
    pub last: Option<Start>,
    /// The start before it, for when the last one is given back unused.
    pub before: Option<Start>,
    /// No start before this time, in ms.
    pub blocked_until: i64,
    /// Why not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked_why: Option<String>,
    /// No start before this time, in ms: a site that joined brought the rest of what its former unit waited for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_before: i64,
    /// Somebody else was seen holding the mutex until then, in ms.
    pub held_until: i64,
    /// Somebody else waits for the mutex of this start: the next claim comes so many ms later, to let it in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub courtesy: Option<(u64, i64)>,
    /// The claims missed the turn that was theirs after a lock: after the one that ends at `held_until` they have so many ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turn: i64,
    /// What `robots.txt` asks of the pace of a group, by origin.
    #[serde(default, skip_serializing_if = "is_default")]
    pub floors: BTreeMap<String, GroupFloor>,
    /// When the parse stage was last served, in ms.
    pub parsed_at: i64,
    /// Which site of a group had that turn: the next one by name has the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parsed_site: String,
    /// It refuses, and is left alone but for a probe.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wall: Option<Wall>,
    /// It was left alone for long, and is asked slowly at first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slow: Option<SlowStart>,
    /// What its group waits, in ms, as it was set while its sites run; it lasts as long as the group has sites.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tuned_interval: Option<i64>,
    /// What people paused of its group or of all sites.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paused: SharedPauses,
    /// Sites of it are listed by lane as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_lane: bool,
}

/// What the `robots.txt` of an origin asks of the pace. One site of a group waits for it itself; where several have pages
/// there, all of them wait for it together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFloor {
    /// The least time between starts, in ms.
    pub wait: i64,
    /// The site that read it.
    pub reader: String,
    /// Another site of the group was seen to have pages there.
    pub is_shared: bool,
}

/// What a unit waits between its starts, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitWait {
    /// It is one site's, whose interval as in force holds.
    #[default]
    Own,
    /// The group's own interval.
    Group(i64),
    /// The longest interval that the files of the group's sites name.
    Longest(i64),
}

/// One start that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Start {
    /// When, in ms.
    pub at: i64,
    /// By which lease.
    pub token: u64,
    /// How late it may be on the wire, in ms.
    #[serde(default)]
    pub grace: i64,
    /// When the start before it was and how late that may have been, in ms: a re-arm still comes after it, also where this
    /// one became the last again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: Option<(i64, i64)>,
}

impl Start {
    /// A start that is granted, after another one.
    pub fn of(token: u64, departure: Departure, after: Option<Self>) -> Self {
        let wait = departure.unit.max(departure.site);
        let grace = if wait > 0 { grace_ms(wait) } else { 0 };
        Self { at: departure.at, token, grace, after: after.map(|start| (start.at, start.grace)) }
    }

    /// Until when a wait after it lasts.
    pub fn ends(&self, wait: i64) -> i64 {
        end_of_wait((self.at, self.grace), wait)
    }

    /// Until when a wait after the start before it lasts.
    pub fn comes_after(&self, wait: i64) -> i64 {
        self.after.map_or(0, |before| end_of_wait(before, wait))
    }
}

/// Until when a wait lasts after a start that may have been so late. One that was granted under a longer wait may be later on
/// the wire than the next one reckons with.
fn end_of_wait((at, grace): (i64, i64), wait: i64) -> i64 {
    let late = if wait > 0 { (grace - grace_ms(wait)).max(0) } else { 0 };
    at.saturating_add(wait + late)
}

/// When a unit's next start may be, and when a claim may come for it, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitDue {
    /// The end of all that the unit itself waits for.
    pub ends: i64,
    /// When the first of its ready sites may start as well.
    pub due: i64,
    /// How much earlier a claim may come.
    pub ahead: i64,
}

impl UnitDue {
    /// Its turn among others, where the first of the sites in question waits until `first`.
    pub fn turn(&self, first: i64) -> Turn {
        Turn::new(self.ends.max(first), self.ahead)
    }
}

/// From when on a unit can be claimed, and when a claimer does best to come: half way from there to its due time, so that one
/// claim finds what becomes due on many units. One number that sorts by the former.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(pub i64);

impl Turn {
    /// Parts of a ms: the longest time between the two.
    pub const PARTS: i64 = 32;
    /// Of how many it is worked out when a claimer does best to come.
    pub const TOLD: u32 = 8;

    /// Of the parse stage: units take turns by when each was served last.
    pub fn of_parse(parsed_at: i64) -> Self {
        Self::new(parsed_at, 0)
    }

    fn new(due: i64, ahead: i64) -> Self {
        let from = due.saturating_sub(ahead).clamp(0, i64::MAX / Self::PARTS - 1);
        Self(from * Self::PARTS + (ahead - ahead / 2))
    }

    /// The last of those that can be claimed at `now`.
    pub fn at(now: i64) -> Self {
        Self(now * Self::PARTS + Self::PARTS - 1)
    }

    /// The moment, in ms, if it ever comes: what somebody paused for good is behind all others.
    pub fn that_comes(at: Option<i64>) -> Option<i64> {
        at.filter(|at| *at < FOR_GOOD - millis(MOST_AHEAD))
    }

    /// From when on it can be claimed, in ms.
    pub fn from(self) -> i64 {
        self.0 / Self::PARTS
    }

    /// When a claimer does best to come, in ms, by the first turns in order. A later one may want it sooner than the first:
    /// of those behind the last that is told of, none can be claimed before that one.
    pub fn best(turns: &[Self]) -> Option<i64> {
        let best = |turn: &Self| turn.from() + turn.0 % Self::PARTS;
        let last = turns.get(Self::TOLD as usize - 1).map(|last| last.from());
        turns.iter().map(best).chain(last).min()
    }
}

impl UnitState {
    /// A unit that was never asked.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The end of all that it waits for, given what it waits between starts.
    pub fn ends(&self, wait: i64) -> i64 {
        self.ends_unpaused(wait).max(self.paused.until(Stage::Download))
    }

    /// The same but for what people paused. Of the starts of one unit the last is the latest.
    pub fn ends_unpaused(&self, wait: i64) -> i64 {
        let paced = self.last.map_or(0, |start| start.ends(wait) + self.courtesy_after(start));
        let probe = self.wall.as_ref().map_or(0, |wall| wall.probe_at);
        paced.max(self.blocked_until).max(self.held_until).max(self.not_before).max(probe)
    }

    /// When the parse stage was served last or, where it is paused, when it may be served again, in ms.
    pub fn parse_turn(&self) -> i64 {
        self.parsed_at.max(self.paused.until(Stage::Parse))
    }

    /// How long before its due time it can be claimed: not at all while somebody else holds its mutex, or waits for it.
    pub fn ahead(&self, wait: i64) -> i64 {
        let shares = |start: Start| self.held_until > 0 || self.courtesy_after(start) > 0;
        self.last.map_or(0, |start| if shares(start) { 0 } else { ahead_ms(wait) })
    }

    /// Notes what the `robots.txt` of an origin asks of the pace, in ms, as a site of the group has read it.
    pub fn keep_floor(&mut self, reader: &str, origin: &str, wait: Option<i64>) {
        let Some(wait) = wait.filter(|_| self.wait != UnitWait::Own) else {
            self.floors.remove(origin);
            return;
        };
        let is_shared =
            self.floors.get(origin).is_some_and(|floor| floor.is_shared || floor.reader != reader);
        self.floors.insert(origin.to_owned(), GroupFloor { wait, reader: reader.to_owned(), is_shared });
    }

    /// Notes that a site has pages at an origin.
    pub fn share_floor(&mut self, site: &str, origin: &str) {
        if let Some(floor) = self.floors.get_mut(origin) {
            floor.is_shared |= floor.reader != site;
        }
    }

    /// The `robots.txt` of these hosts are to be read anew.
    pub fn forget_floors(&mut self, hosts: &[String]) {
        self.floors.retain(|origin, _| !hosts.iter().any(|host| origin.split("://").nth(1) == Some(host)));
    }

    /// What its group asks a site to wait, whatever it was set to, in ms; 0 where it is in none.
    pub fn group_wait(&self) -> i64 {
        self.least_group_wait().map_or(0, |least| least.max(self.tuned_interval.unwrap_or(0)))
    }

    /// The same whatever the group was set to: it is made longer alone. None where the unit is no group.
    pub fn least_group_wait(&self) -> Option<i64> {
        match self.wait {
            UnitWait::Group(wait) | UnitWait::Longest(wait) => Some(wait.max(self.shared_floor())),
            UnitWait::Own => None,
        }
    }

    /// What the group waits for the sake of hosts that several of its sites share, in ms.
    pub fn shared_floor(&self) -> i64 {
        self.floors.values().filter(|floor| floor.is_shared).map(|floor| floor.wait).max().unwrap_or(0)
    }

    fn courtesy_after(&self, start: Start) -> i64 {
        self.courtesy.filter(|(token, _)| *token == start.token).map_or(0, |(_, wait)| wait)
    }

    /// Its timed mutex.
    pub fn mutex(&self) -> MutexKey {
        MutexKey::unit(&self.name)
    }

    /// Whether a mutex token is that of the unit's own last start.
    pub fn owns(&self, token: &str) -> bool {
        self.last.is_some_and(|start| mutex_token(start.token) == token)
    }
}

/// What the token begins with that a start leaves in the mutex.
pub const START_TOKEN: &str = "start-";

/// The token that a start leaves in the mutex.
pub fn mutex_token(lease: u64) -> String {
    format!("{START_TOKEN}{lease:016x}")
}

/// A held mutex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutexState {
    /// Who holds it.
    pub token: String,
    /// Until when, in ms.
    pub until: i64,
}

/// Which of so many a die chooses; none of none.
pub fn nth_of(count: usize, dice: u32) -> Option<usize> {
    (dice as usize).checked_rem(count)
}
