//! One clock for all processes of a machine: a base kept in the file plus the time since boot, so that changes of the wall
//! clock move nothing.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::memory::Memory;
use super::transaction::Tables;
use crate::clock::{Clock, Timestamp, millis, since_boot};
use crate::frontier::steps::Moment;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Sites or units postponed in one transaction.
const POSTPONED: u32 = 1_000;

/// The file's clock; at the first open after a boot it is set anew, to no earlier than it was last seen.
pub(super) fn clock(connection: &mut Connection) -> rusqlite::Result<Clock> {
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    let boot = boot.trim();
    // Whoever only looks at a file that was opened since waits for no writer.
    if let Some(base) = base_since(&*connection.transaction()?, boot)? {
        return Ok(Clock::since_boot(base));
    }
    loop {
        if let Some(base) = step(connection, boot)? {
            return Ok(Clock::since_boot(base));
        }
    }
}

/// When this boot was by the file's clock, if all that it asks for is done.
fn base_since(file: &Connection, boot: &str) -> rusqlite::Result<Option<Timestamp>> {
    if read::<String>(file, "boot")?.as_deref() != Some(boot) {
        return Ok(None);
    }
    Ok(Some(Timestamp::from_millis(read(file, "base")?.unwrap_or(0))))
}

/// One step of what a boot asks for, in a transaction: when the machine booted by the file's clock, once all of it is done. A
/// process that is killed in between leaves the rest to the next one that opens the file.
fn step(connection: &mut Connection, boot: &str) -> rusqlite::Result<Option<Timestamp>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(base) = base_since(&transaction, boot)? {
        return Ok(Some(base));
    }
    if read::<String>(&transaction, "booting")?.as_deref() != Some(boot) {
        let seen = read(&transaction, "seen")?.unwrap_or(0);
        let now = Clock::wall().now().as_millis().max(seen);
        set(&transaction, "base", now - millis(since_boot()))?;
        set(&transaction, "booting", boot)?;
        clear(&transaction, &["postponed_site", "postponed_unit"])?;
    }
    let base: i64 = read(&transaction, "base")?.unwrap_or(0);
    if !postpone(&transaction, base + millis(since_boot()))? {
        set(&transaction, "boot", boot)?;
        clear(&transaction, &["booting", "copied", "postponed_site", "postponed_unit"])?;
    }
    transaction.commit()?;
    Ok(None)
}

/// Nobody knows when the last starts were: a power cut forgets what was committed last, and the wall clock may have been set, or be
/// another machine's. A portion of the sites, then of the units, from the one on to which that came; false where there are none
/// left.
fn postpone(transaction: &Connection, now: i64) -> rusqlite::Result<bool> {
    let mut tables = Tables::new(transaction, Memory::default())?;
    let age = read(transaction, "copied")?.map_or(0, |copied: i64| now - copied);
    for (done, table) in [("postponed_site", "site"), ("postponed_unit", "unit")] {
        let after: String = read(transaction, done)?.unwrap_or_default();
        let sql = format!("SELECT name FROM {table} WHERE name > ?1 ORDER BY name LIMIT ?2");
        let names: Vec<String> = tables.file.all(&sql, params![after, POSTPONED], |row| row.get(0))?;
        let Some(last) = names.last() else { continue };
        let mut at = Moment { shelf: &mut tables, now };
        for name in &names {
            if table == "site" { at.postpone_site(name, age)? } else { at.postpone_unit(name, age)? }
        }
        tables.flush()?;
        set(transaction, done, last)?;
        return Ok(true);
    }
    Ok(false)
}

/// A copy of the file as it was then: whoever opens it first takes it as one that the machine was booted for, and a block or
/// the time up to a probe of a wall lasts as long from then on as it would have lasted.
pub(super) fn mark_copy(copy: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    clear(copy, &["boot", "booting", "postponed_site", "postponed_unit"])?;
    saw(copy, now)?;
    set(copy, "copied", now.as_millis())
}

/// Remembers that it was at least that late.
pub(super) fn saw(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    set(connection, "seen", now.as_millis())
}

fn set(connection: &Connection, key: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<()> {
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![key, value]).map(drop)
}

fn read<T: FromSql>(connection: &Connection, key: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

fn clear(connection: &Connection, keys: &[&str]) -> rusqlite::Result<()> {
    keys.iter().try_for_each(|key| connection.execute("DELETE FROM meta WHERE key = ?1", [key]).map(drop))
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;
    use crate::frontier::SiteSettings;
    use crate::frontier::shelf::Shelf;
    use crate::frontier::state::SiteState;

    /// So many sites, each a unit.
    fn with_sites(count: usize) -> Connection {
        let connection = Connection::open_in_memory().expect("in memory");
        schema::create(&connection).expect("the tables");
        let transaction = connection.unchecked_transaction().expect("begun");
        let mut tables = Tables::new(&transaction, Memory::default()).expect("begun");
        for n in 0..count {
            let name = format!("s{n:05}");
            let settings = SiteSettings { interval: 1_000, parallel: 1, ..SiteSettings::default() };
            tables.save_site(&SiteState::new(&name, &name, settings)).expect("saved");
        }
        drop(tables);
        transaction.commit().expect("kept");
        connection
    }

    fn count(connection: &Connection, of: &str) -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0)).expect("counted")
    }

    #[test]
    fn i16_after_a_boot_a_thousand_sites_or_units_are_postponed_in_a_transaction_also_after_a_kill() {
        let mut connection = with_sites(1_500);
        let is_done = |connection: &mut Connection| step(connection, "one").expect("done").is_some();
        let postponed = |connection: &Connection| {
            let soon = "state ->> '$.last.at' > (SELECT value FROM meta WHERE key = 'base')";
            ["site", "unit"].map(|table| count(connection, &format!("{table} WHERE {soon}")))
        };
        for expected in [[1_000, 0], [1_500, 0], [1_500, 1_000], [1_500, 1_500], [1_500, 1_500]] {
            assert!(!is_done(&mut connection), "whoever opens the file next goes on");
            assert_eq!(postponed(&connection), expected);
        }
        let changes = connection.total_changes();
        assert!(is_done(&mut connection));
        assert_eq!(connection.total_changes(), changes);
        assert_eq!(count(&connection, "unit WHERE due >= 1000 + (state ->> '$.last.at')"), 1_500);
        assert_eq!(count(&connection, "meta WHERE key NOT IN ('boot', 'base', 'idle')"), 0);
    }

    #[test]
    fn a_boot_while_another_one_s_sites_are_postponed_begins_anew() {
        let mut connection = with_sites(1_001);
        assert_eq!(step(&mut connection, "one").expect("done"), None);
        let mut steps = 0;
        while step(&mut connection, "two").expect("done").is_none() {
            steps += 1;
        }
        assert_eq!(steps, 5, "two portions of sites, two of units, and the end");
    }

    #[test]
    fn n10_who_opens_a_copy_waits_an_interval_and_what_was_left_of_a_block_once() {
        let mut connection = with_sites(2);
        let now = clock(&mut connection).expect("a clock").now().as_millis();
        let copied = now - 7_200_000;
        let change = |connection: &Connection, set: &str| connection.execute_batch(set).expect("changed");
        let (to_come, over) = (copied + 600_000, copied - 1);
        change(&connection, &format!("UPDATE unit SET state = json_set(state, '$.blocked_until', {over})"));
        let block = format!(
            "UPDATE unit SET state = json_set(state, '$.blocked_until', {to_come}) WHERE name = 's00001'"
        );
        change(&connection, &block);
        mark_copy(&connection, Timestamp::from_millis(copied)).expect("marked");
        let opened = clock(&mut connection).expect("a clock").now().as_millis();
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
        let of = |name: &str, what: &str| number(&format!("SELECT {what} FROM unit WHERE name = '{name}'"));
        for name in ["s00000", "s00001"] {
            assert!(
                of(name, "state ->> '$.last.at'") >= opened - 60_000,
                "its last start counts as made now"
            );
        }
        assert_eq!(of("s00000", "state ->> '$.blocked_until'"), over);
        let until = of("s00001", "state ->> '$.blocked_until'");
        assert!((until - 600_000 - opened).abs() < 60_000, "ten minutes more: {}", until - opened);
        assert!(of("s00001", "due") >= until);
        assert_eq!(number("SELECT count(*) FROM meta WHERE key = 'copied'"), 0);
        let again = clock(&mut connection).expect("a clock").now().as_millis();
        assert!(again >= opened);
        let same = connection.query_row(
            "SELECT state ->> '$.blocked_until' FROM unit WHERE name = 's00001'",
            [],
            |row| row.get(0),
        );
        assert_eq!(same, Ok(until), "once");
    }
}
