//! The processes that share a frontier, as people and programs see them.

use serde_json::{Value, json};

use super::results::Results;
use super::table::{or_dash, table};
use super::{Exit, Trouble, say};
use crate::clock::Timestamp;
use crate::frontier::{Frontier, Owner, SignOfLife, WorkScope};
use crate::quantity::compact;

const HEADS: &str = "name, host, role, works on, state, version, pid, downloads, parses, leases, last beat";
/// The first column that is a number.
const FIRST_NUMBER: usize = 6;

/// The name that a process was given: its full one has a part behind it, which each start makes anew.
pub(in crate::cli) fn short_name(member: &str) -> &str {
    member.split_once('~').map_or(member, |(name, _)| name)
}

/// Whether that is the name of a process, or its full one.
pub(in crate::cli) fn is_called(member: &str, name: &str) -> bool {
    member == name || short_name(member) == name
}

/// Shows the processes that live.
pub(in crate::cli) async fn show_fleet(frontier: &Frontier, as_json: bool) -> Result<Exit, Trouble> {
    let alive = frontier.at_work().await?;
    let (now, mut results) = (frontier.clock().now(), Results::default());
    if as_json {
        alive.iter().try_for_each(|owner| results.json(object(owner)))?;
    } else if alive.is_empty() {
        say("no process works on this frontier");
    } else {
        let rows = alive.iter().map(|owner| cells(owner, now)).collect();
        results.lines(table(HEADS, rows, FIRST_NUMBER).lines())?;
    }
    Ok(Exit::Done)
}

fn cells(owner: &Owner, now: Timestamp) -> [String; 11] {
    let beat = owner.beat.as_ref();
    let of = |cell: fn(&SignOfLife) -> Option<String>| or_dash(beat.and_then(|beat| cell(&beat.tells)));
    [
        short_name(&owner.name).to_owned(),
        of(|tells| Some(tells.host.clone())),
        of(|tells| role(tells).map(str::to_owned)),
        scope(&owner.scope),
        (if owner.drained { "drained" } else { "at work" }).to_owned(),
        of(|tells| Some(tells.version.clone())),
        owner.pid.to_string(),
        of(|tells| tells.downloads.map(|slots| slots.to_string())),
        of(|tells| tells.parses.map(|slots| slots.to_string())),
        of(|tells| role(tells).map(|_| tells.leases.to_string())),
        or_dash(beat.map(|beat| compact(now.since(beat.at)))),
    ]
}

/// None where it hasn't begun.
fn role(tells: &SignOfLife) -> Option<&'static str> {
    match (tells.downloads, tells.parses) {
        (Some(_), Some(_)) => Some("both"),
        (Some(_), None) => Some("download"),
        (None, Some(_)) => Some("parse"),
        (None, None) => None,
    }
}

fn scope(scope: &WorkScope) -> String {
    match scope {
        WorkScope::All => "all sites".to_owned(),
        WorkScope::Sites(names) if names.len() == 1 => names.iter().cloned().collect(),
        WorkScope::Sites(names) => format!("{} sites", names.len()),
        WorkScope::Lanes(lanes) => {
            let noun = if lanes.len() == 1 { "lane" } else { "lanes" };
            format!("{noun} {}", lanes.iter().map(String::as_str).collect::<Vec<_>>().join(","))
        }
    }
}

fn object(owner: &Owner) -> Value {
    let tells = owner.beat.as_ref().map(|beat| &beat.tells);
    let (sites, lanes) = match &owner.scope {
        WorkScope::All => (None, None),
        WorkScope::Sites(names) => (Some(names), None),
        WorkScope::Lanes(lanes) => (None, Some(lanes)),
    };
    json!({
        "name": short_name(&owner.name), "member": owner.name, "pid": owner.pid, "drained": owner.drained, "sites": sites,
        "lanes": lanes, "host": tells.map(|tells| &tells.host), "version": tells.map(|tells| &tells.version),
        "role": tells.and_then(role), "download_slots": tells.and_then(|tells| tells.downloads),
        "parse_slots": tells.and_then(|tells| tells.parses), "leases": tells.map(|tells| tells.leases),
        "last_beat": owner.beat.as_ref().map(|beat| beat.at),
    })
}
