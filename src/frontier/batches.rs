//! Batches: how the pages stand that somebody wants to hear of together.

use futures_util::future::try_join_all;

use super::sites::VIEWS;
use super::table::{Reply, Step};
use super::{BatchCounts, Frontier, FrontierError};

impl Frontier {
    /// The books of a batch on one site; none where it has no pages there, or its last one ended a week ago or earlier (N4).
    pub async fn batch_on(&self, site: &str, name: &str) -> Result<Option<BatchCounts>, FrontierError> {
        let batch = ask!(self, Batch { site: site.to_owned(), name: name.to_owned() })?;
        Ok(batch.map(|batch| *batch))
    }

    /// The books of a batch on those of the sites that have any. Each is read at a moment of its own.
    pub async fn batch_on_each(
        &self,
        sites: &[String],
        name: &str,
    ) -> Result<Vec<(String, BatchCounts)>, FrontierError> {
        let mut books = Vec::new();
        for portion in sites.chunks(VIEWS) {
            let read = try_join_all(portion.iter().map(|site| self.batch_on(site, name))).await?;
            books.extend(portion.iter().cloned().zip(read).filter_map(|(site, batch)| Some((site, batch?))));
        }
        Ok(books)
    }
}
