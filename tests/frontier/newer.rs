//! Records have room for what a newer build may write: whom a task is for, and that a site or a unit refuses everything. This
//! build keeps it, whatever it does with the record, so that no file and no server is to be upgraded for it.

use paced::internals::frontier::Tuning;

use crate::world::{World, ms, on_every_backend};

const TENANT: &str = "acme";
const WALL: &str = r#"{"why":"403 for all","since":1,"url":"https://a.example/p","probe_at":2}"#;

/// Writes both as a newer build would; false where nothing can be written from outside.
fn write_as_a_newer_build(w: &World) -> bool {
    if let Some(file) = w.file() {
        let file = rusqlite::Connection::open(file).expect("ours");
        let tasks = "UPDATE task SET rare = json_set(coalesce(rare, '{}'), '$.tenant', ?1)";
        assert_eq!(file.execute(tasks, [TENANT]).expect("written"), 1);
        for table in ["site", "unit"] {
            let sql = format!("UPDATE {table} SET state = json_set(state, '$.wall', json(?1))");
            assert_eq!(file.execute(&sql, [WALL]).expect("written"), 1);
        }
        return true;
    }
    let Some(db) = w.redis() else { return false };
    // What few records have lies behind the rest, by name.
    let script = "local task = redis.call('HGETALL', '{paced:0}:tasks:a') \
        redis.call('HSET', '{paced:0}:tasks:a', task[1], task[2] .. cmsgpack.pack({ tenant = ARGV[1] })) \
        for _, key in ipairs({ '{paced:0}:state:a', '{paced:0}:pace:a' }) do \
          redis.call('APPEND', key, cmsgpack.pack({ wall = cjson.decode(ARGV[2]) })) \
        end return #task";
    assert_eq!(db.cli(&["EVAL", script, "0", TENANT, WALL]), "2", "one task");
    true
}

/// Whether the task has its tenant, and site and unit their wall.
fn kept(w: &World) -> [bool; 3] {
    if let Some(file) = w.file() {
        let file = rusqlite::Connection::open(file).expect("ours");
        let has = |sql: &str, text: &str| {
            file.query_row(sql, [text], |row| row.get::<_, i64>(0)).expect("counted") == 1
        };
        let wall = |table: &str| {
            has(&format!("SELECT count(*) FROM {table} WHERE json_extract(state, '$.wall') = json(?1)"), WALL)
        };
        let tenant = "SELECT count(*) FROM task WHERE json_extract(rare, '$.tenant') = ?1";
        return [has(tenant, TENANT), wall("site"), wall("unit")];
    }
    let db = w.redis().expect("it was written there");
    let script = "local tasks, has = table.concat(redis.call('HVALS', '{paced:0}:tasks:a')), {} \
        has[1] = string.find(tasks, 'tenant', 1, true) and string.find(tasks, ARGV[1], 1, true) and 1 or 0 \
        for i, key in ipairs({ '{paced:0}:state:a', '{paced:0}:pace:a' }) do \
          local record = redis.call('GET', key) \
          has[i + 1] = string.find(record, 'wall', 1, true) and string.find(record, '403 for all', 1, true) and 1 or 0 \
        end return table.concat(has)";
    let has = db.cli(&["EVAL", script, "0", TENANT]);
    let mut has = has.trim().chars().map(|digit| digit == '1');
    std::array::from_fn(|_| has.next().expect("three"))
}

#[test]
fn n9_tenant_and_walls_that_a_newer_build_wrote_stay_whatever_this_one_does_with_the_records() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        // One that waits has a record on Redis only once there is something to write in it.
        let lease = w.start().await;
        if !write_as_a_newer_build(w) {
            return;
        }
        let all = |what: &str| assert_eq!(kept(w), [true; 3], "{what}");
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
        w.pass(2_000);
        let lease = w.start().await;
        let walls = |what: &str| assert_eq!(kept(w)[1..], [true; 2], "{what}");
        w.fetched_for(&lease, 60_000).await;
        walls("settled");
        let parse = w.parse().await.expect("its page is kept");
        w.done(&parse).await;
        walls("parsed");
        w.tune("a", Tuning::Interval(Some(2_000))).await;
        w.frontier.block("a", ms(1_000), "429").await.expect("blocked");
        walls("tuned and blocked");
        w.pass(61_000);
        assert_eq!(w.feed(10).await.put, 1);
        let lease = w.start().await;
        w.fetched(&lease).await;
        walls("crawled again");
    });
}
