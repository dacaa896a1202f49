//! The frontier's mark, over all partitions (M10).

use std::time::Duration;

use paced::internals::frontier::{Agreed, Frontier};
use paced::internals::task::{FleetRules, HighWater, PutReply};

use crate::sites;
use crate::steps::*;
use crate::support::*;
use crate::wait;

#[test]
fn m10_the_frontier_s_mark_is_of_all_partitions_together() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        let rules = FleetRules { most_in_all: Some(10), ..FleetRules::default() };
        assert_eq!(frontier.agree(rules, 1).await.expect("answers"), Agreed::Replaced);
        // Sites of twenty names lie in several of sixteen partitions.
        let names = sites(&frontier, 20, 1_000, 0).await;
        let puts = |names: &[String], page: u32| {
            let names = names.to_vec();
            let frontier = &frontier;
            async move {
                let mut replies = Vec::new();
                for name in &names {
                    replies.extend(put_in(frontier, name, page..page + 1).await.expect("answers"));
                }
                replies
            }
        };
        assert_eq!(puts(&names[..9], 0).await, [PutReply::Created; 9]);
        assert_eq!(frontier.idle_in_all().await.expect("answers"), 9);
        // What the others hold is reckoned with for a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let replies = puts(&names[9..10], 0).await;
        assert_eq!(replies, [PutReply::Created]);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(puts(&names, 1).await, [PutReply::Refused(HighWater::Frontier); 20]);
    });
}
