//! Records have room for what a newer build may write: whom a task is for. This build keeps it, whatever it does with the record,
//! so that no file and no server is to be upgraded for it.

use crate::world::{World, on_every_backend};

const TENANT: &str = "acme";

/// Writes it as a newer build would; false where nothing can be written from outside.
fn write_as_a_newer_build(w: &World) -> bool {
    if let Some(file) = w.file() {
        let file = rusqlite::Connection::open(file).expect("ours");
        let tasks = "UPDATE task SET rare = json_set(coalesce(rare, '{}'), '$.tenant', ?1)";
        assert_eq!(file.execute(tasks, [TENANT]).expect("written"), 1);
        return true;
    }
    let Some(db) = w.redis() else { return false };
    // What few records have lies behind the rest, by name.
    let script = "local task = redis.call('HGETALL', '{paced:0}:tasks:a') \
        redis.call('HSET', '{paced:0}:tasks:a', task[1], task[2] .. cmsgpack.pack({ tenant = ARGV[1] })) \
        return #task";
    assert_eq!(db.cli(&["EVAL", script, "0", TENANT]), "2", "one task");
    true
}

/// Whether the task has its tenant.
fn kept(w: &World) -> bool {
    if let Some(file) = w.file() {
        let file = rusqlite::Connection::open(file).expect("ours");
        let sql = "SELECT count(*) FROM task WHERE json_extract(rare, '$.tenant') = ?1";
        return file.query_row(sql, [TENANT], |row| row.get::<_, i64>(0)).expect("counted") == 1;
    }
    let db = w.redis().expect("it was written there");
    let script = "local tasks = table.concat(redis.call('HVALS', '{paced:0}:tasks:a')) \
        return string.find(tasks, 'tenant', 1, true) and string.find(tasks, ARGV[1], 1, true) and 1 or 0";
    db.cli(&["EVAL", script, "0", TENANT]).trim() == "1"
}

#[test]
fn n9_a_tenant_that_a_newer_build_wrote_stays_whatever_this_one_does_with_the_record() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        // One that waits has a record on Redis only once there is something to write in it.
        let lease = w.start().await;
        if !write_as_a_newer_build(w) {
            return;
        }
        let all = |what: &str| assert!(kept(w), "{what}");
        all("as written");
        w.retry(&lease, 5_000).await;
        all("delayed");
        w.put("a", "p").await;
        all("put again");
        w.pass(5_000);
        w.start().await;
        all("claimed again");
        w.pass(31_000);
        let lease = w.start().await;
        all("after a lost lease");
        w.back(&lease).await;
        all("given back");
    });
}
