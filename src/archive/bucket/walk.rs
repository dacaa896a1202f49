//! Walking over all objects of a bucket, a few fetched ahead.

use std::collections::VecDeque;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;

use super::Bucket;
use crate::archive::ArchiveError;
use crate::archive::names::ENDING;
use crate::archive::store::{OpenSegment, Segments};

/// So many objects are on their way at once.
const AHEAD: usize = 8;

/// All segments of the bucket.
pub(super) fn over(bucket: Arc<Bucket>) -> Result<Segments, ArchiveError> {
    let names = names(&bucket)?.into_iter();
    Ok(Box::new(ObjectsAhead { bucket, names, ahead: VecDeque::new() }))
}

/// The names of all segments, in order; what lies deeper is somebody else's.
fn names(bucket: &Bucket) -> Result<Vec<String>, ArchiveError> {
    let (mut names, mut options) = (Vec::new(), PaginatedListOptions::default());
    loop {
        let page = bucket.list("list", &bucket.patient, options)?;
        names.extend(page.objects.into_iter().map(|(name, _)| name));
        if page.more.is_none() {
            break;
        }
        options = PaginatedListOptions { page_token: page.more, ..PaginatedListOptions::default() };
    }
    names.retain(|name| name.ends_with(ENDING) && !name.contains('/'));
    names.sort();
    Ok(names)
}

struct ObjectsAhead {
    bucket: Arc<Bucket>,
    names: std::vec::IntoIter<String>,
    ahead: VecDeque<(String, Receiver<Result<Bytes, object_store::Error>>)>,
}

impl ObjectsAhead {
    fn fetch_ahead(&mut self) {
        while self.ahead.len() < AHEAD {
            let Some(name) = self.names.next() else { return };
            let Some(key) = self.bucket.key(&name) else { continue };
            let client = self.bucket.patient.clone();
            let coming = self.bucket.begin(async move { client.get(&key).await?.bytes().await });
            self.ahead.push_back((name, coming));
        }
    }
}

impl Iterator for ObjectsAhead {
    type Item = Result<OpenSegment, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.fetch_ahead();
            let (name, coming) = self.ahead.pop_front()?;
            match self.bucket.answer("read from", &coming) {
                Ok(Some(bytes)) => {
                    let path = PathBuf::from(format!("{}/{name}", self.bucket.location));
                    return Some(Ok(OpenSegment::new(name, path, Cursor::new(bytes), None)));
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
