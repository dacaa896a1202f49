//! Pages in a bucket of object storage: each commit is one object, a record is one ranged read. The protocol is that of
//! S3; credentials, region and endpoint come from the usual `AWS_` variables.

mod fault;
mod log;
mod sizes;
mod walk;

pub(super) use log::BucketLog;

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    RetryConfig, UpdateVersion,
};
use tokio::runtime::Runtime;

use super::store::{Patches, Segments, Store};
use super::{ArchiveError, Location, RecordPlace};
use crate::fetch::install_tls;
use crate::patience::Patience;
use sizes::Sizes;

/// The longest that one request may take: a whole object over a slow line. One that fails for a passing reason is made again
/// for so long, too, with growing pauses and jitter.
const REQUEST: Duration = Duration::from_mins(1);
/// The same for a question, whose answer is short.
const QUESTION: Duration = Duration::from_secs(3);
/// The longest pause before a request is made again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An object that others change meanwhile is put anew for so long.
const CONFLICTS: Patience =
    Patience::new(Duration::from_millis(50), Duration::from_millis(500)).at_most(Duration::from_secs(10));

/// A bucket, and what the names in it begin with.
#[derive(Debug)]
pub(super) struct Bucket {
    location: Location,
    prefix: String,
    /// Tries again for a minute.
    patient: AmazonS3,
    /// Gives up soon.
    brisk: AmazonS3,
    sizes: Sizes,
    /// Makes the requests, on a thread of its own: whoever waits for one may be on any thread.
    runtime: Option<Runtime>,
}

impl Bucket {
    /// A bucket that is there and lets us in.
    pub(super) fn open(location: &Location) -> Result<Self, ArchiveError> {
        let bucket = Self::new(location)?;
        let one = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        bucket.list("open", &bucket.brisk, one)?;
        Ok(bucket)
    }

    fn new(location: &Location) -> Result<Self, ArchiveError> {
        let refused = |why: &dyn Display| ArchiveError::bucket("open", location, why);
        let Location::Bucket { bucket, prefix } = location else {
            return Err(refused(&"this is no bucket"));
        };
        install_tls();
        if let Some(why) = fault::wrong_settings() {
            return Err(refused(&why));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bucket")
            .enable_all()
            .build()
            .map_err(|e| refused(&e))?;
        Ok(Self {
            location: location.clone(),
            prefix: if prefix.is_empty() { String::new() } else { format!("{prefix}/") },
            patient: client(bucket, usize::MAX, REQUEST).map_err(|e| refused(&fault::why(&e)))?,
            brisk: client(bucket, 2, QUESTION).map_err(|e| refused(&fault::why(&e)))?,
            sizes: Sizes::default(),
            runtime: Some(runtime),
        })
    }

    /// Begins a piece of work; its result comes through the receiver.
    fn begin<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Receiver<T> {
        let (tell, told) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                let _ = tell.send(work.await);
            });
        }
        told
    }

    /// Waits for the answer to a request; none where there is no such object.
    fn answer<T>(
        &self,
        doing: &'static str,
        coming: &Receiver<object_store::Result<T>>,
    ) -> Result<Option<T>, ArchiveError> {
        match coming.recv() {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) if fault::is_missing(&error) => Ok(None),
            Ok(Err(error)) => Err(self.error(doing, &error)),
            Err(_) => Err(self.broke(doing)),
        }
    }

    /// Makes a request and waits for its answer.
    fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<Option<T>, ArchiveError> {
        self.answer(doing, &self.begin(request))
    }

    fn error(&self, doing: &'static str, error: &object_store::Error) -> ArchiveError {
        ArchiveError::Bucket {
            doing,
            location: self.location.to_string(),
            why: fault::why(error),
            passing: fault::is_passing(error),
        }
    }

    fn broke(&self, doing: &'static str) -> ArchiveError {
        ArchiveError::bucket(doing, &self.location, "the request broke")
    }

    /// The key of a segment; none where its name can't be one.
    fn key(&self, segment: &str) -> Option<Path> {
        Path::parse(format!("{}{segment}", self.prefix)).ok()
    }

    /// A whole object, and which version of it that is; nothing where it was removed.
    fn get(&self, key: &Path) -> Result<Option<(Vec<u8>, UpdateVersion)>, ArchiveError> {
        let (client, key) = (self.patient.clone(), key.clone());
        self.ask("read from", async move {
            let got = client.get(&key).await?;
            let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            Ok((got.bytes().await?.to_vec(), version))
        })
    }

    /// Puts an object in the place of a version of it; whether it was that version still.
    fn replace(&self, key: &Path, object: Vec<u8>, version: UpdateVersion) -> Result<bool, ArchiveError> {
        let (client, key) = (self.patient.clone(), key.clone());
        let mode = PutMode::Update(version);
        let replaced = self.ask("write to", async move {
            match client.put_opts(&key, PutPayload::from(object), mode.into()).await {
                Err(object_store::Error::Precondition { .. }) => Ok(false),
                put => put.map(|_| true),
            }
        });
        Ok(replaced?.unwrap_or(false))
    }

    /// Lists objects in the order of their names: one request.
    fn list(
        &self,
        doing: &'static str,
        client: &AmazonS3,
        options: PaginatedListOptions,
    ) -> Result<Listing, ArchiveError> {
        let (client, prefix) = (client.clone(), self.prefix.clone());
        let listed = self.ask(doing, async move {
            let prefix = (!prefix.is_empty()).then_some(prefix);
            client.list_paginated(prefix.as_deref(), options).await
        });
        let page = listed?.ok_or_else(|| self.broke(doing))?;
        let named = |object: &ObjectMeta| {
            let name = object.location.as_ref().strip_prefix(&self.prefix)?;
            Some((name.to_owned(), object.size))
        };
        Ok(Listing { objects: page.result.objects.iter().filter_map(named).collect(), more: page.page_token })
    }
}

fn fill(object: &mut [u8], range: &Range<u64>, filling: &[u8]) -> Option<()> {
    let at = usize::try_from(range.start).ok()?;
    object.get_mut(at..)?.get_mut(..filling.len())?.copy_from_slice(filling);
    Some(())
}

/// Objects by name, with their sizes.
struct Listing {
    objects: Vec<(String, u64)>,
    /// What the next request is to say, where there are more.
    more: Option<String>,
}

impl Store for Bucket {
    fn read(&self, place: &RecordPlace, most: u64) -> Result<Bytes, ArchiveError> {
        let missing = || ArchiveError::Missing { place: place.clone() };
        let length = place.length().min(most);
        let end =
            place.offset().checked_add(length).filter(|end| *end > place.offset()).ok_or_else(missing)?;
        let key = self.key(place.segment()).ok_or_else(missing)?;
        let (client, from) = (self.patient.clone(), place.offset());
        let read = self.ask("read from", async move { client.get_range(&key, from..end).await })?;
        read.filter(|bytes| bytes.len() as u64 == length).ok_or_else(missing)
    }

    fn has(&self, place: &RecordPlace) -> bool {
        place.length() > 0 && self.sizes.of(place.segment(), self) >= place.end()
    }

    fn grows(&self) -> bool {
        false
    }

    /// An object is put anew as a whole; again, where somebody else has changed it meanwhile. One that was removed stays so.
    fn overwrite(&self, segment: &str, patches: &Patches<'_>) -> Result<(), ArchiveError> {
        let key = self.key(segment).ok_or_else(|| self.broke("name an object of"))?;
        let mut tries = CONFLICTS.begin();
        loop {
            let Some((mut object, version)) = self.get(&key)? else { return Ok(()) };
            for range in patches.ranges {
                fill(&mut object, range, &(patches.bytes)(range)?).ok_or_else(|| {
                    ArchiveError::damaged(segment, range.start, "it has been cut meanwhile")
                })?;
            }
            if self.replace(&key, object, version)? {
                return Ok(());
            }
            if !tries.again_here() {
                let why = "others change the same object all the time";
                return Err(ArchiveError::bucket("write to", &self.location, why));
            }
        }
    }

    fn remove(&self, segment: &str) -> Result<(), ArchiveError> {
        let key = self.key(segment).ok_or_else(|| self.broke("name an object of"))?;
        let client = self.patient.clone();
        self.ask("remove from", async move { client.delete(&key).await }).map(drop)
    }

    fn segments(self: Arc<Self>) -> Result<Segments, ArchiveError> {
        walk::over(self)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Dropped like other values it would wait, which a thread of another runtime must not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn client(bucket: &str, max_retries: usize, longest: Duration) -> object_store::Result<AmazonS3> {
    let backoff = BackoffConfig { max_backoff: LONGEST_PAUSE, ..BackoffConfig::default() };
    let timeout = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
    AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig { backoff, max_retries, retry_timeout: longest })
        .with_config(timeout, format!("{}s", longest.as_secs()))
        .build()
}
