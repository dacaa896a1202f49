//! Whose it is: only its owner releases it, and a past owner is nobody.

use paced::internals::mutex::{MutexError, TimedMutex};

use super::{PATIENCE, ms, pace, still_backends};

#[tokio::test]
async fn r2_a_late_owner_neither_frees_nor_extends_what_its_successor_has() {
    for (backend, clock) in still_backends() {
        let mutex = TimedMutex::new(&backend.frontier, "x").expire(ms(1_000));
        let mut late = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        clock.advance(ms(1_000));
        let successor = mutex.try_lock().await.expect("the frontier").expect("its time was over");

        assert!(matches!(late.extend(ms(9_000)).await, Err(MutexError::NotOwner(_))), "{}", backend.name);
        let error = late.unlock().await.expect_err("it isn't its any more");
        assert_eq!(
            error.to_string(),
            "mutex `x` is not this guard's any more: it was unlocked, or its time was over and others may hold it"
        );
        assert!(!error.is_transient());
        drop(late);
        assert!(successor.is_owned().await.expect("the frontier"), "{}", backend.name);
        assert_eq!(mutex.left().await.expect("the frontier"), Some(ms(1_000)), "{}", backend.name);
    }
}

#[tokio::test]
async fn r2_a_late_guard_that_is_dropped_leaves_its_successor_alone() {
    for (backend, clock) in still_backends() {
        let mutex = TimedMutex::new(&backend.frontier, "x").expire(ms(1_000));
        let late = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        clock.advance(ms(1_000));
        let successor = mutex.try_lock().await.expect("the frontier").expect("its time was over");
        drop(late);
        assert!(successor.is_owned().await.expect("the frontier"), "{}", backend.name);
    }
}

#[tokio::test]
async fn r5_a_guard_over_its_time_knows_and_asking_moves_nothing() {
    for (backend, clock) in still_backends() {
        let mutex = pace(&backend.frontier, ms(1_000));
        let held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        clock.advance(ms(999));
        assert!(held.is_owned().await.expect("the frontier"), "{}", backend.name);
        assert_eq!(
            mutex.left().await.expect("the frontier"),
            Some(ms(1)),
            "{}: asking moved it",
            backend.name
        );
        clock.advance(ms(1));
        assert!(!held.is_owned().await.expect("the frontier"), "{}", backend.name);
        let _successor = mutex.try_lock().await.expect("the frontier").expect("its time was over");
        assert!(!held.is_owned().await.expect("the frontier"), "{}: it is another's", backend.name);
    }
}

#[tokio::test]
async fn v9_locked_unlocked_and_a_second_unlock_is_an_error() {
    for (backend, clock) in still_backends() {
        let mutex = TimedMutex::new(&backend.frontier, "x").expire(ms(1_000));
        assert!(!mutex.is_locked().await.expect("the frontier"));
        let mut held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        assert!(mutex.is_locked().await.expect("the frontier"));
        assert!(mutex.try_lock().await.expect("the frontier").is_none(), "{}: taken twice", backend.name);
        held.unlock().await.expect("it is its own");
        assert!(!mutex.is_locked().await.expect("the frontier"));
        assert!(matches!(held.unlock().await, Err(MutexError::NotOwner(_))), "{}", backend.name);
        assert!(!held.is_owned().await.expect("the frontier"));

        let _again = mutex.try_lock().await.expect("the frontier").expect("it was unlocked");
        clock.advance(ms(1_000));
        assert!(!mutex.is_locked().await.expect("the frontier"), "{}: its time is over", backend.name);
    }
}

#[tokio::test]
async fn v9_the_same_worker_meets_its_own_lock_as_somebody_elses() {
    for (backend, clock) in still_backends() {
        let mutex = pace(&backend.frontier, ms(1_000));
        drop(mutex.try_lock().await.expect("the frontier").expect("nobody has it"));
        assert!(mutex.try_lock().await.expect("the frontier").is_none(), "{}", backend.name);
        clock.advance(ms(1_000));
        assert!(mutex.try_lock().await.expect("the frontier").is_some(), "{}", backend.name);
    }
}

#[tokio::test]
async fn v9_synchronize_gives_the_blocks_value_also_when_the_block_unlocks() {
    for (backend, _clock) in still_backends() {
        let mutex = TimedMutex::new(&backend.frontier, "x").expire(PATIENCE);
        assert_eq!(mutex.synchronize(async |_| 7).await.expect("the frontier"), 7);
        let block = async |held: &mut paced::internals::mutex::Held| held.unlock().await.map(|()| 8);
        let value = mutex.synchronize(block).await.expect("the frontier");
        assert_eq!(value.expect("it was its own"), 8);
        let block = async |held: &mut paced::internals::mutex::Held| held.sleep(ms(5)).await.map(|()| 9);
        let value = mutex.synchronize(block).await.expect("the frontier");
        assert_eq!(value.expect("it was its own"), 9);
        assert!(!mutex.is_locked().await.expect("the frontier"), "{}", backend.name);
    }
}

#[tokio::test]
async fn v9_unlock_frees_a_timed_one_before_its_time_and_sleep_waits_first() {
    for (backend, _clock) in still_backends() {
        let mutex = pace(&backend.frontier, PATIENCE);
        let mut held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        let began = std::time::Instant::now();
        held.sleep(ms(30)).await.expect("it is its own");
        assert!(began.elapsed() >= ms(30), "{}: it didn't wait", backend.name);
        assert!(!mutex.is_locked().await.expect("the frontier"), "{}", backend.name);
    }
}

#[tokio::test]
async fn extended_it_ends_so_long_from_now() {
    for (backend, clock) in still_backends() {
        let mutex = pace(&backend.frontier, ms(1_000));
        let mut held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        clock.advance(ms(400));
        held.extend(ms(1_000)).await.expect("it is its own");
        assert_eq!(mutex.left().await.expect("the frontier"), Some(ms(1_000)), "{}", backend.name);
        held.extend(ms(10)).await.expect("it is its own");
        assert_eq!(mutex.left().await.expect("the frontier"), Some(ms(10)), "{}", backend.name);
    }
}
