//! Answers that are lost on the way, and functions that the server forgets: nobody notices, and nothing is done twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paced::internals::frontier::Registered;
use paced::internals::frontier::state::StageCounts;
use paced::internals::frontier::{Frontier, MutexKey, Tuning, WorkScope};
use paced::internals::task::{Failure, Lease, Outcome, Put, Settled};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// An answer, and what of it there is to compare: not what chance or time decides.
fn of<T, U>(answer: T, compared: impl FnOnce(&T) -> U) -> (T, U) {
    let compared = compared(&answer);
    (answer, compared)
}

/// Every step once, each answer told; `before` is called before each.
async fn every_step(frontier: &Frontier, mut before: impl FnMut()) -> (Vec<String>, Vec<StageCounts>) {
    let mut told = Vec::new();
    macro_rules! step {
        ($step:expr) => {{
            before();
            let answer = $step;
            told.push(format!("{}: {:?}", stringify!($step).split('(').next().unwrap_or(""), answer.1));
            answer.0
        }};
    }
    step!(of(register(frontier, 0).await, |answer| matches!(answer, Registered::Version(_))));
    let seeds = (0..3).map(|page| Put::seed(url(page))).collect();
    step!(of(frontier.begin_run("shop", seeds).await.expect("answers"), |run| (run.number, run.begun)));
    step!(of(put(frontier, 2..6).await.expect("answers"), |replies| format!("{replies:?}")));
    let leases = step!(of(claim(frontier, "one", 5).await.leases, Vec::len));
    let keys = leases.iter().map(Lease::key).collect();
    step!(of(frontier.extend(keys).await.expect("answers"), Vec::clone));
    step!(of(frontier.rearm(&leases[0].key()).await.expect("answers"), |_| "a start"));
    step!(of(frontier.landed(leases[0].key()).await.expect("answers"), |held| *held));
    step!(of(settle(frontier, "one", &leases[0], fetched(&leases[0])).await, Settled::clone));
    step!(of(settle(frontier, "one", &leases[1], done()).await, Settled::clone));
    let later = Outcome::Retry { after: Duration::from_hours(1), why: Failure::status(503, "503") };
    step!(of(settle(frontier, "one", &leases[2], later).await, Settled::clone));
    let dead = Outcome::Dead { why: Failure::status(410, "gone") };
    step!(of(settle(frontier, "one", &leases[3], dead).await, Settled::clone));
    step!(of(frontier.back(leases[4].key()).await.expect("answers"), |held| *held));
    step!(of(frontier.work_on("two", WorkScope::All).await.is_ok(), |said| *said));
    let grant =
        step!(of(frontier.claim(want("two", 0, 2)).await.expect("answers"), |grant| grant.leases.len()));
    step!(of(settle(frontier, "two", &grant.leases[0], done()).await, Settled::clone));
    step!(of(frontier.tune("shop", Tuning::Parallel(Some(1))).await.expect("answers"), |known| *known));
    step!(of(frontier.try_lock(&MutexKey::named("x"), "t", 60_000).await.expect("answers"), |_| "taken"));
    step!(of(frontier.extend_lock(&MutexKey::named("x"), "t", 90_000).await.expect("answers"), |held| *held));
    step!(of(frontier.unlock(&MutexKey::named("x"), "t").await.expect("answers"), |held| *held));
    step!(of(frontier.bury("one").await.is_ok(), |buried| *buried));
    let grant = step!(of(claim(frontier, "two", 5).await, |grant| grant.leases.len()));
    step!(of(frontier.bury("two").await.is_ok(), |buried| *buried));
    assert_eq!(grant.leases.len(), 1, "one at a time");
    let view = view(frontier).await;
    (told, vec![view.download, view.parse])
}

#[test]
fn i5_each_step_whose_answer_was_lost_is_asked_for_again_and_done_once() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let (calm, calm_counts) = wait(every_step_of(&redis.url(0), || {}));
    let mut asked = 0;
    let (told, counts) = wait(every_step_of(&road.url(1), || {
        road.lose_answer_to("FCALL");
        asked += 1;
    }));
    assert_eq!(road.lost(), asked, "each answer was lost once");
    assert_eq!(told, calm);
    assert_eq!(counts, calm_counts);
}

/// The same on the frontier of that URL.
pub async fn every_step_of(url: &str, before: impl FnMut()) -> (Vec<String>, Vec<StageCounts>) {
    let frontier = open(url);
    // The library is there, so that the first answer that is lost is one to a step.
    assert_eq!(frontier.sites().await.expect("answers"), Vec::<String>::new());
    every_step(&frontier, before).await
}

#[test]
fn asked_for_nothing_a_frontier_answers_nothing() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        assert_eq!(frontier.owners().await.expect("answers"), []);
        assert_eq!(put(&frontier, 0..0).await.expect("answers"), []);
        assert!(frontier.extend(vec![]).await.expect("answers").is_empty());
        assert_eq!(frontier.settle("one", 1, vec![]).await.expect("answers"), []);
        assert_eq!(frontier.dead_letters("shop", 10).await.expect("answers"), []);
        let grant = claim(&frontier, "one", 1).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, None));
        let freshness = frontier.freshness("shop").await.expect("answers");
        assert_eq!(freshness.percent(), None);
    });
}

/// Tells a thread to end, also where a test fails.
struct EndsWithThis<'a>(&'a AtomicBool);

impl Drop for EndsWithThis<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn i3_i5_with_the_way_cut_again_and_again_each_page_is_granted_and_settled_once_at_the_pace() {
    const PAGES: u32 = 120;
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let (plain, shaky) = (open(&redis.url(0)), [open(&road.url(0)), open(&road.url(0))]);
    // One that never reached its server says so at once.
    for frontier in &shaky {
        wait(frontier.sites()).expect("nothing is cut yet");
    }
    let ended = AtomicBool::new(false);
    let leases = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(fastrand::u64(1..400)));
                road.cut();
            }
        });
        let _ends = EndsWithThis(&ended);
        wait(async {
            shop(&plain, 20, PAGES).await;
            let [one, two] = &shaky;
            let (mut one, two) = tokio::join!(work(one, "one"), work(two, "two"));
            one.extend(two);
            one
        })
    });
    assert_eq!(leases.len(), PAGES as usize);
    assert_spaced(&leases, 20);
    let plain = open(&redis.url(0));
    let books = wait(books(&plain));
    assert_eq!((books.created, books.done, books.lost, books.waiting), (120, 120, 0, 0), "{books:?}");
}

#[test]
fn l4_functions_that_the_server_forgets_again_and_again_are_brought_again() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 30).await;
        for _ in 0..30 {
            redis.cli(&["FUNCTION", "FLUSH"]);
            let lease = next(&frontier, "one").await;
            redis.cli(&["FUNCTION", "FLUSH"]);
            assert_eq!(settle(&frontier, "one", &lease, done()).await, Settled::Kept);
        }
        let books = books(&frontier).await;
        assert_eq!((books.created, books.done), (30, 30));
    });
}
