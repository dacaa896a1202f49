//! One clock for all processes of a machine: a base kept in the file plus the time since boot, so that changes of the wall
//! clock move nothing.

use std::collections::HashMap;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::memory::Memory;
use super::session::Tables;
use crate::clock::{Clock, Timestamp, millis, since_boot};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::SiteState;
use crate::frontier::steps::Moment;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file's clock; at the first open after a boot it is set anew, to no earlier than it was last seen.
pub(super) fn clock(connection: &mut Connection) -> rusqlite::Result<Clock> {
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    let boot = boot.trim();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let base: i64 = if read::<String>(&transaction, "boot")?.as_deref() == Some(boot) {
        read(&transaction, "base")?.unwrap_or(0)
    } else {
        let seen = read(&transaction, "seen")?.unwrap_or(0);
        let now = Clock::wall().now().as_millis().max(seen);
        let base = now - millis(since_boot());
        postpone(&transaction, now)?;
        set(&transaction, "boot", boot)?;
        set(&transaction, "base", base)?;
        base
    };
    transaction.commit()?;
    Ok(Clock::since_boot(Timestamp::from_millis(base)))
}

/// Nobody knows when the last starts were: a power cut forgets what was committed last, and the wall clock may have been set, or be
/// another machine's.
fn postpone(transaction: &Connection, now: i64) -> rusqlite::Result<()> {
    let mut units = transaction.prepare("SELECT name FROM unit")?;
    let units: Vec<String> = units.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut tables = Tables::new(transaction, Memory::default())?;
    let mut sites: HashMap<String, Vec<SiteState>> = HashMap::new();
    for name in tables.site_names("", u32::MAX)? {
        let Some(site) = tables.site(&name)? else { continue };
        sites.entry(site.unit.clone()).or_default().push(site);
    }
    for unit in units {
        let sites = sites.remove(&unit).unwrap_or_default();
        Moment { shelf: &mut tables, now }.postpone(&unit, sites)?;
    }
    tables.flush()
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
