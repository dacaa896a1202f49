//! A copy of the file beside whatever works on it. It is marked as one: whoever opens it first waits for what it can't know
//! ([`boot`](super::boot)).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::memory::Memory;
use super::transaction::Tables;
use super::{STEPS, boot, explain, name};
use crate::clock::Timestamp;
use crate::frontier::error::{FrontierError, FrontierErrorKind};
use crate::frontier::shelf::Shelf;
use crate::frontier::steps::Moment;
use crate::owner_only;

/// All pages of the file in one step: it is one moment's, and nobody who writes meanwhile waits for it.
const ALL_PAGES: std::ffi::c_int = -1;

/// Copies the frontier at `from`, whose clock says `now`, into a new file. It has that name once it is whole.
pub(in crate::frontier) fn back_up(from: &Path, to: &Path, now: Timestamp) -> Result<(), FrontierError> {
    refuse_existing(to)?;
    let part = beside(to);
    let _unfinished = Unfinished(&part);
    owner_only::options().write(true).create_new(true).open(&part).map_err(|error| of_disk(to, &error))?;
    copy(from, &part).map_err(|error| of_copy(from, to, &error))?;
    mark(&part, now).map_err(|error| of_copy(&part, to, &error))?;
    File::open(&part).and_then(|file| file.sync_all()).map_err(|error| of_disk(to, &error))?;
    refuse_existing(to)?;
    fs::rename(&part, to).map_err(|error| of_disk(to, &error))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| of_disk(to, &error))
}

/// The file under which it is made: nobody takes that for a copy.
fn beside(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(format!(".{:08x}.part", fastrand::u32(..)));
    PathBuf::from(part)
}

/// What is left of a copy that came to nothing goes.
struct Unfinished<'a>(&'a Path);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        for end in ["", "-journal", "-wal", "-shm"] {
            let mut file = self.0.as_os_str().to_owned();
            file.push(end);
            let _ = fs::remove_file(file);
        }
    }
}

fn copy(from: &Path, part: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut copy = Connection::open(part)?;
    let copying = Backup::new(&source, &mut copy)?;
    let mut tries = STEPS.begin();
    loop {
        match copying.step(ALL_PAGES)? {
            StepResult::Busy | StepResult::Locked if tries.again_here() => {}
            StepResult::Busy | StepResult::Locked => {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(code, None));
            }
            _ => return Ok(()),
        }
    }
}

/// Its processes are none of the copy's: what they hold returns.
fn mark(part: &Path, now: Timestamp) -> rusqlite::Result<()> {
    let mut copy = Connection::open(part)?;
    let transaction = copy.transaction_with_behavior(TransactionBehavior::Immediate)?;
    boot::mark_copy(&transaction, now)?;
    let mut tables = Tables::new(&transaction, Memory::default())?;
    for (owner, _) in tables.owners()? {
        Moment { shelf: &mut tables, now: now.as_millis() }.bury(&owner)?;
    }
    tables.flush()?;
    drop(tables);
    transaction.commit()?;
    // So that all of it is in the one file.
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0))?;
    copy.close().map_err(|(_, error)| error)
}

/// Refuses a file that is there; also what SQLite would take for a part of the copy.
fn refuse_existing(to: &Path) -> Result<(), FrontierError> {
    let beside = ["", "-wal", "-shm", "-journal"].map(|end| {
        let mut file = to.as_os_str().to_owned();
        file.push(end);
        PathBuf::from(file)
    });
    match beside.iter().find(|file| fs::symlink_metadata(file).is_ok()) {
        Some(file) => Err(FrontierError::new(FrontierErrorKind::Exists, name(file))),
        None => Ok(()),
    }
}

fn of_disk(to: &Path, error: &io::Error) -> FrontierError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FrontierErrorKind::NoRoomForCopy,
        _ => FrontierErrorKind::NoCopy,
    };
    FrontierError::new(kind, name(to)).because(error)
}

/// The frontier itself is read alone: a full disk is the copy's.
fn of_copy(of: &Path, to: &Path, error: &rusqlite::Error) -> FrontierError {
    let explained = explain(of, error);
    match explained.kind {
        FrontierErrorKind::Full => {
            FrontierError::new(FrontierErrorKind::NoRoomForCopy, name(to)).because(error)
        }
        _ => explained,
    }
}
