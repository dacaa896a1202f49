//! A folder of site files, whose rules are put in force at the start and again when asked. A bad file leaves the rules in
//! force that were there before.

use std::collections::BTreeMap;
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
use crate::work::{SiteRules, VisitError};

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

/// What one reading came to.
#[derive(Debug, Default)]
struct Reading {
    /// By site, the file that names it.
    sites: BTreeMap<String, String>,
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
        let mut reading = Reading::default();
        let files = self.files()?;
        if files.is_empty() {
            warn!("there is no site file in {}; put some there, each NAME.toml", self.path.display());
        }
        for file in files {
            if let Err(wrong) = self.take_in(frontier, &file, &mut reading).await? {
                error!("{wrong}; the rules that were in force stay so");
                reading.wrong += 1;
            }
        }
        let Reading { sites, changed, wrong } = &reading;
        info!(sites = sites.len(), changed, wrong, "site files read from {}", self.path.display());
        Ok(())
    }

    /// Puts one file's rules in force, or says what is wrong with it.
    async fn take_in(
        &mut self,
        frontier: &Frontier,
        file: &Path,
        reading: &mut Reading,
    ) -> Result<Result<(), String>, FrontierError> {
        let shown = file.display().to_string();
        let site = match load(file).await {
            Ok(site) => site,
            Err(errors) => return Ok(Err(in_one_line(&errors, &shown))),
        };
        if let Some(other) = reading.sites.get(&site.name) {
            return Ok(Err(format!(
                "{shown}: site `{}` is {other} already; give it another name",
                site.name
            )));
        }
        let version = match register_one(frontier, &self.settings, &site).await? {
            Registered::Version(version) => version,
            Registered::Refused(why) => return Ok(Err(format!("{shown}: {why}"))),
        };
        if self.versions.insert(site.name.clone(), version) != Some(version) {
            info!(site = site.name, version, "rules in force");
            warn_without_contact(&site);
            reading.changed += 1;
        }
        reading.sites.insert(site.name.clone(), shown);
        self.rules.put(site, version);
        Ok(Ok(()))
    }
}

/// Reads the site files again each time that it is told to; while the frontier doesn't take them, again and again.
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
        let mut tries = READ_AGAIN.begin();
        while let Err(error) = folder.read(frontier).await {
            let RunError::Visit(VisitError::Frontier(error)) = error else {
                error!("{error}; the rules that were in force stay so");
                break;
            };
            // Once they can be, it is said that they were read.
            if tries.count() == 1 {
                warn!(%error, "site files can't be registered yet; they are read again soon");
            }
            tries.again().await;
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
async fn load(file: &Path) -> Result<Site, SiteErrors> {
    let path = file.to_owned();
    let shown = file.display().to_string();
    let loaded = tokio::task::spawn_blocking(move || site::load(&path)).await;
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
