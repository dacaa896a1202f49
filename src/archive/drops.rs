//! Answers of a folder that are to go (`noarchive`) although their segment may still be written to: a list beside it, which is
//! worked off when it is finished.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::erase::blank_for;
use super::folder::Folder;
use super::segment::marker_of;
use super::store::Store;
use super::{ArchiveError, Place, stored};
use crate::clock::Timestamp;

/// Beside a segment with answers that are to go stands a file of its name and this: a line of offset and length each.
const LIST: &str = ".drop";

/// Puts an answer on the list of its segment, for good.
pub(super) fn note(dir: &Path, place: &Place) -> Result<(), ArchiveError> {
    let list = dir.join(format!("{}{LIST}", place.segment()));
    let noted = || {
        loop {
            let mut file = OpenOptions::new().create(true).append(true).open(&list)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let list = file.metadata()?;
            // Else it was worked off before the lock was ours.
            if list.nlink() > 0 {
                file.write_all(format!("{}:{}\n", place.offset(), place.length()).as_bytes())?;
                file.sync_data()?;
                return if list.len() == 0 { File::open(dir)?.sync_all() } else { Ok(()) };
            }
        }
    };
    noted().map_err(|e: io::Error| ArchiveError::io("write to", &list, e))
}

/// Drops what is on the lists of finished segments. A list that another process works off is left to it.
pub(super) fn work_off(folder: &Folder, dir: &Path, now: Timestamp) -> Result<(), ArchiveError> {
    let entries = fs::read_dir(dir).map_err(|e| ArchiveError::io("list", dir, e))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let segments = names.filter_map(|name| name.strip_suffix(LIST).map(str::to_owned));
    let finished = segments.filter(|segment| !marker_of(&dir.join(segment)).exists());
    // The others needn't wait until one is mended.
    finished.map(|segment| work_off_one(folder, dir, &segment, now)).fold(Ok(()), Result::and)
}

fn work_off_one(folder: &Folder, dir: &Path, segment: &str, now: Timestamp) -> Result<(), ArchiveError> {
    let list = dir.join(format!("{segment}{LIST}"));
    let Some(told) = locked(&list).map_err(|e| ArchiveError::io("read", &list, e))? else { return Ok(()) };
    drop_all(folder, segment, &told.text, now)?;
    fs::remove_file(&list).map_err(|e| ArchiveError::io("remove", &list, e))
}

/// A list that nobody else may write to or work off.
struct Locked {
    text: String,
    _lock: File,
}

fn locked(list: &Path) -> io::Result<Option<Locked>> {
    let file = match File::open(list) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let is_ours = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !is_ours || file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&fs::read(list)?).into_owned();
    Ok(Some(Locked { text, _lock: file }))
}

fn drop_all(folder: &Folder, segment: &str, told: &str, now: Timestamp) -> Result<(), ArchiveError> {
    let listed = told.lines().filter_map(|line| format!("{segment}:{line}").parse::<Place>().ok());
    let mut going: Vec<Place> = Vec::new();
    for place in listed {
        if is_whole_answer(folder, &place)? {
            going.push(place);
        }
    }
    going.sort();
    going.dedup();
    if going.is_empty() {
        return Ok(());
    }
    let ranges: Vec<_> = going.iter().map(|place| place.offset()..place.end()).collect();
    folder.overwrite(segment, &ranges, &|range| {
        // Looked at once more: only now can nobody else change the segment.
        let record = folder.record(&Place::new(segment, range.start, range.end - range.start))?;
        match stored::status_of_whole(&record) {
            None => Ok(record.to_vec()),
            status => blank_for(segment, range, now, status),
        }
    })
}

/// A torn line leads anywhere, and what was dropped before needn't go once more.
fn is_whole_answer(folder: &Folder, place: &Place) -> Result<bool, ArchiveError> {
    match folder.record(place) {
        Ok(record) => Ok(stored::status_of_whole(&record).is_some()),
        Err(ArchiveError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
