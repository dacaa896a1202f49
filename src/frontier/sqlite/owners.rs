//! Who is alive on this machine: a process is, while it holds the lock on its owner file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::owner_only;

/// The locked file of a process; the lock ends with the process, however it ends.
#[derive(Debug)]
pub(crate) struct OwnerFile {
    path: PathBuf,
    _locked: File,
}

impl OwnerFile {
    /// Makes and locks the file of `owner`, beside the frontier at `frontier`.
    pub(crate) fn lock(frontier: &Path, owner: &str) -> io::Result<Self> {
        let path = file_of(frontier, owner);
        if let Some(folder) = path.parent() {
            owner_only::make_folder(folder)?;
        }
        let file = owner_only::options().write(true).create(true).truncate(true).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // For people: who stands against the upgrade of a newer version.
        write!(&file, "pid {}, paced {}", std::process::id(), env!("CARGO_PKG_VERSION"))?;
        Ok(Self { path, _locked: file })
    }

    /// Whether nobody holds the lock of `owner`: its process is gone.
    pub(crate) fn is_free(frontier: &Path, owner: &str) -> bool {
        match File::open(file_of(frontier, owner)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// A process that works on the frontier: its name, and what else its file tells.
    pub(super) fn any_held(frontier: &Path) -> Option<String> {
        let files = fs::read_dir(folder_of(frontier)).into_iter().flatten().flatten();
        let mut owners = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let held = owners.find(|owner| !Self::is_free(frontier, owner))?;
        match fs::read_to_string(file_of(frontier, &held)) {
            Ok(told) if !told.is_empty() => Some(format!("{held} ({told})")),
            _ => Some(held),
        }
    }

    /// Removes the file of a process that is gone.
    pub(crate) fn clear(frontier: &Path, owner: &str) {
        let _ = fs::remove_file(file_of(frontier, owner));
    }
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn file_of(frontier: &Path, owner: &str) -> PathBuf {
    folder_of(frontier).join(owner)
}

fn folder_of(frontier: &Path) -> PathBuf {
    let mut folder = frontier.as_os_str().to_owned();
    folder.push(".owners");
    PathBuf::from(folder)
}
