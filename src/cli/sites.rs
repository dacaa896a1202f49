//! SITE, as every verb takes it: a name or a file.

use std::path::{Path, PathBuf};

use super::{Globals, Trouble};
use crate::frontier::Frontier;
use crate::site::{self, Site, SiteErrors};

/// The files that names and paths stand for; a name stands for `sites/NAME.toml`.
pub(super) fn files(given: &[String]) -> Vec<PathBuf> {
    given.iter().map(|text| file_of(text)).collect()
}

fn file_of(text: &str) -> PathBuf {
    let in_sites = Path::new("sites").join(format!("{text}.toml"));
    if !is_path(text) && in_sites.exists() { in_sites } else { PathBuf::from(text) }
}

fn is_path(text: &str) -> bool {
    text.contains('/') || Path::new(text).extension().is_some_and(|ending| ending == "toml")
}

/// Loads every site, or tells all that is wrong with all of them.
pub(super) fn load_all(given: &[String]) -> Result<Vec<Site>, Trouble> {
    let mut errors = Vec::new();
    let mut sites = Vec::new();
    for file in files(given) {
        match site::load(&file) {
            Ok(site) => sites.push((file.display().to_string(), site)),
            Err(SiteErrors { errors: found }) => errors.extend(found),
        }
    }
    errors.extend(site::two_sites_one_host(&sites));
    if errors.is_empty() {
        return Ok(sites.into_iter().map(|(_, site)| site).collect());
    }
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Err(Trouble::usage(lines.join("\n")))
}

/// The names that names and files stand for.
pub(super) fn names(given: &[String]) -> Result<Vec<String>, Trouble> {
    given.iter().map(|text| if is_path(text) { name_in(text) } else { Ok(text.clone()) }).collect()
}

fn name_in(file: &str) -> Result<String, Trouble> {
    Ok(site::load(Path::new(file)).map_err(Trouble::usage)?.name)
}

/// The names given, or all that the frontier knows; one that it doesn't know is an error that lists those it does.
pub(super) async fn known(
    frontier: &Frontier,
    given: &[String],
    globals: &Globals,
) -> Result<Vec<String>, Trouble> {
    let all = frontier.sites().await?;
    let wanted = names(given)?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        return Err(Trouble::failed(format!(
            "there is no site `{unknown}` in {}; it knows {}",
            globals.frontier_url(),
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        )));
    }
    Ok(if wanted.is_empty() { all } else { wanted })
}
