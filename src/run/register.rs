//! A site's way into a frontier: its rules are registered, its run is begun, its seeds are put.

use std::time::Duration;

use tracing::{info, warn};

use super::error::RunError;
use crate::clock::millis;
use crate::frontier::{
    Agreed, Frontier, FrontierError, Registered, Registration, Run, SiteSettings, WorkScope,
};
use crate::settings::Settings;
use crate::site::{RobotsPolicy, Site};
use crate::task::{FleetRules, Put};
use crate::work::SiteRules;

/// Puts lanes, fairness rules, order and pick in force for all machines, unless newer ones took their place. Where `paced.toml` says
/// nothing of them, those of the others stay.
pub(crate) async fn agree(frontier: &Frontier, settings: &Settings) -> Result<(), FrontierError> {
    let Some(fleet) = &settings.fleet else { return Ok(()) };
    match frontier.agree(fleet.clone(), settings.mark).await? {
        Agreed::InForce => {}
        Agreed::Replaced => info!("order, pick, lanes and rules of paced.toml are in force for all machines"),
        Agreed::Older => warn!(
            "this paced.toml is older than the one in force: the newer order, pick, lanes and rules stay; \
             to put this one in force, change it (a comment is enough)"
        ),
    }
    Ok(())
}

/// Puts the sites' rules in force, and before them what `paced.toml` says for all machines.
pub async fn register(
    frontier: &Frontier,
    settings: &Settings,
    sites: &[Site],
) -> Result<SiteRules, RunError> {
    agree(frontier, settings).await?;
    let rules = SiteRules::default();
    for site in sites {
        match register_one(frontier, settings, site).await? {
            Registered::Version(version) => rules.put(site.clone(), version),
            Registered::Refused(why) => return Err(RunError::Refused(why)),
        };
        warn_without_contact(site);
    }
    Ok(rules)
}

/// Puts one site's rules in force, or says what stands against it.
pub(crate) async fn register_one(
    frontier: &Frontier,
    settings: &Settings,
    site: &Site,
) -> Result<Registered, FrontierError> {
    if let Some(lane) = &site.lane {
        let fleet = frontier.fleet_rules().await?;
        if !fleet.has_lane(lane) {
            return Ok(Registered::Refused(no_such_lane(&site.name, lane, &fleet)));
        }
    }
    frontier.register(registration(site, settings)).await
}

fn no_such_lane(site: &str, lane: &str, fleet: &FleetRules) -> String {
    let known = fleet.known_lanes();
    format!(
        "site `{site}` waits in the lane `{lane}`, which isn't there; write it into [lanes] of paced.toml, or name one of {known}"
    )
}

/// Says that a site's owner can reach nobody.
pub(crate) fn warn_without_contact(site: &Site) {
    if site.pace.contact.is_none() {
        warn!(site = site.name, "no contact: name one in [pace], so that the site's owner can reach you");
    }
}

fn registration(site: &Site, settings: &Settings) -> Registration {
    let group = site.group.as_ref().map(|group| {
        let interval = settings.groups.get(group).copied().unwrap_or(Duration::ZERO);
        (site.unit(), millis(interval))
    });
    let rules = site.pages.iter().filter_map(|rule| Some((rule.name.clone(), rule.max_pages?)));
    let whole = site.scope.max_pages.map(|most| (String::new(), most));
    Registration {
        name: site.name.clone(),
        text: site.text.clone(),
        group,
        hosts: site.scope.hosts.iter().map(ToString::to_string).collect(),
        settings: SiteSettings {
            interval: millis(site.pace.interval),
            parallel: site.pace.parallel,
            attempts: site.fetch.attempts,
            robots: site.pace.robots == RobotsPolicy::Obey,
            budgets: rules.chain(whole).collect(),
            min_interval: site.pace.min_interval.map_or(0, millis),
            max_parallel: site.pace.max_parallel.unwrap_or(0),
            lane: site.lane.clone(),
            tenant: site.tenant.clone(),
        },
    }
}

/// A fresh run while another process crawls the site would drop what that one works on. Workers of all sites take up
/// whatever is there, and stand in nobody's way.
pub(crate) async fn refuse_while_crawled(frontier: &Frontier, names: &[String]) -> Result<(), RunError> {
    // Joining once buries processes that are gone, so that only living ones stand in the way.
    let looker = frontier.join(WorkScope::of([])).await?;
    let owners = frontier.owners().await?;
    frontier.leave(looker).await?;
    let living = owners.iter().filter(|owner| !owner.dead);
    let crawling = living.filter_map(|owner| match &owner.scope {
        WorkScope::Sites(sites) if names.iter().any(|name| sites.contains(name)) => Some((owner.pid, sites)),
        _ => None,
    });
    match crawling.min_by_key(|(pid, _)| *pid) {
        None => Ok(()),
        Some((pid, sites)) => Err(RunError::Refused(format!(
            "process {} crawls {} right now: stop it before you begin --fresh",
            pid,
            sites.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Begins a site's run, or goes on with it.
pub(crate) async fn begin(frontier: &Frontier, site: &Site, fresh: bool) -> Result<Run, FrontierError> {
    let seeds = seeds(site);
    let run = if fresh {
        frontier.begin_fresh_run(&site.name, seeds).await?
    } else {
        frontier.begin_run(&site.name, seeds).await?
    };
    let how = if run.begun { "run begun" } else { "run goes on where it was" };
    info!(site = site.name, run = run.number, "{how}");
    Ok(run)
}

fn seeds(site: &Site) -> Vec<Put> {
    let rule = |url| site.rule_for(url).map(|rule| rule.name.clone());
    site.seeds.iter().map(|seed| Put { rule: rule(seed), ..Put::seed(seed.clone()) }).collect()
}
