//! A folder of site files, whose rules are put in force at the start and again when asked. A bad file leaves the rules in
//! force that were there before.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
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

/// When site files are read again that could not be registered.
const READ_AGAIN: Patience = Patience::new(Duration::from_secs(1), Duration::from_secs(5));

/// The site files of a worker.
#[derive(Debug)]
pub(super) struct SiteFolder {
    path: PathBuf,
    settings: Settings,
    rules: SiteRules,
    /// By site, the version of its rules as last registered from here.
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
        let (settings, rules) = (settings.clone(), rules.clone());
        let folder = Self { path: path.to_owned(), settings, rules, versions: BTreeMap::new() };
        folder.files().map(|_| folder)
    }

    /// Its files, in order, so that of two that don't go together it is always the same one that stays out.
    fn files(&self) -> Result<Vec<PathBuf>, RunError> {
        site_files(&self.path).map_err(|source| RunError::Folder { path: self.path.clone(), source })
    }

    /// Registers every `*.toml` of the folder. What is wrong with a file is said in one line, and the others are taken in.
    pub(super) async fn read(&mut self, frontier: &Frontier) -> Result<(), RunError> {
        let mut reading = self.load().await?;
        Ok(self.register(frontier, &mut reading).await?)
    }

    /// Reads every file. Of two that name one site the first counts.
    async fn load(&self) -> Result<Reading, RunError> {
        let (mut reading, mut named) = (Reading::default(), BTreeMap::new());
        let files = self.files()?;
        if files.is_empty() {
            warn!("there is no site file in {}; put some there, each NAME.toml", self.path.display());
        }
        for file in files {
            let shown = file.display().to_string();
            match load(file).await {
                Err(errors) => reading.is_wrong(&in_one_line(&errors, &shown)),
                Ok(site) => match named.entry(site.name.clone()) {
                    Entry::Occupied(other) => reading.is_wrong(&format!(
                        "{shown}: site `{}` is {} already; give it another name",
                        site.name,
                        other.get()
                    )),
                    Entry::Vacant(free) => {
                        free.insert(shown.clone());
                        reading.left.push_back((shown, site));
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

    /// Reads the files again; while the frontier doesn't take them, it is tried again and again.
    async fn read_again(&mut self, frontier: &Frontier) -> Result<(), RunError> {
        let (mut reading, mut tries) = (self.load().await?, READ_AGAIN.begin());
        while let Err(error) = self.register(frontier, &mut reading).await {
            if !error.is_transient() {
                return Err(error.into());
            }
            // Once they can be, it is said that they were read.
            if tries.count() == 1 {
                warn!(%error, "site files can't be registered yet; they are read again soon");
            }
            tries.again().await;
        }
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
        if let Err(error) = folder.read_again(frontier).await {
            error!("{error}; the rules that were in force stay so");
        }
    }
}

fn site_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads and checks a file off the threads that keep the pace.
async fn load(file: PathBuf) -> Result<Site, SiteErrors> {
    let shown = file.display().to_string();
    let loaded = tokio::task::spawn_blocking(move || site::load(&file)).await;
    loaded.unwrap_or_else(|panic| Err(SiteErrors::unreadable(&shown, &io::Error::other(panic.to_string()))))
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
