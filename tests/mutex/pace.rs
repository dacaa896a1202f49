//! With `expire` and without release: a pace.

use std::sync::{Arc, Mutex};

use paced::internals::clock::Timestamp;
use paced::internals::mutex::TimedMutex;
use tokio::sync::Barrier;

use super::player::{self, Player};
use super::support::{bound, in_three_tries};
use super::{Backend, PATIENCE, assert_spaced, backends, ms, pace, shared_backends, still_backends};

#[test]
fn v1_v3_blocks_of_any_length_start_an_interval_apart_and_hardly_later_in_each_of_three_rounds() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for backend in backends() {
        for round in 1..=3 {
            let who = format!("{} round {round}", backend.name);
            in_three_tries(|| {
                let mut starts = runtime.block_on(starts_of_five(&backend));
                assert_spaced(starts.clone(), 5, ms(120), &who);
                starts.sort();
                let span = starts[4].since(starts[0]);
                bound(span < ms(120) * 6, format_args!("{who}: four intervals of 120 ms took {span:?}"))
            });
        }
    }
}

/// The starts of five tasks whose blocks last longer and longer.
async fn starts_of_five(backend: &Backend) -> Vec<Timestamp> {
    let tasks: Vec<_> = (0..5)
        .map(|i| {
            let mutex = pace(&backend.frontier, ms(120));
            tokio::spawn(async move {
                let block = async |held: &mut paced::internals::mutex::Held| {
                    tokio::time::sleep(ms(90) * i).await;
                    held.taken_at()
                };
                mutex.synchronize(block).await.expect("the frontier")
            })
        })
        .collect();
    let mut starts = Vec::new();
    for task in tasks {
        starts.push(task.await.expect("no panic"));
    }
    starts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2_v10_a_block_holds_up_no_other_one_so_all_of_them_meet_inside() {
    for backend in backends() {
        let all_inside = Arc::new(Barrier::new(5));
        let tasks: Vec<_> = (0..5)
            .map(|_| {
                let (mutex, all_inside) = (pace(&backend.frontier, ms(40)), Arc::clone(&all_inside));
                tokio::spawn(async move { mutex.synchronize(async |_| all_inside.wait().await).await })
            })
            .collect();
        for task in tasks {
            let met = tokio::time::timeout(PATIENCE, task).await.expect("they never met inside");
            met.expect("no panic").expect("the frontier");
        }
    }
}

#[test]
fn v1_threads_each_with_a_runtime_of_its_own_share_the_interval() {
    for backend in backends() {
        let starts = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                    let mutex = pace(&backend.frontier, ms(80));
                    let held = runtime.expect("a runtime").block_on(mutex.lock()).expect("the frontier");
                    starts.lock().expect("no panic").push(held.taken_at());
                });
            }
        });
        let starts = starts.into_inner().expect("no panic");
        assert_spaced(starts, 5, ms(80), backend.name);
    }
}

#[tokio::test]
async fn v1_v3_processes_on_one_frontier_share_the_interval_in_each_of_three_rounds() {
    const ME: &str = "pace::v1_v3_processes_on_one_frontier_share_the_interval_in_each_of_three_rounds";
    if let Some(frontier) = player::frontier() {
        return take_three_times(&pace(&frontier, ms(150))).await;
    }
    for (backend, _) in shared_backends() {
        let players: Vec<Player> = (0..5).map(|_| Player::begin(ME, &backend)).collect();
        let starts: Vec<_> = players.into_iter().flat_map(Player::moments).collect();
        assert_spaced(starts, 15, ms(150), &format!("five processes on {}", backend.name));
    }
}

async fn take_three_times(mutex: &TimedMutex) {
    for _ in 0..3 {
        let held = mutex.lock().await.expect("the frontier");
        player::tell(held.taken_at().as_millis());
    }
}

#[tokio::test]
async fn v3_v6_the_first_has_it_at_once_and_the_next_one_exactly_at_its_end() {
    for (backend, clock) in still_backends() {
        let mutex = pace(&backend.frontier, ms(1_000));
        let first = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        assert_eq!(first.taken_at(), clock.now());
        drop(first);
        clock.advance(ms(999));
        assert!(mutex.try_lock().await.expect("the frontier").is_none(), "{}: 1 ms early", backend.name);
        assert_eq!(mutex.left().await.expect("the frontier"), Some(ms(1)));
        clock.advance(ms(1));
        let second = mutex.try_lock().await.expect("the frontier");
        assert_eq!(second.map(|held| held.taken_at()), Some(clock.now()), "{}", backend.name);
    }
}

#[tokio::test]
async fn v6_a_crashed_holder_changes_nothing_it_ends_at_its_time() {
    const ME: &str = "pace::v6_a_crashed_holder_changes_nothing_it_ends_at_its_time";
    if let Some(frontier) = player::frontier() {
        let held = pace(&frontier, ms(1_500)).lock().await.expect("the frontier");
        player::tell(held.taken_at().as_millis());
        return std::future::pending().await;
    }
    for (backend, _) in shared_backends() {
        let mut holder = Player::begin(ME, &backend);
        let taken = holder.moment();
        holder.kill();
        let next = pace(&backend.frontier, ms(1_500)).lock_within(PATIENCE).await.expect("it ends by itself");
        assert_spaced(vec![taken, next.taken_at()], 2, ms(1_500), backend.name);
    }
}

#[tokio::test]
async fn v7_parts_of_a_second_count_and_parts_of_a_millisecond_as_a_whole_one() {
    for (backend, clock) in still_backends() {
        for (asked, whole) in
            [(ms(500), 500), (ms(1_500), 1_500), (std::time::Duration::from_micros(1_001), 2)]
        {
            let mutex = pace(&backend.frontier, asked);
            let _held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
            clock.advance(ms(whole - 1));
            assert!(mutex.is_locked().await.expect("the frontier"), "{}: {asked:?} early", backend.name);
            clock.advance(ms(1));
            assert!(!mutex.is_locked().await.expect("the frontier"), "{}: {asked:?} late", backend.name);
        }
    }
}

#[tokio::test]
async fn an_expire_beyond_all_time_never_ends() {
    for (backend, clock) in still_backends() {
        let mutex = pace(&backend.frontier, std::time::Duration::MAX);
        let _held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        clock.advance(ms(1_000_000_000_000));
        assert!(mutex.is_locked().await.expect("the frontier"), "{}", backend.name);
    }
}

#[tokio::test]
async fn v8_r6_other_names_and_other_namespaces_are_other_mutexes() {
    for backend in backends() {
        let of = |namespace: &str, name: &str| {
            let mutex = TimedMutex::new(&backend.frontier, name).expire(PATIENCE);
            if namespace.is_empty() { mutex } else { mutex.namespace(namespace) }
        };
        let names = [
            ("", "a"),
            ("", "b"),
            ("n", "a"),
            ("", "n/a"),
            ("n/a", "b"),
            ("n", "a/b"),
            ("n%2Fa", "b"),
            ("site", "a"),
        ];
        let mut all = Vec::new();
        for (namespace, name) in names {
            let held = of(namespace, name).try_lock().await.expect("the frontier");
            all.push(held.unwrap_or_else(|| panic!("{}: {namespace:?} {name:?} is another's", backend.name)));
        }
        for (namespace, name) in names {
            assert!(
                of(namespace, name).try_lock().await.expect("the frontier").is_none(),
                "{namespace:?} {name:?}"
            );
        }
    }
}

#[test]
fn v11_each_acquisition_is_logged_and_a_waiter_asks_hardly_more_often_than_there_are_turns_before_it() {
    let log = Log::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer({
            let log = log.clone();
            move || log.clone()
        })
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            for backend in backends() {
                let (first, second) = (pace(&backend.frontier, ms(800)), pace(&backend.frontier, ms(800)));
                let _ = first.lock().await.expect("the frontier");
                let _ = second.lock().await.expect("the frontier");
            }
        });
    });
    let looks: Vec<u64> =
        log.events().iter().map(|event| event["fields"]["looks"].as_u64().expect("looks")).collect();
    // Every second one had to wait: one look to learn how long, one at the end, one if that was a little early.
    assert!(looks.len() == 2 * backends().len() && looks.iter().all(|looks| *looks <= 3), "looks: {looks:?}");
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn events(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text");
        let events = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        events.filter(|event: &serde_json::Value| event["fields"]["message"] == "mutex taken").collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_wait_given_up_half_way_leaves_nothing_locked() {
    let on_disk = [Some(Backend::sqlite(None)), Backend::redis(None)];
    for Backend { name, frontier, .. } in on_disk.iter().flatten() {
        for mutex in [pace(frontier, PATIENCE), TimedMutex::new(frontier, "plain")] {
            give_up_half_way(&mutex).await;
            assert!(mutex.lock_within(PATIENCE / 2).await.is_ok(), "{name}");
        }
    }
}

/// Asks, and goes away before the answer; where the answer was quicker, once more.
async fn give_up_half_way(mutex: &TimedMutex) {
    let mut waker = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        let mut lock = Box::pin(mutex.lock());
        match lock.as_mut().poll(&mut waker) {
            std::task::Poll::Pending => return,
            std::task::Poll::Ready(held) => {
                held.expect("the frontier").unlock().await.expect("it is its own");
            }
        }
    }
}
