//! Items out, as JSON lines: into a folder with a file a site (and writer), one file, or stdout. Where items come from, and what
//! they replace in other stores, is elsewhere.

mod error;
mod last_lines;
mod latest;
mod lines;
mod writer;

pub use error::SinkError;
pub use last_lines::{LastLines, files_of_writers};
pub use latest::{Latest, key, latest, read};

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;

use crate::item::Item;
use lines::LineFile;
use writer::Writer;

/// How long a flush looks out for others, where there are some: each file costs it a wait for the disk, however many lines are new.
const COMPANY: Duration = Duration::from_millis(40);
/// Once so many files of items are open, those that are on the disk are closed.
const MAX_OPEN: usize = 256;

/// Where items go. Cheap to clone; clones write to the same place.
///
/// [`ItemSink::write`] hands whole lines to the system, where they outlive this process; [`ItemSink::flush`] waits until
/// they outlive the machine too. A caller that settles many tasks at once writes each and flushes once.
#[derive(Clone, Debug)]
pub struct ItemSink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: Mutex<Target>,
    /// Held while the disk is waited for: who comes second has its lines flushed by the first, and must know it.
    flushing: Mutex<()>,
    /// A flush failed: what the disk holds is no longer known, and a second try would not tell.
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

#[derive(Debug)]
enum Target {
    Folder { dir: PathBuf, writer: Option<Writer>, open: HashMap<String, LineFile> },
    File(LineFile),
    Stdout,
}

impl ItemSink {
    /// A file a site in `dir`, which is made where it is missing. Torn last lines of all its files are cut.
    pub fn folder(dir: &Path) -> Result<Self, SinkError> {
        make_folder(dir)?;
        cut_torn_lines(dir, ".jsonl")?;
        Ok(Self::of(Target::Folder { dir: dir.to_owned(), writer: None, open: HashMap::new() }))
    }

    /// A file a site and writer in `dir`: `<site>-<writer>.jsonl`, for one process of several. Torn last lines of this
    /// writer's files are cut. A name that a running process has in this folder is refused.
    pub fn folder_of(dir: &Path, writer: &str) -> Result<Self, SinkError> {
        make_folder(dir)?;
        let writer = Writer::take(dir, writer)?;
        cut_torn_lines(dir, &writer.ending())?;
        Ok(Self::of(Target::Folder { dir: dir.to_owned(), writer: Some(writer), open: HashMap::new() }))
    }

    /// One file for all sites, made where it is missing; a torn last line is cut. It may be a pipe.
    pub fn file(path: &Path) -> Result<Self, SinkError> {
        Ok(Self::of(Target::File(LineFile::open(path)?)))
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self::of(Target::Stdout)
    }

    fn of(target: Target) -> Self {
        let (target, flushing, turn) = (Mutex::new(target), Mutex::new(()), AsyncMutex::default());
        let (broken, asked) = (AtomicBool::new(false), AtomicU64::new(0));
        Self(Arc::new(Inner { target, flushing, broken, asked, turn }))
    }

    /// Appends a line an item. Several processes may write to one file at once: lines never mix. On an error no line
    /// of that site's items was written; to write them again is harmless, as the last line of a key wins.
    pub fn write(&self, items: &[Item]) -> Result<(), SinkError> {
        let mut sites: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut target = self.target_with_room()?;
        for item in items {
            // Only a folder tells sites apart; elsewhere lines keep their order.
            let file = if matches!(*target, Target::Folder { .. }) { item.site.as_str() } else { "" };
            let lines = sites.entry(file).or_default();
            serde_json::to_writer(&mut *lines, item).map_err(|e| SinkError::not_json(item, &e))?;
            lines.push(b'\n');
        }
        sites.into_iter().try_for_each(|(site, lines)| target.append(site, &lines))
    }

    /// Waits until everything written so far is on the disk (`fdatasync` of each file written since the last time). Those
    /// who ask together wait together: one flush is for all of them, and up to 40 ms later than one that is asked for alone.
    ///
    /// After a failure every further flush fails as well: whatever was not settled is to be written again by the next
    /// start.
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

    fn target_with_room(&self) -> Result<MutexGuard<'_, Target>, SinkError> {
        if lock(&self.0.target).is_crowded() {
            self.flush_here()?;
            lock(&self.0.target).close_clean();
        }
        Ok(lock(&self.0.target))
    }

    fn flush_here(&self) -> Result<(), SinkError> {
        let _turn = lock(&self.0.flushing);
        if self.0.broken.load(Ordering::SeqCst) {
            return Err(SinkError::Broken);
        }
        let dirty = lock(&self.0.target).take_dirty();
        let flushed = dirty.iter().try_for_each(LineFile::sync);
        self.0.broken.store(flushed.is_err(), Ordering::SeqCst);
        flushed
    }
}

/// A panic elsewhere leaves whole files, as each append is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target {
    fn append(&mut self, site: &str, lines: &[u8]) -> Result<(), SinkError> {
        match self {
            Self::Folder { dir, writer, open } => file_of(dir, writer.as_ref(), open, site)?.append(lines),
            Self::File(file) => file.append(lines),
            Self::Stdout => print(lines).map_err(|e| SinkError::io("write to", Path::new("stdout"), e)),
        }
    }

    fn is_crowded(&self) -> bool {
        matches!(self, Self::Folder { open, .. } if open.len() >= MAX_OPEN)
    }

    fn close_clean(&mut self) {
        if let Self::Folder { open, .. } = self {
            open.retain(|_, file| file.is_dirty());
        }
    }

    /// Handles to the files that have lines the disk doesn't have, so that waiting for the disk holds up no writer.
    fn take_dirty(&mut self) -> Vec<LineFile> {
        match self {
            Self::Folder { open, .. } => open.values_mut().filter_map(LineFile::take_dirty).collect(),
            Self::File(file) => file.take_dirty().into_iter().collect(),
            Self::Stdout => Vec::new(),
        }
    }
}

fn make_folder(dir: &Path) -> Result<(), SinkError> {
    fs::create_dir_all(dir).map_err(|e| SinkError::io("make the folder", dir, e))
}

fn cut_torn_lines(dir: &Path, ending: &str) -> Result<(), SinkError> {
    for entry in fs::read_dir(dir).map_err(|e| SinkError::io("list", dir, e))? {
        let path = entry.map_err(|e| SinkError::io("list", dir, e))?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(ending.as_bytes())) {
            LineFile::open(&path)?;
        }
    }
    Ok(())
}

fn file_of<'a>(
    dir: &Path,
    writer: Option<&Writer>,
    open: &'a mut HashMap<String, LineFile>,
    site: &str,
) -> Result<&'a mut LineFile, SinkError> {
    if !open.contains_key(site) {
        if site.is_empty() || site.starts_with('.') || site.contains(['/', '\0']) {
            return Err(SinkError::Name(site.to_owned()));
        }
        let file = writer.map_or_else(|| format!("{site}.jsonl"), |writer| writer.file_of(site));
        open.insert(site.to_owned(), LineFile::open(&dir.join(file))?);
    }
    Ok(open.get_mut(site).expect("it was put in above"))
}

fn print(lines: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines)?;
    stdout.flush()
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
