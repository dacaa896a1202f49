//! Items out, as JSON lines: into a folder with a file a site (and writer), one file, or stdout. Where items come from, and what
//! they replace in other stores, is elsewhere.

mod error;
mod last_lines;
mod latest;
mod lines;
mod target;
mod writer;

pub use error::SinkError;
pub use last_lines::{LastLines, files_of_writers};
pub use latest::{Latest, key, latest, read};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use std::{fs, io};

use tokio::sync::Mutex as AsyncMutex;
use tracing::warn;

use crate::item::Item;
use lines::LineFile;
use target::{Outlet, Target};
use writer::Writer;

/// How long a flush looks out for others, where there are some: each file costs it a wait for the disk, however many lines are new.
const COMPANY: Duration = Duration::from_millis(40);

/// Files that are waited for at a time.
const AT_A_TIME: usize = 8;
/// With fewer files one thread waits for one after the other.
const WORTH_A_THREAD: usize = 4;

/// Where items go. Cheap to clone; clones write to the same place.
///
/// [`ItemSink::write`] lets lines wait, and [`ItemSink::flush`] writes them until they are on the disk. A caller that settles many
/// tasks at once writes each and flushes once; what no flush wrote is lost with the last clone.
#[derive(Clone, Debug)]
pub struct ItemSink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: Mutex<Target>,
    /// Held while the disk is waited for: who comes second has its lines flushed by the first, and must know it.
    flushing: Mutex<()>,
    /// A flush is under way, or failed in a way that leaves unknown what the disk holds: a second try would not tell.
    broken: AtomicBool,
    /// Flushes that were asked for.
    asked: AtomicU64,
    turn: AsyncMutex<Turn>,
}

/// Who flushes for all.
#[derive(Debug, Default)]
struct Turn {
    /// So many of the flushes that were asked for are done.
    done: u64,
    /// The last one was for several.
    in_company: bool,
}

impl ItemSink {
    /// A file a site in `dir`, which is made where it is missing. Torn last lines of all its files are cut.
    pub fn folder(dir: &Path) -> Result<Self, SinkError> {
        make_folder(dir)?;
        for path in items_files(dir)? {
            LineFile::open(&path)?;
        }
        Ok(Self::of(Target::folder(dir, None)))
    }

    /// A file a site and writer in `dir`: `<site>-<writer>.jsonl`, for one process of several. A name that a running process has
    /// in this folder is refused. Torn last lines are cut, those of other writers too: who died may never come back by its name.
    pub fn folder_of(dir: &Path, writer: &str) -> Result<Self, SinkError> {
        make_folder(dir)?;
        let writer = Writer::take(dir, writer)?;
        for path in items_files(dir)? {
            let is_own = path.to_string_lossy().ends_with(&writer.ending());
            match LineFile::open(&path) {
                Err(error) if is_own => return Err(error),
                Err(error) => warn!("torn lines of another worker can't be cut: {error}"),
                Ok(_) => {}
            }
        }
        Ok(Self::of(Target::folder(dir, Some(writer))))
    }

    /// One file for all sites, made where it is missing; a torn last line is cut. It may be a pipe.
    pub fn file(path: &Path) -> Result<Self, SinkError> {
        Ok(Self::of(Target::one(Outlet::File(Arc::new(LineFile::open(path)?)))))
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self::of(Target::one(Outlet::Stdout))
    }

    fn of(target: Target) -> Self {
        let (target, flushing, turn) = (Mutex::new(target), Mutex::new(()), AsyncMutex::default());
        let (broken, asked) = (AtomicBool::new(false), AtomicU64::new(0));
        Self(Arc::new(Inner { target, flushing, broken, asked, turn }))
    }

    /// Takes a line an item, to be written with the next flush; where very much waits, that is now. After an error some may have
    /// been taken: to write them again is harmless, as the last line of a key wins.
    pub async fn write(&self, items: &[Item]) -> Result<(), SinkError> {
        // Others that waited for the same flush come first, and may have filled it again.
        while lock(&self.0.target).is_full() {
            self.flush().await?;
            lock(&self.0.target).close_idle();
        }
        items.iter().try_for_each(|item| {
            let mut line = serde_json::to_vec(item).map_err(|e| SinkError::not_json(item, &e))?;
            line.push(b'\n');
            lock(&self.0.target).put(&item.site, &line)
        })
    }

    /// Waits until everything taken so far is on the disk: each file's lines in one piece, and one `fdatasync` for them. Those who
    /// ask together wait together: one flush is for all of them, and up to 40 ms later than one that is asked for alone. Several
    /// processes may write to one file at once: lines never mix. To a pipe or stdout they go one by one.
    ///
    /// What could not be written waits for the next flush. Once the disk failed to say that it has what was written, every
    /// further flush fails as well: whatever was not settled is to be written again by the next start.
    pub async fn flush(&self) -> Result<(), SinkError> {
        let own = self.0.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut turn = self.0.turn.lock().await;
        if turn.done >= own {
            return Ok(());
        }
        if std::mem::take(&mut turn.in_company) {
            tokio::time::sleep(COMPANY).await;
        }
        let asked = self.0.asked.load(Ordering::SeqCst);
        let sink = self.clone();
        tokio::task::spawn_blocking(move || sink.flush_here()).await.unwrap_or(Err(SinkError::Broken))?;
        *turn = Turn { done: asked, in_company: asked > turn.done + 1 };
        Ok(())
    }

    fn flush_here(&self) -> Result<(), SinkError> {
        let _turn = lock(&self.0.flushing);
        if self.0.broken.load(Ordering::SeqCst) {
            return Err(SinkError::Broken);
        }
        // Until it is known that all is well: what is taken out of the queue here is nowhere else.
        self.0.broken.store(true, Ordering::SeqCst);
        let due = lock(&self.0.target).take();
        let (mut written, mut refused) = (Vec::with_capacity(due.len()), Ok(()));
        for due in due {
            match due.outlet.append(&due.lines) {
                Ok(()) => written.push(due.outlet),
                Err(error) => {
                    lock(&self.0.target).put_back(due);
                    refused = Err(error);
                }
            }
        }
        let synced = sync_all(&written);
        self.0.broken.store(synced.is_err(), Ordering::SeqCst);
        synced.and(refused)
    }
}

/// Some at a time: those that wait together share what the disk does for them, which is most of the cost where many sites have a
/// line each.
fn sync_all(written: &[Outlet]) -> Result<(), SinkError> {
    let sync = |outlets: &[Outlet]| outlets.iter().try_for_each(Outlet::sync);
    std::thread::scope(|scope| {
        let mut parts = written.chunks(written.len().div_ceil(AT_A_TIME).max(WORTH_A_THREAD));
        let first = parts.next().unwrap_or_default();
        let begin = |part| {
            let begun = Builder::new().name("items".to_owned()).spawn_scoped(scope, move || sync(part));
            begun.map_err(|_| part)
        };
        let others: Vec<_> = parts.map(begin).collect();
        let mut synced = sync(first);
        for other in others {
            synced = synced.and(match other {
                Ok(begun) => begun.join().unwrap_or(Err(SinkError::Broken)),
                Err(no_thread) => sync(no_thread),
            });
        }
        synced
    })
}

/// A panic elsewhere leaves whole lines in every queue, and what a flush took out of them when it panicked marks the sink as broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make_folder(dir: &Path) -> Result<(), SinkError> {
    fs::create_dir_all(dir).map_err(|e| SinkError::io("make the folder", dir, e))
}

fn items_files(dir: &Path) -> Result<Vec<PathBuf>, SinkError> {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|e| SinkError::io("list", dir, e))?;
    let is_items = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    Ok(entries.iter().map(fs::DirEntry::path).filter(is_items).collect())
}

#[cfg(test)]
mod tests {
    use futures_util::future::{FutureExt, join_all};

    use super::*;

    #[tokio::test]
    async fn flushes_that_come_together_are_one_and_a_lone_one_looks_out_for_nobody() {
        let sink = ItemSink::stdout();
        for _ in 0..3 {
            join_all((0..10).map(|_| sink.flush()))
                .await
                .into_iter()
                .for_each(|flushed| flushed.expect("nothing to do"));
            let turn = sink.0.turn.lock().await;
            assert_eq!((turn.done, turn.in_company), (sink.0.asked.load(Ordering::SeqCst), true));
        }
        for _ in 0..2 {
            sink.flush().await.expect("nothing to do");
        }
        let turn = sink.0.turn.lock().await;
        assert_eq!((turn.done, turn.in_company), (32, false));
    }

    #[tokio::test]
    async fn a_flush_that_nobody_waits_for_any_more_keeps_the_next_one_from_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = ItemSink::file(&folder.path().join("items.jsonl")).expect("a file");
        let _ = sink.flush().now_or_never();
        sink.flush().await.expect("a disk");
        assert_eq!(sink.0.turn.lock().await.done, 2);
    }
}
