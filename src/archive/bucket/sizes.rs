//! What is known of the objects' sizes, so that asking whether a page is still there costs no request a page.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use object_store::list::PaginatedListOptions;

use super::Bucket;

/// So many objects are known at most; over that, all are forgotten.
const MOST: usize = 65_536;

/// Sizes by the objects' names; zero where there was no such object.
#[derive(Debug, Default)]
pub(super) struct Sizes(Mutex<HashMap<String, u64>>);

impl Sizes {
    /// The size of an object. One that isn't known is asked for with the thousand names that follow: pages that were
    /// kept one after another are mostly asked for so, too.
    pub(super) fn of(&self, name: &str, bucket: &Bucket) -> u64 {
        if let Some(known) = self.known(name) {
            return known;
        }
        // A listing begins behind the name that it is given.
        let last = name.chars().next_back().map_or(0, char::len_utf8);
        let offset = format!("{}{}", bucket.prefix, &name[..name.len() - last]);
        let options = PaginatedListOptions { offset: Some(offset), ..PaginatedListOptions::default() };
        match bucket.list("list", &bucket.brisk, options) {
            Ok(page) => {
                self.put([(name.to_owned(), 0)]);
                self.put(page.objects);
                self.known(name).unwrap_or(0)
            }
            Err(why) => {
                tracing::debug!(segment = name, "could not ask whether it is still there: {why}");
                0
            }
        }
    }

    fn known(&self, name: &str) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// These are known now.
    pub(super) fn put(&self, sizes: impl IntoIterator<Item = (String, u64)>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MOST {
            known.clear();
        }
        known.extend(sizes);
    }
}
