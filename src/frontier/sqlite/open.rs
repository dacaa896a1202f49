//! A frontier file is opened: whose it is, its tables, and the upgrade of an older one.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::owners::OwnerFile;
use super::upgrade::Bar;
use super::{STEPS, explain, is_busy, name, schema, upgrade};
use crate::frontier::error::{FrontierError, FrontierErrorKind};
use crate::owner_only;
use crate::patience::Patience;

/// How long another process may hold the file before `SQLite` gives up on a try.
const BUSY: Duration = Duration::from_secs(5);
/// Changing the journal's mode doesn't wait for other processes by itself.
const JOURNAL: Patience = Patience::new(Duration::from_millis(10), Duration::from_millis(10)).at_most(BUSY);
pub(super) fn connect(path: &Path) -> Result<Connection, FrontierError> {
    let open = || -> rusqlite::Result<Connection> {
        // Where it can't be made, SQLite says why. It gives the files that it makes beside it the same rights.
        let _ = owner_only::options().write(true).create_new(true).open(path);
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(128);
        // Else a statement whose LIMIT is a parameter is planned anew at each use.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    let mut connection = open().map_err(|e| explain(path, &e))?;
    match prepare(&mut connection, path).map_err(|e| explain(path, &e))? {
        None => Ok(connection),
        Some(refusal) => Err(refusal),
    }
}

/// Checks whose file it is before anything is written, creates the tables in an empty one, and brings an older one up to date.
/// What stands against its use.
fn prepare(connection: &mut Connection, path: &Path) -> rusqlite::Result<Option<FrontierError>> {
    let refused = |kind| Ok(Some(FrontierError::new(kind, name(path))));
    let look = |connection: &Connection| -> rusqlite::Result<(i64, i64, i64)> {
        Ok((
            connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
            connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?,
        ))
    };
    // Of one moment: another process may be making the same file.
    let moment = connection.transaction()?;
    let (application, version, tables) = look(&moment)?;
    drop(moment);
    if application != schema::APPLICATION && (application != 0 || version != 0 || tables != 0) {
        return refused(FrontierErrorKind::Foreign);
    }
    if version > schema::VERSION {
        return refused(FrontierErrorKind::Newer(version));
    }
    if application == schema::APPLICATION && version < schema::VERSION {
        if !upgrade::is_from(version) {
            return refused(FrontierErrorKind::Older(version));
        }
        // It wouldn't know the new tables.
        if let Some(process) = OwnerFile::any_held(path) {
            return Ok(Some(FrontierError::older_in_use(version, name(path), &process)));
        }
    }
    let mut tries = JOURNAL.begin();
    while let Err(error) =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
    {
        if !is_busy(&error) || !tries.again_here() {
            return Err(error);
        }
    }
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 4000;",
    )?;
    if application == 0 {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if look(&transaction)?.0 == 0 {
            schema::create(&transaction)?;
            transaction.pragma_update(None, "application_id", schema::APPLICATION)?;
            transaction.pragma_update(None, "user_version", schema::VERSION)?;
        }
        transaction.commit()?;
    }
    let mut tries = STEPS.begin();
    loop {
        match upgrade::step(connection, || OwnerFile::any_held(path)) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Ok(None),
            Ok(Err((version, Bar::Newer))) => return refused(FrontierErrorKind::Newer(version)),
            Ok(Err((version, Bar::Process(process)))) => {
                return Ok(Some(FrontierError::older_in_use(version, name(path), &process)));
            }
            Err(error) if is_busy(&error) && tries.again_here() => {}
            Err(error) => return Err(error),
        }
    }
}
