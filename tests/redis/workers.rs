//! Those who work on a shared frontier are killed, stopped, or come back after they were given up.

use paced::frontier::Frontier;
use paced::task::Settled;

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// Lets so many seconds pass at the server while that member is heard of every three.
async fn live_on(
    redis: &RedisServer,
    frontier: &Frontier,
    member: &paced::frontier::Member,
    from: i64,
    seconds: i64,
) {
    for second in (from..=from + seconds).step_by(3) {
        redis.shift_clock(second * 1_000);
        frontier.beat(member).await.expect("beaten");
    }
}

#[test]
fn l4_c10_the_leases_of_a_process_that_is_not_heard_of_for_ten_seconds_return_and_it_comes_back_as_a_stranger()
 {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let (here, there) = (open(&redis.url(0)), open(&redis.url(0)));
    wait(async {
        shop(&here, 0, 3).await;
        let zombie = there.join(vec![]).await.expect("joined");
        let alive = here.join(vec![]).await.expect("joined");
        let lease = claim(&there, &zombie.name, 1).await.leases.pop().expect("a page is due");
        live_on(&redis, &here, &alive, 0, 6).await;
        assert_eq!(books(&here).await.lost, 0, "it is not given up yet");
        live_on(&redis, &here, &alive, 6, 9).await;

        let again = claim(&here, &alive.name, 3).await.leases;
        let same = again.iter().find(|other| other.url == lease.url).expect("the lost page is granted anew");
        assert!(same.fence > lease.fence, "I6: {} after {}", same.fence, lease.fence);
        assert_eq!(same.attempts, 0, "a lost lease is no attempt");
        assert_eq!(settle(&there, &zombie.name, &lease, fetched(&lease)).await, Settled::Stale);
        assert_eq!(there.extend(vec![lease.token]).await.expect("answers"), [false]);
        assert!(!there.landed(lease.token).await.expect("answers"));
        assert_eq!(settle(&here, &alive.name, same, fetched(same)).await, Settled::Kept);
        assert_eq!(settle(&there, &zombie.name, &lease, done()).await, Settled::Stale);
        let stored = here.stored("shop", &lease.url).await.expect("answers").expect("the page is kept");
        assert_eq!(stored.place, format!("segment:{}:1", same.fence), "the newer one's");
        let books = books(&here).await;
        assert_eq!((books.done, books.lost), (1, 1), "{books:?}");
    });
}
