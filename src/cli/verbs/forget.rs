//! `paced forget`: a site that nobody wants any more, and all that the frontier knows of its pages.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tracing::info;

use crate::archive::{Archive, Erased, Record};
use crate::canonical_url::{CanonicalUrl, Host};
use crate::cli::parts::act::act_of;
use crate::cli::parts::ask::{is_at_a_terminal, is_wanted};
use crate::cli::parts::refuse_while_busy::refuse_while_worked_on;
use crate::cli::parts::rename::rename;
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::clock::{self, Clock, millis};
use crate::frontier::{Forgotten, Frontier, Tuning};
use crate::item::Item;
use crate::quantity::spoken;
use crate::sink::files_of_writers;

/// Options of `paced forget`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  paced forget books --items --stored-pages")]
pub(in crate::cli) struct ForgetArgs {
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
    /// Without asking first; where there is no terminal, nobody is asked
    #[arg(long)]
    yes: bool,
}

/// So long, in ms, it is waited for that a site's last start is an interval ago.
const LONGEST_WAIT: i64 = 60_000;
/// Why a site that is being forgotten grants nothing.
const PAUSE: &str = "it is being forgotten";

/// Forgets a site; interrupted, it goes on when it is run again.
pub(super) async fn run(options: ForgetArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    if let Some(new) = &options.rename_to {
        // One whose renaming was cut off isn't among the sites any more.
        let name = sites::names(std::slice::from_ref(&options.site))?.remove(0);
        return rename(&name, new, &frontier, globals).await;
    }
    let name = sites::known_one(&frontier, &options.site, globals).await?;
    let pages = if options.stored_pages { Some(globals.stored_pages(Clock::wall()).await?) } else { None };
    refuse_while_worked_on(&name, &frontier).await?;
    if !options.yes && !is_meant(&name, &frontier, globals).await? {
        say("nothing was forgotten");
        return Ok(Exit::Failed);
    }
    frontier.tune(&name, Tuning::pause(PAUSE)).await?;
    while frontier.give_up(&name).await? {}
    let mut results = Results::default();
    // While the site is known, so that all of it can be run again.
    if let Some(pages) = &pages {
        refuse_what_comes_too_soon(&name, &frontier).await?;
        erase(&name, pages, &frontier, &mut results).await?;
    }
    until_gone(&name, &frontier).await?;
    frontier.note("", act_of(&format!("forget {name}"))).await?;
    info!(site = name, "forgotten by an operator");
    let stay = if pages.is_some() { "" } else { "; its stored pages stay in the archive" };
    results.line(format_args!("{name}: forgotten{stay}"))?;
    if options.items {
        for file in item_files(&name, globals)? {
            fs::remove_file(&file).map_err(|e| Trouble::failed(format!("{}: {e}", file.display())))?;
            results.line(format_args!("{}: removed", file.display()))?;
        }
    }
    Ok(Exit::Done)
}

/// Erases the site's stored pages, but for those of hosts that are another site's by now: it was renamed, and needs them.
async fn erase(
    name: &str,
    pages: &Archive,
    frontier: &Frontier,
    results: &mut Results,
) -> Result<(), Trouble> {
    let spared = hosts_of_others(name, frontier).await?;
    let site = name.to_owned();
    let is_gone = move |record: &Record| {
        let host = CanonicalUrl::parse(&record.url).map(|url| url.host());
        record.site == site && host.is_ok_and(|host| !spared.contains(&host))
    };
    let Erased { requests, segments, left } = pages.erase(is_gone, Clock::wall().now()).await?;
    if left > 0 {
        return Err(Trouble::failed(format!(
            "{left} stored requests of `{name}` are in segments that are still written to; nothing was erased, and the site is \
             paused: run this again when those workers have stopped"
        )));
    }
    info!(site = name, requests, "stored pages erased by an operator");
    results.line(format_args!("{name}: {requests} stored requests erased; segments removed: {segments}"))?;
    Ok(())
}

/// What would keep the site from being forgotten is said before its pages go.
async fn refuse_what_comes_too_soon(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let Some(view) = frontier.view(name).await? else { return Ok(()) };
    let (leased, wait) = (view.download.leased + view.parse.leased, millis(view.due.since(view.at)));
    match (leased, wait) {
        (0, wait) if wait <= LONGEST_WAIT => Ok(()),
        (0, wait) => Err(not_yet(name, wait)),
        (leased, _) => Err(in_hands(name, leased)),
    }
}

fn in_hands(name: &str, leased: u64) -> Trouble {
    Trouble::failed(format!(
        "site `{name}` has {leased} pages in workers' hands; it is paused now: run this again in a minute"
    ))
}

fn not_yet(name: &str, wait: i64) -> Trouble {
    let left = spoken(Duration::from_secs(wait.unsigned_abs().div_ceil(1_000)));
    Trouble::failed(format!(
        "site `{name}` may not be asked for anything for another {left}, which is not to be forgotten; it is paused now: run \
         this again then"
    ))
}

/// Hosts that other sites have and this one hasn't.
async fn hosts_of_others(name: &str, frontier: &Frontier) -> Result<HashSet<Host>, Trouble> {
    let mut hosts = HashSet::new();
    for other in frontier.sites().await?.iter().filter(|other| *other != name) {
        hosts.extend(sites::registered(other, frontier).await?.into_iter().flat_map(|site| site.scope.hosts));
    }
    for own in sites::registered(name, frontier).await?.into_iter().flat_map(|site| site.scope.hosts) {
        hosts.remove(&own);
    }
    Ok(hosts)
}

/// The site's items files that are there. A writer's file may be that of a site whose name only begins in the same way: the
/// first item in it tells.
fn item_files(name: &str, globals: &Globals) -> Result<Vec<PathBuf>, Trouble> {
    let folder = globals.data.join("items");
    let mut files = files_of_writers(&folder, name).map_err(Trouble::failed)?;
    files.retain(|file| site_of_items(file).is_some_and(|site| site == name));
    files.extend(Some(folder.join(format!("{name}.jsonl"))).filter(|file| file.is_file()));
    Ok(files)
}

fn site_of_items(file: &Path) -> Option<String> {
    let mut line = String::new();
    BufReader::new(fs::File::open(file).ok()?).read_line(&mut line).ok()?;
    serde_json::from_str::<Item>(&line).ok().map(|item| item.site)
}

/// Asks the person at the terminal; a script is taken at its word.
async fn is_meant(name: &str, frontier: &Frontier, globals: &Globals) -> Result<bool, Trouble> {
    if !is_at_a_terminal() {
        return Ok(true);
    }
    let view = frontier.view(name).await?;
    let (waiting, done) = view.map_or((0, 0), |view| (view.download.waiting, view.download.done));
    let shown = globals.shown_frontier()?;
    Ok(is_wanted(format_args!(
        "forget site `{name}` in {shown}: {waiting} pages wait, {done} were fetched?"
    ))?)
}

async fn until_gone(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    loop {
        while frontier.give_up(name).await? {}
        match frontier.forget(name).await? {
            Forgotten::Unknown | Forgotten::Wholly => return Ok(()),
            Forgotten::Refused(why) => return Err(Trouble::failed(why)),
            Forgotten::Busy { leased: 0, .. } | Forgotten::Partly => {}
            Forgotten::NotYet { wait } if wait <= LONGEST_WAIT => {
                clock::wait(Duration::from_millis(wait.unsigned_abs())).await;
            }
            Forgotten::NotYet { wait } => return Err(not_yet(name, wait)),
            Forgotten::Busy { leased, .. } => return Err(in_hands(name, leased)),
        }
    }
}
