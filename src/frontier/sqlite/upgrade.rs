//! Brings a file of an earlier version up to date, in transactions of at most [`MOST`] rows. Each of them notes where it came to,
//! so that a process that is killed in between leaves the rest to the next one that opens the file.

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

use super::columns::{json, url};
use super::memory::Memory;
use super::schema::{FLOW, PAGES, TASKS, VERSION};
use super::transaction::Tables;
use crate::frontier::state::PageState;

/// Rows moved in one transaction.
const MOST: u32 = 1_000;

/// A part of the way to the next version.
enum Part {
    /// Done at once.
    Sql(&'static str),
    /// Moves so many rows at most, and tells how many it moved: done again until there are none.
    Rows(fn(&Connection, u32) -> Result<usize>),
}

/// From which version each part leads on. Since version 4 a site's file has a table of its own, as the site's row is written with
/// every page; since 5 so has what an owner was answered last, as its row names all its sites. Since 6 an owner's row says what its
/// claims no longer do: what it works on. Since 8 a task has a lane, and pages are packed.
/// Since 9 it is kept what people did, since 10 how many tasks were made for each tenant lately, and since 11 what flowed through
/// each queue.
const PARTS: &[(i64, Part)] = &[
    (3, Part::Sql(FROM_3)),
    (4, Part::Sql(FROM_4)),
    (5, Part::Sql("")),
    (6, Part::Sql(FROM_6)),
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
    (11, Part::Sql("")),
];
const FROM_3: &str = "
CREATE TABLE site_file (site TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO site_file SELECT name, text FROM site WHERE text IS NOT NULL;
ALTER TABLE site DROP COLUMN text;
";
const FROM_4: &str = "CREATE TABLE answers (owner TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;";
/// Since 7 a site keeps its own last start, which until then was that of its unit; a group's wait says where it comes from; a
/// unit's place goes by when it can be claimed; and hosts that can't be reached keep their tasks beside the queue. What isn't sure is
/// waited for.
const FROM_6: &str = "
ALTER TABLE unit ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unit ADD COLUMN ends INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unit ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN interval INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN waits_until INTEGER NOT NULL DEFAULT 0;
UPDATE site SET interval = state ->> '$.settings.interval',
  state = json_set(state, '$.last', json((SELECT unit.state -> '$.last' FROM unit WHERE unit.id = site.unit)));
UPDATE site SET waits_until = coalesce((state ->> '$.last.at') + max(
    coalesce(state ->> '$.tuned.interval', interval),
    iif(state ->> '$.settings.robots',
      coalesce((SELECT max(floor.value) FROM json_each(state, '$.floors') AS floor), 0), 0)), 0);
UPDATE unit SET turn = due * 32, ends = due;
UPDATE unit SET state = json_set(state, '$.wait', json_object('group', state ->> '$.interval'))
  WHERE state ->> '$.interval' > 0;
UPDATE unit SET state = json_set(state, '$.wait',
    json_object('longest', (SELECT max(site.interval) FROM site WHERE site.unit = unit.id)))
  WHERE state ->> '$.interval' = 0
    AND EXISTS (SELECT 1 FROM site WHERE site.unit = unit.id AND site.name <> unit.name);
UPDATE task SET lease = json_array(lease ->> '$[0]', lease ->> '$[1]', json(lease -> '$[2]'),
    json('{\"at\":0,\"unit\":0,\"site\":0}'))
  WHERE place = 3 AND json_type(lease) = 'array';
UPDATE task SET lease = json_array(lease ->> '$.granted_at', lease ->> '$.fence', json(lease -> '$.in_flight'),
    json('{\"at\":0,\"unit\":0,\"site\":0}'))
  WHERE place = 3 AND json_type(lease) = 'object';
DROP INDEX unit_download;
CREATE INDEX unit_download ON unit (turn, name) WHERE ready_download > 0;
DROP INDEX site_download;
CREATE INDEX site_download ON site (unit, waits_until, name) WHERE ready_download;
CREATE INDEX site_interval ON site (unit, interval);
ALTER TABLE task ADD COLUMN host TEXT;
CREATE INDEX task_parked ON task (site, host, priority, position) WHERE place = 4;
CREATE TABLE away (site TEXT, origin TEXT, until INTEGER NOT NULL, PRIMARY KEY (site, origin)) WITHOUT ROWID;
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
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
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
