//! Campaigns as people name and see them.

use std::time::Duration;

use serde_json::{Value, json};

use super::Trouble;
use super::table::or_dash;
use crate::clock::Timestamp;
use crate::frontier::{CampaignName, CampaignPhase, CampaignStatus, Frontier};
use crate::quantity::{compact, spoken};
use crate::task::{CampaignPlan, CampaignPortion, TICKS};

/// How long a portion may be due before it is told that nobody feeds, in ms: as long as a process that died holds its turn, and more.
const FED_WITHIN: i64 = 15_000;

/// The heads of [`row`].
pub(in crate::cli) const HEADS: &str =
    "campaign, site, state, fed, of, done, dead, coalesced, open, left, by pace, observed";

/// Reads the name of a campaign.
pub(in crate::cli) fn campaign_name(text: &str) -> Result<String, String> {
    let why = || format!("`{text}` is no campaign; write up to 64 letters, digits, `-`, `_`, `.` and `:`");
    CampaignPlan::is_name(text).then(|| text.to_owned()).ok_or_else(why)
}

/// Reads a portion.
pub(in crate::cli) fn portion(text: &str) -> Result<CampaignPortion, String> {
    text.parse().map_err(|error: crate::task::PortionError| error.to_string())
}

/// Reads a tick, in ms.
pub(in crate::cli) fn tick(text: &str) -> Result<i64, String> {
    let read = crate::quantity::read_duration(text).map(crate::clock::millis);
    let (least, most) = TICKS;
    read.filter(|tick| (least..=most).contains(tick)).ok_or_else(|| {
        format!("tick can be {} to {}, not `{text}`; write it as 10s", spoken_ms(least), spoken_ms(most))
    })
}

/// The campaign of a name; else those that there are.
pub(in crate::cli) async fn known(
    name: &str,
    frontier: &Frontier,
) -> Result<(CampaignName, CampaignStatus), Trouble> {
    let mut all = frontier.campaigns().await?;
    if let Some(place) = all.iter().position(|(known, _)| known.name == name) {
        return Ok(all.swap_remove(place));
    }
    let names: Vec<&str> = all.iter().map(|(known, _)| known.name.as_str()).collect();
    let known =
        if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
    Err(Trouble::usage(format!("there is no campaign `{name}`; {known}")))
}

/// Nobody who downloads feeds it.
fn is_overdue(status: &CampaignStatus) -> bool {
    status.room > 0 && status.at - status.campaign.next_tick > FED_WITHIN
}

/// In what it is, in words.
pub(in crate::cli) fn state_of(status: &CampaignStatus) -> String {
    let phase = status.phase();
    if phase == CampaignPhase::Running && is_overdue(status) {
        return "running, but nobody feeds it: start `paced work`".to_owned();
    }
    phase.word().to_owned()
}

/// A line of the table.
pub(in crate::cli) fn row((name, status): &(CampaignName, CampaignStatus)) -> [String; 12] {
    let CampaignStatus { campaign, counts, .. } = status;
    let eta = |ms: Option<i64>| or_dash(ms.map(|ms| compact(Duration::from_millis(ms.unsigned_abs()))));
    let numbers = [
        u64::from(campaign.next),
        u64::from(campaign.list.total),
        counts.done,
        counts.dead,
        counts.coalesced,
        counts.open,
        status.left(),
    ];
    let [fed, of, done, dead, coalesced, open, left] = numbers.map(|number| number.to_string());
    let etas = [status.paced_eta(), status.observed_eta()].map(eta);
    let [by_pace, observed] = etas;
    let (name, site, state) = (name.name.clone(), name.site.clone(), state_of(status));
    [name, site, state, fed, of, done, dead, coalesced, open, left, by_pace, observed]
}

/// How it stands in a line: of how many URLs so many are fed, and so on.
pub(in crate::cli) fn told(name: &str, status: &CampaignStatus) -> String {
    let CampaignStatus { campaign, counts, .. } = status;
    let (fed, of) = (campaign.next, campaign.list.total);
    format!(
        "{name}: {}, {fed} of {of} URLs fed, {} done, {} dead, {} open; {}",
        state_of(status),
        counts.done,
        counts.dead,
        counts.open,
        fed_so(status),
    )
}

/// How it is fed.
pub(in crate::cli) fn fed_so(status: &CampaignStatus) -> String {
    let CampaignPlan { portion, tick, priority, lane, tenant, batch } = &status.campaign.plan;
    let pages = match portion {
        CampaignPortion::Pages(_) => String::new(),
        CampaignPortion::Ticks(_) => format!(" ({} pages)", status.campaign.plan.pages(status.interval)),
    };
    let named = [("lane", lane), ("tenant", tenant), ("batch", batch)];
    let named = named.iter().filter_map(|(what, name)| Some(format!(", {what} {}", name.as_ref()?)));
    let named: String = named.collect();
    format!("portion {portion}{pages}, tick {}, priority {priority}{named}", spoken_ms(*tick))
}

/// The same for scripts.
pub(in crate::cli) fn object(name: &CampaignName, status: &CampaignStatus) -> Value {
    let CampaignStatus { campaign, counts, interval, at, .. } = status;
    let CampaignPlan { portion, tick, priority, lane, tenant, batch } = &campaign.plan;
    json!({
        "campaign": name.name, "site": name.site, "state": status.phase().word(), "is_overdue": is_overdue(status),
        "began_at": campaign.began_at.map(Timestamp::from_millis),
        "ended_at": campaign.ended_at.map(Timestamp::from_millis),
        "next_tick": campaign.is_fed().then(|| Timestamp::from_millis(campaign.next_tick)),
        "portion": portion, "portion_pages": campaign.plan.pages(*interval), "tick_ms": tick,
        "priority": priority.to_string(), "lane": lane, "tenant": tenant, "batch": batch,
        "total": campaign.list.total, "fed": campaign.next, "done": counts.done, "dead": counts.dead,
        "dropped": counts.dropped, "coalesced": counts.coalesced, "open": counts.open, "left": status.left(),
        "interval_ms": interval, "eta_ms": status.paced_eta(), "observed_eta_ms": status.observed_eta(),
        "at": Timestamp::from_millis(*at),
    })
}

pub(in crate::cli) fn spoken_ms(ms: i64) -> String {
    spoken(Duration::from_millis(ms.unsigned_abs()))
}
