//! Random histories: every reply of every backend is the model's, and after each step a ledger that knows nothing of the
//! frontier's own counters finds every invariant kept.

mod asked;
mod batched;
mod campaigned;
mod checked;
mod claimed;
mod ended;
mod fed;
mod game;
mod laned;
mod ledger;
mod marked;
mod op;
mod paced;
mod stepped;
mod told;
mod walled;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::world::{Backend, wait_for};
use game::Game;
use op::Posted;

/// Steps of a history.
const LENGTH: usize = 200;
/// Histories of one test.
const HISTORIES: u64 = 80;

#[test]
fn random_histories_of_the_first_seeds() {
    play_seeds(0);
}

#[test]
fn random_histories_of_the_second_seeds() {
    play_seeds(1);
}

#[test]
fn random_histories_of_the_third_seeds() {
    play_seeds(2);
}

#[test]
fn random_histories_of_the_fourth_seeds() {
    play_seeds(3);
}

/// The seeds of a part; `FRONTIER_SEED=n` plays that one alone, `FRONTIER_HISTORIES=n` more of them.
fn play_seeds(part: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("FRONTIER_SEED") {
        return play_seed(seed);
    }
    let count = number("FRONTIER_HISTORIES").unwrap_or(HISTORIES);
    for seed in part * count..(part + 1) * count {
        play_seed(seed);
    }
}

fn play_seed(seed: u64) {
    let (ops, backends) = (op::history(seed, LENGTH), backends(seed));
    let Err(failure) = play(&ops, &backends) else { return };
    let (ops, failure) = shrink(ops, &backends, failure);
    let mark = |joins| if joins { "+" } else { " " };
    let lines: Vec<String> =
        ops.iter().map(|posted| format!("{} {:?}", mark(posted.joins), posted.op)).collect();
    panic!("FRONTIER_SEED={seed}: {failure}\nafter these {} moves:\n{}", ops.len(), lines.join("\n"));
}

/// Every other history is played by two processes on one file as well.
fn backends(seed: u64) -> Vec<Backend> {
    let all = Backend::all().into_iter();
    all.chain(seed.is_multiple_of(2).then_some(Backend::SharedSqlite)).collect()
}

fn play(ops: &[Posted], backends: &[Backend]) -> Result<(), String> {
    let played = catch_unwind(AssertUnwindSafe(|| {
        wait_for(async {
            let mut game = Game::new(backends).await?;
            let mut step = 0;
            for posted in ops.chunk_by(|_, next| next.joins) {
                game.play(step, posted).await.map_err(|e| format!("move {step}, {posted:?}: {e}"))?;
                step += posted.len();
            }
            game.finish().await.map_err(|e| format!("in the end: {e}"))
        })
    }));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.unwrap_or_else(|| "a step panicked".to_owned()))
    })
}

/// Leaves out what isn't needed to fail: halves first, single moves last.
fn shrink(mut ops: Vec<Posted>, backends: &[Backend], mut failure: String) -> (Vec<Posted>, String) {
    let mut size = ops.len() / 2;
    let mut tries = 300;
    while size > 0 {
        let mut at = 0;
        while at < ops.len() && tries > 0 {
            tries -= 1;
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match play(&fewer, backends) {
                Err(still) => (ops, failure) = (fewer, still),
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    (ops, failure)
}
