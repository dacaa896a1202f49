//! A folder of site files, whose rules are put in force at the start and again when asked. A bad file leaves the rules in
//! force that were there before.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::error::RunError;
use super::register::{register_one, warn_without_contact};
use crate::frontier::{Frontier, FrontierError, Registered};
use crate::patience::Patience;
use crate::settings::Settings;
use crate::site::{self, Site, SiteErrors};
use crate::work::SiteRules;

/// When it is tried again to register site files that were read again.
const READ_AGAIN: Patience = Patience::new(Duration::from_secs(1), Duration::from_secs(5));

/// The site files of a worker.
#[derive(Debug)]
pub(super) struct SiteFolder {
    path: PathBuf,
    settings: Settings,
    rules: SiteRules,
    /// By site that has a file, the version of its rules as last registered from here.
    versions: BTreeMap<String, i64>,
}

/// The files of one reading, and what they came to so far.
#[derive(Debug, Default)]
struct Reading {
    /// Sites that are still to be registered, each with its file.
    left: VecDeque<(String, Site)>,
    sites: usize,
    changed: usize,
    wrong: usize,
}

impl SiteFolder {
    /// The folder, which must be there; what it registers is taken into the rules.
    pub(super) fn open(path: &Path, settings: &Settings, rules: &SiteRules) -> Result<Self, RunError> {
        fs::read_dir(path).map_err(|source| RunError::Folder { path: path.to_owned(), source })?;
        let (settings, rules) = (settings.clone(), rules.clone());
        Ok(Self { path: path.to_owned(), settings, rules, versions: BTreeMap::new() })
    }

    /// Registers every `*.toml` of the folder; a frontier that doesn't take them is tried again, with patience. What is wrong with
    /// a file is said in one line, and the others are taken in.
    pub(super) async fn read(
        &mut self,
        frontier: &Frontier,
        patience: Option<Patience>,
    ) -> Result<(), RunError> {
        let (mut reading, mut tries) = (self.load().await?, patience.map(Patience::begin));
        let named: HashSet<&str> = reading.left.iter().map(|(_, site)| site.name.as_str()).collect();
        self.versions.retain(|name, _| named.contains(name.as_str()));
        while let Err(error) = self.register(frontier, &mut reading).await {
            let Some(tries) = tries.as_mut().filter(|_| error.is_transient()) else {
                return Err(error.into());
            };
            // Once they can be, it is said that they were read.
            if tries.count() == 1 {
                warn!(%error, "site files can't be registered yet; they are read again soon");
            }
            tries.again().await;
        }
        Ok(())
    }

    /// Reads every file. Of two that name one site the first counts.
    async fn load(&self) -> Result<Reading, RunError> {
        let path = self.path.clone();
        let loading = tokio::task::spawn_blocking(move || load_all(&path));
        let loaded = loading.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        let loaded = loaded.map_err(|source| RunError::Folder { path: self.path.clone(), source })?;
        if loaded.is_empty() {
            warn!("there is no site file in {}; put some there, each NAME.toml", self.path.display());
        }
        let (mut reading, mut named) = (Reading::default(), BTreeMap::new());
        for (file, loaded) in loaded {
            match loaded {
                Err(errors) => reading.is_wrong(&in_one_line(&errors, &file)),
                Ok(site) => match named.insert(site.name.clone(), file.clone()) {
                    None => reading.left.push_back((file, site)),
                    Some(other) => {
                        let what = format!("site `{}` is {other} already; give it another name", site.name);
                        reading.is_wrong(&format!("{file}: {what}"));
                        named.insert(site.name, other);
                    }
                },
            }
        }
        Ok(reading)
    }

    /// Puts the rules in force that are left of a reading.
    async fn register(&mut self, frontier: &Frontier, reading: &mut Reading) -> Result<(), FrontierError> {
        while let Some((file, site)) = reading.left.front() {
            let registered = register_one(frontier, &self.settings, site).await?;
            match registered {
                Registered::Refused(why) => reading.is_wrong(&format!("{file}: {why}")),
                Registered::Version(version) => {
                    reading.sites += 1;
                    if self.versions.insert(site.name.clone(), version) != Some(version) {
                        info!(site = site.name, version, "rules in force");
                        warn_without_contact(site);
                        reading.changed += 1;
                    }
                    self.rules.put(site.clone(), version);
                }
            }
            reading.left.pop_front();
        }
        let Reading { sites, changed, wrong, .. } = reading;
        info!(sites, changed, wrong, "site files read from {}", self.path.display());
        Ok(())
    }
}

impl Reading {
    fn is_wrong(&mut self, what: &str) {
        error!("{what}; the rules that were in force stay so");
        self.wrong += 1;
    }
}

/// Reads the site files again each time that it is told to.
pub(super) async fn read_again_when_told(
    mut folder: Option<SiteFolder>,
    frontier: &Frontier,
    told: &Notify,
) -> Infallible {
    loop {
        told.notified().await;
        let Some(folder) = &mut folder else {
            warn!("told to read site files again, but none were named: start with --sites DIR");
            continue;
        };
        if let Err(error) = folder.read(frontier, Some(READ_AGAIN)).await {
            error!("{error}; the rules that were in force stay so");
        }
    }
}

/// Reads and checks the files of a folder, in order, so that of two that don't go together it is always the same one that stays
/// out.
fn load_all(folder: &Path) -> io::Result<Vec<(String, Result<Site, SiteErrors>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files.into_iter().map(|file| (file.display().to_string(), site::load(&file))).collect())
}

fn in_one_line(errors: &SiteErrors, file: &str) -> String {
    match errors.errors.as_slice() {
        [] => file.to_owned(),
        [only] => only.to_string(),
        [first, others @ ..] => {
            format!("{first} ({} more: `paced check {file}` tells them)", others.len())
        }
    }
}
