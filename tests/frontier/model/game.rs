//! One history under way: each move goes to the model and to every other backend, the answers are compared and booked.

use std::collections::BTreeMap;
use std::mem::take;
use std::time::Duration;

use futures_util::future::{Either, ready, select, try_join_all};

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::campaigns::{CampaignFed, CampaignStarted, CampaignTuned, ListKey, put_of};
use paced::internals::frontier::state::{CampaignTuning, DroppedOf};
use paced::internals::frontier::{
    Act, Agreed, Beaten, Claim, EventEnd, Feeding, Forgotten, Frontier, FrontierError, Grant, GroupPaused,
    Inspection, LockReply, MutexKey, Pause, QueueChange, Queued, Rearm, Registered, Registration, Renamed,
    Run, SignOfLife, TakenEvent, TuneReply, Tuning, WorkScope,
};
use paced::internals::page::Validators;
use paced::internals::task::{CampaignPlan, CampaignPortion};
use paced::internals::task::{
    Event, EventKind, Exclusion, Failure, FleetRules, LANE, LaneRule, Lease, LeaseKey, NOW, Origin, Outcome,
    Priority, Put, PutReply, RobotsAccess, RobotsRecord, Settled, Settlement, Stage, StoredPage, TooMuch,
    WallSighting,
};

use super::batched::BATCHES;
use super::campaigned::{CAMPAIGNS, list_of};
use super::laned::{LANES, TENANTS, rules, tuned_rules};
use super::ledger::{Dues, Ledger};
use super::op::{CampaignAct, OWNERS, Op, PLANNED, Page, Posted, SITES, UNITS};
use super::stepped::SESSIONS;
use super::told::{event, kinds};
use crate::world::{Backend, START, World, at, ms, page, shop};

/// A move with everything filled in: the same for each backend.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a few at a time")]
pub enum Move {
    Put(String, Put),
    Claim(Claim),
    Settle(String, u64, Settlement),
    Rearm(LeaseKey),
    Landed(LeaseKey, Block),
    Refuse(LeaseKey, WallSighting),
    Probed(String, CanonicalUrl, Option<WallSighting>),
    Resume(String),
    Back(LeaseKey, bool),
    Extend(LeaseKey),
    Tune(String, Vec<Tuning>),
    DropRequests(DroppedOf),
    TuneTenant(String, Option<Vec<LaneRule>>),
    TuneGroup(Option<i64>),
    PauseGroup(Stage, Option<Pause>),
    PauseAll(Stage, Option<Pause>),
    Block(String, Block),
    Register(Registration),
    Agree(FleetRules, u64),
    Requeue(String, CanonicalUrl, QueueChange),
    Feed(u32),
    StartCampaign(String, String, CampaignPlan, Vec<CanonicalUrl>),
    FeedCampaign(String, String, ListKey, u32, Vec<Put>),
    TuneCampaign(String, String, CampaignTuning),
    DropOfCampaign(String, String, Vec<CanonicalUrl>),
    ParseAgain(String, CanonicalUrl),
    DropLetter(String, Stage, CanonicalUrl),
    BeginRun(String, bool, Vec<Put>),
    Forget(String),
    Rename(String),
    WorkOn(String, WorkScope),
    Bury(String),
    Beat(String, u32),
    Drain(String),
    LockReply(String, i64),
    ExtendLock(String, i64),
    Unlock(String),
    PostEvent(Event),
    TakeEvent(Vec<EventKind>, u64),
    EndEvent(Event, u64, Option<String>),
}

/// How much later a second claimer comes for a moment that another one was told, in ms.
const STAND_IN: i64 = 250;
/// How long a claimer sleeps at most that was told no moment of its own, in ms.
const IDLE_SLEEP: i64 = 1_000;

/// For how long a unit is left alone, and why.
pub type Block = Option<(Duration, String)>;

/// What a backend answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Nothing,
    Put(PutReply),
    Grant(Grant),
    Settled(Settled),
    Rearm(Rearm),
    Is(bool),
    Run(Run),
    Registered(Registered),
    Fed(Feeding),
    LockReply(LockReply),
    Forgotten(Forgotten),
    Renamed([Renamed; 2]),
    Tuned(TuneReply),
    Paused(GroupPaused),
    Agreed(Agreed),
    Requeued(Option<u32>),
    Beaten(Beaten),
    Taken(Option<TakenEvent>),
    Ended(EventEnd),
    CampaignStarted(CampaignStarted),
    CampaignFed(Option<CampaignFed>),
    CampaignTuned(CampaignTuned),
    CampaignDropped(Option<u32>),
}

impl Move {
    /// Whether it is one step of the frontier: those that are more can only come last of those posted at once.
    fn is_one_step(&self) -> bool {
        !matches!(
            self,
            Self::BeginRun(..)
                | Self::Forget(_)
                | Self::Rename(_)
                | Self::PauseAll(..)
                | Self::StartCampaign(..)
                | Self::TuneTenant(..)
                | Self::WorkOn(_, WorkScope::Lanes(_))
        )
    }

    /// Whether a claim takes it along.
    fn waits_for_a_claim(&self) -> bool {
        matches!(self, Self::Put(..) | Self::Settle(..) | Self::Landed(_, None))
    }

    /// Whether a start waits for it: such steps overtake others.
    fn overtakes(&self) -> bool {
        matches!(
            self,
            Self::Claim(_)
                | Self::Rearm(_)
                | Self::Landed(_, Some(_))
                | Self::Block(..)
                | Self::Refuse(..)
                | Self::Probed(..)
                | Self::LockReply(..)
                | Self::Unlock(_)
        )
    }
}

impl World {
    /// What waits in a lane of a site, read a few at a time.
    async fn queued(&self, site: &str, lane: &str) -> Result<Vec<Queued>, String> {
        let (mut listed, mut after) = (Vec::<Queued>::new(), None);
        loop {
            let some = self.frontier.queued(site, lane, after, 2).await.map_err(|e| e.to_string())?;
            let some = some.unwrap_or_default();
            let Some(last) = some.last() else { return Ok(listed) };
            after = Some(last.place());
            listed.extend(some);
        }
    }

    /// Posts moves at once, as far as they are done in their order then.
    async fn post(&self, moves: &[Move]) -> Result<Vec<Answer>, FrontierError> {
        let mut answers = Vec::new();
        for together in self.in_order(moves) {
            let (frontier, calls) = (self.next(), self.frontier.calls());
            let held = frontier.hold();
            let posted = try_join_all(together.iter().map(|what| perform(frontier, what.clone())));
            // Polled once, each has sent its step.
            match select(posted, ready(())).await {
                Either::Left((answered, _)) => answers.extend(answered?),
                Either::Right(((), posted)) => {
                    drop(held);
                    answers.extend(posted.await?);
                }
            }
            if together.iter().all(Move::is_one_step) {
                assert_eq!(self.frontier.calls(), calls.map(|calls| calls + 1), "they travel together");
            }
        }
        Ok(answers)
    }

    /// Moves that are done in their order if they are posted at once. On one file those that overtake others go alone, but a
    /// claim may come last of those that travel with it.
    fn in_order<'a>(&self, mut moves: &'a [Move]) -> Vec<&'a [Move]> {
        let overtakes = |what: &Move| self.others_are_overtaken() && what.overtakes();
        let mut parts = Vec::new();
        while !moves.is_empty() {
            let travel = moves.iter().take_while(|what| what.waits_for_a_claim()).count();
            let some = match moves.get(travel) {
                Some(Move::Claim(_)) if self.others_are_overtaken() => travel + 1,
                _ => moves.iter().take_while(|what| !overtakes(what)).count().max(1),
            };
            let (part, rest) = moves.split_at(some);
            parts.push(part);
            moves = rest;
        }
        parts
    }
}

pub struct Game {
    worlds: Vec<World>,
    ledger: Ledger,
    /// Every lease ever granted, in order.
    leases: Vec<Lease>,
    claims: BTreeMap<String, Claim>,
    settled: Option<Move>,
    /// Every event ever taken, each with its token, in order.
    taken: Vec<(Event, u64)>,
    /// The newest answer.
    last: Option<Answer>,
}

impl Game {
    pub async fn new(backends: &[Backend]) -> Result<Self, String> {
        let worlds = backends.iter().copied().map(World::new).collect();
        let mut game = Self {
            worlds,
            ledger: Ledger::default(),
            leases: Vec::new(),
            claims: BTreeMap::new(),
            settled: None,
            taken: Vec::new(),
            last: None,
        };
        for site in SITES {
            let mut registration = registration(site, matches!(site, "c" | "d"));
            registration.settings.robots = site == "a";
            game.make(Move::Register(registration)).await?;
        }
        for owner in &OWNERS[..2] {
            game.make(Move::WorkOn((*owner).to_owned(), WorkScope::All)).await?;
        }
        Ok(game)
    }

    /// Plays moves that are posted at once and looks at everything afterwards.
    pub async fn play(&mut self, step: usize, posted: &[Posted]) -> Result<(), String> {
        let mut moves = Vec::new();
        for (step, Posted { op, .. }) in (step..).zip(posted) {
            if let Op::Advance(by) = op {
                self.make_all(take(&mut moves)).await?;
                self.pass(*by).await?;
            } else if let Some(what) = self.again(op, &moves).or_else(|| self.fill_in(step, op)) {
                let is_one_step = what.is_one_step();
                moves.push(what);
                if !is_one_step {
                    self.make_all(take(&mut moves)).await?;
                }
                if let Op::Forget { site, grouped } = op {
                    moves.push(Move::Register(registration(SITES[*site], *grouped)));
                }
            }
        }
        self.make_all(moves).await?;
        self.look((step..step + posted.len()).any(|step| step.is_multiple_of(8))).await
    }

    /// Lets everything run to its end: it does, and leaves nothing behind (I15, L1, L4).
    pub async fn finish(&mut self) -> Result<(), String> {
        for site in SITES {
            let free = vec![Tuning::Paused(None), Tuning::ParsePaused(None), Tuning::Parallel(None)];
            self.make(Move::Tune(site.to_owned(), free)).await?;
        }
        for stage in Stage::ALL {
            self.make(Move::PauseGroup(stage, None)).await?;
            self.make(Move::PauseAll(stage, None)).await?;
        }
        self.make(Move::WorkOn("last".to_owned(), WorkScope::All)).await?;
        for round in 0..1_000_u64 {
            let claim = claim("last", 1_000_000_000 + round * 1_000, (9, 9), 3);
            let Answer::Grant(grant) = self.make(Move::Claim(claim)).await? else {
                return Err("a claim is answered by a grant".to_owned());
            };
            self.look(round % 8 == 0).await?;
            for lease in &grant.leases {
                let how = if lease.robots.is_some() { THE_LAST_WORD } else { 0 };
                let token = 2_000_000_000 + lease.token;
                let settlement = settlement(lease, how, None);
                self.make(Move::Settle("last".to_owned(), token, settlement)).await?;
            }
            match grant.next_in {
                _ if !grant.leases.is_empty() => {}
                Some(wait) => self.pass(wait).await?,
                None => match self.ledger.first_held() {
                    // What is behind a dead step waits for somebody.
                    Some((site, stage, url)) => {
                        let url = CanonicalUrl::parse(&url).map_err(|e| e.to_string())?;
                        self.make(Move::DropLetter(site, stage, url)).await?;
                    }
                    None => return self.ledger.check_empty(&self.inspect().await?),
                },
            }
        }
        Err("it never came to its end".to_owned())
    }

    /// Time passes, and processes that live say so: a server that hasn't heard of one for long takes it for dead.
    async fn pass(&mut self, by: i64) -> Result<(), String> {
        for world in &self.worlds {
            world.pass(by);
        }
        self.ledger.now += by;
        for world in self.worlds.iter().filter(|world| world.frontier.calls().is_some()) {
            for (name, owner) in self.ledger.owners.iter().filter(|(_, owner)| !owner.dead) {
                world.frontier.work_on(name, owner.scope.clone()).await.map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }

    /// Makes moves at once on every backend, in their order on the model, compares the answers with the model's and books them.
    async fn make_all(&mut self, moves: Vec<Move>) -> Result<(), String> {
        let mut expected = Vec::new();
        for what in &moves {
            expected.push(self.ask_model(what).await?);
        }
        for world in &self.worlds[1..] {
            let answers = world.post(&moves).await.map_err(|e| e.to_string())?;
            for ((what, (answer, ..)), mut other) in moves.iter().zip(&expected).zip(answers) {
                if let (Move::Claim(claim), Answer::Grant(first), Answer::Grant(grant)) =
                    (what, answer, &mut other)
                    && let stage = if claim.download > 0 { Stage::Download } else { Stage::Parse }
                    && let Some(asleep) = world.asleep(stage)
                {
                    // Who slept in the middle of several moves isn't known any more.
                    grant.next_in = match moves.len() {
                        1 => met(claim, first.next_in, grant.next_in, asleep, world.now())?,
                        _ => first.next_in.filter(|_| grant.next_in.is_some()),
                    };
                }
                if *answer != other {
                    return Err(format!("answers to {what:?} differ:\n  {answer:?}\n  {other:?}"));
                }
            }
        }
        for (what, (answer, inside, dues)) in moves.iter().zip(&expected) {
            self.book(what, answer, inside, dues)?;
        }
        Ok(())
    }

    /// Makes one move.
    async fn make(&mut self, what: Move) -> Result<Answer, String> {
        self.make_all(vec![what]).await?;
        self.last.take().ok_or_else(|| "a move is answered".to_owned())
    }

    /// What the model answers, what is in it then, and, after a claim, when its sites are due.
    async fn ask_model(&self, what: &Move) -> Result<(Answer, Inspection, Dues), String> {
        let model = &self.worlds[0].frontier;
        let answer = perform(model, what.clone()).await.map_err(|e| e.to_string())?;
        let inside = self.inspect().await?;
        let mut dues = Dues::new();
        for site in SITES.iter().filter(|_| matches!(what, Move::Claim(_))) {
            if let Some(view) = model.view(site).await.map_err(|e| e.to_string())? {
                dues.insert(view.site, view.due.as_millis() - crate::world::START);
            }
        }
        Ok((answer, inside, dues))
    }

    fn book(&mut self, what: &Move, answer: &Answer, inside: &Inspection, dues: &Dues) -> Result<(), String> {
        match (what, answer) {
            (Move::Claim(claim), Answer::Grant(grant)) => {
                self.note(&grant.leases);
                self.claims.insert(claim.owner.clone(), claim.clone());
            }
            (Move::Settle(..), Answer::Settled(settled)) => {
                if let Settled::Leased(parse) = settled {
                    self.note(std::slice::from_ref(parse));
                }
                self.settled = Some(what.clone());
            }
            (Move::TakeEvent(_, token), Answer::Taken(Some(taken))) => {
                self.taken.push((taken.event.clone(), *token));
            }
            _ => {}
        }
        self.ledger.book(what, answer, inside, dues).map_err(|e| format!("{what:?}: {e}"))?;
        self.ledger.tidy_groups();
        self.last = Some(answer.clone());
        Ok(())
    }

    /// Remembers leases, the same one once.
    fn note(&mut self, leases: &[Lease]) {
        let known: Vec<u64> = self.leases.iter().map(|lease| lease.token).collect();
        self.leases.extend(leases.iter().filter(|lease| !known.contains(&lease.token)).cloned());
    }

    /// The books of batches.
    async fn look_at_batches(&mut self, all: bool) -> Result<(), String> {
        for (site, name) in SITES.iter().flat_map(|site| BATCHES.map(|name| (*site, name))) {
            let told = self.worlds[0].frontier.batch_on(site, name).await.map_err(|e| e.to_string())?;
            self.ledger.check_batch(site, name, told.as_ref())?;
            for world in self.worlds[1..].iter().filter(|_| all) {
                let other = world.frontier.batch_on(site, name).await.map_err(|e| e.to_string())?;
                if other != told {
                    return Err(format!("books of {name} of {site} differ:\n  {told:?}\n  {other:?}"));
                }
            }
        }
        Ok(())
    }

    /// Campaigns.
    async fn look_at_campaigns(&mut self, all: bool) -> Result<(), String> {
        for (site, which) in SITES.iter().flat_map(|site| CAMPAIGNS.map(|which| (*site, which))) {
            let name = format!("{site}{which}");
            let told = self.worlds[0].frontier.campaign(site, &name).await.map_err(|e| e.to_string())?;
            self.ledger.check_campaign(site, &name, told.as_ref())?;
            for world in self.worlds[1..].iter().filter(|_| all) {
                let other = world.frontier.campaign(site, &name).await.map_err(|e| e.to_string())?;
                if other != told {
                    return Err(format!("campaigns differ:\n  {told:?}\n  {other:?}"));
                }
            }
        }
        Ok(())
    }

    /// What is done to a campaign: a feed comes with the pages that are next, or that were.
    fn campaign(&self, site: usize, which: usize, act: &CampaignAct) -> Move {
        let (site, name) = (SITES[site].to_owned(), format!("{}{}", SITES[site], CAMPAIGNS[which]));
        let pages = |from: usize, count: usize| {
            (from..from + count).map(|n| url(&site, n % 3, n / 3 % 2 == 1)).collect::<Vec<_>>()
        };
        let known = self.ledger.campaigns.get(&(site.clone(), name.clone()));
        match act {
            CampaignAct::Start { from, count, portion, tick, batch } => {
                let batch = batch.map(str::to_owned);
                let portion = CampaignPortion::Pages(*portion);
                let plan = CampaignPlan { portion, tick: *tick, batch, ..CampaignPlan::default() };
                let urls = pages(*from, (*count).min(6));
                Move::StartCampaign(site, name, plan, urls)
            }
            CampaignAct::Feed { behind, count, of_old } => {
                let next = known.map_or(0, |campaign| campaign.next);
                let from = next.saturating_sub(*behind as usize);
                let puts = known.iter().flat_map(|campaign| {
                    let urls = campaign.urls.iter().skip(from).take(*count);
                    urls.map(|url| put_of(url, &name, &campaign.plan))
                });
                let puts = puts.collect();
                let mut list = known.map(|campaign| list_of(&campaign.urls).key()).unwrap_or_default();
                if *of_old {
                    list.mark.push('-');
                }
                Move::FeedCampaign(site, name, list, u32::try_from(from).unwrap_or(0), puts)
            }
            CampaignAct::Tune(tuning) => Move::TuneCampaign(site, name, tuning.clone()),
            CampaignAct::Drop(count) => {
                let urls = known.iter().flat_map(|campaign| campaign.urls.iter().take(*count).cloned());
                let urls = urls.collect();
                Move::DropOfCampaign(site, name, urls)
            }
        }
    }

    fn pause(&self, on: bool, ends: Option<i64>) -> Option<Pause> {
        let until = ends.map(|wait| START + self.ledger.now + wait);
        on.then(|| Pause { why: "lunch".to_owned(), until })
    }

    async fn inspect(&self) -> Result<Inspection, String> {
        self.worlds[0].frontier.inspect().await.map_err(|e| e.to_string())
    }

    /// The ledger against the model; now and then every other backend against the model.
    async fn look(&mut self, all: bool) -> Result<(), String> {
        let inside = self.inspect().await?;
        let mut views = Vec::new();
        for site in SITES {
            views.extend(self.worlds[0].frontier.view(site).await.map_err(|e| e.to_string())?);
        }
        self.ledger.check(&inside, &views)?;
        for site in SITES {
            let freshness = self.worlds[0].frontier.freshness(site).await.map_err(|e| e.to_string())?;
            self.ledger.check_freshness(site, freshness)?;
            let acts = self.worlds[0].frontier.acts(site).await.map_err(|e| e.to_string())?;
            self.ledger.check_acts(site, &acts)?;
        }
        let mut sessions = Vec::new();
        for (site, name) in SITES.iter().flat_map(|site| SESSIONS.map(|name| (*site, name))) {
            let told = self.worlds[0].frontier.session(site, name).await.map_err(|e| e.to_string())?;
            self.ledger.check_session(site, name, told.as_ref())?;
            sessions.push((site, name, told));
        }
        self.look_at_batches(all).await?;
        self.look_at_campaigns(all).await?;
        for (site, lane) in SITES.into_iter().flat_map(|site| LANES.map(|lane| (site, lane))).filter(|_| all)
        {
            for world in &self.worlds {
                self.ledger.check_queue(site, lane, &world.queued(site, lane).await?)?;
            }
        }
        let events = self.worlds[0].frontier.events_status().await.map_err(|e| e.to_string())?;
        self.ledger.check_events(&events)?;
        for world in self.worlds.iter().filter(|_| all) {
            self.ledger.check_drops(&world.frontier.drops().await.map_err(|e| e.to_string())?)?;
            let in_all = world.frontier.idle_in_all().await.map_err(|e| e.to_string())?;
            if in_all != self.ledger.idle_in_all() {
                return Err(format!("M10: {} wait in all, and told are {in_all}", self.ledger.idle_in_all()));
            }
        }
        let fleet = self.worlds[0].frontier.fleet_rules().await.map_err(|e| e.to_string())?;
        self.ledger.check_fleet(&fleet)?;
        for world in self.worlds[1..].iter().filter(|_| all) {
            if world.frontier.fleet_rules().await.map_err(|e| e.to_string())? != fleet {
                return Err("the fleet's rules differ".to_owned());
            }
            let other = world.frontier.events_status().await.map_err(|e| e.to_string())?;
            if other != events {
                return Err(format!("events differ:\n  {events:?}\n  {other:?}"));
            }
            for (site, name, told) in &sessions {
                let other = world.frontier.session(site, name).await.map_err(|e| e.to_string())?;
                if other != *told {
                    return Err(format!("sessions differ:\n  {told:?}\n  {other:?}"));
                }
            }
            let other = world.frontier.inspect().await.map_err(|e| e.to_string())?;
            if other != inside {
                return Err(format!("insides differ:\n  {inside:?}\n  {other:?}"));
            }
            for view in &views {
                let other = world.frontier.view(&view.site).await.map_err(|e| e.to_string())?;
                if other.as_ref() != Some(view) {
                    return Err(format!("views differ:\n  {view:?}\n  {other:?}"));
                }
                let fresh = self.worlds[0].frontier.freshness(&view.site).await;
                let other = world.frontier.freshness(&view.site).await;
                if fresh.map_err(|e| e.to_string())? != other.map_err(|e| e.to_string())? {
                    return Err(format!("freshness of {} differs", view.site));
                }
                let flow = self.worlds[0].frontier.flow(&view.site).await.map_err(|e| e.to_string())?;
                let other = world.frontier.flow(&view.site).await.map_err(|e| e.to_string())?;
                if flow != other {
                    return Err(format!("flows differ:\n  {flow:?}\n  {other:?}"));
                }
                let acts = self.worlds[0].frontier.acts(&view.site).await;
                let other = world.frontier.acts(&view.site).await;
                if acts.map_err(|e| e.to_string())? != other.map_err(|e| e.to_string())? {
                    return Err(format!("what was done to {} differs", view.site));
                }
                let letters = self.worlds[0].frontier.dead_letters(&view.site, 99).await;
                let others = world.frontier.dead_letters(&view.site, 99).await;
                if letters.map_err(|e| e.to_string())? != others.map_err(|e| e.to_string())? {
                    return Err(format!("dead letters of {} differ", view.site));
                }
            }
            let owners = self.worlds[0].frontier.owners().await.map_err(|e| e.to_string())?;
            let others = world.frontier.owners().await.map_err(|e| e.to_string())?;
            if others != owners {
                return Err(format!("owners differ:\n  {owners:?}\n  {others:?}"));
            }
        }
        Ok(())
    }

    /// What is sent once more: a process's newest claim, or the newest settlement, be it one that is `posted` with it.
    fn again(&self, op: &Op, posted: &[Move]) -> Option<Move> {
        let mut newest = posted.iter().rev();
        match op {
            Op::ClaimAgain { owner } => {
                let is_theirs =
                    |what: &&Move| matches!(what, Move::Claim(claim) if claim.owner == OWNERS[*owner]);
                let name = OWNERS[*owner];
                let joins = posted.iter().any(|what| matches!(what, Move::WorkOn(of, _) if of == name));
                // Who was forgotten and joined anew has claimed nothing: what its old tokens stand for is another's.
                let is_last = |claim: &&Claim| {
                    let owner = self.ledger.owners.get(name).filter(|owner| !owner.dead);
                    let last = owner.map(|owner| owner.claimed.as_ref().map(|(token, _)| *token));
                    !joins && last.is_none_or(|last| last == Some(claim.token))
                };
                let before = || self.claims.get(name).filter(is_last).cloned().map(Move::Claim);
                newest.find(is_theirs).cloned().or_else(before)
            }
            Op::SettleAgain => {
                newest.find(|what| matches!(what, Move::Settle(..))).or(self.settled.as_ref()).cloned()
            }
            _ => None,
        }
    }

    fn fill_in(&self, step: usize, op: &Op) -> Option<Move> {
        let token = (step as u64 + 1) * 1_000;
        let named = |site: &usize| SITES[*site].to_owned();
        let unit = |unit: &usize| UNITS[*unit].to_owned();
        let held = |which: &usize| self.lease(*which).map(Lease::key);
        Some(match op {
            Op::Advance(_) | Op::ClaimAgain { .. } | Op::SettleAgain => return None,
            Op::Put(page) => Move::Put(named(&page.site), self.put(page)),
            Op::Claim { owner, download, parse, dice } => {
                Move::Claim(claim(OWNERS[*owner], token, (*download, *parse), *dice))
            }
            Op::WorkOn { owner, sites, lanes } => work_on(*owner, *sites, *lanes),
            Op::Settle { which, how, block, other_owner, parse } => {
                let lease = self.lease(*which)?;
                let owner = self.ledger.owner_of(lease.token).unwrap_or(OWNERS[0]);
                let owner = if *other_owner { OWNERS[1] } else { owner };
                let parse = parse.then_some(token + 1);
                Move::Settle(owner.to_owned(), token, Settlement { parse, ..settlement(lease, *how, *block) })
            }
            Op::Rearm { which } => Move::Rearm(held(which)?),
            Op::Landed { which, block: wait } => Move::Landed(held(which)?, block(*wait)),
            Op::Refuse { which, of_site, first, dice } => {
                let lease = self.lease(*which).filter(|lease| lease.stage == Stage::Download)?;
                Move::Refuse(lease.key(), refusal(*of_site, *first, *dice))
            }
            Op::Probed { site, dice } => {
                let refusal = dice.map(|dice| refusal(dice.is_multiple_of(2), 2_000, dice));
                Move::Probed(named(site), url(SITES[*site], 0, false), refusal)
            }
            Op::Resume { site } => Move::Resume(named(site)),
            Op::Back { which, unused } => Move::Back(held(which)?, *unused),
            Op::Extend { which } => Move::Extend(held(which)?),
            Op::Tune { site, tunings } => Move::Tune(named(site), tunings.clone()),
            Op::Pause { site, on, parse, ends } => {
                let pause = self.pause(*on, *ends);
                let tuning = if *parse { Tuning::ParsePaused(pause) } else { Tuning::Paused(pause) };
                Move::Tune(named(site), vec![tuning])
            }
            Op::DropRequests { of } => Move::DropRequests(match SITES.get(*of) {
                Some(site) => DroppedOf::Site((*site).to_owned()),
                None if *of == SITES.len() => DroppedOf::Unit("g".to_owned()),
                None => DroppedOf::All,
            }),
            Op::TuneTenant { tenant, rules } => {
                Move::TuneTenant(TENANTS[*tenant].to_owned(), rules.map(tuned_rules))
            }
            Op::TuneGroup { interval } => Move::TuneGroup(*interval),
            Op::PauseShared { all, on, parse, ends } => {
                let stage = if *parse { Stage::Parse } else { Stage::Download };
                let pause = self.pause(*on, *ends);
                if *all { Move::PauseAll(stage, pause) } else { Move::PauseGroup(stage, pause) }
            }
            Op::Block { site, wait } => Move::Block(named(site), block(Some(*wait))),
            Op::Requeue { site, path, second_host, change } => {
                Move::Requeue(named(site), url(SITES[*site], *path, *second_host), queue_change(*change))
            }
            Op::Campaign { site, which, act } => self.campaign(*site, *which, act),
            Op::Agree(which) => Move::Agree(rules(*which), *which as u64),
            Op::Register { site, interval, parallel, attempts, robots, grouped, shared, lean, wish } => {
                let mut new = registration(SITES[*site], grouped.is_some());
                new.group = grouped.map(|interval| ("g".to_owned(), interval));
                new.hosts.truncate(if *lean { 1 } else { 2 });
                new.hosts.extend(shared.then(|| "shared.example".to_owned()));
                new.settings.interval = *interval;
                new.settings.min_interval = if *interval < 1_000 { 0 } else { interval / 5 };
                new.settings.max_parallel = 3;
                new.settings.parallel = *parallel;
                new.settings.attempts = *attempts;
                new.settings.robots = *robots;
                new.settings.lane = wish.lane.clone().filter(|lane| lane != LANE && lane != NOW);
                new.settings.tenant.clone_from(&wish.tenant);
                Move::Register(new)
            }
            Op::BeginRun { site, fresh, seeds } => {
                let seeds = (0..*seeds).map(|path| Put::seed(url(SITES[*site], path, false)));
                Move::BeginRun(named(site), *fresh, seeds.collect())
            }
            Op::Feed(most) => Move::Feed(*most),
            Op::ParseAgain { site, path, second_host } => {
                Move::ParseAgain(named(site), url(SITES[*site], *path, *second_host))
            }
            Op::DropLetter { site, path, parse } => {
                let stage = if *parse { Stage::Parse } else { Stage::Download };
                Move::DropLetter(named(site), stage, url(SITES[*site], *path, false))
            }
            Op::Forget { site, .. } => Move::Forget(named(site)),
            Op::Rename { site } => Move::Rename(named(site)),
            Op::Bury { owner } => Move::Bury(OWNERS[*owner].to_owned()),
            Op::Beat { owner, leases } => Move::Beat(OWNERS[*owner].to_owned(), *leases),
            Op::Drain { owner } => Move::Drain(OWNERS[*owner].to_owned()),
            Op::LockReply { unit: name, expire } => Move::LockReply(unit(name), *expire),
            Op::ExtendLock { unit: name, expire } => Move::ExtendLock(unit(name), *expire),
            Op::Unlock { unit: name } => Move::Unlock(unit(name)),
            Op::PostEvent { kind, site } => Move::PostEvent(event(*kind, *site, step)),
            Op::TakeEvent { kinds: which } => Move::TakeEvent(kinds(*which), token),
            Op::EndEvent { which, failed } => {
                let (event, token) = self.taken.iter().rev().nth(*which)?.clone();
                Move::EndEvent(event, token, failed.then(|| format!("no answer at step {step}")))
            }
        })
    }

    fn lease(&self, which: usize) -> Option<&Lease> {
        self.leases.iter().rev().nth(which)
    }

    fn put(&self, page: &Page) -> Put {
        let site = SITES[page.site];
        let now = self.ledger.now;
        Put {
            url: url(site, page.path, page.second_host),
            origin: if page.link { Origin::Link } else { Origin::Request },
            priority: Priority::from_value(page.priority),
            depth: 1,
            hops: page.hops,
            at: page.at.map(|wait| at(now + wait)),
            expires: page.expires.map(|wait| at(now + wait)),
            unless_newer: page.unless_newer.filter(|_| !page.link).map(|age| at(now - age)),
            again: page.again,
            rule: (page.rule && site == PLANNED).then(|| "rule".to_owned()),
            wish: page.wish.clone(),
            session: page.session.clone(),
            batches: page.batches.clone(),
        }
    }
}

/// L1: a claimer is told the first moment, unless another one comes for it, and a second one within 250 ms after that. The first
/// moment.
fn met(
    claim: &Claim,
    first: Option<i64>,
    told: Option<i64>,
    mut asleep: BTreeMap<String, i64>,
    now: i64,
) -> Result<Option<i64>, String> {
    let (Some(moment), Some(wait)) = (first, told.filter(|_| told != first)) else { return Ok(told) };
    asleep.remove(&claim.owner);
    let comes = asleep.values().filter(|at| (now + 1..=now + moment).contains(at)).max();
    let is_met = |at: &i64| {
        let in_its_stead = at + 1..=at + STAND_IN;
        in_its_stead.contains(&(now + wait)) || asleep.values().any(|other| in_its_stead.contains(other))
    };
    if (wait > moment || wait == IDLE_SLEEP) && comes.is_some_and(is_met) {
        return Ok(first);
    }
    Err(format!("L1: at {now} told to come in {wait}, though something is in {moment}; asleep: {asleep:?}"))
}

fn work_on(owner: usize, sites: Option<usize>, lanes: Option<usize>) -> Move {
    Move::WorkOn(OWNERS[owner].to_owned(), scope(sites, lanes))
}

fn scope(sites: Option<usize>, lanes: Option<usize>) -> WorkScope {
    if let Some(lanes) = lanes {
        let named = LANES.into_iter().enumerate().filter(|(bit, _)| lanes >> bit & 1 == 1);
        return WorkScope::of_lanes(named.map(|(_, lane)| lane.to_owned()));
    }
    let Some(sites) = sites else { return WorkScope::All };
    let names = SITES.into_iter().chain(["nowhere"]).enumerate();
    WorkScope::of(names.filter(|(bit, _)| sites >> bit & 1 == 1).map(|(_, name)| name.to_owned()))
}

fn claim(owner: &str, token: u64, wanted: (u32, u32), dice: u32) -> Claim {
    let (download, parse) = wanted;
    let dice = vec![dice, dice / 7, dice / 49];
    Claim { owner: owner.to_owned(), token, download, parse, dice, lead: 0 }
}

fn registration(site: &str, grouped: bool) -> Registration {
    let mut new = shop(site);
    new.hosts.push(format!("{site}2.example"));
    new.group = grouped.then(|| ("g".to_owned(), 0));
    if site == PLANNED {
        new.settings.budgets = BTreeMap::from([(String::new(), 6), ("rule".to_owned(), 2)]);
    }
    new
}

fn url(site: &str, path: usize, second_host: bool) -> CanonicalUrl {
    let host = if second_host { "2" } else { "" };
    let path = ["x", "y", "z", "robots.txt"][path];
    CanonicalUrl::parse(&format!("https://{site}{host}.example/{path}")).expect("a URL")
}

/// A robots record that holds for a day: one that ends before the next start may be asked for over and over.
const THE_LAST_WORD: u32 = 100;

/// What a fetch brings.
fn kept(lease: &Lease) -> StoredPage {
    let fetched = page(&format!("warc/{}", lease.fence), lease.granted_at);
    let validators = Validators { etag: Some(format!("\"{}\"", lease.fence)), ..Validators::default() };
    StoredPage { validators, ..fetched }
}

/// How a task ends, by a throw of a hundred.
fn settlement(lease: &Lease, how: u32, wait: Option<i64>) -> Settlement {
    let why = || Failure::status(503, "503");
    let outcome = match (lease.robots.is_some(), how) {
        (true, 0..8) => Outcome::Dead { why: why() },
        (true, 8..16) => Outcome::Retry { after: ms(5_000), why: why() },
        (true, 16..18) => Outcome::Refused { why: why() },
        (true, 18..20) => Outcome::Excluded { why: Exclusion::Type, unused: how.is_multiple_of(2) },
        (true, 20..22) => Outcome::Postponed { after: ms(5_000) },
        (true, 22..40) => Outcome::RobotsMoved { to: lease.url.clone() },
        (true, _) => Outcome::Robots(robots(how)),
        (false, 0..40) => {
            let brings = how.is_multiple_of(2) && lease.stage == Stage::Download;
            let stored = brings.then(|| kept(lease));
            let recrawl = how.is_multiple_of(3).then(|| ms(i64::from(how % 5) * 4_000));
            Outcome::Done { stored, recrawl }
        }
        (false, 40..55) => {
            let why = if how.is_multiple_of(2) { Exclusion::Robots } else { Exclusion::NoRule };
            Outcome::Excluded { why, unused: !how.is_multiple_of(3) }
        }
        (false, 55..58) => Outcome::Redirected { to: url(&lease.site, how as usize % 3, false) },
        (false, 58..63) if lease.stage == Stage::Download => Outcome::Refused { why: why() },
        (false, 58..66) if lease.stage == Stage::Parse => {
            Outcome::Postponed { after: ms(i64::from(how % 4) * 900) }
        }
        (false, 58..90) => Outcome::Retry { after: ms(i64::from(how % 4) * 900), why: why() },
        (false, _) => Outcome::Dead { why: why() },
    };
    // Nobody there answers each ninth time.
    let away = block((how % 9 == 4).then(|| i64::from(how) * 900));
    Settlement {
        block: block(wait),
        away,
        response: Some(ms(i64::from(how))),
        too_much: TooMuch {
            links: how % 3,
            left_out: how.is_multiple_of(5),
            too_dear: how.is_multiple_of(7),
        },
        ..Settlement::of(lease.clone(), outcome)
    }
}

fn queue_change(change: u32) -> QueueChange {
    match change {
        0 => QueueChange::Drop,
        1 | 2 => {
            let [from, to] = [240, if change == 1 { 120 } else { 360 }].map(Priority::from_value);
            QueueChange::Priority { from, to }
        }
        lane => {
            let [from, to] = [LANES[lane as usize - 3], LANES[lane as usize - 2]].map(str::to_owned);
            QueueChange::Lane { from, to }
        }
    }
}

fn refusal(of_site: bool, first: i64, dice: u32) -> WallSighting {
    WallSighting { why: "HTTP 403".to_owned(), of_site, looks: 403, first, dice }
}

fn block(wait: Option<i64>) -> Block {
    wait.map(|wait| (ms(wait), "429".to_owned()))
}

fn robots(how: u32) -> RobotsRecord {
    let access = match how {
        40..60 => RobotsAccess::Unreachable("503".to_owned()),
        60..80 => RobotsAccess::Rules("Crawl-delay: 2".to_owned()),
        _ => RobotsAccess::Absent,
    };
    RobotsRecord {
        access,
        holds_for: ms(if how == THE_LAST_WORD { 86_400_000 } else { i64::from(how % 7 + 1) * 3_000 }),
        crawl_delay: (70..80).contains(&how).then(|| ms(2_000)),
        refuses: (60..63).contains(&how).then(|| "too slow".to_owned()),
    }
}

async fn perform(frontier: &Frontier, what: Move) -> Result<Answer, FrontierError> {
    Ok(match what {
        Move::Put(site, put) => Answer::Put(frontier.put(&site, vec![put]).await?[0]),
        Move::Claim(claim) => Answer::Grant(frontier.claim(claim).await?),
        Move::Settle(owner, token, settlement) => {
            Answer::Settled(frontier.settle(&owner, token, vec![settlement]).await?[0].clone())
        }
        Move::Rearm(lease) => Answer::Rearm(frontier.rearm(&lease).await?),
        Move::Landed(lease, block) => Answer::Is(frontier.landed_with(lease, block).await?),
        Move::Refuse(lease, refusal) => Answer::Is(frontier.refuse(lease, refusal).await?),
        Move::Probed(site, url, refusal) => Answer::Is(frontier.probed(&site, &url, refusal).await?),
        Move::Resume(site) => Answer::Is(frontier.resume(&site).await?),
        Move::Back(lease, true) => Answer::Is(frontier.back(lease).await?),
        Move::Back(lease, false) => Answer::Is(frontier.hand_back(lease).await?),
        Move::Extend(lease) => Answer::Is(frontier.extend(vec![lease]).await?[0]),
        Move::Tune(site, tunings) => {
            let act = Act { did: format!("{tunings:?}"), ..Act::default() };
            Answer::Tuned(frontier.tune_by(act, &site, tunings).await?)
        }
        Move::DropRequests(of) => frontier.drop_requests(of).await.map(|()| Answer::Nothing)?,
        Move::TuneTenant(tenant, rules) => Answer::Is(frontier.tune_tenant(&tenant, rules).await?),
        Move::TuneGroup(interval) => Answer::Tuned(frontier.tune_group("g", interval).await?),
        Move::PauseGroup(stage, pause) => Answer::Paused(frontier.pause_group("g", stage, pause).await?),
        Move::PauseAll(stage, pause) => Answer::Is(frontier.pause_all(stage, pause).await?),
        Move::Block(site, block) => {
            let (wait, why) = block.unwrap_or_default();
            Answer::Is(frontier.block(&site, wait, &why).await?)
        }
        Move::Register(new) => Answer::Registered(frontier.register(new).await?),
        Move::Requeue(site, url, change) => {
            Answer::Requeued(frontier.requeue(&site, vec![url], change).await?)
        }
        Move::Agree(rules, mark) => Answer::Agreed(frontier.agree(rules, mark).await?),
        Move::ParseAgain(site, url) => Answer::Is(frontier.parse_again(&site, &url).await?),
        Move::DropLetter(site, stage, url) => {
            Answer::Is(frontier.drop_letters(&site, vec![(stage, url)]).await? == [true])
        }
        Move::Feed(most) => Answer::Fed(frontier.feed(most).await?),
        Move::StartCampaign(site, name, plan, urls) => {
            let act = Act { did: format!("start {name}"), ..Act::default() };
            let started = frontier.start_campaign(&site, &name, &plan, &mut list_of(&urls), act).await?;
            Answer::CampaignStarted(started)
        }
        Move::FeedCampaign(site, name, list, from, puts) => {
            Answer::CampaignFed(frontier.feed_campaign(&site, &name, &list, from, puts).await?)
        }
        Move::TuneCampaign(site, name, tuning) => {
            let act = Act { did: format!("{tuning:?} {name}"), ..Act::default() };
            Answer::CampaignTuned(frontier.tune_campaign(act, &site, &name, vec![tuning]).await?)
        }
        Move::DropOfCampaign(site, name, urls) => {
            Answer::CampaignDropped(frontier.drop_urls(&site, &name, urls).await?)
        }
        Move::BeginRun(site, true, seeds) => Answer::Run(frontier.begin_fresh_run(&site, seeds).await?),
        Move::BeginRun(site, false, seeds) => Answer::Run(frontier.begin_run(&site, seeds).await?),
        Move::Forget(site) => Answer::Forgotten(forget(frontier, &site).await?),
        Move::Rename(site) => {
            let there = frontier.rename(&site, "elsewhere").await?;
            Answer::Renamed([there, frontier.rename("elsewhere", &site).await?])
        }
        Move::WorkOn(owner, scope) => {
            frontier.work_on(&owner, scope).await?;
            Answer::Nothing
        }
        Move::Bury(owner) => {
            frontier.bury(&owner).await?;
            Answer::Nothing
        }
        Move::Beat(owner, leases) => {
            let tells = SignOfLife { leases, ..SignOfLife::of_this_process() };
            Answer::Beaten(frontier.tell(&owner, false, tells).await?)
        }
        Move::Drain(owner) => Answer::Is(frontier.drain(&owner).await?),
        Move::LockReply(unit, expire) => {
            Answer::LockReply(frontier.try_lock(&MutexKey::Unit(unit), "outsider", expire).await?)
        }
        Move::ExtendLock(unit, expire) => {
            Answer::Is(frontier.extend_lock(&MutexKey::Unit(unit), "outsider", expire).await?)
        }
        Move::PostEvent(event) => Answer::Is(frontier.post_event(event).await?),
        Move::TakeEvent(kinds, token) => Answer::Taken(frontier.take_event(&kinds, token).await?),
        Move::EndEvent(event, token, failed) => {
            Answer::Ended(frontier.end_event(&event, token, failed).await?)
        }
        Move::Unlock(unit) => Answer::Is(frontier.unlock(&MutexKey::Unit(unit), "outsider").await?),
    })
}

/// Gives it up and forgets it, as far as that goes.
async fn forget(frontier: &Frontier, site: &str) -> Result<Forgotten, FrontierError> {
    while frontier.give_up(site).await? {}
    loop {
        match frontier.forget(site).await? {
            Forgotten::Partly => {}
            told => return Ok(told),
        }
    }
}

/// The stages in the order in which the ledger speaks of them.
pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Download => "download",
        Stage::Parse => "parse",
    }
}
