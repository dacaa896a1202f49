//! A frontier of several partitions, as on a cluster: which of them a step is for, and how the answers of several are one.
//! A pace unit and all that hangs on it lies in one partition; the directory of sites and hosts lies in the first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Shared, wire};
use crate::canonical_url::fingerprint;
use crate::frontier::step::{Claim, Feeding, Forgotten, Grant, Renamed, Reply, Step};
use crate::frontier::view::Inspection;
use crate::frontier::{FrontierError, MutexKey};
use crate::task::{Lease, LeaseKey, Settled, Settlement};

/// Where the directory is.
pub(super) const DIRECTORY: usize = 0;
/// How long a partition that had nothing to give is left alone at most.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// What this process knows of where things are.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The partition of each site met; it never changes.
    sites: Mutex<HashMap<String, usize>>,
    /// Partitions that have nothing to give for now.
    bare: Mutex<HashMap<usize, Bare>>,
}

/// A partition that has nothing to give before a time.
#[derive(Clone, Copy, Debug)]
struct Bare {
    until: Instant,
    /// It may have something then, if nothing else happens.
    may_have: bool,
}

impl Bare {
    /// In how many ms it may have something.
    fn has_some_in(self) -> Option<i64> {
        let wait = self.until.saturating_duration_since(Instant::now());
        self.may_have.then(|| crate::clock::millis(wait) + 1)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Routes {
    /// Something may be claimed anywhere after all.
    pub(super) fn look_everywhere(&self) {
        lock(&self.bare).clear();
    }
}

impl Shared {
    /// Does one step in the partitions that it is for.
    pub(super) async fn routed(&self, step: Step) -> Result<Reply, FrontierError> {
        match step {
            Step::Register(new) => self.register(new).await,
            Step::Forget { site } => self.forget(site).await,
            Step::Rename { site, to } => self.rename(site, to).await,
            Step::Claim(claim) => self.claim(claim).await.map(Reply::Grant),
            Step::Settle { owner, token, settlements } => {
                self.settle(&owner, token, settlements).await.map(Reply::Settled)
            }
            Step::Extend { leases } => self.extend(leases).await.map(Reply::Alive),
            Step::Bury { .. } | Step::Enlist { .. } => self.everywhere(step).await,
            Step::Feed { most } => self.feed(most).await.map(Reply::Fed),
            Step::Inspect => self.inspect().await.map(|all| Reply::Inspection(Box::new(all))),
            step => match self.partition_of(&step).await? {
                Some(partition) => self.step_in(partition, step).await,
                None => self.step_in(DIRECTORY, step).await,
            },
        }
    }

    /// The partition of what a step names; none where nobody knows it.
    async fn partition_of(&self, step: &Step) -> Result<Option<usize>, FrontierError> {
        match step {
            Step::BeginRun { site, .. }
            | Step::GiveUp { site }
            | Step::Sweep { site }
            | Step::Put { site, .. }
            | Step::ParseAgain { site, .. }
            | Step::Block { site, .. }
            | Step::Tune { site, .. }
            | Step::View { site }
            | Step::Text { site }
            | Step::Stored { site, .. }
            | Step::Whereabouts { site, .. }
            | Step::Freshness { site }
            | Step::Rearm { lease: LeaseKey { site, .. } }
            | Step::Landed { lease: LeaseKey { site, .. }, .. }
            | Step::Back { lease: LeaseKey { site, .. }, .. }
            | Step::DropLetters { site, .. }
            | Step::DeadLetters { site, .. } => self.partition_of_site(site).await,
            Step::SetGroupInterval { unit, .. } => Ok(Some(self.partition_of_unit(unit))),
            Step::TryLock { mutex, .. }
            | Step::Unlock { mutex, .. }
            | Step::ExtendLock { mutex, .. }
            | Step::HoldsLock { mutex, .. }
            | Step::LockLeft { mutex } => Ok(Some(self.partition_of_mutex(mutex))),
            Step::Robots { origin } => self.partition_of_origin(origin).await,
            _ => Ok(None),
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
        (fingerprint(unit).unsigned_abs() % self.links.len() as u64) as usize
    }

    pub(super) async fn partition_of_site(&self, site: &str) -> Result<Option<usize>, FrontierError> {
        if let Some(partition) = lock(&self.routes.sites).get(site) {
            return Ok(Some(*partition));
        }
        let Some(unit) = self.unit_of(site).await? else { return Ok(None) };
        let partition = self.partition_of_unit(&unit);
        lock(&self.routes.sites).insert(site.to_owned(), partition);
        Ok(Some(partition))
    }

    async fn partition_of_origin(&self, origin: &str) -> Result<Option<usize>, FrontierError> {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host).to_owned();
        match self.step_in(DIRECTORY, Step::SiteOf { host }).await? {
            Reply::Text(Some(site)) => self.partition_of_site(&site).await,
            _ => Ok(None),
        }
    }

    async fn unit_of(&self, site: &str) -> Result<Option<String>, FrontierError> {
        let step = Step::Text { site: site.to_owned() };
        let value = self.ask(DIRECTORY, &step, serde_json::json!(["view.unit_of", site])).await?;
        match self.read(&step, &value)? {
            Reply::Text(unit) => Ok(unit),
            _ => Ok(None),
        }
    }

    /// The site goes first, what the directory books of it last: begun again after a crash, both go.
    pub(super) async fn forget(&self, site: String) -> Result<Reply, FrontierError> {
        let forgotten = match self.partition_of_site(&site).await? {
            Some(partition) => self.step_in(partition, Step::Forget { site: site.clone() }).await?,
            None => Reply::Forgotten(Forgotten::Unknown),
        };
        if matches!(forgotten, Reply::Forgotten(Forgotten::Unknown | Forgotten::Wholly)) {
            self.step_in(DIRECTORY, Step::Unbook { site: site.clone() }).await?;
            lock(&self.routes.sites).remove(&site);
        }
        Ok(forgotten)
    }

    /// The site is renamed first, what the directory books of it last: begun again after a crash, the rest is done.
    pub(super) async fn rename(&self, site: String, to: String) -> Result<Reply, FrontierError> {
        let (Some(unit), Some(partition)) =
            (self.unit_of(&site).await?, self.partition_of_site(&site).await?)
        else {
            return Ok(Reply::Renamed(Renamed::Unknown));
        };
        if unit == site && self.partition_of_unit(&to) != partition {
            return Ok(Reply::Renamed(Renamed::Elsewhere));
        }
        if self.unit_of(&to).await?.is_some() {
            return Ok(Reply::Renamed(Renamed::Taken));
        }
        let step = Step::Rename { site: site.clone(), to: to.clone() };
        let renamed = match self.step_in(partition, step).await? {
            Reply::Renamed(Renamed::Unknown) => Renamed::Done,
            Reply::Renamed(renamed) => renamed,
            other => return Ok(other),
        };
        if renamed == Renamed::Done {
            self.step_in(DIRECTORY, Step::Rebook { site: site.clone(), to }).await?;
            lock(&self.routes.sites).remove(&site);
        }
        Ok(Reply::Renamed(renamed))
    }

    /// Claims from one partition after the other until there is enough. Asked again with the same token it goes the same way.
    async fn claim(&self, claim: Claim) -> Result<Grant, FrontierError> {
        let count = self.links.len();
        let first = usize::try_from(claim.token % count as u64).unwrap_or(0);
        let (mut all, mut soonest) = (Grant::default(), None);
        let (mut download, mut parse) = (claim.download, claim.parse);
        for partition in (0..count).map(|i| (first + i) % count) {
            if let Some(bare) = self.bare(partition) {
                soonest = least(soonest, bare.has_some_in());
                continue;
            }
            let has_enough = download + parse == 0 && claim.download + claim.parse > 0;
            if has_enough {
                soonest = Some(0);
                break;
            }
            let token = claim.token.wrapping_add(all.leases.len() as u64);
            let part = Claim { token, download, parse, ..claim.clone() };
            let Reply::Grant(grant) = self.step_in(partition, Step::Claim(part)).await? else { continue };
            for lease in &grant.leases {
                let wanted =
                    if lease.stage == crate::task::Stage::Download { &mut download } else { &mut parse };
                *wanted = wanted.saturating_sub(1);
            }
            self.lie_in(&grant.leases, partition);
            self.leave_alone(partition, grant.next_in);
            soonest = least(soonest, grant.next_in);
            all.buried |= grant.buried;
            all.leases.extend(grant.leases);
            all.lost.extend(grant.lost);
        }
        all.next_in = soonest;
        Ok(all)
    }

    /// What is known of a partition that is left alone for now.
    fn bare(&self, partition: usize) -> Option<Bare> {
        let bare = *lock(&self.routes.bare).get(&partition)?;
        (bare.until > Instant::now()).then_some(bare)
    }

    fn leave_alone(&self, partition: usize, next_in: Option<i64>) {
        let wait = next_in.map_or(LEFT_ALONE, |ms| Duration::from_millis(ms.unsigned_abs()).min(LEFT_ALONE));
        let bare = Bare { until: Instant::now() + wait, may_have: next_in.is_some() };
        lock(&self.routes.bare).insert(partition, bare);
    }

    /// The sites of these leases lie in this partition.
    fn lie_in(&self, leases: &[Lease], partition: usize) {
        let mut sites = lock(&self.routes.sites);
        for lease in leases {
            if !sites.contains_key(&lease.site) {
                sites.insert(lease.site.clone(), partition);
            }
        }
    }

    async fn extend(&self, leases: Vec<LeaseKey>) -> Result<Vec<bool>, FrontierError> {
        let mut shares: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (turn, lease) in leases.iter().enumerate() {
            if let Some(partition) = self.partition_of_site(&lease.site).await? {
                shares.entry(partition).or_default().push(turn);
            }
        }
        let mut alive = vec![false; leases.len()];
        for (partition, turns) in shares {
            let step = Step::Extend { leases: turns.iter().map(|turn| leases[*turn].clone()).collect() };
            if let Reply::Alive(held) = self.step_in(partition, step).await? {
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
    ) -> Result<Vec<Settled>, FrontierError> {
        let mut settled = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            let lease = settlement.lease.token;
            let Some(partition) = self.partition_of_site(&settlement.lease.site).await? else {
                settled.push(Settled::Stale);
                continue;
            };
            // One lease is settled once: its token tells this part of the call from the others.
            let step =
                Step::Settle { owner: owner.to_owned(), token: token ^ lease, settlements: vec![settlement] };
            if let Reply::Settled(part) = self.step_in(partition, step).await? {
                settled.extend(part);
            }
        }
        Ok(settled)
    }

    async fn everywhere(&self, step: Step) -> Result<Reply, FrontierError> {
        let mut reply = Reply::Nothing;
        for partition in 0..self.links.len() {
            reply = match (reply, self.step_in(partition, step.clone()).await?) {
                (Reply::Done(true), _) => Reply::Done(true),
                (_, answer) => answer,
            };
        }
        Ok(reply)
    }

    /// Says in every partition that a process is alive; the names of those that have not been heard of for too long.
    pub(super) async fn enlist_everywhere(&self, step: &Step) -> Result<Vec<String>, FrontierError> {
        let mut silent = Vec::new();
        for partition in 0..self.links.len() {
            let value = self.ask(partition, step, wire::ask(step)).await?;
            if matches!(step, Step::Enlist { scope: Some(_), .. }) {
                self.look_into(partition);
            }
            silent.extend(wire::names(&value).map_err(|odd| self.broken(&odd))?);
        }
        silent.sort();
        silent.dedup();
        Ok(silent)
    }

    /// Feeds one partition after the other.
    async fn feed(&self, most: u32) -> Result<Feeding, FrontierError> {
        let mut all = Feeding::default();
        for partition in 0..self.links.len() {
            let left = most.saturating_sub(u32::try_from(all.put).unwrap_or(most));
            if let Reply::Fed(part) = self.step_in(partition, Step::Feed { most: left }).await? {
                all.put += part.put;
                all.next_in = least(all.next_in, part.next_in);
            }
        }
        Ok(all)
    }

    async fn inspect(&self) -> Result<Inspection, FrontierError> {
        let mut all = Inspection::default();
        for partition in 0..self.links.len() {
            if let Reply::Inspection(part) = self.step_in(partition, Step::Inspect).await? {
                all.tasks.extend(part.tasks);
                all.due.extend(part.due);
                all.dead.extend(part.dead);
                all.known += part.known;
            }
        }
        all.tasks.sort();
        all.due.sort();
        all.dead.sort();
        Ok(all)
    }

    /// A step in one partition; after it something may be claimed there.
    async fn step_in(&self, partition: usize, step: Step) -> Result<Reply, FrontierError> {
        let changes = !step.only_reads() && !matches!(step, Step::Claim(_));
        let value = self.ask(partition, &step, wire::ask(&step)).await?;
        if changes {
            self.look_into(partition);
        }
        self.read(&step, &value)
    }

    /// Something may be claimed in a partition after all.
    pub(super) fn look_into(&self, partition: usize) {
        lock(&self.routes.bare).remove(&partition);
    }
}

fn least(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}
