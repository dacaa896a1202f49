//! SITE, as every verb takes it: a name or a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Globals, Trouble};
use crate::frontier::Frontier;
use crate::settings::Settings;
use crate::site::{self, Site, SiteError, SiteErrors};
use crate::task::FleetRules;

/// The folder in which a name is looked up.
const FOLDER: &str = "sites";
/// The most names listed to somebody who named another.
const MOST_NAMES: usize = 20;

/// Loads what names and paths stand for, each once: the sites with their files, and all that is wrong with the others.
/// `fleet` has the lanes that they may name; without it none is refused.
pub(in crate::cli) fn load(
    given: &[String],
    fleet: Option<&FleetRules>,
) -> (Vec<(String, Site)>, Vec<SiteError>) {
    let (mut seen, mut sites, mut errors) = (HashSet::new(), Vec::new(), Vec::new());
    for text in given {
        let file = file_of(text);
        if !seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())) {
            continue;
        }
        match read(text, &file) {
            Ok(site) => sites.push((file.display().to_string(), site)),
            Err(found) => errors.extend(found.errors),
        }
    }
    errors.extend(site::two_sites_one_host(&sites));
    errors.extend(fleet.map(|fleet| site::unknown_lanes(&sites, fleet)).unwrap_or_default());
    (sites, errors)
}

/// Loads every site, or tells all that is wrong with all of them. Without a `paced.toml` the lanes are those of other machines: they
/// are looked up in the frontier when the sites are registered.
pub(in crate::cli) fn load_all(given: &[String], settings: &Settings) -> Result<Vec<Site>, Trouble> {
    match load(given, settings.fleet.as_ref()) {
        (sites, errors) if errors.is_empty() => Ok(sites.into_iter().map(|(_, site)| site).collect()),
        (_, errors) => Err(Trouble::usage(SiteErrors { errors })),
    }
}

/// Loads one site, or tells all that is wrong with it.
pub(in crate::cli) fn load_one(given: &str) -> Result<Site, Trouble> {
    read(given, &file_of(given)).map_err(Trouble::usage)
}

fn read(given: &str, file: &Path) -> Result<Site, SiteErrors> {
    if let Some(folder) = [Path::new(given), file].into_iter().find(|path| path.is_dir()) {
        let folder = folder.display().to_string();
        let folder = folder.trim_end_matches('/');
        let what_to_do = format!("name the files in it, as in {folder}/*.toml");
        return Err(SiteErrors::of_file(folder, "this is a folder", what_to_do));
    }
    if file.exists() || is_path(given) {
        return site::load(file);
    }
    let what = format!("there is no site `{given}`: no such file");
    let what_to_do = match names_in_folder() {
        names if names.is_empty() => "name a site file".to_owned(),
        names => format!("name a site file, or one of {}", names.join(", ")),
    };
    Err(SiteErrors::of_file(&file.display().to_string(), what, what_to_do))
}

/// A name stands for `sites/NAME.toml`.
fn file_of(given: &str) -> PathBuf {
    let path = PathBuf::from(given);
    if is_path(given) || path.is_file() { path } else { Path::new(FOLDER).join(format!("{given}.toml")) }
}

fn is_path(text: &str) -> bool {
    text.contains('/') || Path::new(text).extension().is_some_and(|ending| ending == "toml")
}

fn names_in_folder() -> Vec<String> {
    let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten().map(|entry| entry.path());
    let sites = files.filter(|file| file.extension().is_some_and(|ending| ending == "toml"));
    let mut names: Vec<String> =
        sites.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names.truncate(MOST_NAMES);
    names
}

/// A site's rules of today: those of its file where there is one, else those that are registered in the frontier. And where
/// they are from.
pub(in crate::cli) async fn rules(
    given: &str,
    frontier: Option<&Frontier>,
) -> Result<(Site, String), Trouble> {
    if let (false, Some(frontier)) = (is_path(given) || file_of(given).is_file(), frontier)
        && let Some(site) = registered(given, frontier).await?
    {
        return Ok((site, "as registered in the frontier".to_owned()));
    }
    Ok((load_one(given)?, file_of(given).display().to_string()))
}

/// A site by the rules that are registered for it.
pub(in crate::cli) async fn registered(name: &str, frontier: &Frontier) -> Result<Option<Site>, Trouble> {
    let Some(text) = frontier.text(name).await? else { return Ok(None) };
    Ok(Some(site::parse(&text, &format!("{name}.toml")).map_err(Trouble::failed)?))
}

/// The names that names and files stand for, each once.
pub(in crate::cli) fn names(given: &[String]) -> Result<Vec<String>, Trouble> {
    let of_file = |file: &str| Ok(site::load(Path::new(file)).map_err(Trouble::usage)?.name);
    let name = |text: &String| if is_path(text) { of_file(text) } else { Ok(text.clone()) };
    let mut names = given.iter().map(name).collect::<Result<Vec<_>, Trouble>>()?;
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// The names given, or all that the frontier knows; one that it doesn't know is an error that lists those it does.
pub(in crate::cli) async fn known(
    frontier: &Frontier,
    given: &[String],
    globals: &Globals,
) -> Result<Vec<String>, Trouble> {
    let all = frontier.sites().await?;
    let wanted = names(given)?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        let known = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let frontier = globals.shown_frontier()?;
        return Err(Trouble::usage(format!("there is no site `{unknown}` in {frontier}; it knows {known}")));
    }
    Ok(if wanted.is_empty() { all } else { wanted })
}

/// The name of a site that the frontier knows.
pub(in crate::cli) async fn known_one(
    frontier: &Frontier,
    given: &str,
    globals: &Globals,
) -> Result<String, Trouble> {
    Ok(known(frontier, &[given.to_owned()], globals).await?.remove(0))
}

/// A site that the frontier knows, by the rules that are registered for it.
pub(in crate::cli) async fn known_site(
    frontier: &Frontier,
    given: &str,
    globals: &Globals,
) -> Result<Site, Trouble> {
    let name = known_one(frontier, given, globals).await?;
    registered(&name, frontier).await?.ok_or_else(|| Trouble::failed(format!("site `{name}` is gone")))
}
