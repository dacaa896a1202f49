//! The fixture of schema 6 in a file, opened by this build.

use std::path::{Path, PathBuf};

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::Frontier;
use tempfile::TempDir;

use super::make::fixtures;
use super::state::{HOUR, crawls_on, is_the_same};
use crate::world::{START, World, at, wait_for};

/// A copy of the file, and the time when its last process had been gone for long.
fn old() -> (TempDir, PathBuf, Clock) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    std::fs::copy(fixtures().join("schema-6.sqlite"), &file).expect("the fixture is there");
    (folder, file, Clock::fake(Timestamp::from_millis(START + HOUR / 2)))
}

fn open(file: &Path, time: &Clock) -> World {
    World::of(Frontier::sqlite(file, Some(time.clone())).expect("upgraded"), time.clone())
}

#[test]
fn n9_a_file_of_the_schema_before_is_upgraded_and_loses_nothing() {
    let (_folder, file, time) = old();
    let w = open(&file, &time);
    wait_for(async {
        is_the_same(&w).await;
        let [pair, slow] = [w.view("one").await, w.view("slow").await];
        assert_eq!((pair.unit.as_str(), pair.interval, pair.says.group), ("pair", 3_000, Some(3_000)));
        assert_eq!(slow.interval, 20_000, "tuned");
        assert!(slow.last_start.is_some_and(|last| last > at(0)), "{slow:?}");
    });
}

#[test]
fn n9_a_file_of_the_schema_before_is_crawled_on_each_page_once_and_at_its_pace() {
    let (_folder, file, time) = old();
    wait_for(crawls_on(&open(&file, &time)));
}
