//! Writing to a bucket: one object a commit, each a WARC file of its own.

use std::sync::Arc;
use std::time::Duration;

use object_store::{ObjectStoreExt, PutPayload};

use super::Bucket;
use crate::archive::names::SegmentNames;
use crate::archive::store::{CommitRule, Log};
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
    names: SegmentNames,
}

impl BucketLog {
    pub(in crate::archive) fn new(bucket: Arc<Bucket>, names: SegmentNames) -> Self {
        Self { bucket, names }
    }
}

impl Log for BucketLog {
    fn due(&self) -> CommitRule {
        COMMITS
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
        let put =
            self.bucket.ask("write to", async move { client.put(&key, PutPayload::from(object)).await });
        put?.ok_or_else(|| self.bucket.broke("write to"))?;
        self.bucket.sizes.put([(name.clone(), size)]);
        Ok((name, start))
    }

    /// Every object is finished as it is written.
    fn close(&mut self) -> Result<(), ArchiveError> {
        Ok(())
    }
}

const COMMITS: CommitRule =
    CommitRule { pages: usize::MAX, bytes: BYTES, not_before: None, longest: LONGEST, quiet: QUIET };

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_commit_is_due_after_a_quiet_half_second_or_five_seconds() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        for (last, expected) in [(0, 500), (300, 800), (4_400, 4_900), (4_600, 5_000), (9_000, 5_000)] {
            assert_eq!(COMMITS.at(start, ms(last)), ms(expected), "last at {last} ms");
        }
    }
}
