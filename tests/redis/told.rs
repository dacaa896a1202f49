//! Who is told what, of several that sleep: a step that makes something claimable tells one of them, and a second one to come
//! in its stead 250 ms later (L1).

use std::collections::BTreeMap;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Frontier, MutexKey, Pause, Tuning, WorkScope};
use paced::internals::task::Settlement;

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

const START: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;
/// How much later a second one comes.
const STAND_IN: i64 = 250;
/// How long one sleeps at most.
const LONGEST_SLEEP: i64 = 5_000;

/// A frontier on a clock that is moved by hand, and those who sleep.
struct Sleepers {
    db: RedisDb,
    frontier: Frontier,
    clock: Clock,
}

impl Sleepers {
    /// A site of an hour, with one start made and a page left, and those that sleep until the next.
    async fn of(names: &[&str]) -> Option<Self> {
        let db = RedisDb::take()?;
        let clock = Clock::fake(Timestamp::from_millis(START));
        let frontier = Frontier::redis(&db.url(), Some(clock.clone())).expect("a URL");
        let sleepers = Self { db, frontier, clock };
        shop(&sleepers.frontier, HOUR, 2).await;
        assert_eq!(claim(&sleepers.frontier, "full", 1).await.leases.len(), 1);
        for name in names {
            sleepers.falls_asleep(name).await;
        }
        Some(sleepers)
    }

    async fn falls_asleep(&self, name: &str) {
        assert_eq!(claim(&self.frontier, name, 9).await.leases.len(), 0, "{name}");
    }

    fn pass(&self, time: u64) {
        self.clock.advance(std::time::Duration::from_millis(time));
    }

    /// In how many ms each comes.
    fn come_in(&self) -> BTreeMap<String, i64> {
        let now = self.clock.now().as_millis();
        let told = |kind: &str| {
            self.db.cli(&["ZRANGE", &format!("{{paced:0}}:asleep:{kind}"), "0", "-1", "WITHSCORES"])
        };
        let both = told("d") + "\n" + &told("d:named");
        let lines: Vec<&str> = both.lines().filter(|line| !line.is_empty()).collect();
        let come_in = |at: &str| at.parse::<i64>().expect("ms") - now;
        lines.chunks_exact(2).map(|row| (row[0].to_owned(), come_in(row[1]))).collect()
    }

    /// The first two times at which somebody comes.
    fn first_two(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self.come_in().into_values().collect();
        times.sort_unstable();
        times.truncate(2);
        times
    }
}

#[test]
fn l1_a_tune_a_put_a_give_back_an_unlock_or_a_burial_tells_one_sleeper_at_once_and_a_second_one_later() {
    for what in ["tune", "resume", "put", "back", "unused", "unlock", "settle", "bury"] {
        wait(async {
            let Some(all) = Sleepers::of(&["a", "b", "c"]).await else { return };
            let frontier = &all.frontier;
            let at_once = match what {
                "tune" => {
                    all.pass(2_000);
                    assert!(frontier.tune("shop", Tuning::Interval(Some(1_000))).await.expect("answers"));
                    true
                }
                "resume" => {
                    let paused = |why: Option<&str>| Tuning::Paused(why.map(Pause::of));
                    assert!(frontier.tune("shop", paused(Some("lunch"))).await.expect("answers"));
                    all.pass(u64::try_from(HOUR).expect("forward"));
                    for name in ["a", "b", "c"] {
                        all.falls_asleep(name).await;
                    }
                    assert!(frontier.tune("shop", paused(None)).await.expect("answers"));
                    true
                }
                "put" => {
                    register_as(frontier, "other", 1_000).await;
                    put_in(frontier, "other", 0..1).await.expect("answers");
                    true
                }
                "back" | "unused" => {
                    register_as(frontier, "other", 1_000).await;
                    put_in(frontier, "other", 0..1).await.expect("answers");
                    let lease = claim(frontier, "full", 1).await.leases.remove(0);
                    for name in ["a", "b", "c"] {
                        all.falls_asleep(name).await;
                    }
                    all.pass(100);
                    let gone = if what == "back" {
                        frontier.hand_back(lease.key()).await
                    } else {
                        frontier.back(lease.key()).await
                    };
                    assert!(gone.expect("answers"));
                    false
                }
                "unlock" => {
                    register_as(frontier, "other", 1_000).await;
                    let key = MutexKey::unit("other");
                    frontier.try_lock(&key, "outsider", HOUR).await.expect("answers");
                    put_in(frontier, "other", 0..1).await.expect("answers");
                    for name in ["a", "b", "c"] {
                        all.falls_asleep(name).await;
                    }
                    assert!(frontier.unlock(&key, "outsider").await.expect("answers"));
                    true
                }
                "bury" => {
                    // Its lease returns, though its site may not start yet: it may wait in another one by then.
                    frontier.bury("full").await.expect("answers");
                    true
                }
                _ => {
                    register_as(frontier, "narrow", 0).await;
                    frontier.tune("narrow", Tuning::Parallel(Some(1))).await.expect("answers");
                    put_in(frontier, "narrow", 0..2).await.expect("answers");
                    let lease = claim(frontier, "full", 1).await.leases.remove(0);
                    for name in ["a", "b", "c"] {
                        all.falls_asleep(name).await;
                    }
                    let (outcome, block, response, parse) = (done(), None, None, None);
                    let settlement = Settlement { block, response, parse, ..Settlement::of(lease, outcome) };
                    frontier.settle("full", 7, vec![settlement]).await.expect("answers");
                    true
                }
            };
            let times = all.first_two();
            if at_once {
                assert_eq!(times, [0, STAND_IN], "{what}: {:?}", all.come_in());
            } else {
                // It can be had again in a second: by then somebody comes, and then once more.
                assert!(times[0] <= 1_000 && times[1] <= 1_000 + STAND_IN, "{what}: {:?}", all.come_in());
            }
        });
    }
}

#[test]
fn l1_a_claimer_that_fills_up_or_leaves_has_another_one_told_what_it_was_told() {
    for leaves in [true, false] {
        wait(async {
            let Some(all) = Sleepers::of(&[]).await else { return };
            let paused = Tuning::pause("lunch");
            assert!(all.frontier.tune("shop", paused).await.expect("answers"));
            register_as(&all.frontier, "other", 2_000).await;
            put_in(&all.frontier, "other", 0..3).await.expect("answers");
            let member = all.frontier.join(WorkScope::All).await.expect("joined");
            assert_eq!(claim(&all.frontier, &member.name, 9).await.leases.len(), 1);
            for name in ["b", "c"] {
                all.falls_asleep(name).await;
            }
            let told = all.come_in();
            let own = told[&member.name];
            assert!((1_900..2_000).contains(&own) && told["b"] == own + STAND_IN, "{told:?}");
            assert_eq!(told["c"], 1_000, "it was told nothing: {told:?}");
            if leaves {
                all.frontier.leave(member).await.expect("left");
            } else {
                register_as(&all.frontier, "third", 1_000).await;
                put_in(&all.frontier, "third", 0..1).await.expect("answers");
                assert_eq!(claim(&all.frontier, &member.name, 1).await.leases.len(), 1);
                assert!(!all.come_in().contains_key(&member.name), "it is full");
            }
            let times = all.first_two();
            assert!(times[0] <= own && times[1] <= own + STAND_IN, "{:?}", all.come_in());
        });
    }
}

#[test]
fn l1_a_process_is_told_of_its_own_sites_and_the_others_are_told_as_if_it_was_not_there() {
    wait(async {
        let Some(all) = Sleepers::of(&["a"]).await else { return };
        register_as(&all.frontier, "other", 1_000).await;
        for (name, site) in [("own", "other"), ("picky", "shop")] {
            all.frontier.work_on(name, WorkScope::of([site.to_owned()])).await.expect("said");
            all.falls_asleep(name).await;
        }
        let before = all.come_in();
        assert_eq!((before["own"], before["picky"]), (LONGEST_SLEEP, LONGEST_SLEEP));
        put_in(&all.frontier, "other", 0..1).await.expect("answers");
        let told = all.come_in();
        assert_eq!((told["a"], told["own"], told["picky"]), (0, 0, LONGEST_SLEEP), "{told:?}");
    });
}
