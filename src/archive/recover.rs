//! Mending what killed processes left: torn tails are cut, unfinished copies removed. Segments that were closed, or are
//! locked, are not looked into. What can't be mended is named and holds nobody up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use super::ArchiveError;
use super::folder::COPY;
use super::member::CountingReader;
use super::names::ENDING;
use super::segment::{MARKER, found, marker_of, names_in};

/// Beside a segment from which an older build was to drop answers stands a list of its name and this.
const DROPS: &str = ".drop";

/// Cuts every segment of the folder that was left open by a process that is gone.
pub(super) fn torn_tails(dir: &Path) -> Result<(), ArchiveError> {
    for marker in beside_segments(dir, MARKER)? {
        let segment = marker.with_extension("");
        if let Err(error) = mend(&segment) {
            let segment = segment.display();
            tracing::warn!(%segment, %error, "could not check the end of {segment}: {error}; what is whole in it is still read");
        }
    }
    Ok(())
}

/// Removes unfinished copies and the lists of an older build. While another process erases, they stay for the next start.
pub(super) fn leftovers(dir: &Path) -> Result<(), ArchiveError> {
    let alone = File::open(dir).map_err(|e| ArchiveError::io("open", dir, e))?;
    if alone.try_lock().is_err() {
        return Ok(());
    }
    for file in [beside_segments(dir, COPY)?, beside_segments(dir, DROPS)?].concat() {
        if let Err(error) = found(fs::remove_file(&file)) {
            let file = file.display();
            tracing::warn!(%file, %error, "could not remove {file}: {error}; nothing needs it any more");
        }
    }
    Ok(())
}

/// The files whose names are those of segments and then `ending`.
fn beside_segments(dir: &Path, ending: &str) -> Result<Vec<PathBuf>, ArchiveError> {
    let names = names_in(dir, &[&format!("{ENDING}{ending}")])?;
    Ok(names.iter().map(|name| dir.join(name)).collect())
}

fn mend(segment: &Path) -> io::Result<()> {
    let marker = marker_of(segment);
    let Some(file) = found(OpenOptions::new().read(true).write(true).open(segment))? else {
        return found(fs::remove_file(marker)).map(drop);
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    // Its writer may have closed it between the two looks.
    let Some(told) = found(fs::read_to_string(&marker))? else { return Ok(()) };
    let length = file.metadata()?.len();
    let whole = whole_length(&file, durable(&told, length))?;
    if whole < length {
        tracing::warn!(
            segment = %segment.display(),
            bytes = length - whole,
            "cut {} bytes off the end of {}: its writer was stopped in the middle of a record",
            length - whole,
            segment.display()
        );
        file.set_len(whole)?;
        file.sync_data()?;
    }
    if whole == 0 {
        fs::remove_file(segment)?;
    }
    fs::remove_file(marker)
}

/// What the marker tells: the file is whole up to there. A marker that can't be read tells nothing.
fn durable(told: &str, length: u64) -> u64 {
    let whole_line = told.len() == 21 && told.ends_with('\n');
    let told = if whole_line { told.trim_end().parse().unwrap_or(0) } else { 0 };
    if told <= length { told } else { 0 }
}

/// How far the file is whole, `from` being the beginning of a record or the end.
fn whole_length(file: &File, from: u64) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    reader.seek(SeekFrom::Start(from))?;
    let mut records = CountingReader { inner: reader, at: from };
    let mut whole = from;
    while !records.is_at_end()? {
        match io::copy(&mut GzDecoder::new(&mut records), &mut io::sink()) {
            Ok(_) => whole = records.at,
            Err(e) if is_torn(&e) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(whole)
}

/// The bytes don't make a member, as opposed to: they could not be read.
pub(super) fn is_torn(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidInput | InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_believed_only_where_it_is_whole() {
        for (told, length, from) in [
            ("00000000000000000100\n", 100, 100),
            ("00000000000000000100\n", 250, 100),
            ("00000000000000000100\n", 99, 0),
            ("0000000000000000010", 250, 0),
            ("", 250, 0),
            ("\0\0\0", 250, 0),
        ] {
            assert_eq!(durable(told, length), from, "{told:?} of {length}");
        }
    }
}
