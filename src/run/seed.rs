//! Seeding a frontier: sites are registered and their runs begun, for others to work on.

use super::error::RunError;
use super::register::{begin, refuse_while_crawled, register};
use crate::frontier::{Frontier, Run};
use crate::settings::Settings;
use crate::site::Site;

/// What became of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeded {
    /// Its name.
    pub site: String,
    /// The run that was begun, or goes on.
    pub run: Run,
    /// Seeds put: none where the run goes on.
    pub seeds: usize,
    /// Pages that wait to be asked for now.
    pub waiting: u64,
}

/// Registers the sites, begins their runs or goes on with them, and puts the seeds of those begun.
///
/// `fresh` gives up unfinished runs first; it is refused while a crawl of one of the sites is under way.
pub async fn seed(
    frontier: &Frontier,
    settings: &Settings,
    sites: &[Site],
    fresh: bool,
) -> Result<Vec<Seeded>, RunError> {
    let rules = register(frontier, settings, sites).await?;
    if fresh {
        refuse_while_crawled(frontier, &rules.names()).await?;
    }
    let mut seeded = Vec::with_capacity(sites.len());
    for site in sites {
        let run = begin(frontier, site, fresh).await?;
        let seeds = if run.begun { site.seeds.len() } else { 0 };
        let waiting = frontier.view(&site.name).await?.map_or(0, |view| view.download.waiting);
        seeded.push(Seeded { site: site.name.clone(), run, seeds, waiting });
    }
    Ok(seeded)
}
