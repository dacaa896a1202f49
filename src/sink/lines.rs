//! A file of whole lines that several processes append to. What a line says is not known here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::SinkError;

/// A file that only ever grows by whole lines.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: File,
    /// A pipe or a terminal has no lines to look back at.
    regular: bool,
}

impl LineFile {
    /// Opens or makes the file, and cuts a last line that lacks its end.
    pub(super) fn open(path: &Path) -> Result<Self, SinkError> {
        let failed = |e| SinkError::io("open", path, e);
        let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        // A pipe opened for reading too would never tell that its reader is gone.
        let mut how = OpenOptions::new();
        how.append(true).create(!special).read(!special);
        let file = how.open(path).map_err(failed)?;
        let this = Self { path: path.to_owned(), file, regular: !special };
        if this.regular {
            let _lock = Lock::on(&this.file).map_err(failed)?;
            this.cut_torn_line().map_err(failed)?;
        }
        Ok(this)
    }

    /// Appends whole lines, all of them or none.
    pub(super) fn append(&self, lines: &[u8]) -> Result<(), SinkError> {
        let written = if self.regular { self.append_locked(lines) } else { (&self.file).write_all(lines) };
        written.map_err(|e| SinkError::io("write to", &self.path, e))
    }

    fn append_locked(&self, lines: &[u8]) -> io::Result<()> {
        let _lock = Lock::on(&self.file)?;
        // Another process may have been killed in the middle of a line since the last look.
        let whole = self.cut_torn_line()?;
        let written = (&self.file).write_all(lines);
        if written.is_err() {
            self.file.set_len(whole)?;
        }
        written
    }

    /// The file's length once its last line is whole.
    fn cut_torn_line(&self) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        let whole = whole_lines(&self.file, length)?;
        if whole < length {
            self.file.set_len(whole)?;
            let (file, bytes) = (self.path.display(), length - whole);
            tracing::warn!(%file, bytes, "cut {bytes} bytes off the end of {file}: its writer was stopped in the middle of a line");
        }
        Ok(whole)
    }

    /// Waits until all that was appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        if !self.regular {
            return Ok(());
        }
        self.file.sync_data().map_err(|e| SinkError::io("flush", &self.path, e))
    }
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

/// The file's lock, for as long as this lives.
struct Lock<'a>(&'a File);

impl<'a> Lock<'a> {
    fn on(file: &'a File) -> io::Result<Self> {
        loop {
            match flock(file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
