//! An independent book of what must be so: written from the design, not from the steps. Nothing here is read from the
//! frontier but its answers, and the places that `inspect` tells.

use std::collections::{BTreeMap, BTreeSet};

use paced::internals::frontier::state::DroppedOf;
use paced::internals::frontier::{DatedAct, Inspection, Renamed, SiteSettings, TuneReply, Tuning, WorkScope};
use paced::internals::task::{EventKind, LaneWish, Settled, Stage, TaskOrder};

use super::batched::{Batches, Names, carry};
use super::campaigned::Campaigns;
use super::game::{Answer, Move};
use super::laned::{Fleet, goes_now};
use super::marked::end_of;
use super::stepped::Sessions;
use super::told::Kept;
use super::walled::{Slow, Wall, slowed};
use crate::world::START;

/// Site, stage, URL.
pub type Key = (String, Stage, String);
/// The due time of each site, as `view` tells it.
pub type Dues = BTreeMap<String, i64>;

pub const LEASE: i64 = 30_000;
/// When a host is looked at whose robots.txt is under way.
pub const NEVER: i64 = i64::MAX;

#[derive(Default)]
pub struct Ledger {
    pub now: i64,
    pub sites: BTreeMap<String, Site>,
    pub units: BTreeMap<String, Unit>,
    pub tasks: BTreeMap<Key, Task>,
    /// In which run each dead letter died, and whom it was for where that isn't whom its site is for.
    pub dead: BTreeMap<Key, (i64, Option<String>)>,
    pub leases: BTreeMap<u64, Held>,
    pub robots: BTreeMap<String, Robots>,
    /// Stored pages by site and URL.
    pub pages: BTreeMap<(String, String), Page>,
    /// By site and `recrawl`, the latest time at which a page is asked for again.
    pub recrawls: BTreeMap<(String, i64), i64>,
    pub owners: BTreeMap<String, Owner>,
    /// The newest version of the rules that each name of a site had.
    pub versions: BTreeMap<String, i64>,
    pub fleet: Fleet,
    pub sessions: Sessions,
    pub batches: Batches,
    pub campaigns: Campaigns,
    /// The batches of each dead letter.
    pub dead_batches: BTreeMap<Key, (i64, Names)>,
    /// The batches that the next put carries on.
    pub carried: Names,
    /// Steps that were let in since the last claim began.
    pub let_in_now: BTreeSet<Key>,
    /// Whose requests were to be dropped, and when.
    pub drops: Vec<(i64, DroppedOf)>,
    /// Until when stages of all sites are paused, in ms, or [`NEVER`].
    pub paused: BTreeMap<Stage, i64>,
    /// What operators are to be told, by kind and site.
    pub events: BTreeMap<(EventKind, String), Kept>,
}

#[derive(Default)]
pub struct Site {
    pub unit: String,
    pub hosts: Vec<String>,
    pub file: (i64, u32),
    pub tuned: (Option<i64>, Option<u32>),
    pub tuned_max_pages: Option<u64>,
    pub tuned_lane: Option<String>,
    /// When a pause ends by itself, in ms, or [`NEVER`].
    pub paused: Option<i64>,
    /// The same of its parses.
    pub parse_paused: Option<i64>,
    /// What people did, the latest first.
    pub acts: Vec<String>,
    /// What the file allows to be set: the least interval and the most requests in flight.
    pub bounds: (i64, u32),
    pub attempts: u32,
    pub robots: bool,
    /// Its file's text and what the frontier keeps of it.
    pub rules: Option<(String, SiteSettings)>,
    pub floors: BTreeMap<String, i64>,
    pub budgets: BTreeMap<String, u64>,
    pub spent: BTreeMap<String, u64>,
    pub run: i64,
    /// As was agreed on when its run began.
    pub order: TaskOrder,
    /// The earliest time at which the next task is put.
    pub free: i64,
    pub known: BTreeSet<String>,
    pub fence: i64,
    /// Its own starts.
    pub starts: Vec<Start>,
    /// Nobody answers there, until then.
    pub blocked: i64,
    pub wall: Option<Wall>,
    pub slow: Option<Slow>,
    pub books: BTreeMap<Stage, Books>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    pub created: u64,
    pub done: u64,
    pub dead: u64,
    pub dropped: u64,
    pub revived: u64,
    pub reruns: u64,
}

#[derive(Default)]
pub struct Unit {
    /// The group's own interval, 0 where the longest of its sites' files counts; none: it is one site's.
    pub group: Option<i64>,
    /// What the group was set to wait while its sites run, as long as it has some.
    pub tuned: Option<i64>,
    /// Starts in the order of their grants or re-arms, those given back taken out.
    pub starts: Vec<Start>,
    /// What a site that joined brought of its former unit's wait.
    pub not_before: i64,
    pub blocked: i64,
    /// Until when stages of the group are paused, in ms, or [`NEVER`].
    pub paused: BTreeMap<Stage, i64>,
    /// Until when the outsider holds the mutex.
    pub outsider: i64,
    pub wall: Option<Wall>,
    pub slow: Option<Slow>,
}

#[derive(Clone, Debug)]
pub struct Start {
    pub token: u64,
    pub at: i64,
    /// What the unit waited after it, as it was granted.
    pub wait: i64,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub place: Place,
    pub priority: u16,
    /// Its turn among equals: when it was put, in ms; of those of one ms each is 1 ms later.
    pub turn: i64,
    pub expires: Option<i64>,
    pub attempts: u32,
    pub losses: u32,
    pub hops: u32,
    pub errand: bool,
    pub deferral: Option<Deferral>,
    /// None: the one that is always there.
    pub lane: Option<String>,
    /// Where it isn't whom its site was for.
    pub tenant: Option<String>,
    pub session: Option<String>,
    /// In a session: the time that it was put for.
    pub after: Option<i64>,
    /// In a session: it was granted once.
    pub begun: bool,
    pub batches: Names,
    /// Batches in which a page ended as it took up what met it, and how.
    pub ended: Vec<(String, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Waiting,
    /// Its host can't be reached, and is looked at again then.
    Parked(i64),
    Delayed(i64),
    Scheduled(i64),
    /// Steps of its session go before it.
    Behind,
    Running(u64),
}

#[derive(Clone, Debug)]
pub struct Deferral {
    pub priority: u16,
    pub expires: Option<i64>,
    pub hops: u32,
    pub at: Option<i64>,
    pub wish: LaneWish,
    /// The turn of the further run, where it is a step of the session as well.
    pub step: Option<i64>,
    pub batches: Names,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub key: Key,
    pub owner: String,
    /// When its start was granted last.
    pub granted: i64,
    pub ends: i64,
    pub in_flight: bool,
}

#[derive(Clone, Debug)]
pub struct Robots {
    pub until: i64,
    pub unreachable: bool,
    pub failures: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub fence: i64,
    pub fetched_at: i64,
    pub recrawl: Option<i64>,
    /// When it is asked for again.
    pub again_at: Option<i64>,
}

impl Page {
    /// The beginning of the 128th part of its period in which it was fetched.
    pub fn slot(&self) -> i64 {
        let width = (self.recrawl.unwrap_or(0) / 128).max(1);
        self.fetched_at - (START + self.fetched_at).rem_euclid(width)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Owner {
    pub dead: bool,
    pub drained: bool,
    pub scope: WorkScope,
    pub claimed: Option<(u64, Vec<u64>)>,
    pub settled: Option<(u64, Settled)>,
}

impl Site {
    pub fn interval(&self) -> i64 {
        let tuned = self.tuned.0.map(|tuned| tuned.max(self.bounds.0));
        slowed(self.slow, tuned.unwrap_or(self.file.0).max(self.floor()))
    }

    /// The most pages of a run.
    pub fn max_pages(&self) -> Option<u64> {
        self.budgets.get("").map(|most| self.tuned_max_pages.unwrap_or(0).max(*most))
    }

    pub fn floor(&self) -> i64 {
        self.floors.values().copied().max().filter(|_| self.robots).unwrap_or(0)
    }

    /// Whether its file names the host of an origin.
    pub fn has(&self, origin: &str) -> bool {
        self.hosts.iter().any(|host| origin.ends_with(&format!("://{host}")))
    }

    pub fn parallel(&self) -> usize {
        self.tuned.1.map_or(self.file.1, |tuned| tuned.min(self.bounds.1)) as usize
    }
}

impl Task {
    pub fn new(place: Place, priority: u16, turn: i64) -> Self {
        let (expires, deferral, lane, tenant) = (None, None, None, None);
        let (attempts, losses, hops, errand) = (0, 0, 0, false);
        let (session, after, begun) = (None, None, false);
        Self {
            place,
            priority,
            turn,
            expires,
            attempts,
            losses,
            hops,
            errand,
            deferral,
            lane,
            tenant,
            session,
            after,
            begun,
            batches: Names::new(),
            ended: Vec::new(),
        }
    }

    pub fn is_idle(&self) -> bool {
        !matches!(self.place, Place::Running(_))
    }

    pub fn take_up(&mut self, deferral: &Deferral) {
        self.priority = deferral.priority;
        self.expires = deferral.expires;
        self.hops = deferral.hops;
        self.attempts = 0;
        self.losses = 0;
    }

    /// A run that starts at `start` anyway is the run of a request that isn't for later.
    pub fn absorb(&mut self, start: i64) {
        if let Some(deferral) = self.deferral.take_if(|deferral| deferral.at.is_none_or(|at| at <= start)) {
            if goes_now(&deferral.wish, false) {
                self.lane = Some("now".to_owned());
            }
            self.ended.extend(carry(&mut self.batches, deferral.batches.clone()));
            let is_foreign = self.session.is_some() && deferral.step.is_none();
            let priority = if is_foreign { self.priority } else { self.priority.min(deferral.priority) };
            let expires = self.expires.zip(deferral.expires).map(|(one, other)| one.max(other));
            self.take_up(&Deferral { priority, expires, ..deferral });
            // A robots.txt stays the first of its site.
            self.priority = if self.errand { 0 } else { self.priority };
        }
    }
}

/// What the ledger says against an answer.
pub fn differs<T>(
    what: &str,
    expected: impl std::fmt::Debug,
    got: impl std::fmt::Debug,
) -> Result<T, String> {
    Err(format!("{what}: expected {expected:?}, got {got:?}"))
}

impl Ledger {
    /// Values that lie within what the site's file, its group and its robots.txt allow are in force; else none of them is. What is
    /// in force is kept as somebody's act.
    fn tune(&mut self, name: &str, tunings: &[Tuning], answer: TuneReply) -> Result<(), String> {
        let unit = self.sites.get(name).ok_or("no such site")?.unit.clone();
        let group = if self.unit(&unit).group.is_some() { self.usual_wait_of(&unit) } else { 0 };
        let Some(site) = self.sites.get_mut(name) else { return Ok(()) };
        let (least, most) = (site.floor().max(site.bounds.0).max(group), site.bounds.1);
        let refused = |tuning: &Tuning| match tuning {
            Tuning::Interval(Some(value)) if *value < least => Some(TuneReply::Interval(least, 86_400_000)),
            Tuning::Parallel(Some(value)) if *value < 1 || *value > most => {
                Some(TuneReply::Parallel(1, most))
            }
            Tuning::MaxPages(Some(value)) => match site.max_pages() {
                None => Some(TuneReply::Unbounded),
                Some(least) if *value < least => Some(TuneReply::MaxPages(least, 1_000_000_000_000)),
                Some(_) => None,
            },
            _ => None,
        };
        let expected = tunings.iter().find_map(refused).unwrap_or(TuneReply::Done);
        if expected != answer {
            return differs("tune", expected, answer);
        }
        if answer == TuneReply::Done {
            for tuning in tunings {
                match tuning {
                    Tuning::Interval(value) => site.tuned.0 = *value,
                    Tuning::Parallel(value) => site.tuned.1 = *value,
                    Tuning::MaxPages(most) => site.tuned_max_pages = *most,
                    Tuning::Lane(lane) => site.tuned_lane.clone_from(lane),
                    Tuning::Paused(pause) => site.paused = end_of(pause.as_ref()),
                    Tuning::ParsePaused(pause) => site.parse_paused = end_of(pause.as_ref()),
                }
            }
            site.acts.insert(0, format!("{tunings:?}"));
        }
        Ok(())
    }

    pub fn check_acts(&self, name: &str, acts: &[DatedAct]) -> Result<(), String> {
        let told: Vec<&str> = acts.iter().map(|act| act.act.did.as_str()).collect();
        let done = self.sites.get(name).map(|site| site.acts.clone()).unwrap_or_default();
        if done == told { Ok(()) } else { differs(&format!("what was done to {name}"), done, told) }
    }

    /// Books a move and its answer, or says which invariant it breaks.
    pub fn book(
        &mut self,
        what: &Move,
        answer: &Answer,
        inside: &Inspection,
        dues: &Dues,
    ) -> Result<(), String> {
        let booked = self.book_one(what, answer, inside, dues);
        self.close_batches();
        booked
    }

    #[expect(clippy::too_many_lines, reason = "a row a move")]
    fn book_one(
        &mut self,
        what: &Move,
        answer: &Answer,
        inside: &Inspection,
        dues: &Dues,
    ) -> Result<(), String> {
        match (what, answer) {
            (Move::Put(site, put), Answer::Put(reply)) => {
                let expected = self.put_by_somebody(site, put);
                if expected == *reply { Ok(()) } else { differs("put", expected, reply) }
            }
            (Move::Claim(claim), Answer::Grant(grant)) => self.claim(claim, grant, inside, dues),
            (Move::Settle(owner, token, settlement), Answer::Settled(reply)) => {
                self.settled(owner, *token, settlement, reply)
            }
            (Move::Rearm(lease), Answer::Rearm(answer)) => self.rearm(lease.token, answer),
            (Move::Landed(lease, block), Answer::Is(is)) => {
                let holds = self.landed(lease, block);
                if holds == *is { Ok(()) } else { differs("landed", holds, is) }
            }
            (Move::Back(lease, unused), Answer::Is(is)) => {
                let holds = self.holds(lease.token);
                if holds {
                    self.go_back(lease.token, Place::Delayed(self.now + 1_000), *unused);
                }
                if holds == *is { Ok(()) } else { differs("back", holds, is) }
            }
            (Move::Refuse(lease, refusal), Answer::Is(is)) => self.refuse(lease, refusal, *is),
            (Move::Probed(site, url, refusal), Answer::Is(true)) => {
                self.probed(site, url.as_str(), refusal.as_ref());
                Ok(())
            }
            (Move::Resume(site), Answer::Is(is)) => self.resume(site, *is),
            (Move::Extend(lease), Answer::Is(is)) => {
                let holds = self.holds(lease.token);
                let ends = self.now + LEASE;
                if let Some(lease) = self.leases.get_mut(&lease.token).filter(|_| holds) {
                    lease.ends = lease.ends.max(ends);
                }
                if holds == *is { Ok(()) } else { differs("extend", holds, is) }
            }
            (Move::Tune(site, tunings), Answer::Tuned(answer)) => self.tune(site, tunings, *answer),
            (Move::Block(site, block), Answer::Is(true)) => {
                let unit = self.sites[site].unit.clone();
                self.block(&unit, block);
                Ok(())
            }
            (Move::Register(new), Answer::Registered(answer)) => self.register(new, answer),
            (Move::Requeue(site, url, change), Answer::Requeued(changed)) => {
                self.requeue(site, url.as_str(), change, *changed)
            }
            (Move::Agree(rules, mark), Answer::Agreed(agreed)) => self.agree(rules, *mark, *agreed),
            (Move::Forget(site), Answer::Forgotten(answer)) => self.forget(site, answer.clone()),
            (Move::Rename(site), Answer::Renamed(answer)) => {
                let expected = match self.leased(site) {
                    0 => [Renamed::Done, Renamed::Done],
                    leased => [Renamed::Busy { leased }, Renamed::Unknown],
                };
                if expected == *answer { Ok(()) } else { differs("rename", expected, answer) }
            }
            (Move::BeginRun(site, fresh, seeds), Answer::Run(run)) => {
                let begun = self.begin_run(site, *fresh, seeds);
                let expected = (self.sites[site].run, begun);
                if expected == (run.number, run.begun) { Ok(()) } else { differs("run", expected, run) }
            }
            (Move::ParseAgain(site, url), Answer::Is(revived)) => self.parse_again(site, url, *revived),
            (Move::DropLetter(site, stage, url), Answer::Is(was)) => {
                self.drop_letter(site, *stage, url, *was)
            }
            (Move::PostEvent(..) | Move::TakeEvent(..) | Move::EndEvent(..), _) => {
                self.book_event(what, answer)
            }
            (Move::Feed(most), Answer::Fed(fed)) => self.feed(*most, *fed),
            (Move::StartCampaign(site, name, plan, urls), Answer::CampaignStarted(started)) => {
                self.start_campaign((site, name), plan, urls, started)
            }
            (Move::FeedCampaign(site, name, list, from, puts), Answer::CampaignFed(fed)) => {
                self.feed_campaign((site, name), list, *from, puts, *fed)
            }
            (Move::TuneCampaign(site, name, tuning), Answer::CampaignTuned(tuned)) => {
                self.tune_campaign((site, name), tuning, *tuned)
            }
            (Move::DropOfCampaign(site, name, urls), Answer::CampaignDropped(dropped)) => {
                self.drop_of_campaign((site, name), urls, *dropped)
            }
            (Move::WorkOn(owner, scope), Answer::Nothing) => {
                self.owners.entry(owner.clone()).or_default().scope = scope.clone();
                Ok(())
            }
            (Move::Bury(owner), Answer::Nothing) => {
                self.bury(owner);
                Ok(())
            }
            (Move::Beat(owner, _), Answer::Beaten(beaten)) => self.beat(owner, *beaten),
            (Move::Drain(owner), Answer::Is(lives)) => self.drain(owner, *lives),
            (Move::LockReply(unit, expire), Answer::LockReply(lock)) => self.lock(unit, *expire, *lock),
            (Move::ExtendLock(unit, expire), Answer::Is(is)) => {
                let now = self.now;
                let unit = self.unit(unit);
                let holds = unit.outsider > now;
                if holds {
                    unit.outsider = now + expire;
                }
                if holds == *is { Ok(()) } else { differs("extend lock", holds, is) }
            }
            (Move::Unlock(unit), Answer::Is(is)) => {
                let now = self.now;
                let unit = self.unit(unit);
                let holds = unit.outsider > now;
                unit.outsider = if holds { 0 } else { unit.outsider };
                if holds == *is { Ok(()) } else { differs("unlock", holds, is) }
            }
            _ => self.book_of_many(what, answer),
        }
    }

    /// What people set of a group, of a tenant, or of all.
    fn book_of_many(&mut self, what: &Move, answer: &Answer) -> Result<(), String> {
        match (what, answer) {
            (Move::DropRequests(of), Answer::Nothing) => {
                self.drops.retain(|(_, before)| before != of);
                self.drops.push((self.now, of.clone()));
                Ok(())
            }
            (Move::TuneTenant(tenant, rules), Answer::Is(true)) => {
                self.fleet.tune(tenant, rules.clone());
                Ok(())
            }
            (Move::TuneGroup(interval), Answer::Tuned(answer)) => self.tune_group("g", *interval, *answer),
            (Move::PauseGroup(stage, pause), Answer::Paused(answer)) => {
                self.pause_group("g", *stage, pause.as_ref(), *answer)
            }
            (Move::PauseAll(stage, pause), Answer::Is(was)) => self.pause_all(*stage, pause.as_ref(), *was),
            other => Err(format!("an answer of another kind: {other:?}")),
        }
    }

    /// The turn of a task that is put now.
    pub fn next_turn(&mut self, site: &str) -> i64 {
        let site = self.sites.entry(site.to_owned()).or_default();
        let turn = site.free.max(self.now);
        site.free = turn + 1;
        turn
    }

    /// Where a task of a site stands among those of its lane.
    pub fn order(&self, site: &str, task: &Task) -> (i64, i64) {
        const HOUR: i64 = 3_600_000;
        let waits = match (self.sites[site].order, task.priority) {
            (TaskOrder::Strict, priority) => return (priority.into(), task.turn),
            (_, 0) => return (i64::MIN, task.turn),
            (_, 118..=162 | 218..=222 | 318..=322) => 0,
            (_, 223..=262) => HOUR,
            (_, 323..=362) => 24 * HOUR,
            (_, other) => unreachable!("no history has the priority {other}"),
        };
        (task.turn + waits, task.turn)
    }

    pub fn books(&mut self, key: &Key) -> &mut Books {
        self.sites.entry(key.0.clone()).or_default().books.entry(key.1).or_default()
    }

    /// Whether a lease still is its holder's (I5).
    pub fn holds(&self, token: u64) -> bool {
        self.leases.get(&token).is_some_and(|lease| !self.is_lost(lease))
    }

    pub fn is_lost(&self, lease: &Held) -> bool {
        lease.ends <= self.now || self.owners.get(&lease.owner).is_some_and(|owner| owner.dead)
    }

    pub fn lives(&self, owner: &str) -> bool {
        self.owners.get(owner).is_some_and(|owner| !owner.dead)
    }

    pub fn owner_of(&self, token: u64) -> Option<&str> {
        self.leases.get(&token).map(|lease| lease.owner.as_str())
    }

    pub fn unit(&mut self, name: &str) -> &mut Unit {
        self.units.entry(name.to_owned()).or_default()
    }
}

pub fn name(place: Place) -> &'static str {
    match place {
        Place::Waiting => "waiting",
        Place::Parked(_) => "parked",
        Place::Delayed(_) => "delayed",
        Place::Scheduled(_) => "scheduled",
        Place::Behind => "behind",
        Place::Running(_) => "running",
    }
}

/// Scheme and host of a URL.
pub fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}
