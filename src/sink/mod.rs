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
pub use latest::{key, latest, read};

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;
use std::{fs, io};

use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::batch::{Batches, Sender, batches, linger};
use crate::cores::cores;
use crate::item::Item;
use lines::{ItemLine, LineFile};
use target::{Destination, Outlet, Target};
use writer::WriterName;

/// How long a flush looks out for others, where there are some: each file costs it a wait for the disk, however many lines are new.
const COMPANY: Duration = Duration::from_millis(400);
/// For each core, as many as ask are company enough: fewer than may wait for their end.
const ENOUGH_A_CORE: usize = 48;
/// And as many for all of them: fewer than would fill the sink, which lets nobody in before it is flushed.
const ENOUGH: usize = 192;

/// Files that are waited for at a time.
const AT_A_TIME: usize = 8;
/// With so many files or fewer one thread waits for one after the other: to begin another one costs more than some of them.
const WORTH_A_THREAD: usize = 16;

/// Where items go. Cheap to clone; clones write to the same place.
///
/// [`ItemSink::write`] lets lines wait, and [`ItemSink::flush`] writes them until they are on the disk. A caller that settles many
/// tasks at once writes each and flushes once; what no flush wrote is lost with the last clone.
#[derive(Clone, Debug)]
pub struct ItemSink(Arc<SinkParts>);

#[derive(Debug)]
struct SinkParts {
    target: Mutex<Target>,
    flushes: Sender<Flush>,
}

/// An item's line on its way.
#[derive(Debug)]
pub(crate) struct WaitingLine(Arc<AtomicBool>);

impl WaitingLine {
    /// Whether it was written, by a flush that succeeded.
    pub(crate) fn is_written(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Where to say how a flush that was asked for went.
type Flush = oneshot::Sender<Result<(), SinkError>>;

/// Flushes for all who ask, on a thread of its own.
#[derive(Debug)]
struct Flusher {
    /// As many as ask are company enough.
    enough: usize,
    /// The last flush was for several.
    in_company: bool,
    /// A flush failed in a way that leaves unknown what the disk holds: a second try would not tell.
    broken: bool,
}

impl ItemSink {
    /// A file a site in `dir`, which is made where it is missing. Torn last lines of all its files are cut.
    pub fn folder(dir: &Path) -> Result<Self, SinkError> {
        make_folder(dir)?;
        Self::mended(dir, None)
    }

    /// A file a site and writer in `dir`: `<site>-<writer>.jsonl`, for one process of several. A name that a running process has
    /// in this folder is refused. Torn last lines are cut, those of other writers too: who died may never come back by its name.
    pub fn folder_of(dir: &Path, writer: &str) -> Result<Self, SinkError> {
        make_folder(dir)?;
        Self::mended(dir, Some(WriterName::take(dir, writer)?))
    }

    fn mended(dir: &Path, writer: Option<WriterName>) -> Result<Self, SinkError> {
        let ending = writer.as_ref().map_or_else(String::new, WriterName::ending);
        for path in items_files(dir)? {
            match LineFile::open(&path) {
                Err(error) if path.to_string_lossy().ends_with(&ending) => return Err(error),
                Err(error) => warn!("torn lines of another worker can't be cut: {error}"),
                Ok(_) => {}
            }
        }
        Ok(Self::of(Destination::Folder { dir: dir.to_owned(), writer }))
    }

    /// One file for all sites, made where it is missing; a torn last line is cut. It may be a pipe.
    pub fn file(path: &Path) -> Result<Self, SinkError> {
        Ok(Self::of(Destination::One(Outlet::File(Arc::new(LineFile::open(path)?)))))
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self::of(Destination::One(Outlet::Stdout))
    }

    fn of(destination: Destination) -> Self {
        let (flushes, asked) = batches();
        let inner = Arc::new(SinkParts { target: Mutex::new(Target::to(destination)), flushes });
        let weak = Arc::downgrade(&inner);
        let begun =
            Builder::new().name("items".to_owned()).spawn(move || Flusher::new(cores()).run(&weak, asked));
        if let Err(error) = begun {
            // Each flush fails.
            error!(%error, "no thread can be started for items");
        }
        Self(inner)
    }

    /// Takes a line an item, to be written with the next flush; where very much waits, that is now. After an error some may have
    /// been taken: to write them again is harmless, as the last line of a key wins.
    pub async fn write(&self, items: &[Item]) -> Result<(), SinkError> {
        for item in items {
            self.write_until(item, Duration::MAX).await?;
        }
        Ok(())
    }

    /// The same for one item, whose line is dropped if the system gets it no sooner than that, by the time since boot. After a
    /// flush the answer tells whether it was written.
    pub(crate) async fn write_until(&self, item: &Item, until: Duration) -> Result<WaitingLine, SinkError> {
        // Others that waited for the same flush come first, and may have filled it again.
        while lock(&self.0.target).is_full() {
            self.flush().await?;
            lock(&self.0.target).close_idle();
        }
        let failed = |e: serde_json::Error| SinkError::Item { url: item.url.clone(), why: e.to_string() };
        let mut bytes = serde_json::to_vec(item).map_err(failed)?;
        bytes.push(b'\n');
        let written = Arc::default();
        let line = ItemLine { bytes, until, written: Arc::clone(&written) };
        lock(&self.0.target).put(&item.site, line)?;
        Ok(WaitingLine(written))
    }

    /// Waits until everything taken so far is on the disk: each file's lines in one piece, and one `fdatasync` for them. Those who
    /// ask together wait together: one flush is for all of them, and up to 400 ms later than one that is asked for alone. Several
    /// processes may write to one file at once: lines never mix. To a pipe or stdout they go one by one.
    ///
    /// What could not be written waits for the next flush. Once the disk failed to say that it has what was written, every
    /// further flush fails as well: whatever was not settled is to be written again by the next start.
    pub async fn flush(&self) -> Result<(), SinkError> {
        let (reply, flushed) = oneshot::channel();
        self.0.flushes.send(reply).map_err(|_| SinkError::Broken)?;
        flushed.await.unwrap_or(Err(SinkError::Broken))
    }
}

impl Flusher {
    fn new(cores: usize) -> Self {
        Self { enough: ENOUGH.min(cores * ENOUGH_A_CORE), in_company: false, broken: false }
    }

    /// Flushes until the last sink is gone.
    fn run(mut self, inner: &Weak<SinkParts>, mut asked: Batches<Flush>) {
        while let Some(batch) = self.next(&mut asked)
            && let Some(inner) = inner.upgrade()
        {
            let flushed = self.flush(&inner.target);
            // Whoever hears of it may want to open the same place again.
            drop(inner);
            for reply in batch {
                let _ = reply.send(flushed.clone());
            }
        }
    }

    fn next(&mut self, asked: &mut Batches<Flush>) -> Option<Vec<Flush>> {
        let (enough, in_company) = (self.enough, self.in_company);
        let expected = move |waiting: &VecDeque<Flush>| in_company && waiting.len() < enough;
        let time = linger(move |waiting| if expected(waiting) { COMPANY } else { Duration::ZERO });
        let batch: Vec<Flush> = asked.next(time, |waiting| waiting.drain(..).collect())?;
        self.in_company = batch.len() > 1;
        Some(batch)
    }

    fn flush(&mut self, target: &Mutex<Target>) -> Result<(), SinkError> {
        if self.broken {
            return Err(SinkError::Broken);
        }
        let due = lock(target).take();
        let (mut written, mut refused) = (Vec::with_capacity(due.len()), Ok(()));
        for due in due {
            match due.outlet.append(&due.lines) {
                Ok(()) => written.push(due.outlet),
                Err(error) => {
                    lock(target).put_back(due);
                    refused = Err(error);
                }
            }
        }
        let synced = sync_all(&written);
        self.broken = synced.is_err();
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

/// A panic elsewhere leaves whole lines in every queue; after one in a flush, which took some out, no flush is answered any more.
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
    use std::time::Instant;

    use futures_util::future::FutureExt;

    use super::*;

    #[test]
    fn flushes_that_come_together_are_one_and_a_lone_one_looks_out_for_nobody() {
        let (mut flusher, (flushes, mut asked)) = (Flusher::new(1), batches());
        for (came, in_company, waits) in
            [(1, false, false), (3, true, false), (1, false, true), (1, false, false)]
        {
            for _ in 0..came {
                flushes.send(oneshot::channel().0).expect("it is open");
            }
            let began = Instant::now();
            assert_eq!(flusher.next(&mut asked).map(|batch| batch.len()), Some(came));
            assert_eq!(flusher.in_company, in_company);
            assert!(!waits || began.elapsed() >= COMPANY, "one after several looks out for others");
        }
    }

    #[test]
    fn as_many_as_are_enough_wait_for_nobody() {
        let (mut flusher, (flushes, mut asked)) = (Flusher::new(2), batches());
        for (came, waits) in [(2, false), (2 * ENOUGH_A_CORE - 1, true), (2 * ENOUGH_A_CORE, false)] {
            for _ in 0..came {
                flushes.send(oneshot::channel().0).expect("it is open");
            }
            let time = Instant::now();
            assert_eq!(flusher.next(&mut asked).map(|batch| batch.len()), Some(came));
            assert_eq!(time.elapsed() >= COMPANY, waits, "{came}");
        }
    }

    #[tokio::test]
    async fn a_flush_that_nobody_waits_for_any_more_keeps_the_next_one_from_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = ItemSink::file(&folder.path().join("items.jsonl")).expect("a file");
        let _ = sink.flush().now_or_never();
        sink.flush().await.expect("a disk");
    }
}
