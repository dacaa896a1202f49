//! The fixtures of earlier schemas in a file, opened by this build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Frontier, FrontierErrorKind, WorkScope};
use rusqlite::Connection;
use tempfile::TempDir;

use super::make::fixtures;
use super::state::{HOUR, crawls_on, is_the_same};
use crate::world::{START, World, at, wait_for};

const SCHEMAS: [i64; 6] = [6, 7, 8, 9, 10, 11];

/// A copy of the file, and the time when its last process had been gone for long.
fn old(schema: i64) -> (TempDir, PathBuf, Clock) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    std::fs::copy(fixtures().join(format!("schema-{schema}.sqlite")), &file).expect("the fixture is there");
    (folder, file, Clock::fake(Timestamp::from_millis(START + HOUR / 2)))
}

fn open(file: &Path, time: &Clock) -> World {
    World::of(Frontier::sqlite(file, Some(time.clone())).expect("upgraded"), time.clone())
}

#[test]
fn n9_a_file_of_the_schema_before_is_upgraded_and_loses_nothing() {
    for schema in SCHEMAS {
        let (_folder, file, time) = old(schema);
        let w = open(&file, &time);
        wait_for(async {
            is_the_same(&w).await;
            w.check_books().await;
            let [pair, slow] = [w.view("one").await, w.view("slow").await];
            assert_eq!((pair.unit.as_str(), pair.interval, pair.says.group), ("pair", 3_000, Some(3_000)));
            assert_eq!(slow.interval, 20_000, "tuned");
            assert!(slow.last_start.is_some_and(|last| last > at(0)), "{slow:?}");
        });
        assert_eq!(tables(&file), tables_of_a_new_one(), "from schema {schema}");
    }
}

#[test]
fn n9_a_file_of_the_schema_before_is_crawled_on_each_page_once_and_at_its_pace() {
    for schema in SCHEMAS {
        let (_folder, file, time) = old(schema);
        wait_for(crawls_on(&open(&file, &time)));
    }
}

/// The names of all tables and indexes.
fn tables(file: &Path) -> BTreeSet<String> {
    let connection = Connection::open(file).expect("ours");
    let mut names = connection.prepare("SELECT name FROM sqlite_schema").expect("ours");
    let names = names.query_map([], |row| row.get(0)).expect("ours");
    names.collect::<Result<_, _>>().expect("ours")
}

fn tables_of_a_new_one() -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    drop(Frontier::sqlite(&file, None).expect("a new one"));
    tables(&file)
}

#[test]
fn n9_an_older_file_is_refused_while_one_of_its_processes_lives_and_that_one_is_named() {
    let (folder, file, _) = old(7);
    // A process of today works on a file beside it; its lock is what an older process holds as well.
    let other = folder.path().join("other.sqlite");
    let frontier = Frontier::sqlite(&other, None).expect("opened");
    let member = wait_for(frontier.join_as("lathe", WorkScope::All)).expect("joined");
    let beside = |file: &Path| PathBuf::from(format!("{}.owners", file.display()));
    std::os::unix::fs::symlink(beside(&other), beside(&file)).expect("it stands beside both");
    let before = std::fs::read(&file).expect("read");
    let error = Frontier::sqlite(&file, None).expect_err("it is in use");
    assert_eq!(error.kind, FrontierErrorKind::OlderInUse(7), "{error}");
    let told = format!(
        "the process {} (pid {}, paced {}) works on it",
        member.name,
        id(),
        env!("CARGO_PKG_VERSION")
    );
    assert!(error.to_string().contains(&told), "{told} isn't in: {error}");
    assert_eq!(std::fs::read(&file).expect("read"), before, "it is as it was");
    wait_for(frontier.leave(member)).expect("it leaves");
    drop(Frontier::sqlite(&file, None).expect("nobody stands against it any more"));
}

const FILE: &str = "UPGRADED_FILE";
const PUT: i64 = 60_000;

#[test]
#[ignore = "another test runs it as a process of its own"]
fn an_upgrade() {
    let Ok(file) = std::env::var(FILE) else { return };
    drop(Frontier::sqlite(Path::new(&file), None).expect("upgraded"));
}

/// The part of the upgrade that is done next.
fn part_of(connection: &Connection) -> Option<String> {
    let sql = "SELECT value FROM meta WHERE key = 'upgrade'";
    connection.query_row(sql, [], |row| row.get(0)).ok()
}

/// How many rows the table has, if it is there.
fn rows(connection: &Connection, table: &str) -> i64 {
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap_or(0)
}

#[test]
fn n9_an_upgrade_of_a_file_that_was_killed_is_gone_on_with_in_steps_of_a_thousand() {
    let (_folder, file, time) = old(7);
    let connection = Connection::open(&file).expect("ours");
    let many = format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {PUT})
         INSERT INTO task (site, stage, fp, url, place, priority, position, depth, origin)
         SELECT site.id, 0, n, 'https://paused.example/many/' || n, 0, 240, 1000000 + n, 0, 0 FROM n, site
         WHERE site.name = 'paused';
         UPDATE site SET state = json_set(state, '$.download.waiting', (state ->> '$.download.waiting') + {PUT},
           '$.download.created', (state ->> '$.download.created') + {PUT}) WHERE name = 'paused';"
    );
    connection.execute_batch(&many).expect("put");
    let before = rows(&connection, "task");
    let part = || part_of(&connection);
    // Killed once some rows have moved, and again later.
    for least in [1, 20_000] {
        let this = std::env::current_exe().expect("a test");
        let name = "upgrade::sqlite::an_upgrade";
        let mut child = Command::new(this)
            .args(["--ignored", "--exact", name])
            .env(FILE, &file)
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        let moved = || part().map_or(0, |_| rows(&connection, "task"));
        while !(least..before).contains(&moved()) {
            assert_eq!(child.try_wait().expect("asked"), None, "it was through before it could be killed");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        let [left, there] = [rows(&connection, "task_7"), rows(&connection, "task")];
        assert_eq!(left + there, before, "each is in one table");
        assert!(there % 1_000 == 0 && left > 0 && part().is_some(), "{there} of {before} were moved");
    }
    drop(connection);
    let w = open(&file, &time);
    wait_for(async {
        let counts = w.view("paused").await.download;
        assert!(counts.waiting >= PUT.unsigned_abs() && counts.imbalance() == 0, "{counts:?}");
    });
    let connection = Connection::open(&file).expect("ours");
    assert_eq!((rows(&connection, "task"), part_of(&connection)), (before, None));
    assert_eq!(tables(&file), tables_of_a_new_one());
}
