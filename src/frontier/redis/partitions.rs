//! A frontier of several partitions, as on a cluster: which of them a step is for, and how the answers of several are one.
//! A pace unit and all that hangs on it lies in one partition; the directory of sites and hosts lies in the first.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select, try_join_all};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Shared;
use super::idle::KnownIdle;
use crate::canonical_url::fingerprint;
use crate::clock;
use crate::frontier::step::{Feeding, Forgotten, Renamed};
use crate::frontier::table::{At, Haste, Reply, Step};
use crate::frontier::{Agreed, FrontierError, MutexKey};
use crate::recent::Recent;
use crate::task::{FleetRules, LeaseKey, Settled, Settlement, Stage};

/// Where the directory is.
pub(super) const DIRECTORY: usize = 0;
/// How long a claim waits for its partitions: the others go on without one that is silent, and a later claim takes its answer
/// up.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_millis(250);
/// The most sites whose partition is known without asking.
const MOST_SITES: usize = 65_536;

/// What this process knows of where things are.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// The partition of each site met, the last ones of very many; it never changes.
    pub(super) sites: Mutex<Recent<String, usize, MOST_SITES>>,
    /// Partitions that have nothing to give of a stage before a time, and whether they may have something then, if nothing else
    /// happens. Each has been asked for that stage, so that it tells this process of news.
    pub(super) bare: Mutex<HashMap<(usize, Stage), (Instant, bool)>>,
    /// How many downloads wait in each.
    pub(super) idle: KnownIdle,
    /// Claims that partitions haven't answered yet.
    pub(super) late: Mutex<HashMap<usize, LateClaim>>,
}

/// A claim under way in one partition.
#[derive(Debug)]
pub(super) struct LateClaim {
    pub(super) step: Step,
    pub(super) answer: oneshot::Receiver<Result<Value, FrontierError>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Does one step in the partitions that it is for.
    pub(super) async fn routed(&self, step: Step) -> Result<Reply, FrontierError> {
        match step {
            Step::Forget { site } => self.forget(site).await.map(Reply::Forget),
            Step::Rename { site, to } => self.rename(site, to).await.map(Reply::Rename),
            Step::Inspect {} => self.everywhere(step).await,
            Step::Enlist { scope: None, .. } => self.beat(step).await,
            step if self.connections.len() == 1 => self.step_in(DIRECTORY, step).await,
            Step::Enlist { tells: Some(_), .. } => self.join(step).await,
            Step::IdleInAll {} => Ok(Reply::IdleInAll(self.idle_in_all().await)),
            Step::Register { new } => self.register(new).await.map(Reply::Register),
            Step::Claim { claim } => self.claim(claim).await.map(Reply::Claim),
            Step::Settle { owner, token, settlements, haste } => {
                self.settle(&owner, token, settlements, haste).await.map(Reply::Settle)
            }
            Step::Extend { leases } => self.extend(leases).await.map(Reply::Extend),
            Step::Feed { most } => self.feed(most).await.map(Reply::Feed),
            Step::Enlist { .. } | Step::Bury { .. } | Step::TellTuned { .. } => self.everywhere(step).await,
            Step::Agree { rules, mark, .. } => self.agree(rules, mark).await.map(Reply::Agree),
            Step::TellPaused { of_all, .. } => {
                let step = |after| Step::TellPaused { of_all: of_all.clone(), after };
                self.in_portions(step).await.map(Reply::TellPaused)
            }
            Step::ListByLane { .. } => {
                self.in_portions(|after| Step::ListByLane { after }).await.map(Reply::ListByLane)
            }
            mut step => {
                let partition = self.partition_of(&step).await?.unwrap_or(DIRECTORY);
                self.tell_idle_beside(partition, &mut step).await;
                self.step_in(partition, step).await
            }
        }
    }

    /// Whether the partition of a site is known to be away.
    pub(super) fn is_away_for(&self, site: &str) -> bool {
        let partition = lock(&self.partitions.sites).peek(site).copied();
        self.state.away.has(partition.unwrap_or(DIRECTORY))
    }

    /// The partition of what a step names; none where nobody knows it.
    async fn partition_of(&self, step: &Step) -> Result<Option<usize>, FrontierError> {
        match step.at() {
            At::Site(site) => self.partition_of_site(site).await,
            At::Mutex(mutex) => Ok(Some(self.partition_of_mutex(mutex))),
            At::Unit(unit) => Ok(Some(self.partition_of_unit(unit))),
            At::Origin(origin) => self.partition_of_origin(origin).await,
            At::Directory | At::Several => Ok(None),
        }
    }

    pub(super) fn partition_of_mutex(&self, mutex: &MutexKey) -> usize {
        match mutex {
            MutexKey::Unit(unit) => self.partition_of_unit(unit),
            MutexKey::Named { .. } => self.partition_of_unit(&mutex.stored()),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the rest of a division by a few")]
    pub(super) fn partition_of_unit(&self, unit: &str) -> usize {
        (fingerprint(unit).unsigned_abs() % self.connections.len() as u64) as usize
    }

    pub(super) async fn partition_of_site(&self, site: &str) -> Result<Option<usize>, FrontierError> {
        if let Some(partition) = lock(&self.partitions.sites).get(site) {
            return Ok(Some(*partition));
        }
        let Some(unit) = self.unit_of(site).await? else { return Ok(None) };
        let partition = self.partition_of_unit(&unit);
        lock(&self.partitions.sites).put(site.to_owned(), partition);
        Ok(Some(partition))
    }

    async fn partition_of_origin(&self, origin: &str) -> Result<Option<usize>, FrontierError> {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host).to_owned();
        match self.step_in(DIRECTORY, Step::SiteOf { host }).await? {
            Reply::SiteOf(Some(site)) => self.partition_of_site(&site).await,
            _ => Ok(None),
        }
    }

    async fn unit_of(&self, site: &str) -> Result<Option<String>, FrontierError> {
        let step = Step::Text { site: site.to_owned() };
        self.ask_for(DIRECTORY, &step, json!(["view.unit_of", site])).await
    }

    /// The site goes first, what the directory books of it last: begun again after a crash, both go.
    async fn forget(&self, site: String) -> Result<Forgotten, FrontierError> {
        let mut forgotten = Forgotten::Unknown;
        let partition = self.partition_of_site(&site).await?.unwrap_or(DIRECTORY);
        if let Reply::Forget(there) = self.step_in(partition, Step::Forget { site: site.clone() }).await? {
            forgotten = there;
        }
        if matches!(forgotten, Forgotten::Unknown | Forgotten::Wholly) {
            self.step_in(DIRECTORY, Step::Unbook { site: site.clone() }).await?;
            lock(&self.partitions.sites).remove(&site);
        }
        Ok(forgotten)
    }

    /// The site is renamed first, then what the directory books of it. Its partition knows last that all is done, and until then
    /// nothing else is done with either name. Begun again after a crash, the rest is done.
    async fn rename(&self, site: String, to: String) -> Result<Renamed, FrontierError> {
        let step = Step::Rename { site: site.clone(), to: to.clone() };
        let unit = self.unit_of(&site).await?;
        let at = unit.as_ref().map(|unit| self.partition_of_unit(unit));
        let there = self.unit_of(&to).await?.map(|unit| self.partition_of_unit(&unit));
        let mut begun_in = None;
        for partition in [at, there].into_iter().flatten() {
            let renamed: Option<String> =
                self.ask_for(partition, &step, json!(["view.renamed", site])).await?;
            if renamed.as_ref() == Some(&to) {
                begun_in = Some(partition);
                break;
            }
        }
        let partition = match (begun_in, at) {
            (Some(partition), _) => partition,
            (None, None) => return Ok(Renamed::Unknown),
            (None, Some(at)) if unit.as_ref() == Some(&site) && self.partition_of_unit(&to) != at => {
                return Ok(Renamed::Elsewhere);
            }
            (None, Some(_)) if there.is_some() => return Ok(Renamed::Taken),
            (None, Some(at)) => at,
        };
        match self.step_in(partition, step).await? {
            Reply::Rename(Renamed::Done) => {}
            Reply::Rename(renamed) => return Ok(renamed),
            _ => return Err(self.closed()),
        }
        // One of the old name that lies elsewhere is another site.
        if at == Some(partition) {
            self.step_in(DIRECTORY, Step::Rebook { site: site.clone(), to: to.clone() }).await?;
        }
        lock(&self.partitions.sites).remove(&site);
        self.step_in(partition, Step::EndRename { site, to }).await?;
        Ok(Renamed::Done)
    }

    /// The directory agrees, or not; what it agreed to holds in every partition, also where a process died half way before.
    async fn agree(&self, rules: FleetRules, mark: u64) -> Result<Agreed, FrontierError> {
        let step = |by_directory| Step::Agree { rules: rules.clone(), mark, by_directory };
        let Reply::Agree(agreed) = self.step_in(DIRECTORY, step(false)).await? else {
            return Err(self.closed());
        };
        if agreed != Agreed::Older {
            let others = (0..self.connections.len()).filter(|partition| *partition != DIRECTORY);
            try_join_all(others.map(|partition| self.step_in(partition, step(true)))).await?;
        }
        if self.connections.len() > 1
            && let Reply::TunedTenants(tuned) = self.step_in(DIRECTORY, Step::TunedTenants {}).await?
        {
            self.everywhere(Step::TellTuned { tuned }).await?;
        }
        Ok(agreed)
    }

    /// Each partition does a step for its own sites, one portion after the other: none is left then.
    async fn in_portions(&self, step: impl Fn(String) -> Step) -> Result<Option<String>, FrontierError> {
        let told = (0..self.connections.len()).map(async |partition| {
            let mut next = Some(String::new());
            while let Some(after) = next {
                next = match self.step_in(partition, step(after)).await? {
                    Reply::TellPaused(next) | Reply::ListByLane(next) => next,
                    _ => return Err(self.closed()),
                };
            }
            Ok(())
        });
        try_join_all(told).await.map(|_: Vec<()>| None)
    }

    async fn extend(&self, leases: Vec<LeaseKey>) -> Result<Vec<bool>, FrontierError> {
        let mut shares: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (turn, lease) in leases.iter().enumerate() {
            if let Some(partition) = self.partition_of_site(&lease.site).await? {
                shares.entry(partition).or_default().push(turn);
            }
        }
        let mut alive = vec![false; leases.len()];
        let parts = shares.into_iter().map(async |(partition, turns)| {
            let leases = turns.iter().map(|turn| leases[*turn].clone()).collect();
            Ok((turns, self.step_in(partition, Step::Extend { leases }).await?))
        });
        for (turns, reply) in try_join_all(parts).await? {
            if let Reply::Extend(held) = reply {
                turns.into_iter().zip(held).for_each(|(turn, held)| alive[turn] = held);
            }
        }
        Ok(alive)
    }

    async fn settle(
        &self,
        owner: &str,
        token: u64,
        settlements: Vec<Settlement>,
        haste: Haste,
    ) -> Result<Vec<Settled>, FrontierError> {
        let mut settled = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            let lease = settlement.lease.token;
            let Some(partition) = self.partition_of_site(&settlement.lease.site).await? else {
                settled.push(Settled::Stale);
                continue;
            };
            // One lease is settled once: its token tells this part of the call from the others.
            let (owner, token, settlements) = (owner.to_owned(), token ^ lease, vec![settlement]);
            let step = Step::Settle { owner, token, settlements, haste };
            if let Reply::Settle(part) = self.step_in(partition, step).await? {
                settled.extend(part);
            }
        }
        Ok(settled)
    }

    /// Does a step in every partition, side by side; the answers are one.
    async fn everywhere(&self, step: Step) -> Result<Reply, FrontierError> {
        let parts = (0..self.connections.len()).map(|partition| self.step_in(partition, step.clone()));
        let mut replies = try_join_all(parts).await?.into_iter();
        let Some(mut all) = replies.next() else { return Err(self.closed()) };
        replies.for_each(|reply| join(&mut all, reply));
        if let Reply::Inspect(found) = &mut all {
            found.tasks.sort();
            found.due.sort();
            found.dead.sort();
        }
        Ok(all)
    }

    /// Joins once the directory knows. Another partition that is silent holds up nobody: it hears of this before it is asked for
    /// anything else.
    async fn join(&self, step: Step) -> Result<Reply, FrontierError> {
        let others = (0..self.connections.len()).filter(|partition| *partition != DIRECTORY);
        let others = try_join_all(others.map(|partition| self.step_in(partition, step.clone())));
        match select(pin!(self.step_in(DIRECTORY, step.clone())), pin!(others)).await {
            Either::Left((joined, others)) => {
                clock::within(ANSWERS_WITHIN, others).await.transpose()?;
                joined
            }
            Either::Right((told, joined)) => {
                told?;
                joined.await
            }
        }
    }

    /// A sign of life for every partition that is there. It is heard once all of them have heard it. The answer is the
    /// directory's.
    async fn beat(&self, step: Step) -> Result<Reply, FrontierError> {
        self.give_back_late();
        let (away, there): (Vec<usize>, Vec<usize>) =
            (0..self.connections.len()).partition(|partition| self.state.away.has(*partition));
        let replies =
            try_join_all(there.into_iter().map(|partition| self.step_in(partition, step.clone()))).await?;
        match replies.into_iter().next() {
            Some(reply) if away.is_empty() => Ok(reply),
            _ => std::future::pending().await,
        }
    }

    /// Feeds one partition after the other, from any one on, as the first may have more than is put; one that doesn't answer soon
    /// is fed later.
    async fn feed(&self, most: u32) -> Result<Feeding, FrontierError> {
        let (mut all, count) = (Feeding::default(), self.connections.len());
        let first = fastrand::usize(..count);
        let partitions = (0..count).map(|i| (first + i) % count);
        for partition in partitions.filter(|partition| !self.state.away.has(*partition)) {
            let left = most.saturating_sub(u32::try_from(all.put).unwrap_or(most));
            let fed = self.step_in(partition, Step::Feed { most: left });
            if let Some(Reply::Feed(part)) = clock::within(ANSWERS_WITHIN, fed).await.transpose()? {
                all.put += part.put;
                all.next_in = least(all.next_in, part.next_in);
            }
        }
        Ok(all)
    }

    /// A step in one partition; after it something may be claimed there.
    pub(super) async fn step_in(&self, partition: usize, step: Step) -> Result<Reply, FrontierError> {
        let changes = step.may_bring();
        if let Step::Claim { claim } = &step {
            self.wake.claims(&claim.owner, partition);
        }
        let value = self.ask(partition, &step, step.to_wire()).await?;
        if changes {
            self.look_into(partition);
        }
        let reply = step.read(&value).map_err(|odd| self.broken(&odd))?;
        self.note_members(partition, &step, &reply);
        Ok(reply)
    }

    /// Nobody is told any more what a member is told that was declared dead. One that says anew what it works on is told nothing
    /// there until it claims: it does that at once.
    pub(super) fn note_members(&self, partition: usize, step: &Step, reply: &Reply) {
        match (step, reply) {
            (Step::Enlist { owner, scope: Some(_), .. }, _) => {
                self.wake.tell_member(owner, partition, Duration::ZERO);
            }
            (Step::Bury { owner }, _) => self.wake.forget(owner),
            (Step::Claim { claim }, Reply::Claim(grant)) if grant.buried => self.wake.forget(&claim.owner),
            _ => {}
        }
    }
}

/// Takes the answer of one more partition into that of those before it.
fn join(all: &mut Reply, part: Reply) {
    match (all, part) {
        (Reply::Bury(was_known), Reply::Bury(is_known)) => *was_known |= is_known,
        (Reply::Inspect(all), Reply::Inspect(part)) => {
            all.tasks.extend(part.tasks);
            all.due.extend(part.due);
            all.dead.extend(part.dead);
            all.known += part.known;
        }
        _ => {}
    }
}

pub(super) fn least(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}
