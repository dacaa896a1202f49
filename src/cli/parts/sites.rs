//! SITE, as every verb takes it: a name or a file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Globals, Trouble};
use crate::frontier::Frontier;
use crate::site::{self, Site, SiteError, SiteErrors};

/// The folder in which a name is looked up.
const FOLDER: &str = "sites";
/// The most names listed to somebody who named another.
const MOST_NAMES: usize = 20;

/// Loads what names and paths stand for, each once, and tells each one's file.
pub(in crate::cli) fn load(given: &[String]) -> Vec<(String, Result<Site, SiteErrors>)> {
    let mut seen = HashSet::new();
    let once = given.iter().filter(|text| {
        let file = file_of(text);
        seen.insert(file.canonicalize().unwrap_or(file))
    });
    once.map(|text| load_one(text)).collect()
}

fn load_one(given: &str) -> (String, Result<Site, SiteErrors>) {
    let file = file_of(given);
    let shown = file.display().to_string();
    if let Some(folder) = [Path::new(given), &file].into_iter().find(|path| path.is_dir()) {
        let error = no_file(&folder.display().to_string());
        return (shown, Err(SiteErrors { errors: vec![error] }));
    }
    if file.exists() || is_path(given) {
        return (shown, site::load(&file));
    }
    let error = SiteError {
        file: shown.clone(),
        line: 1,
        column: 1,
        what: format!("there is no site `{given}`: no such file"),
        what_to_do: match in_folder() {
            names if names.is_empty() => "name a site file".to_owned(),
            names => format!("name a site file, or one of {}", names.join(", ")),
        },
    };
    (shown, Err(SiteErrors { errors: vec![error] }))
}

fn no_file(folder: &str) -> SiteError {
    let folder = folder.trim_end_matches('/');
    SiteError {
        file: folder.to_owned(),
        line: 1,
        column: 1,
        what: "this is a folder".to_owned(),
        what_to_do: format!("name the files in it, as in {folder}/*.toml"),
    }
}

/// A name stands for `sites/NAME.toml`.
fn file_of(given: &str) -> PathBuf {
    let path = PathBuf::from(given);
    if is_path(given) || path.is_file() { path } else { Path::new(FOLDER).join(format!("{given}.toml")) }
}

fn is_path(text: &str) -> bool {
    text.contains('/') || Path::new(text).extension().is_some_and(|ending| ending == "toml")
}

fn in_folder() -> Vec<String> {
    let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten().map(|entry| entry.path());
    let sites = files.filter(|file| file.extension().is_some_and(|ending| ending == "toml"));
    let mut names: Vec<String> =
        sites.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names.truncate(MOST_NAMES);
    names
}

/// Loads every site, or tells all that is wrong with all of them.
pub(in crate::cli) fn load_all(given: &[String]) -> Result<Vec<Site>, Trouble> {
    let mut errors = Vec::new();
    let mut sites = Vec::new();
    for (file, loaded) in load(given) {
        match loaded {
            Ok(site) => sites.push((file, site)),
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
    let site = load_all(std::slice::from_ref(&given.to_owned()))?.remove(0);
    Ok((site, file_of(given).display().to_string()))
}

/// A site by the rules that are registered for it.
pub(in crate::cli) async fn registered(name: &str, frontier: &Frontier) -> Result<Option<Site>, Trouble> {
    let Some(text) = frontier.text(name).await? else { return Ok(None) };
    Ok(Some(site::parse(&text, &format!("{name}.toml")).map_err(Trouble::failed)?))
}

/// The names that names and files stand for.
pub(in crate::cli) fn names(given: &[String]) -> Result<Vec<String>, Trouble> {
    given.iter().map(|text| if is_path(text) { name_in(text) } else { Ok(text.clone()) }).collect()
}

fn name_in(file: &str) -> Result<String, Trouble> {
    Ok(site::load(Path::new(file)).map_err(Trouble::usage)?.name)
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
        return Err(Trouble::usage(format!(
            "there is no site `{unknown}` in {}; it knows {}",
            globals.shown_frontier(),
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        )));
    }
    Ok(if wanted.is_empty() { all } else { wanted })
}
