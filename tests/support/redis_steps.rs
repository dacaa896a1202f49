//! What clients ask a Redis for: the steps in their batches, as `MONITOR` tells them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::redis_cli::{RedisCli, Said};

/// Batches of steps from the moment on when this began: each has the names of its steps' functions.
pub struct HeardSteps(Arc<Mutex<Vec<Vec<String>>>>);

impl HeardSteps {
    /// Listens on a connection of its own, until the server is gone or nobody asks it for anything.
    pub(super) fn by(mut cli: RedisCli) -> Self {
        assert_eq!(cli.say(&["MONITOR"]).expect("an answer"), Said::Text("OK".to_owned()));
        let batches = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&batches);
        thread::spawn(move || {
            while let Ok(Said::Text(line)) = cli.hear() {
                // What a function calls itself is said to come from Lua.
                if line.contains("\"FCALL") && !line.contains(" lua] ") {
                    heard.lock().unwrap_or_else(PoisonError::into_inner).push(steps_of(&line).collect());
                }
            }
        });
        Self(batches)
    }

    /// Those asked for since the last time.
    pub fn batches(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, counted by name.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.batches().into_iter().flatten().for_each(|name| *counts.entry(name).or_insert(0) += 1);
        counts
    }
}

/// The names of functions in a batch: texts of the form `view.site`, each behind a byte that tells its length.
fn steps_of(line: &str) -> impl Iterator<Item = String> {
    line.split("\\x").filter_map(|part| {
        let length = usize::from_str_radix(part.get(..2)?, 16).ok()?.checked_sub(0xa0)?;
        let name = part.get(2..2 + length)?;
        let (room, step) = name.split_once('.')?;
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        (length < 0x20 && is_word(room) && is_word(step)).then(|| name.to_owned())
    })
}
