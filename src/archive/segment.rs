//! One growing WARC file: its name, its lock, its durable length. What is in it is decided elsewhere.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{ArchiveError, warc};
use crate::clock::Timestamp;
use crate::owner_only;

/// Beside a segment that wasn't closed stands a file of its name and this: the marker, which tells the durable length.
pub(super) const MARKER: &str = ".open";

/// A segment that this process has open, locked against all others.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) path: PathBuf,
    file: File,
    marker: File,
    /// How many bytes are on the disk for good.
    pub(super) durable: u64,
    empty: bool,
    /// Whether more may be written: not after the disk refused to say what it holds.
    pub(super) sound: bool,
}

impl Segment {
    /// Makes the file, locked and begun.
    pub(super) fn create(dir: &Path, name: String, now: Timestamp) -> io::Result<Self> {
        let path = dir.join(&name);
        let file = owner_only::options().write(true).create_new(true).open(&path)?;
        // Locked before the marker is there: whoever finds a marker without a lock knows that the writer is dead.
        let begun = file.try_lock().map_err(io::Error::from).and_then(|()| {
            let marker =
                owner_only::options().write(true).create(true).truncate(true).open(marker_of(&path))?;
            let info = warc::info(&name, now);
            let mut segment =
                Self { name, path: path.clone(), file, marker, durable: 0, empty: true, sound: true };
            segment.tell_durable()?;
            segment.append(&[&info])?;
            segment.marker.sync_data()?;
            File::open(dir)?.sync_all()?;
            segment.empty = true;
            Ok(segment)
        });
        if begun.is_err() {
            let _ = fs::remove_file(marker_of(&path));
            let _ = fs::remove_file(&path);
        }
        begun
    }

    /// Writes all parts and makes them durable at once; returns where the first of them begins. On an error the file
    /// is as it was before.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> io::Result<u64> {
        let start = self.durable;
        let written = self.write(parts);
        match written {
            Ok(end) => self.durable = end,
            Err(error) => {
                self.cut_back();
                return Err(error);
            }
        }
        self.empty = false;
        if let Err(error) = self.tell_durable() {
            tracing::debug!(segment = self.name, %error, "could not note the durable length");
        }
        Ok(start)
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<u64> {
        let mut at = self.durable;
        for part in parts {
            self.file.write_all_at(part, at)?;
            at += part.len() as u64;
        }
        // A second try may succeed without the lost bytes being there, so there is none.
        self.file.sync_data().inspect_err(|_| self.sound = false)?;
        Ok(at)
    }

    fn cut_back(&mut self) {
        if let Err(error) = self.file.set_len(self.durable) {
            self.sound = false;
            tracing::warn!(segment = self.name, %error, "could not cut off a commit that failed; going on in a new segment");
        }
    }

    fn tell_durable(&self) -> io::Result<()> {
        self.marker.write_all_at(format!("{:020}\n", self.durable).as_bytes(), 0)
    }

    /// Ends the segment: without its marker it is never checked again. One without pages is removed.
    pub(super) fn close(self) -> io::Result<()> {
        if self.empty {
            fs::remove_file(&self.path)?;
        }
        fs::remove_file(marker_of(&self.path))
    }
}

/// What is there; none where there is nothing.
pub(super) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The names of all files in a folder whose names end so, in order; a folder that is missing holds nothing.
pub(super) fn names_in(dir: &Path, endings: &[&str]) -> Result<Vec<String>, ArchiveError> {
    let listed = found(fs::read_dir(dir)).and_then(|entries| {
        let entries = entries.into_iter().flatten();
        entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()
    });
    let listed = listed.map_err(|e| ArchiveError::io("list", dir, e))?;
    let mut names: Vec<String> = listed.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| endings.iter().any(|ending| name.ends_with(ending)));
    names.sort();
    Ok(names)
}

/// The marker of a segment.
pub(super) fn marker_of(segment: &Path) -> PathBuf {
    let mut name = segment.as_os_str().to_owned();
    name.push(MARKER);
    PathBuf::from(name)
}
