//! Brings a file of an earlier version up to date, in transactions of at most [`MOST`] rows. Each of them notes where it came to,
//! so that a process that is killed in between leaves the rest to the next one that opens the file.

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

use super::columns::{json, url};
use super::memory::Memory;
use super::schema::{BATCHES, BEATS, BY_LANE, CAMPAIGNS, EVENTS, FLOW, IDLE, PAGES, TASKS, VERSION};
use super::transaction::Tables;
use crate::frontier::state::PageState;

/// Rows moved in one transaction.
const MOST: u32 = 1_000;

/// A part of the way to the next version.
enum Part {
    /// Done at once.
    Sql(&'static str),
    /// A statement that changes so many rows at most, none of them twice: done again until there are none.
    Each(&'static str),
    /// Moves so many rows at most, and tells how many it moved: done again until there are none.
    Rows(fn(&Connection, u32) -> Result<usize>),
}

/// From which version each part leads on. Since version 4 a site's file has a table of its own, as the site's row is written with
/// every page; since 5 so has what an owner was answered last, as its row names all its sites. Since 6 an owner's row says what its
/// claims no longer do: what it works on. Since 8 a task has a lane, and pages are packed.
/// Since 9 it is kept what people did, since 10 how many tasks were made for each tenant lately, since 11 what flowed through
/// each queue, and since 12 how much waits in all.
const PARTS: &[(i64, Part)] = &[
    (3, Part::Sql("CREATE TABLE site_file (site TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID")),
    (3, Part::Each(FILES_OF_3)),
    (3, Part::Sql("ALTER TABLE site DROP COLUMN text")),
    (4, Part::Sql(FROM_4)),
    (5, Part::Sql("")),
    (6, Part::Sql(FROM_6)),
    (6, Part::Each(SITES_OF_6)),
    (6, Part::Each(WAITS_OF_6)),
    (6, Part::Each(UNITS_OF_6)),
    (6, Part::Each(LEASES_OF_6)),
    (6, Part::Sql(INDEXES_OF_6)),
    (7, Part::Sql(FROM_7)),
    (7, Part::Sql(TASKS)),
    (7, Part::Rows(move_tasks)),
    (7, Part::Sql(PAGES)),
    (7, Part::Rows(move_pages)),
    (7, Part::Rows(move_known)),
    (7, Part::Sql("DROP TABLE task_7; DROP TABLE page_7; DROP TABLE known_7")),
    (8, Part::Sql(FROM_8)),
    (9, Part::Sql(FROM_9)),
    (10, Part::Sql(FROM_10)),
    (10, Part::Rows(add_steps)),
    (10, Part::Sql(FLOW)),
    (11, Part::Sql(IDLE)),
    (11, Part::Rows(weigh_a_site)),
    (11, Part::Sql(BATCHES)),
    (11, Part::Sql(BEATS)),
    (11, Part::Sql(EVENTS)),
    (11, Part::Sql(CAMPAIGNS)),
    (11, Part::Sql(BY_LANE)),
];
const FILES_OF_3: &str = "
INSERT INTO site_file SELECT name, text FROM site
  WHERE text IS NOT NULL AND name NOT IN (SELECT site FROM site_file) LIMIT ?1";
const FROM_4: &str = "CREATE TABLE answers (owner TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;";
/// Since 7 a site keeps its own last start, which until then was that of its unit; a group's wait says where it comes from; a
/// unit's place goes by when it can be claimed; and hosts that can't be reached keep their tasks beside the queue. What isn't sure is
/// waited for. A row that is still to be changed has -1.
const FROM_6: &str = "
ALTER TABLE unit ADD COLUMN turn INTEGER NOT NULL DEFAULT -1;
ALTER TABLE unit ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unit ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN interval INTEGER NOT NULL DEFAULT -1;
ALTER TABLE site ADD COLUMN waits_until INTEGER NOT NULL DEFAULT -1;
ALTER TABLE task ADD COLUMN host TEXT;
CREATE TABLE away (site TEXT, origin TEXT, until INTEGER NOT NULL, PRIMARY KEY (site, origin)) WITHOUT ROWID;
DROP INDEX unit_download;
DROP INDEX site_download;
";
const SITES_OF_6: &str = "
UPDATE site SET interval = state ->> '$.settings.interval',
  state = json_set(state, '$.last', json((SELECT unit.state -> '$.last' FROM unit WHERE unit.id = site.unit)))
  WHERE id IN (SELECT id FROM site WHERE interval < 0 LIMIT ?1)";
const WAITS_OF_6: &str = "
UPDATE site SET waits_until = coalesce((state ->> '$.last.at') + max(
    coalesce(state ->> '$.tuned.interval', interval),
    iif(state ->> '$.settings.robots',
      coalesce((SELECT max(floor.value) FROM json_each(state, '$.floors') AS floor), 0), 0)), 0)
  WHERE id IN (SELECT id FROM site WHERE waits_until < 0 LIMIT ?1)";
const UNITS_OF_6: &str = "
UPDATE unit SET turn = max(due, 0) * 32, ends = due, state = CASE
    WHEN state ->> '$.interval' > 0 THEN json_set(state, '$.wait', json_object('group', state ->> '$.interval'))
    WHEN state ->> '$.interval' = 0
      AND EXISTS (SELECT 1 FROM site WHERE site.unit = unit.id AND site.name <> unit.name)
    THEN json_set(state, '$.wait',
      json_object('longest', (SELECT max(site.interval) FROM site WHERE site.unit = unit.id)))
    ELSE state END
  WHERE id IN (SELECT id FROM unit WHERE turn < 0 LIMIT ?1)";
const LEASES_OF_6: &str = "
UPDATE task SET lease = json_array(
    coalesce(lease ->> '$.granted_at', lease ->> '$[0]'), coalesce(lease ->> '$.fence', lease ->> '$[1]'),
    json(iif(json_type(lease) = 'object', lease -> '$.in_flight', lease -> '$[2]')),
    json('{\"at\":0,\"unit\":0,\"site\":0}'))
  WHERE id IN (SELECT id FROM task
    WHERE place = 3 AND json_type(lease) IN ('array', 'object')
      AND coalesce(json_type(lease, '$[3]'), '') <> 'object' LIMIT ?1)";
const INDEXES_OF_6: &str = "
CREATE INDEX unit_download ON unit (turn, name) WHERE ready_download > 0;
CREATE INDEX site_download ON site (unit, waits_until, name) WHERE ready_download;
CREATE INDEX site_interval ON site (unit, interval);
CREATE INDEX task_parked ON task (site, host, priority, position) WHERE place = 4;
CREATE INDEX away_time ON away (until, site, origin);
CREATE INDEX mutex_named ON mutex (until) WHERE name NOT GLOB 'site/*';
";
const FROM_7: &str = "
CREATE INDEX IF NOT EXISTS site_unit ON site (unit, name);
DROP INDEX IF EXISTS task_token;
DROP INDEX IF EXISTS task_owner;
DROP INDEX IF EXISTS task_held;
DROP INDEX task_key;
DROP INDEX task_waiting;
DROP INDEX task_delayed;
DROP INDEX task_leased;
DROP INDEX task_parked;
DROP INDEX page_recrawl;
DROP INDEX page_age;
DROP INDEX page_key;
ALTER TABLE task RENAME TO task_7;
ALTER TABLE page RENAME TO page_7;
ALTER TABLE known RENAME TO known_7;
CREATE INDEX away_origin ON away (origin, until, site);
CREATE TABLE idle_unit (name TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX idle_unit_until ON idle_unit (until, name);
INSERT INTO idle_unit SELECT name, ends + 86400000 FROM unit WHERE id NOT IN (SELECT unit FROM site);
";
const FROM_8: &str = "
CREATE TABLE act (id INTEGER PRIMARY KEY, site TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL);
CREATE INDEX act_site ON act (site);
";

const FROM_9: &str = "
CREATE TABLE counted (stage INTEGER, tenant TEXT, turn INTEGER, at INTEGER NOT NULL, PRIMARY KEY (stage, tenant, turn)) WITHOUT ROWID;
CREATE TABLE window (stage INTEGER, tenant TEXT, until INTEGER NOT NULL, PRIMARY KEY (stage, tenant)) WITHOUT ROWID;
CREATE INDEX window_until ON window (until, stage, tenant);
";

const FROM_10: &str = "
CREATE TABLE session (site INTEGER, name TEXT, turn INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (site, name)) WITHOUT ROWID;
CREATE INDEX session_turn ON session (site, turn, name);
";

/// Since 12 it is known how many downloads of each site nobody works on, and what they weigh.
const IDLE_OF_11: &str = "
UPDATE site SET
  idle = coalesce(state ->> '$.download.waiting', 0) + coalesce(state ->> '$.download.delayed', 0)
    + coalesce(state ->> '$.download.scheduled', 0),
  state = json_set(state,
    '$.download.bytes',
    (SELECT coalesce(sum(length(url) + 100), 0) FROM task WHERE task.site = site.id AND stage = 0 AND place <> 3),
    '$.parse.bytes',
    (SELECT coalesce(sum(length(url) + 100), 0) FROM task WHERE task.site = site.id AND stage = 1 AND place <> 3))
  WHERE id IN (SELECT id FROM site WHERE idle < 0 LIMIT 1)";

/// One site a transaction: all its tasks are read.
fn weigh_a_site(file: &Connection, most: u32) -> Result<usize> {
    Ok(file.execute(IDLE_OF_11, [])? * most as usize)
}

/// Tasks say which session they are steps of. In a file from before 8 their table was made anew, as it is now.
fn add_steps(file: &Connection, _most: u32) -> Result<usize> {
    let has_it = "SELECT count(*) FROM pragma_table_info('task') WHERE name = 'session'";
    if file.query_row(has_it, [], |row| row.get::<_, u32>(0))? == 0 {
        file.execute_batch(
            "ALTER TABLE task ADD COLUMN session TEXT;
             CREATE INDEX task_behind ON task (site, session, priority, until, position) WHERE place = 5;",
        )?;
    }
    Ok(0)
}

fn move_tasks(file: &Connection, most: u32) -> Result<usize> {
    let first = "(SELECT id FROM task_7 ORDER BY id LIMIT ?1)";
    let columns = "id, site, stage, fp, url, place, priority, position, depth, origin, until, token, owner, lease, rare, host";
    let copy = format!("INSERT INTO task ({columns}) SELECT {columns} FROM task_7 WHERE id IN {first}");
    file.execute(&copy, [most])?;
    file.execute(&format!("DELETE FROM task_7 WHERE id IN {first}"), [most])
}

fn move_pages(file: &Connection, most: u32) -> Result<usize> {
    let tables = Tables::new(file, Memory::default())?;
    let sql = "SELECT id, site, url, state FROM page_7 ORDER BY id LIMIT ?1";
    let pages = tables.file.all(sql, [most], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, url(row, 2)?, json::<PageState>(row, 3)?))
    })?;
    for (id, site, url, page) in &pages {
        tables.keep_page(*site, url, None, page)?;
        tables.file.run("DELETE FROM page_7 WHERE id = ?1", [id])?;
    }
    Ok(pages.len())
}

fn move_known(file: &Connection, most: u32) -> Result<usize> {
    let tables = Tables::new(file, Memory::default())?;
    let sql = "SELECT site, run, fp FROM known_7 LIMIT ?1";
    let known = tables.file.all(sql, [most], |row| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]))?;
    for [site, run, fingerprint] in &known {
        tables.see(*site, *fingerprint, *run)?;
        let sql = "DELETE FROM known_7 WHERE site = ?1 AND run = ?2 AND fp = ?3";
        tables.file.run(sql, [site, run, fingerprint])?;
    }
    Ok(known.len())
}

/// What keeps a file from being brought up to date.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// A process of this name works on it.
    Process(String),
    /// A newer build has brought it further than this one can, since it was looked at.
    Newer,
}

/// Whether a file of that version is brought up to date.
pub(super) fn is_from(version: i64) -> bool {
    PARTS.iter().any(|(from, _)| *from == version)
}

/// Does one transaction's worth of it; whether anything is left. The first one raises the version, which keeps older builds away;
/// it isn't begun while a process `stands_against` it. What keeps it from being done is told with the version that the file has.
pub(super) fn step(
    connection: &mut Connection,
    stands_against: impl FnOnce() -> Option<String>,
) -> Result<std::result::Result<bool, (i64, Bar)>> {
    // Whoever only looks at a file that is up to date waits for no writer.
    let moment = connection.transaction()?;
    if version_of(&moment)? == VERSION && under_way(&moment)?.is_none() {
        return Ok(Ok(false));
    }
    drop(moment);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version_of(&transaction)?;
    if version > VERSION {
        return Ok(Err((version, Bar::Newer)));
    }
    let at = match under_way(&transaction)? {
        Some(at) => at,
        None if version == VERSION => return Ok(Ok(false)),
        None => match stands_against() {
            Some(process) => return Ok(Err((version, Bar::Process(process)))),
            None => PARTS.iter().position(|(from, _)| *from == version).unwrap_or(PARTS.len()),
        },
    };
    let is_done = match &PARTS[at].1 {
        Part::Sql(sql) => transaction.execute_batch(sql).map(|()| true)?,
        Part::Each(sql) => transaction.execute(sql, [MOST])? < MOST as usize,
        Part::Rows(moves) => moves(&transaction, MOST)? < MOST as usize,
    };
    let next = at + usize::from(is_done);
    let is_left = next < PARTS.len();
    if is_left {
        transaction.execute("INSERT OR REPLACE INTO meta VALUES ('upgrade', ?1)", [name_of(next)])?;
    } else {
        transaction.execute("DELETE FROM meta WHERE key = 'upgrade'", [])?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(Ok(is_left))
}

fn version_of(file: &Connection) -> Result<i64> {
    file.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// A part by its version and its number among those that lead on from it: `7.2`.
fn name_of(part: usize) -> String {
    let (from, _) = PARTS[part];
    let number = PARTS[..part].iter().filter(|(other, _)| *other == from).count();
    format!("{from}.{number}")
}

/// The part that is done next, of an upgrade that has begun.
fn under_way(file: &Connection) -> Result<Option<usize>> {
    let sql = "SELECT value FROM meta WHERE key = 'upgrade'";
    let name: Option<String> = file.query_row(sql, params![], |row| row.get(0)).optional()?;
    Ok(name.and_then(|name| (0..PARTS.len()).find(|part| name_of(*part) == name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites with a file of their own each, and leases of each form.
    const MANY: &str = "
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500)
          INSERT INTO unit (name, due, parsed_at, state)
          SELECT 'many-' || n, 5, 0, unit.state FROM n, unit WHERE unit.name = 'slow';
        INSERT INTO site (name, unit, ready_download, ready_parse, has_room, state)
          SELECT unit.name, unit.id, 0, 0, 0, json_set(site.state, '$.name', unit.name) FROM unit, site
          WHERE unit.name GLOB 'many-*' AND site.name = 'slow';
        INSERT INTO task (site, stage, fp, url, place, priority, position, depth, origin, until, owner, lease)
          SELECT site.id, 0, 1, 'https://slow.example/' || site.name, 3, 240, site.id, 0, 0, 9, 'somebody',
            iif(site.id % 2, json_array(7, 8, json('true')), json_object('granted_at', 7, 'fence', 8, 'in_flight', json('true')))
          FROM site WHERE site.name GLOB 'many-*';";

    /// Makes a file of schema 6 one of schema 3.
    const AS_IN_3: &str = "
        DROP TABLE answers;
        ALTER TABLE site ADD COLUMN text TEXT;
        UPDATE site SET text = coalesce((SELECT text FROM site_file WHERE site_file.site = site.name), 'of ' || name);
        DROP TABLE site_file;
        PRAGMA user_version = 3;";

    /// A file of schema 6 that has many rows of each kind.
    fn many(file: &std::path::Path) -> Connection {
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/frontier/schema-6.sqlite");
        std::fs::copy(fixture, file).expect("it is there");
        let file = Connection::open(file).expect("ours");
        file.execute_batch(MANY).expect("made");
        file
    }

    #[test]
    fn n9_the_rows_of_an_old_file_are_changed_a_thousand_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        for (from, sql, files) in [(6, "", 0), (3, AS_IN_3, 2_500)] {
            let mut file = many(&folder.path().join(format!("{from}.sqlite")));
            file.execute_batch(sql).expect("made older");
            let (mut changed, mut left) = (file.total_changes(), true);
            while left {
                left = step(&mut file, || None).expect("done").expect("nothing stands against it");
                let before = std::mem::replace(&mut changed, file.total_changes());
                // One that is moved is added to one table and taken from another.
                assert!(changed - before <= 2 * u64::from(MOST) + 10, "{} rows at once", changed - before);
            }
            let count = |what: &str| {
                let sql = format!("SELECT count(*) FROM {what}");
                file.query_row(&sql, [], |row| row.get::<_, u32>(0)).expect("read")
            };
            let sites = "site JOIN unit ON unit.id = site.unit WHERE unit.name GLOB 'many-*' AND unit.turn = 160
              AND unit.ends = 5 AND site.interval = site.state ->> '$.settings.interval' AND waits_until >= 0";
            let leases = "task WHERE owner = 'somebody'
              AND lease = '[7,8,true,{\"at\":0,\"unit\":0,\"site\":0}]'";
            let texts = "site_file WHERE text = 'of ' || site AND site GLOB 'many-*'";
            assert_eq!([sites, leases, texts].map(count), [2_500, 2_500, files], "from {from}");
        }
    }

    #[test]
    fn n9_a_file_that_a_newer_build_upgraded_meanwhile_is_left_to_it() {
        let mut file = Connection::open_in_memory().expect("a file");
        file.execute_batch("CREATE TABLE meta (key TEXT PRIMARY KEY, value)").expect("made");
        file.pragma_update(None, "user_version", VERSION + 1).expect("set");
        for under_way in [None, Some("7.1")] {
            let noted = "INSERT INTO meta SELECT 'upgrade', ?1 WHERE ?1 IS NOT NULL";
            file.execute(noted, [under_way]).expect("noted");
            let refused = step(&mut file, || None).expect("read");
            assert_eq!(refused, Err((VERSION + 1, Bar::Newer)));
        }
    }
}
