//! What `explain` tells of a site's marks, order, lane and fairness, and whose each value is.

use serde_json::json;

use super::account::Account;
use super::fairness;
use crate::frontier::state::TunedTenants;
use crate::frontier::{DatedAct, Says, View};
use crate::site::Site;
use crate::task::{FleetRules, HighWater, LANE, TaskOrder, UnitPick};

/// Where a site, or the frontier, takes nothing more in for now (M10).
pub(in crate::cli) fn tell_marks(account: &mut Account, view: &View, fleet: &FleetRules, in_all: u64) {
    let of_site = fleet.mark_of_site(view.download.idle(), view.download.bytes);
    if let Some(mark) = of_site {
        let full = fleet.told_full(&view.site, mark);
        account.tell("full", format!("{full}: puts are refused, and links wait with their page"));
    }
    let of_all = (in_all >= fleet.most_in_all()).then_some(HighWater::Frontier);
    if let Some(mark) = of_all {
        let full = fleet.told_full(&view.site, mark);
        account.tell("full", format!("{full}: puts are refused, and links are taken in"));
    }
    let marks: Vec<HighWater> = of_site.into_iter().chain(of_all).collect();
    account.keep(json!({ "full": of_site.is_some(), "marks": marks, "waiting_bytes": view.download.bytes }));
}

/// Which of its pages goes first, and which site, where that isn't the usual one (C5).
pub(in crate::cli) fn tell_order(account: &mut Account, view: &View, fleet: &FleetRules) {
    let (now, next) = (view.order, fleet.order);
    if now != next {
        account.tell("order", format!("{now}; {next} from its next run on: paced.toml"));
    } else if now != TaskOrder::default() {
        account.tell("order", format!("{now}: paced.toml"));
    }
    if fleet.pick != UnitPick::default() {
        account.tell("pick", format!("{}: paced.toml", fleet.pick));
    }
    account.keep(json!({ "order": now, "next_order": next, "pick": fleet.pick }));
}

/// In which lane its tasks wait, and whom they are for, where its file says so.
pub(in crate::cli) fn tell_lane(account: &mut Account, site: &Site, says: &Says, acts: &[DatedAct]) {
    let of_file = site.lane.as_deref();
    match (&says.tuned_lane, of_file) {
        (Some(tuned), _) => {
            let (by, of_file) = (set_by("lane", acts), of_file.unwrap_or(LANE));
            account.tell("lane", format!("{tuned}: set while it runs{by}, over the site's file ({of_file})"));
        }
        (None, Some(lane)) => account.tell("lane", lane),
        (None, None) => {}
    }
    if let Some(tenant) = &site.tenant {
        account.tell("tenant", tenant);
    }
    let lane = says.tuned_lane.as_deref().or(of_file).unwrap_or(LANE);
    account.keep(json!({ "lane": lane, "tenant": site.tenant }));
}

/// By which rules the tasks of its tenant get their lanes, and whose they are (F17).
pub(in crate::cli) fn tell_fairness(
    account: &mut Account,
    tenant: &str,
    fleet: &FleetRules,
    tuned: &TunedTenants,
    acts: &[DatedAct],
) {
    let (of_file, whose) = match fleet.tenants.get(tenant) {
        Some(rules) => (rules, format!("[tenant.{tenant}] of paced.toml")),
        None => (&fleet.fairness, "paced.toml".to_owned()),
    };
    let tuned = tuned.tenants.get(tenant);
    if let Some(rules) = tuned {
        let whom = format!("--tenant {tenant} ");
        let key = if rules.is_empty() { "fairness" } else { "lane" };
        let (by, own) = (set_for(&whom, key, acts), fairness::told(of_file));
        let told = fairness::told(rules);
        account.tell("fairness", format!("{told}: set while it runs{by}, over {whose} ({own})"));
    } else if !of_file.is_empty() || fleet.tenants.contains_key(tenant) {
        account.tell("fairness", format!("{}: {whose}", fairness::told(of_file)));
    }
    account.keep(json!({ "fairness": tuned.unwrap_or(of_file), "fairness_is_tuned": tuned.is_some() }));
}

/// Who set a key last, when and why, as far as that is kept.
pub(in crate::cli) fn set_by(key: &str, acts: &[DatedAct]) -> String {
    set_for("", key, acts)
}

/// The same of what it was set for: `--group NAME `.
pub(in crate::cli) fn set_for(whom: &str, key: &str, acts: &[DatedAct]) -> String {
    let sets = |did: &str| {
        let values = did.strip_prefix("tune ").and_then(|did| did.strip_prefix(whom)).unwrap_or_default();
        values.split(' ').filter_map(|value| value.split_once('=')).any(|(set, _)| set == key)
    };
    let last = acts.iter().find(|DatedAct { act, .. }| sets(&act.did));
    last.map(|DatedAct { at, act }| format!(" by {} at {at}, {}", act.who, act.why)).unwrap_or_default()
}
