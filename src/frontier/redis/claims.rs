//! A claim of a frontier of several partitions: asked of one after the other, those left alone that have nothing to give.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Shared;
use super::partitions::{ANSWERS_WITHIN, LateClaim, least, lock};
use crate::clock::{self, millis};
use crate::frontier::FrontierError;
use crate::frontier::step::{Claim, Grant};
use crate::frontier::table::{Reply, Step};
use crate::task::Lease;

/// How long a partition that had nothing to give is left alone at most.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// How long a claim waits for each partition, where one before it took all of [`ANSWERS_WITHIN`]; and when a claim looks for late answers.
const ANSWERS_SOON: Duration = Duration::from_millis(25);

impl Shared {
    /// Asks one partition after the other until one grants something: that leaves soon, and waits for no other one. One that
    /// doesn't answer soon holds up no other either: what it grants then goes back.
    pub(super) async fn claim(&self, claim: Claim) -> Result<Grant, FrontierError> {
        self.give_back_late();
        let count = self.connections.len();
        let first = usize::try_from(claim.token % count as u64).unwrap_or(0);
        let (mut all, mut soonest, began) = (Grant::default(), None, Instant::now());
        for partition in (0..count).map(|i| (first + i) % count) {
            if let Some(moments) = self.left_alone_for(partition, &claim) {
                soonest = moments.into_iter().flatten().chain(soonest).min();
                continue;
            }
            if !all.leases.is_empty() {
                soonest = Some(0);
                break;
            }
            let wait = ANSWERS_WITHIN.saturating_sub(began.elapsed()).max(ANSWERS_SOON);
            let Some(grant) = self.granted(partition, claim.clone(), wait).await? else {
                soonest = least(soonest, Some(millis(ANSWERS_SOON)));
                continue;
            };
            self.lie_in(&grant.leases, partition);
            self.leave_alone(partition, &claim, &grant);
            soonest = least(soonest, grant.next_in);
            all.buried |= grant.buried;
            all.leases.extend(grant.leases);
            all.lost.extend(grant.lost);
        }
        all.next_in = soonest;
        Ok(all)
    }

    /// What a partition grants; nothing where it doesn't answer within `wait`, or still has a claim to answer.
    async fn granted(
        &self,
        partition: usize,
        claim: Claim,
        wait: Duration,
    ) -> Result<Option<Grant>, FrontierError> {
        if lock(&self.partitions.late).contains_key(&partition) {
            return Ok(None);
        }
        self.wake.claims(&claim.owner, partition);
        let (reply, mut answer) = oneshot::channel();
        let step = Step::Claim { claim };
        self.send(partition, &step, step.to_wire(), reply);
        let Some(answered) = clock::within(wait, &mut answer).await else {
            lock(&self.partitions.late).insert(partition, LateClaim { step, answer });
            return Ok(None);
        };
        let value = answered.map_err(|_| self.closed())??;
        let reply = step.read(&value).map_err(|odd| self.broken(&odd))?;
        self.note_members(partition, &step, &reply);
        let Reply::Claim(grant) = reply else { return Ok(None) };
        Ok(Some(grant))
    }

    /// What was granted too late goes back: nobody has renewed it, and its starts are over.
    pub(super) fn give_back_late(&self) {
        lock(&self.partitions.late).retain(|&partition, late| {
            let answered = match late.answer.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return true,
                answered => answered,
            };
            if let Ok(Ok(value)) = answered
                && let Ok(Reply::Claim(grant)) = late.step.read(&value)
            {
                self.lie_in(&grant.leases, partition);
                for lease in grant.leases {
                    let step = Step::Back { lease: lease.key(), unused: true };
                    self.send(partition, &step, step.to_wire(), oneshot::channel().0);
                }
            }
            self.look_into(partition);
            false
        });
    }

    /// A partition is left alone for what it had less of than was wanted. Of the rest it tells nothing any more.
    fn leave_alone(&self, partition: usize, claim: &Claim, grant: &Grant) {
        let wait = grant.next_in.map_or(LEFT_ALONE, |ms| Duration::from_millis(ms.unsigned_abs()));
        let until = (Instant::now() + wait.min(LEFT_ALONE), grant.next_in.is_some());
        let mut bare = lock(&self.partitions.bare);
        bare.retain(|(bare, _), _| *bare != partition);
        for (stage, wanted) in claim.wanted() {
            if grant.leases.iter().filter(|lease| lease.stage == stage).count() < wanted as usize {
                bare.insert((partition, stage), until);
            }
        }
    }

    /// In how many ms a partition may have something of each stage that is wanted, if nothing else happens; none where it may have
    /// something now.
    fn left_alone_for(&self, partition: usize, claim: &Claim) -> Option<Vec<Option<i64>>> {
        let (bare, now) = (lock(&self.partitions.bare), Instant::now());
        let of_stage = |(stage, _)| {
            let (until, may_have) = bare.get(&(partition, stage)).filter(|(until, _)| *until > now)?;
            Some(may_have.then(|| millis(*until - now) + 1))
        };
        claim.wanted().map(of_stage).collect()
    }

    /// The sites of these leases lie in this partition.
    fn lie_in(&self, leases: &[Lease], partition: usize) {
        let mut sites = lock(&self.partitions.sites);
        for lease in leases {
            if sites.get(&lease.site).is_none() {
                sites.put(lease.site.clone(), partition);
            }
        }
    }

    /// Something may be claimed in a partition after all.
    pub(super) fn look_into(&self, partition: usize) {
        lock(&self.partitions.bare).retain(|(bare, _), _| *bare != partition);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l1_a_partition_is_left_alone_for_what_it_tells_of_alone() {
        let shared = Shared::open("redis+cluster://127.0.0.1:1/", None, false).expect("it is reached later");
        let claim = |download, parse| {
            let owner = "one".to_owned();
            Claim { owner, token: 1, download, parse, dice: Vec::new(), lead: 0 }
        };
        let is_left_alone = |download, parse| shared.left_alone_for(3, &claim(download, parse)).is_some();
        shared.leave_alone(3, &claim(1, 0), &Grant::default());
        assert!(is_left_alone(1, 0) && !is_left_alone(1, 1), "it was not asked for parses");
        shared.leave_alone(3, &claim(1, 1), &Grant::default());
        assert!(is_left_alone(1, 1));
        // Another one granted the download: this one knows that no more are wanted, and tells of none.
        shared.leave_alone(3, &claim(0, 1), &Grant::default());
        assert!(is_left_alone(0, 1) && !is_left_alone(1, 1));
    }
}
