//! Who is drained stands in one partition; the beat's answer comes from that one.

use paced::internals::frontier::{Frontier, SignOfLife, WorkScope};

use crate::ground::wait;
use crate::support::*;

#[test]
fn a_process_on_a_cluster_hears_that_it_is_drained_and_is_shown_with_what_it_told() {
    let Some(cluster) = RedisCluster::start() else { return };
    let (frontier, other) = (Frontier::open(&cluster.url()), Frontier::open(&cluster.url()));
    let (frontier, other) = (frontier.expect("a URL"), other.expect("a URL"));
    wait(async {
        let member = frontier.join_as("dl-1", WorkScope::All).await.expect("joined");
        let tells = SignOfLife { downloads: Some(9), leases: 3, ..SignOfLife::of_this_process() };
        let beat = async || {
            let beaten = frontier.beat_telling(&member, true, tells.clone()).await.expect("beaten");
            (beaten.sharers, beaten.drained)
        };
        assert_eq!(beat().await, (1, false));
        let owners = other.owners().await.expect("answers");
        assert_eq!(owners[0].beat.as_ref().map(|beat| &beat.tells), Some(&tells));
        assert!(other.drain(&member.name).await.expect("answers"));
        assert!(!other.drain("dl-2~0").await.expect("answers"));
        assert_eq!(beat().await, (1, true));
        assert!(other.owners().await.expect("answers")[0].drained);
    });
}
