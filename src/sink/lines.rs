//! A file of whole lines that several processes append to. What a line says is not known here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::SinkError;
use crate::clock::since_boot;

/// A line that waits to be written.
#[derive(Debug)]
pub(super) struct ItemLine {
    pub(super) bytes: Vec<u8>,
    /// From this time since boot on it is dropped instead.
    pub(super) until: Duration,
    /// Whether it was handed to the system.
    pub(super) written: Arc<AtomicBool>,
}

impl ItemLine {
    fn is_over(&self) -> bool {
        since_boot() >= self.until
    }

    fn was_written(&self) {
        self.written.store(true, Ordering::SeqCst);
    }
}

/// A file that only ever grows by whole lines.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    opened: OnceLock<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// A pipe or a terminal has no lines to look back at.
    regular: bool,
}

impl LineFile {
    /// The file there, to be opened or made for its first lines.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, opened: OnceLock::new() }
    }

    /// Opens or makes the file, and cuts a last line that lacks its end.
    pub(super) fn open(path: &Path) -> Result<Self, SinkError> {
        let this = Self::at(path.to_owned());
        this.opened()?;
        Ok(this)
    }

    fn opened(&self) -> Result<&OpenFile, SinkError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = OpenFile::open(&self.path).map_err(|e| SinkError::io("open", &self.path, e))?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// Appends whole lines: to a file all of them or none, to anything else line by line, as a pipe takes a line that isn't too
    /// long in one piece, whoever else writes to it. A line whose time is over is left out.
    pub(super) fn append(&self, lines: &[ItemLine]) -> Result<(), SinkError> {
        let OpenFile { file, regular } = self.opened()?;
        let written =
            if *regular { append_locked(file, &self.path, lines) } else { one_by_one(&mut &*file, lines) };
        written.map_err(|e| SinkError::io("write to", &self.path, e))
    }

    /// Waits until all that was appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        let synced = match self.opened.get() {
            Some(OpenFile { file, regular: true }) => file.sync_data(),
            _ => Ok(()),
        };
        synced.map_err(|e| SinkError::io("flush", &self.path, e))
    }
}

impl OpenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        // A pipe opened for reading too would never tell that its reader is gone.
        let mut how = OpenOptions::new();
        let file = how.append(true).create(!special).read(!special).open(path)?;
        if !special {
            alone(&file, || cut_torn_line(&file, path))?;
        }
        Ok(Self { file, regular: !special })
    }
}

fn append_locked(mut file: &File, path: &Path, lines: &[ItemLine]) -> io::Result<()> {
    alone(file, || {
        // Another process may have been killed in the middle of a line since the last look.
        let whole = cut_torn_line(file, path)?;
        // Looked at now: another process may have had the file for long.
        let lines: Vec<&ItemLine> = lines.iter().filter(|line| !line.is_over()).collect();
        let bytes: Vec<u8> = lines.iter().flat_map(|line| &line.bytes).copied().collect();
        let written = file.write_all(&bytes);
        match written {
            Ok(()) => lines.into_iter().for_each(ItemLine::was_written),
            Err(_) => file.set_len(whole)?,
        }
        written
    })
}

/// Works on the file while no other process does.
fn alone<T>(file: &File, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    file.lock()?;
    let worked = work();
    let _ = file.unlock();
    worked
}

/// Writes each line by itself.
pub(super) fn one_by_one(to: &mut impl Write, lines: &[ItemLine]) -> io::Result<()> {
    lines.iter().filter(|line| !line.is_over()).try_for_each(|line| {
        to.write_all(&line.bytes)?;
        line.was_written();
        Ok(())
    })
}

/// The file's length once its last line is whole.
fn cut_torn_line(file: &File, path: &Path) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let whole = whole_lines(file, length)?;
    if whole < length {
        file.set_len(whole)?;
        let (file, bytes) = (path.display(), length - whole);
        tracing::warn!(%file, bytes, "cut {bytes} bytes off the end of {file}: its writer was stopped in the middle of a line");
    }
    Ok(whole)
}

/// How many bytes of the file are whole lines; looks back from the end, a block at a time.
fn whole_lines(file: &File, length: u64) -> io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut end = length;
    // Most files end in a line's end.
    let mut size = 1;
    while end > 0 {
        let start = end.saturating_sub(size);
        let mut block = vec![0; usize::try_from(end - start).expect("a block fits into memory")];
        file.read_exact_at(&mut block, start)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        (end, size) = (start, BLOCK);
    }
    Ok(0)
}
