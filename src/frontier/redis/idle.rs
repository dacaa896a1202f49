//! How many downloads wait in the partitions of a cluster: each knows its own sites alone, and the frontier's mark is of all (M10).

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::Shared;
use super::partitions::{ANSWERS_WITHIN, lock};
use crate::clock;
use crate::frontier::table::{Reply, Step};

/// For how long it is reckoned with what partitions hold.
const RECKONED: Duration = Duration::from_secs(1);

/// What each partition told, and when they were asked last.
pub(super) type KnownIdle = Mutex<(Option<Instant>, HashMap<usize, u64>)>;

impl Shared {
    /// Downloads that wait in the other partitions, as of a second ago at most; in one that is silent, as it was known last.
    pub(super) async fn idle_beside(&self, partition: usize) -> i64 {
        let is_old = |asked: &Option<Instant>| asked.is_none_or(|asked| asked.elapsed() > RECKONED);
        let is_due = is_old(&lock(&self.partitions.idle).0);
        if is_due {
            let there = (0..self.connections.len()).filter(|partition| !self.state.away.has(*partition));
            let parts = there.map(async |partition| {
                let told = self.step_in(partition, Step::IdleInAll {});
                (partition, clock::within(ANSWERS_WITHIN, told).await)
            });
            let told = join_all(parts).await;
            let mut idle = lock(&self.partitions.idle);
            idle.0 = Some(Instant::now());
            for (partition, told) in told {
                if let Some(Ok(Reply::IdleInAll(told))) = told {
                    idle.1.insert(partition, told);
                }
            }
        }
        let idle = lock(&self.partitions.idle);
        let beside = idle.1.iter().filter(|(other, _)| **other != partition).map(|(_, idle)| idle);
        beside.sum::<u64>().cast_signed()
    }
}
