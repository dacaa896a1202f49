//! Writing to a bucket: one object a commit, each a WARC file of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::{ObjectStoreExt, PutPayload};

use super::Bucket;
use crate::archive::names::Names;
use crate::archive::store::{Gathered, Log};
use crate::archive::{ArchiveError, warc};

/// A commit is due so long after its first page.
const LONGEST: Duration = Duration::from_secs(5);
/// It is due sooner where no page came for so long: whoever waits for it is not to wait for nothing.
const QUIET: Duration = Duration::from_millis(500);
/// It is due at once when it has so many bytes.
const BYTES: usize = 16 * 1024 * 1024;

/// Writes commits, one after another.
#[derive(Debug)]
pub(in crate::archive) struct BucketLog {
    bucket: Arc<Bucket>,
    names: Names,
}

impl BucketLog {
    pub(in crate::archive) fn new(bucket: Arc<Bucket>, names: Names) -> Self {
        Self { bucket, names }
    }
}

impl Log for BucketLog {
    fn due(&self, gathered: &Gathered) -> Option<Instant> {
        due(gathered)
    }

    fn append(&mut self, parts: &[&[u8]]) -> Result<(String, u64), ArchiveError> {
        let (name, now) = self.names.next();
        let mut object = warc::info(&name, now);
        let start = object.len() as u64;
        for part in parts {
            object.extend_from_slice(part);
        }
        let size = object.len() as u64;
        let key = self.bucket.key(&name).ok_or_else(|| self.bucket.broke("name an object of"))?;
        let client = self.bucket.patient.clone();
        match self.bucket.wait(async move { client.put(&key, PutPayload::from(object)).await }) {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(self.bucket.error("write to", &error)),
            None => return Err(self.bucket.broke("write to")),
        }
        self.bucket.sizes.learn(&name, size);
        Ok((name, start))
    }

    /// Every object is finished as it is written, but for what is to go.
    fn close(&mut self) -> Result<(), ArchiveError> {
        self.bucket.drop_those_waiting_for(Duration::ZERO, self.names.now())
    }
}

fn due(gathered: &Gathered) -> Option<Instant> {
    let due = (gathered.first + LONGEST).min(gathered.last + QUIET);
    (gathered.bytes < BYTES).then_some(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_due_after_a_quiet_half_second_or_five_seconds_or_sixteen_mebibytes() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        for (last, bytes, expected) in [
            (0, 1, Some(500)),
            (300, 1, Some(800)),
            (4_400, 1, Some(4_900)),
            (4_600, 1, Some(5_000)),
            (9_000, 1, Some(5_000)),
            (4_600, BYTES - 1, Some(5_000)),
            (0, BYTES, None),
        ] {
            let gathered = Gathered { pages: 3, bytes, first: start, last: ms(last) };
            assert_eq!(due(&gathered), expected.map(ms), "last at {last} ms, {bytes} bytes");
        }
    }
}
