//! Pages in a local folder: a growing segment a writer, and records read where they are.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::names::{ENDING, SegmentNames};
use super::segment::{Segment, found, marker_of, names_in};
use super::store::{CommitRule, Log, OpenSegment, Patches, Segments, Store};
use super::{ArchiveError, RecordPlace};

/// Two commits to a folder are so far apart at least, unless [`COMMIT_PAGES`] are waiting: the first page after a pause
/// is durable at once, and in a stream no page waits longer than this.
pub const COMMIT_WAIT: Duration = Duration::from_millis(50);
/// One commit to a folder keeps so many visits at most.
pub const COMMIT_PAGES: usize = 64;

/// Beside a segment that is being erased from stands a file of its name and this: the copy that takes its place.
pub(super) const COPY: &str = ".erasing";

/// A folder of segments.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    dir: PathBuf,
}

impl Folder {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    fn sync(&self) -> Result<(), ArchiveError> {
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(|e| ArchiveError::io("write to", &self.dir, e))
    }

    /// Finished segments are changed by one process at a time, for as long as this is held.
    fn alone(&self) -> io::Result<File> {
        let dir = File::open(&self.dir)?;
        dir.lock()?;
        Ok(dir)
    }
}

impl Store for Folder {
    fn read(&self, place: &RecordPlace, most: u64) -> Result<Bytes, ArchiveError> {
        let path = self.dir.join(place.segment());
        let missing = || ArchiveError::Missing { place: place.clone() };
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => missing(),
            _ => ArchiveError::io("read", &path, e),
        };
        let file = File::open(&path).map_err(failed)?;
        // The length comes from a database: it must not ask for more memory than there is file.
        if file.metadata().map_err(failed)?.len() < place.end() {
            return Err(missing());
        }
        let mut bytes = vec![0; usize::try_from(place.length().min(most)).map_err(|_| missing())?];
        file.read_exact_at(&mut bytes, place.offset()).map_err(failed)?;
        Ok(bytes.into())
    }

    /// Looks at the file's length, not into it.
    fn has(&self, place: &RecordPlace) -> bool {
        fs::metadata(self.dir.join(place.segment())).is_ok_and(|file| file.len() >= place.end())
    }

    fn grows(&self) -> bool {
        true
    }

    /// In a copy, which then takes its place.
    fn overwrite(&self, segment: &str, patches: &Patches<'_>) -> Result<(), ArchiveError> {
        let (path, copy) = (self.dir.join(segment), self.dir.join(format!("{segment}{COPY}")));
        let failed = |e| ArchiveError::io("write to", &copy, e);
        let _alone = self.alone().map_err(failed)?;
        let write = || {
            fs::copy(&path, &copy).map_err(failed)?;
            let file = File::options().write(true).open(&copy).map_err(failed)?;
            for range in patches.ranges {
                file.write_all_at(&(patches.bytes)(range)?, range.start).map_err(failed)?;
            }
            file.sync_all().and_then(|()| fs::rename(&copy, &path)).map_err(failed)
        };
        write().inspect_err(|_| drop(fs::remove_file(&copy)))?;
        self.sync()
    }

    fn remove(&self, segment: &str) -> Result<(), ArchiveError> {
        let path = self.dir.join(segment);
        let removed = self.alone().and_then(|_alone| fs::remove_file(&path));
        removed.map_err(|e| ArchiveError::io("remove", &path, e))?;
        self.sync()
    }

    fn segments(self: Arc<Self>) -> Result<Segments, ArchiveError> {
        // Ours are all packed; who puts another program's file here may have it plain.
        let names = names_in(&self.dir, &[ENDING, ".warc"])?;
        let dir = self.dir.clone();
        Ok(Box::new(names.into_iter().filter_map(move |name| open(&dir, name).transpose())))
    }
}

/// Opens a segment, unless it is gone by now.
fn open(dir: &Path, name: String) -> Result<Option<OpenSegment>, ArchiveError> {
    let path = dir.join(&name);
    let file = found(File::open(&path)).map_err(|e| ArchiveError::io("open", &path, e))?;
    let bytes = file.map(|file| BufReader::with_capacity(64 * 1024, file));
    let marker = Some(marker_of(&path));
    Ok(bytes.map(|bytes| OpenSegment::new(name, path, bytes, marker)))
}

/// Writes into one growing segment of a folder, and into the next when it is full.
#[derive(Debug)]
pub(super) struct FolderLog {
    dir: PathBuf,
    names: SegmentNames,
    segment: Option<Segment>,
    segment_bytes: u64,
    committed_at: Option<Instant>,
}

impl FolderLog {
    pub(super) fn new(dir: &Path, names: SegmentNames, segment_bytes: u64) -> Self {
        Self { dir: dir.to_owned(), names, segment: None, segment_bytes, committed_at: None }
    }

    fn write(&mut self, parts: &[&[u8]]) -> Result<(String, u64), ArchiveError> {
        let mut segment = self.growing_segment()?;
        let written = segment.append(parts).map_err(|e| ArchiveError::io("write to", &segment.path, e));
        let name = segment.name.clone();
        // An unsound one is let go with its marker, so that its end is checked at the next start.
        if segment.sound {
            self.segment = Some(segment);
        }
        Ok((name, written?))
    }

    fn growing_segment(&mut self) -> Result<Segment, ArchiveError> {
        match self.segment.take() {
            Some(segment) if segment.durable < self.segment_bytes => return Ok(segment),
            full => self.segment = full,
        }
        if let Err(error) = self.finish_segment() {
            tracing::warn!("{error}");
        }
        self.next_segment()
    }

    fn finish_segment(&mut self) -> Result<(), ArchiveError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        segment.close().map_err(|e| ArchiveError::io("close a segment in", &self.dir, e))
    }

    /// Begins the next segment, under a name that isn't taken.
    fn next_segment(&mut self) -> Result<Segment, ArchiveError> {
        loop {
            let (name, now) = self.names.next();
            match Segment::create(&self.dir, name, now) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map_err(|e| ArchiveError::io("begin a segment in", &self.dir, e)),
            }
        }
    }
}

impl Log for FolderLog {
    fn due(&self) -> CommitRule {
        let not_before = self.committed_at.map(|at| at + COMMIT_WAIT);
        CommitRule {
            pages: COMMIT_PAGES,
            bytes: usize::MAX,
            not_before,
            longest: Duration::ZERO,
            quiet: Duration::ZERO,
        }
    }

    fn append(&mut self, parts: &[&[u8]]) -> Result<(String, u64), ArchiveError> {
        let written = self.write(parts);
        self.committed_at = Some(Instant::now());
        written
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        self.finish_segment()
    }
}
