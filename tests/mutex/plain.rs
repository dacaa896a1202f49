//! Without `expire`: a plain mutex, on a lease that its guard renews.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paced::internals::clock::Timestamp;
use paced::internals::frontier::Frontier;
use paced::internals::mutex::{MutexError, TimedMutex};
use tokio::time::Instant;

use super::player::{self, Player};
use super::{Backend, PATIENCE, backends, ms, shared_backends};

fn plain(frontier: &Frontier) -> TimedMutex {
    TimedMutex::new(frontier, "plain")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v4_r3_one_is_inside_at_a_time_and_everybody_gets_all_its_turns() {
    for backend in backends() {
        let inside = Arc::new(AtomicBool::new(false));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (mutex, inside) = (plain(&backend.frontier), Arc::clone(&inside));
                tokio::spawn(async move {
                    for _ in 0..8 {
                        let block = async |_: &mut paced::internals::mutex::Held| {
                            assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                            tokio::time::sleep(ms(1)).await;
                            inside.store(false, Ordering::SeqCst);
                        };
                        mutex.synchronize(block).await.expect("the frontier");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("one at a time");
        }
    }
}

#[tokio::test]
async fn v4_processes_add_to_one_number_and_no_addition_is_lost() {
    const ME: &str = "plain::v4_processes_add_to_one_number_and_no_addition_is_lost";
    if let Some(frontier) = player::frontier() {
        return add_ten(&plain(&frontier), &player::folder().join("number")).await;
    }
    for (backend, _) in shared_backends() {
        let number = backend.folder.path().join("number");
        std::fs::write(&number, "0").expect("a file");
        let players: Vec<Player> = (0..3).map(|_| Player::begin(ME, &backend)).collect();
        for player in players {
            player.moments();
        }
        assert_eq!(std::fs::read_to_string(&number).expect("the file"), "30", "{}", backend.name);
    }
}

async fn add_ten(mutex: &TimedMutex, number: &Path) {
    for _ in 0..10 {
        let block = async |_: &mut paced::internals::mutex::Held| {
            let before: u32 = std::fs::read_to_string(number).expect("the file").parse().expect("a number");
            tokio::time::sleep(ms(2)).await;
            std::fs::write(number, (before + 1).to_string()).expect("the file");
        };
        mutex.synchronize(block).await.expect("the frontier");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r4_its_guard_keeps_it_far_beyond_the_lease() {
    for backend in backends() {
        let mutex = plain(&backend.frontier).leased_for(ms(3_000));
        let held = mutex.lock().await.expect("the frontier");
        for _ in 0..14 {
            tokio::time::sleep(ms(500)).await;
            assert!(mutex.try_lock().await.expect("the frontier").is_none(), "{}: it ended", backend.name);
        }
        assert!(held.is_owned().await.expect("the frontier"), "{}", backend.name);
        drop(held);
        assert!(!mutex.is_locked().await.expect("the frontier"), "{}", backend.name);
    }
}

#[tokio::test]
async fn r4_killed_with_it_in_hand_a_process_holds_it_until_the_lease_ends_and_no_longer() {
    const ME: &str = "plain::r4_killed_with_it_in_hand_a_process_holds_it_until_the_lease_ends_and_no_longer";
    if let Some(frontier) = player::frontier() {
        let _held = plain(&frontier).leased_for(ms(1_000)).lock().await.expect("the frontier");
        player::tell("taken");
        return std::future::pending().await;
    }
    for (backend, _) in shared_backends() {
        let mut holder = Player::begin(ME, &backend);
        holder.next().expect("it was taken");
        let mutex = plain(&backend.frontier);
        let before = moment(&backend).await;
        let left = mutex.left().await.expect("the frontier").expect("it is held");
        holder.kill();
        assert!(mutex.is_locked().await.expect("the frontier"), "the death alone frees nothing");
        let next = mutex.lock_within(PATIENCE).await.expect("the lease has an end");
        assert!(next.taken_at() >= before.plus(left), "{}: taken before the lease's end", backend.name);
    }
}

/// The frontier's time.
async fn moment(backend: &Backend) -> Timestamp {
    let clock = TimedMutex::new(&backend.frontier, "clock");
    let held = clock.lock().await.expect("the frontier");
    held.taken_at()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v5_an_error_and_a_panic_in_the_block_release_it_too() {
    for backend in backends() {
        for mutex in [plain(&backend.frontier), plain(&backend.frontier).expire(PATIENCE)] {
            let failed = mutex.synchronize(async |_| Err::<(), _>("no luck")).await.expect("the frontier");
            assert_eq!(failed, Err("no luck"));
            assert!(!mutex.is_locked().await.expect("the frontier"), "{}: after an error", backend.name);

            let panics = mutex.clone();
            let block = async |_: &mut paced::internals::mutex::Held| -> () {
                std::panic::resume_unwind(Box::new("out"))
            };
            let task = tokio::spawn(async move { panics.synchronize(block).await });
            assert!(task.await.is_err_and(|error| error.is_panic()));
            assert!(!mutex.is_locked().await.expect("the frontier"), "{}: after a panic", backend.name);

            drop(mutex.lock().await.expect("the frontier"));
            assert!(!mutex.is_locked().await.expect("the frontier"), "{}: after a drop", backend.name);
        }
    }
}

#[tokio::test]
async fn r1_one_asks_and_is_told_at_once_or_gives_up_after_its_patience() {
    for backend in backends() {
        let mutex = plain(&backend.frontier);
        let held = mutex.lock_within(ms(0)).await.expect("it is free, so no patience is needed");
        assert!(mutex.try_lock().await.expect("the frontier").is_none());
        let asked = Instant::now();
        let error = mutex.lock_within(ms(60)).await.expect_err("it is held");
        assert!(asked.elapsed() >= ms(60), "{}: it gave up early", backend.name);
        assert!(matches!(error, MutexError::TimedOut { .. }) && error.is_transient(), "{error:?}");
        assert_eq!(
            error.to_string(),
            "mutex `plain` was not free within 60 ms: wait longer, or find out who holds it"
        );
        drop(held);
        assert!(mutex.lock_within(PATIENCE).await.is_ok(), "{}", backend.name);
    }
}
