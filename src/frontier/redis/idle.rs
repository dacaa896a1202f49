//! How many downloads wait in the partitions of a cluster: each knows its own sites alone, and the frontier's mark is of all (M10).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::Shared;
use crate::clock;
use crate::frontier::table::{Reply, Step};
use crate::task::Origin;

/// For how long it is reckoned with what partitions hold.
const RECKONED: Duration = Duration::from_secs(1);

/// How long a look at all of them waits for one that is silent.
const LOOKED_FOR: Duration = Duration::from_secs(2);

/// How long a put waits for it.
const ANSWERS_WITHIN: Duration = Duration::from_millis(250);

/// What each partition told, and when they were asked last.
#[derive(Debug, Default)]
pub(super) struct KnownIdle(Mutex<(Option<Instant>, HashMap<usize, u64>)>);

impl KnownIdle {
    fn lock(&self) -> MutexGuard<'_, (Option<Instant>, HashMap<usize, u64>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Downloads that wait in all partitions; in one that is silent, as it was known last.
    pub(super) async fn idle_in_all(&self) -> u64 {
        self.ask_for_idle(LOOKED_FOR).await;
        self.partitions.idle.lock().1.values().sum()
    }

    /// A put that may be refused, and a campaign's portion, go by what waits in the other partitions as well.
    pub(super) async fn tell_idle_beside(&self, partition: usize, step: &mut Step) {
        match step {
            Step::Put { puts, elsewhere, .. } if puts.iter().any(|put| put.origin == Origin::Request) => {
                *elsewhere = self.idle_beside(partition).await;
            }
            Step::FeedCampaign { elsewhere, .. } => *elsewhere = self.idle_beside(partition).await,
            _ => {}
        }
    }

    /// Downloads that wait in the other partitions, as of a second ago at most; in one that is silent, as it was known last.
    async fn idle_beside(&self, partition: usize) -> i64 {
        let asked = self.partitions.idle.lock().0;
        if asked.is_none_or(|asked| asked.elapsed() > RECKONED) {
            self.ask_for_idle(ANSWERS_WITHIN).await;
        }
        let idle = self.partitions.idle.lock();
        let beside = idle.1.iter().filter(|(other, _)| **other != partition).map(|(_, idle)| idle);
        beside.sum::<u64>().cast_signed()
    }

    async fn ask_for_idle(&self, wait: Duration) {
        let there = (0..self.connections.len()).filter(|partition| !self.state.away.has(*partition));
        let parts = there.map(async |partition| {
            let told = self.step_in(partition, Step::IdleInAll {});
            (partition, clock::within(wait, told).await)
        });
        let told = join_all(parts).await;
        let mut idle = self.partitions.idle.lock();
        idle.0 = Some(Instant::now());
        for (partition, told) in told {
            if let Some(Ok(Reply::IdleInAll(told))) = told {
                idle.1.insert(partition, told);
            }
        }
    }
}
