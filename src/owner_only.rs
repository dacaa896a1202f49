//! Files and folders that their owner alone may read, whatever the umask: what is known, what was fetched, and keys.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// How to open a file that, if it is made by this, is its owner's alone. One that is there keeps its rights.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// Makes the folder, if it is missing, as its owner's alone. Folders above it get the rights of the umask.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if let Some(above) = above(folder) {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER).create(folder) {
        Err(_) if folder.is_dir() => Ok(()),
        made => made,
    }
}

/// The same for a folder in a data folder, which may be missing as well.
pub fn make_with_data_folder(folder: &Path) -> io::Result<()> {
    above(folder).map_or(Ok(()), make_folder)?;
    make_folder(folder)
}

fn above(folder: &Path) -> Option<&Path> {
    folder.parent().filter(|above| !above.as_os_str().is_empty())
}
