//! Makes the fixtures: what this build leaves in a file and on a Redis. Run once for each schema, by the last build that has it:
//! `cargo test --test frontier makes_the_fixtures -- --ignored`. The names of the files are those of the schemas.

use std::fs;
use std::path::PathBuf;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::Frontier;

use super::state::fill;
use crate::support::RedisServer;
use crate::world::{START, World, wait_for};

/// The folder of the fixtures.
pub fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/frontier")
}

#[test]
#[ignore = "writes files that are part of the project"]
fn makes_the_fixtures() {
    let clock = || Clock::fake(Timestamp::from_millis(START));
    let time = clock();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let frontier = Frontier::sqlite(&file, Some(time.clone())).expect("our file");
    wait_for(async { fill(&World::of(frontier, time)).await });
    let connection = rusqlite::Connection::open(&file).expect("ours");
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("ours");
    connection.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM").expect("ours");
    drop(connection);
    fs::copy(&file, fixtures().join(format!("schema-{version}.sqlite"))).expect("copied");

    let server = RedisServer::builder().start().expect("Redis is installed");
    let clock = clock();
    let frontier = Frontier::redis(&server.url(0), Some(clock.clone())).expect("a URL");
    wait_for(async { fill(&World::of(frontier, clock)).await });
    server.cli(&["FUNCTION", "FLUSH"]);
    server.cli(&["SAVE"]);
    let schema = server.cli(&["GET", "{paced:0}:schema"]);
    let schema = schema.split(' ').next().expect("a version");
    fs::copy(server.folder().join("dump.rdb"), fixtures().join(format!("schema-{schema}.rdb")))
        .expect("copied");
}
