//! The walk over what was kept of a site, portion by portion: the latest stored body of each page, each page once.

use futures_util::future::try_join_all;
use tokio::sync::mpsc::{Receiver, channel};

use crate::archive::{ArchiveError, Filter, Location, Record, scan};
use crate::canonical_url::CanonicalUrl;
use crate::frontier::{Frontier, FrontierError, LatestPage};
use crate::run::RunError;
use crate::site::Site;
use crate::task::StoredPage;

/// Pages in one portion.
const PORTION: usize = 32;
/// Records read ahead.
const AHEAD: usize = 256;

/// A page and where its latest body is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub url: CanonicalUrl,
    pub stored: StoredPage,
    /// Links between a seed and it.
    pub depth: u32,
}

/// Answers that were kept, read ahead in a thread of their own.
#[derive(Debug)]
pub(super) struct StoredWalk {
    records: Receiver<Result<Record, ArchiveError>>,
}

impl StoredWalk {
    /// Begins to read.
    pub(super) fn over(location: &Location, site: &Site) -> Self {
        let (location, filter) = (location.clone(), Filter::default());
        let (name, hosts) = (site.name.clone(), site.scope.hosts.clone());
        // Pages of a site that was renamed were kept under its old name; the frontier knows which are its own.
        let is_its = move |record: &Record| {
            let host = || CanonicalUrl::parse(&record.url).map(|url| url.host());
            record.site == name || host().is_ok_and(|host| hosts.contains(&host))
        };
        let (found, records) = channel(AHEAD);
        tokio::task::spawn_blocking(move || {
            let scan = match scan(location, filter) {
                Ok(scan) => scan,
                Err(error) => return drop(found.blocking_send(Err(error))),
            };
            let answers = scan
                .filter(|record| record.as_ref().map_or(true, |record| is_page(record) && is_its(record)));
            for record in answers {
                if found.blocking_send(record).is_err() {
                    return;
                }
            }
        });
        Self { records }
    }

    /// The next answers, and what could not be walked over; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<(Vec<Record>, Vec<String>)>, RunError> {
        let (mut pages, mut damaged) = (Vec::new(), Vec::new());
        while pages.len() < PORTION {
            match self.records.recv().await {
                Some(Ok(record)) => pages.push(record),
                Some(Err(error @ ArchiveError::Damaged { .. })) => damaged.push(error.to_string()),
                Some(Err(error)) => return Err(error.into()),
                None => break,
            }
        }
        let is_over = pages.is_empty() && damaged.is_empty();
        Ok((!is_over).then_some((pages, damaged)))
    }

    /// Those of the answers that are the latest body of their page, by what the frontier knows.
    pub(super) async fn current(
        &self,
        frontier: &Frontier,
        site: &str,
        answers: Vec<Record>,
    ) -> Result<Vec<Kept>, FrontierError> {
        let known = answers.into_iter().filter_map(|answer| {
            let (place, url) = answer.place.zip(CanonicalUrl::parse(&answer.url).ok())?;
            Some(async move {
                let latest = frontier.latest(site, &url).await?;
                let latest = latest.filter(|latest| latest.stored.place == place.to_string());
                Ok::<_, FrontierError>(latest.map(|LatestPage { stored, depth }| Kept { url, stored, depth }))
            })
        });
        Ok(try_join_all(known).await?.into_iter().flatten().collect())
    }
}

fn is_page(record: &Record) -> bool {
    record.place.is_some() && record.status.is_some_and(|status| (200..300).contains(&status))
}
