//! The name of one process among several that write items into one folder, held for as long as it runs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::SinkError;

/// A writer's name, which nobody else can take in this folder meanwhile.
#[derive(Debug)]
pub(super) struct WriterName {
    name: String,
    path: PathBuf,
    _locked: File,
}

impl WriterName {
    /// Takes the name, unless a process that runs has it.
    pub(super) fn take(dir: &Path, name: &str) -> Result<Self, SinkError> {
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(SinkError::Name(name.to_owned()));
        }
        let path = dir.join(format!(".{name}.lock"));
        loop {
            let file = File::create(&path).map_err(|e| SinkError::io("make", &path, e))?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(SinkError::Taken { writer: name.to_owned(), folder: dir.to_owned() });
                }
                Err(TryLockError::Error(error)) => return Err(SinkError::io("lock", &path, error)),
                // Who had the name before may have taken its file away between the two steps.
                Ok(()) if is_still_there(&file, &path) => {
                    return Ok(Self { name: name.to_owned(), path, _locked: file });
                }
                Ok(()) => {}
            }
        }
    }

    /// The file of a site's items.
    pub(super) fn file_of(&self, site: &str) -> String {
        format!("{site}{}", self.ending())
    }

    /// How the names of its files end.
    pub(super) fn ending(&self) -> String {
        format!("-{}.jsonl", self.name)
    }
}

impl Drop for WriterName {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_still_there(file: &File, path: &Path) -> bool {
    let same = || -> io::Result<bool> { Ok(file.metadata()?.ino() == fs::metadata(path)?.ino()) };
    same().unwrap_or(false)
}
