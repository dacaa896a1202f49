//! `paced forget --rename-to`: a site goes on under another name, with all that the frontier knows of it.

use tracing::info;

use super::results::Results;
use super::{Exit, Globals, Trouble, sites};
use crate::crawl::register_one;
use crate::frontier::{Claim, Frontier, Registered, Renamed};

/// Lost leases are freed a hundred a step; nobody holds more than this many steps free.
const FREEING_STEPS: u32 = 100;

/// Renames a site to that of another file, whose rules are in force from then on.
pub(super) async fn rename(
    name: &str,
    new: &str,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let site = sites::load_all(&[new.to_owned()])?.remove(0);
    let to = &site.name;
    refuse_while_worked_on(name, frontier).await?;
    match frontier.rename(name, to).await? {
        Renamed::Done => info!(site = name, to, "renamed by an operator"),
        refused => return Err(Trouble::failed(why(name, to, &refused))),
    }
    let registered = register_one(frontier, &globals.settings()?, &site).await?;
    let mut results = Results::default();
    let view = frontier.view(to).await?;
    let (waiting, dead) =
        view.map_or((0, 0), |view| (view.download.waiting, view.download.letters + view.parse.letters));
    results.line(format_args!("{name}: renamed to {to}; pages waiting: {waiting}, dead letters: {dead}"))?;
    results.line(format_args!("what was stored and written before keeps the name {name}"))?;
    match registered {
        Registered::Version(_) => Ok(Exit::Done),
        Registered::Refused(refused) => Err(Trouble::failed(format!(
            "it goes on by its old rules, as those of {to} can't be put in force: {refused}"
        ))),
    }
}

fn why(name: &str, to: &str, refused: &Renamed) -> String {
    match refused {
        Renamed::Taken => format!("there is a site `{to}` already: forget it first, or choose another name"),
        Renamed::Elsewhere => {
            format!("`{to}` would lie in another partition of the cluster than `{name}`: choose another name")
        }
        Renamed::Busy { leased } => {
            format!("site `{name}` has {leased} pages in workers' hands: run this again in a minute")
        }
        Renamed::Unknown | Renamed::Done => format!("site `{name}` is gone"),
    }
}

/// Workers remember names. What those that died had in hand goes back first.
async fn refuse_while_worked_on(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let member = frontier.join(vec![name.to_owned()]).await?;
    let owners = frontier.owners().await?;
    let works = |crawls: &[String]| crawls.is_empty() || crawls.iter().any(|crawled| crawled == name);
    let working =
        owners.iter().find(|owner| !owner.dead && owner.name != member.name && works(&owner.crawls));
    if working.is_none() {
        free_lost_leases(name, &member.name, frontier).await?;
    }
    frontier.leave(member).await?;
    match working {
        Some(owner) => Err(Trouble::failed(format!(
            "site `{name}` is being worked on by {} (process {}); stop it first",
            owner.name, owner.pid
        ))),
        None => Ok(()),
    }
}

async fn free_lost_leases(name: &str, owner: &str, frontier: &Frontier) -> Result<(), Trouble> {
    for _ in 0..FREEING_STEPS {
        let view = frontier.view(name).await?;
        if view.is_none_or(|view| view.download.leased + view.parse.leased == 0) {
            break;
        }
        frontier.claim(nothing(owner)).await?;
    }
    Ok(())
}

/// A claim of nothing: it tidies up.
fn nothing(owner: &str) -> Claim {
    let token = fastrand::u64(1..i64::MAX as u64);
    Claim { owner: owner.to_owned(), token, download: 0, parse: 0, only: Vec::new(), dice: Vec::new() }
}
