//! One growing WARC file: its name, its lock, its durable length. What is in it is decided elsewhere.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::ArchiveError;
use super::warc::{self, Fields};
use crate::clock::{Clock, Timestamp};

/// How a segment's name ends.
pub(super) const ENDING: &str = ".warc.gz";
/// Beside a segment that wasn't closed stands a file of its name and this: the marker, which tells the durable length.
pub(super) const MARKER: &str = ".open";

const MAX_WRITER: usize = 64;

/// A writer's name that no other process has: host, process id and some letters drawn at random.
pub fn writer_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = safe(host.trim().split('.').next().unwrap_or_default());
    let random = Uuid::new_v4().simple().to_string();
    format!("{host}-{}-{}", std::process::id(), &random[..6])
}

/// The segments of one writer, numbered.
#[derive(Debug)]
pub(super) struct Series {
    dir: PathBuf,
    writer: String,
    clock: Clock,
    made: u32,
}

impl Series {
    pub(super) fn new(dir: &Path, writer: &str, clock: Clock) -> Self {
        Self { dir: dir.to_owned(), writer: safe(writer), clock, made: 0 }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins the next segment, under a name that isn't taken.
    pub(super) fn next(&mut self) -> Result<Segment, ArchiveError> {
        loop {
            self.made += 1;
            let now = self.clock.now();
            let name = format!("{}-{}-{:05}{ENDING}", file_stamp(now), self.writer, self.made);
            match Segment::create(&self.dir, name, now) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map_err(|e| ArchiveError::io("begin a segment in", &self.dir, e)),
            }
        }
    }
}

/// A segment that this process has open, locked against all others.
#[derive(Debug)]
pub(super) struct Segment {
    name: String,
    path: PathBuf,
    file: File,
    marker: File,
    durable: u64,
    empty: bool,
    sound: bool,
}

impl Segment {
    fn create(dir: &Path, name: String, now: Timestamp) -> io::Result<Self> {
        let path = dir.join(&name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        // Locked before the marker is there: whoever finds a marker without a lock knows that the writer is dead.
        let begun =
            flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from).and_then(|()| {
                let marker = File::create(marker_of(&path))?;
                let info = warcinfo(&name, now);
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

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes are on the disk for good.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether more may be written: not after the disk refused to say what it holds.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
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

/// The marker of a segment.
pub(super) fn marker_of(segment: &Path) -> PathBuf {
    let mut name = segment.as_os_str().to_owned();
    name.push(MARKER);
    PathBuf::from(name)
}

fn warcinfo(name: &str, now: Timestamp) -> Vec<u8> {
    let block = format!(
        "software: paced/{}\r\nformat: WARC File Format 1.1\r\nconformsTo: \
         http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let fields = Fields::of("warcinfo", &warc::record_id(), &now.to_string())
        .with("WARC-Filename", name)
        .with("Content-Type", warc::WARC_FIELDS);
    let mut out = Vec::new();
    warc::append(&mut out, fields, block.as_bytes(), b"", Compression::default());
    out
}

/// `20261120T090000Z`.
fn file_stamp(now: Timestamp) -> String {
    let text = now.to_string();
    let second = text.split('.').next().unwrap_or(&text);
    format!("{}Z", second.replace(['-', ':'], ""))
}

fn safe(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().take(MAX_WRITER).map(safe).collect();
    if name.is_empty() { "paced".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writers_name_is_safe_in_a_file_name() {
        for (given, safe_name) in
            [("host-1", "host-1"), ("a/b:c d", "a-b-c-d"), ("", "paced"), ("日本", "--")]
        {
            assert_eq!(safe(given), safe_name);
        }
        assert_eq!(safe(&"x".repeat(99)).len(), MAX_WRITER);
    }

    #[test]
    fn a_segments_name_begins_with_its_start() {
        assert_eq!(file_stamp(Timestamp::from_millis(1_795_165_200_123)), "20261120T090000Z");
    }
}
