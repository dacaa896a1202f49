//! `paced forget`: a site that nobody wants any more, and all that the frontier knows of its pages.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use tracing::info;

use super::rename::rename;
use super::results::{Results, say};
use super::{Exit, Globals, Trouble, sites};
use crate::archive::{Archive, Erased};
use crate::clock::Clock;
use crate::frontier::{Forgotten, Frontier, Tuning};
use crate::sink::files_of_writers;

/// Options of `paced forget`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  paced forget books --items --stored-pages --yes")]
pub(super) struct Options {
    /// The site: a name, or its file
    site: String,
    /// Its items files too
    #[arg(long)]
    items: bool,
    /// Its stored pages too: requests, answers and bodies. They can't be audited or parsed again afterwards
    #[arg(long)]
    stored_pages: bool,
    /// Keep all of it under the name of this site, given by name or file, whose rules are in force then
    #[arg(long, value_name = "SITE", conflicts_with_all = ["items", "stored_pages"])]
    rename_to: Option<String>,
    /// Without asking first
    #[arg(long)]
    yes: bool,
}

/// Why a site that is being forgotten grants nothing.
const PAUSE: &str = "it is being forgotten";

/// Forgets a site; interrupted, it goes on when it is run again.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let name = match sites::known(&frontier, std::slice::from_ref(&options.site), globals).await {
        Ok(mut names) => names.remove(0),
        // It was stopped, or segments were still written to, when the frontier had forgotten the site already.
        Err(unknown) if options.stored_pages => {
            return erase_left_over(&options.site, unknown, globals).await;
        }
        Err(unknown) => return Err(unknown),
    };
    if let Some(new) = &options.rename_to {
        return rename(&name, new, &frontier, globals).await;
    }
    let pages = if options.stored_pages { Some(globals.stored_pages(Clock::wall()).await?) } else { None };
    refuse_while_crawled(&name, &frontier).await?;
    if !options.yes && !is_wanted(&name, &frontier, globals).await? {
        say("nothing was forgotten");
        return Ok(Exit::Failed);
    }
    frontier.tune(&name, Tuning::Paused(Some(PAUSE.to_owned()))).await?;
    until_gone(&name, &frontier).await?;
    info!(site = name, "forgotten by an operator");
    let mut results = Results::default();
    let stay = if pages.is_some() { "" } else { "; its stored pages stay in the archive" };
    results.line(format_args!("{name}: forgotten{stay}"))?;
    if options.items {
        for file in item_files(&name, &frontier, globals).await? {
            fs::remove_file(&file).map_err(|e| Trouble::failed(format!("{}: {e}", file.display())))?;
            results.line(format_args!("{}: removed", file.display()))?;
        }
    }
    match pages {
        Some(pages) => told(&name, erase(&name, &pages).await?, &mut results),
        None => Ok(Exit::Done),
    }
}

/// Erases what is stored of a site that the frontier doesn't know; where that is nothing, the name is wrong.
async fn erase_left_over(name: &str, unknown: Trouble, globals: &Globals) -> Result<Exit, Trouble> {
    let pages = globals.stored_pages(Clock::wall()).await?;
    match erase(name, &pages).await? {
        erased if erased == Erased::default() => Err(unknown),
        erased => told(name, erased, &mut Results::default()),
    }
}

async fn erase(name: &str, pages: &Archive) -> Result<Erased, Trouble> {
    let erased = pages.erase(name, Clock::wall().now()).await?;
    info!(site = name, requests = erased.requests, left = erased.left, "stored pages erased by an operator");
    Ok(erased)
}

fn told(name: &str, erased: Erased, results: &mut Results) -> Result<Exit, Trouble> {
    let Erased { requests, segments, left } = erased;
    results.line(format_args!("{name}: {requests} stored requests erased; segments removed: {segments}"))?;
    if left == 0 {
        return Ok(Exit::Done);
    }
    Err(Trouble::failed(format!(
        "{left} stored requests of `{name}` are in segments that are still written to; when those workers have stopped, run \
         paced forget {name} --stored-pages again"
    )))
}

/// The site's items files that are there; none of a site whose name only begins in the same way.
async fn item_files(name: &str, frontier: &Frontier, globals: &Globals) -> Result<Vec<PathBuf>, Trouble> {
    let folder = globals.data.join("items");
    let others = frontier.sites().await?;
    let is_others = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        others.iter().any(|other| {
            let rest = stem.strip_prefix(other.as_str());
            other.len() > name.len() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    let mut files = files_of_writers(&folder, name).map_err(Trouble::failed)?;
    files.retain(|file| !is_others(file));
    files.extend(Some(folder.join(format!("{name}.jsonl"))).filter(|file| file.is_file()));
    Ok(files)
}

async fn refuse_while_crawled(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    // Whoever joins finds out who died.
    let member = frontier.join(Vec::new()).await?;
    let owners = frontier.owners().await?;
    frontier.leave(member).await?;
    let crawls = |crawls: &[String]| crawls.iter().any(|crawled| crawled == name);
    match owners.iter().find(|owner| !owner.dead && crawls(&owner.crawls)) {
        Some(owner) => Err(Trouble::failed(format!(
            "site `{name}` is being crawled by {} (process {}); stop it first",
            owner.name, owner.pid
        ))),
        None => Ok(()),
    }
}

/// Asks the person at the terminal; where nobody can be asked, that is an error.
async fn is_wanted(name: &str, frontier: &Frontier, globals: &Globals) -> Result<bool, Trouble> {
    if !io::stdin().is_terminal() {
        return Err(Trouble::usage(format!("forget {name}: nobody can be asked here; say --yes")));
    }
    let view = frontier.view(name).await?;
    let (waiting, done) = view.map_or((0, 0), |view| (view.download.waiting, view.download.done));
    say(format_args!(
        "forget site `{name}` in {}: {waiting} pages wait, {done} were fetched? [y/N]",
        globals.shown_frontier()
    ));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

async fn until_gone(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    loop {
        while frontier.give_up(name).await? {}
        match frontier.forget(name).await? {
            Forgotten::Unknown | Forgotten::Wholly => return Ok(()),
            Forgotten::Busy { leased: 0, .. } | Forgotten::Partly => {}
            Forgotten::Busy { leased, .. } => {
                return Err(Trouble::failed(format!(
                    "site `{name}` has {leased} pages in workers' hands; it is paused now: run this again in a minute"
                )));
            }
        }
    }
}
