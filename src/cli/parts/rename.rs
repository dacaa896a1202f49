//! `paced forget --rename-to`: a site goes on under another name, with all that the frontier knows of it.

use tracing::info;

use super::act::act_of;
use super::refuse_while_busy::refuse_while_worked_on;
use super::results::Results;
use super::{Exit, Globals, Trouble, sites};
use crate::frontier::{Frontier, Registered, Renamed};
use crate::run::{agree, register_one};

/// Renames a site to that of another file, whose rules are in force from then on.
pub(in crate::cli) async fn rename(
    name: &str,
    new: &str,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let site = sites::load_one(new)?;
    let to = &site.name;
    refuse_while_worked_on(name, frontier).await?;
    match frontier.rename(name, to).await? {
        Renamed::Done => {
            frontier.note(to, act_of(&format!("rename {name} to {to}"))).await?;
            info!(site = name, to, "renamed by an operator");
        }
        Renamed::Unknown => {
            sites::known_one(frontier, name, globals).await?;
            return Err(Trouble::failed(why(name, to, &Renamed::Unknown)));
        }
        refused => return Err(Trouble::failed(why(name, to, &refused))),
    }
    let settings = globals.settings()?;
    agree(frontier, &settings).await?;
    let registered = register_one(frontier, &settings, &site).await?;
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
        Renamed::Refused(why) => why.clone(),
        Renamed::Taken => format!("there is a site `{to}` already: forget it first, or choose another name"),
        Renamed::Elsewhere => {
            format!("`{to}` would lie in another partition of the cluster than `{name}`: choose another name")
        }
        Renamed::Busy { leased } => {
            format!("site `{name}` has {leased} pages in workers' hands: run this again in a minute")
        }
        Renamed::Unknown | Renamed::Done | Renamed::Partly => format!("site `{name}` is gone"),
    }
}
