//! Who may wait: everybody else waits through `clock`, tries again through `patience`, and gathers company through `batch`.

use regex::Regex;

use crate::{Source, Wrong, fail_on, source, sources};

/// The files and folders of `src` that may name time's own means.
const HOMES: &[&str] = &["batch", "patience", "clock", "demo"];

/// What nobody else may name, and what to take instead.
const MEANS: &[(&str, &str)] = &[
    (r"\btokio(?:_util)?\s*::\s*time\b", "`clock`"),
    (r"\btokio(?:_util)?\s*::\s*\{[^;]*\btime\b", "`clock`"),
    (r"\bfutures_timer\b|\basync_io\b", "`clock`"),
    (r"\bthread\s*::\s*(?:sleep|park_timeout)|\bthread\s*::\s*\{[^;]*\b(?:sleep|park_timeout)", "`patience`"),
    (r"(?:^|[^.\w]|\btime::)(?:sleep|sleep_until|sleep_ms|timeout|timeout_at|park_timeout)\(", "`clock`"),
    (r"\btime\s*::\s*(?:interval|interval_at)\b", "`clock`"),
    (r"\.(?:recv_timeout|recv_deadline|wait_timeout(?:_while|_ms)?)\(", "`batch`"),
    (r"\b\w*pause\w*\s*(?:\*=?\s*2\b|<<)|\b2(?:_u32)?\s*\*\s*\w*pause", "`patience`"),
];

#[test]
fn nobody_waits_but_through_clock_patience_and_batch() {
    fail_on(sources().iter().flat_map(waits));
}

fn waits(source: &Source) -> Vec<Wrong> {
    if HOMES.iter().any(|home| source.is_within(home)) {
        return Vec::new();
    }
    let declared = Regex::new(r"\bfn \w+").expect("a pattern");
    let code = declared.replace_all(&source.code, "fn declared");
    let mut wrong = Vec::new();
    for (means, instead) in MEANS {
        for found in Regex::new(&format!("(?m){means}")).expect("a pattern").find_iter(&code) {
            let line = code[..found.end()].matches('\n').count() + 1;
            wrong.push(source.wrong(line, format!("`{}`: take {instead} instead", found.as_str().trim())));
        }
    }
    wrong
}

#[test]
fn a_wait_away_from_home_is_found_however_it_is_written() {
    for (path, text, found) in [
        ("work/pool.rs", "tokio::time::sleep(PAUSE).await;", true),
        ("work/pool.rs", "use tokio::time::{Instant, sleep_until};", true),
        ("work/pool.rs", "use tokio::{\n    sync::Notify,\n    time,\n};", true),
        ("work/pool.rs", "use tokio::sync::Notify;", false),
        ("work/pool.rs", "sleep(PAUSE).await;", true),
        ("work/pool.rs", "() = time::sleep(PAUSE) => {}", true),
        ("work/pool.rs", "let mut beat = time::interval(BEAT);", true),
        ("work/pool.rs", "match timeout(LONG, step).await {}", true),
        ("work/pool.rs", "use std::thread::{self, sleep};", true),
        ("work/pool.rs", "std::thread::sleep(PAUSE);", true),
        ("work/pool.rs", "thread::park_timeout(PAUSE);", true),
        ("work/pool.rs", "while inbox.recv_timeout(PAUSE).is_err() {}", true),
        ("work/pool.rs", "bell.wait_timeout(state, PAUSE)", true),
        ("work/pool.rs", "bell.wait_timeout_while(state, PAUSE, is_empty)", true),
        ("work/pool.rs", "pause = (pause * 2).min(LONGEST);", true),
        ("work/pool.rs", "pause *= 2;", true),
        ("work/pool.rs", "clock::wait(pause).await;", false),
        ("work/pool.rs", "if tries.again().await {}", false),
        ("work/pool.rs", "runtime.shutdown_timeout(LONG);", false),
        ("fetch/client.rs", "builder.pool_idle_timeout(key.idle).timeout(LONG).connect_timeout(LONG)", false),
        ("frontier/sqlite/mod.rs", "connection.busy_timeout(BUSY)?;", false),
        ("frontier/steps/lease.rs", "let interval = unit.interval.max(site.interval());", false),
        ("site/load/pace.rs", "fn interval(entry: &Entry) {}\nlet known = interval(&entry);", false),
        ("mutex.rs", "pub async fn sleep(&mut self) {}\nheld.sleep(PAUSE).await;", false),
        ("work/pool.rs", "// tokio::time::sleep", false),
        ("work/pool.rs", "#[cfg(test)]\nmod tests {\n    use tokio::time::sleep;\n}\n", false),
        ("clock.rs", "tokio::time::sleep(time).await;", false),
        ("patience/mod.rs", "thread::sleep(pause);", false),
        ("demo/reply.rs", "use tokio::time::{Sleep, sleep};", false),
    ] {
        let said: Vec<String> = waits(&source(path, text)).iter().map(ToString::to_string).collect();
        assert_eq!(!said.is_empty(), found, "{path}: {text}: {said:?}");
    }
}
