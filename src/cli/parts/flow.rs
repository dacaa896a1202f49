//! What flows through a site's queue, and how long its pages waited, as people and scripts are told it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::cli::parts::Trouble;
use crate::clock::Timestamp;
use crate::frontier::state::{FlowRate, WaitBound, WaitTimes};
use crate::frontier::{Frontier, QueueFlow, View};
use crate::quantity::{compact, spoken, spoken_rate};
use crate::task::{FleetRules, LANE, NOW, Priority};

/// A site's queue: what flows through it, and how many more pages may wait in it.
pub(in crate::cli) struct FlowOfSite {
    pub(in crate::cli) flow: QueueFlow,
    pub(in crate::cli) room: u64,
}

/// How long pages waited that have something in common.
struct Waited {
    /// What that is, before its name.
    what: &'static str,
    name: String,
    times: WaitTimes,
    /// When the page was put that waits longest now.
    oldest: Option<Timestamp>,
}

impl FlowOfSite {
    /// What is told of one site, each with what it is.
    pub(in crate::cli) fn told(&self) -> Vec<(&'static str, String)> {
        let flow = &self.flow;
        let mut lines =
            vec![("5 min", self.told_rate(flow.lately())), ("1 h", self.told_rate(flow.in_an_hour()))];
        let all = [flow];
        let parts = [by_lane(&all), by_level(&all)].into_iter().filter(|parts| parts.len() > 1).flatten();
        let waited = [in_all(flow)].into_iter().chain(parts).chain(by_tenant(&all));
        lines.extend(waited.filter_map(|waited| Some(("waits", waited.told(flow.at)?))));
        lines.extend(told_coalesced(flow).map(|told| ("coalesced", told)));
        lines
    }

    /// Cells of a table: what comes in and leaves a second, when the queue is full, half and 95 % of the waits.
    pub(in crate::cli) fn cells(&self) -> [Option<String>; 5] {
        let (rate, waited) = (self.flow.lately(), in_all(&self.flow).times);
        let flows = (rate != FlowRate::default()).then(|| [rate.enters, rate.leaves].map(per_time));
        let [enters, leaves] = flows.map_or([None, None], |flows| flows.map(Some));
        let within = |percent| waited.percentile(percent).map(compact_bound);
        let fills =
            [rate, self.flow.in_an_hour()].iter().filter_map(|rate| rate.time_to_fill(self.room)).min();
        [enters, leaves, fills.map(compact), within(50), within(95)]
    }

    /// The same for scripts.
    pub(in crate::cli) fn object(&self) -> Value {
        let flow = &self.flow;
        let all = [flow];
        let rate = |rate: FlowRate| {
            let full = rate.time_to_fill(self.room).map(|time| time.as_secs());
            json!({ "in_per_s": rate.enters, "out_per_s": rate.leaves, "full_in_s": full })
        };
        json!({
            "last_5_min": rate(flow.lately()), "last_hour": rate(flow.in_an_hour()),
            "coalesced_share": { "last_hour": flow.coalesced_in_an_hour(), "run": flow.coalesced_in_the_run() },
            "wait": in_all(flow).object(), "wait_by_lane": objects(by_lane(&all)),
            "wait_by_level": objects(by_level(&all)), "wait_by_tenant": objects(by_tenant(&all)),
        })
    }

    fn told_rate(&self, rate: FlowRate) -> String {
        let full = match rate.time_to_fill(self.room) {
            None => String::new(),
            Some(Duration::ZERO) => "; full".to_owned(),
            Some(time) => format!("; full in {} at this rate", spoken(time)),
        };
        format!("{} in, {} out{full}", per_time(rate.enters), per_time(rate.leaves))
    }
}

/// What flows through the queue of a site that stands so; none where it is gone.
pub(in crate::cli) async fn flow_of(
    frontier: &Frontier,
    view: &View,
    fleet: &FleetRules,
) -> Result<Option<FlowOfSite>, Trouble> {
    let (idle, bytes) = (view.download.idle(), view.download.bytes);
    let by_number = fleet.most_waiting().saturating_sub(idle);
    // As heavy as those that wait.
    let by_weight =
        fleet.most_bytes().saturating_sub(bytes).checked_div(bytes.checked_div(idle).unwrap_or(0));
    let room = by_weight.map_or(by_number, |room| room.min(by_number));
    Ok(frontier.flow(&view.site).await?.map(|flow| FlowOfSite { flow, room }))
}

/// How long pages of several sites waited: by level where there are several, and by tenant.
pub(in crate::cli) fn told_of_all(sites: &[&FlowOfSite]) -> Vec<String> {
    let flows: Vec<&QueueFlow> = sites.iter().map(|site| &site.flow).collect();
    let Some(at) = flows.iter().map(|flow| flow.at).max() else { return Vec::new() };
    let levels = Some(by_level(&flows)).filter(|levels| levels.len() > 1).unwrap_or_default();
    levels.into_iter().chain(by_tenant(&flows)).filter_map(|waited| waited.told(at)).collect()
}

impl Waited {
    fn told(&self, now: Timestamp) -> Option<String> {
        let within = |percent| self.times.percentile(percent);
        let waits = within(50)
            .zip(within(95))
            .map(|(half, most)| format!("half of them {}, 95% {}", spoken_bound(half), spoken_bound(most)));
        let oldest = self.oldest.map(|put| format!("the oldest has waited for {}", spoken(now.since(put))));
        let told: Vec<String> = waits.into_iter().chain(oldest).collect();
        let colon = if self.name.is_empty() { "" } else { ": " };
        (!told.is_empty()).then(|| format!("{}{}{colon}{}", self.what, self.name, told.join("; ")))
    }

    fn object(&self) -> Value {
        let seconds = |(WaitBound::Within(wait) | WaitBound::Over(wait))| wait.as_secs();
        let within = |percent| self.times.percentile(percent).map(seconds);
        json!({ "p50_s": within(50), "p95_s": within(95), "oldest": self.oldest })
    }
}

fn in_all(flow: &QueueFlow) -> Waited {
    let (times, oldest) = (flow.wait_times(|_| true), flow.longest_waiting(|_, _| true));
    Waited { what: "", name: String::new(), times, oldest }
}

/// The lane that goes before the others first, then the one that is always there.
fn by_lane(flows: &[&QueueFlow]) -> Vec<Waited> {
    let waited = flows.iter().flat_map(|flow| flow.waits.iter().map(|(key, _)| key.lane.as_str()));
    let waiting = flows.iter().flat_map(|flow| flow.oldest.iter().map(|page| page.lane.as_str()));
    let lanes: BTreeSet<_> = waited.chain(waiting).map(|lane| (lane != NOW, lane != LANE, lane)).collect();
    let of = |(_, _, lane): (bool, bool, &str)| Waited {
        what: "in ",
        name: lane.to_owned(),
        times: sum(flows, |flow| flow.wait_times(|key| key.lane == lane)),
        oldest: flows.iter().filter_map(|flow| flow.longest_waiting(|of, _| of == lane)).min(),
    };
    lanes.into_iter().map(of).collect()
}

fn by_level(flows: &[&QueueFlow]) -> Vec<Waited> {
    let waited = flows.iter().flat_map(|flow| flow.waits.iter().map(|(key, _)| key.level));
    let waiting = flows.iter().flat_map(|flow| flow.oldest.iter().map(|page| page.priority.level()));
    let levels: BTreeSet<_> = waited.chain(waiting.filter(|level| *level != Priority::ROBOTS)).collect();
    let of = |level: Priority| Waited {
        what: "of ",
        name: level.to_string(),
        times: sum(flows, |flow| flow.wait_times(|key| key.level == level)),
        oldest: flows.iter().filter_map(|flow| flow.longest_waiting(|_, of| of == level)).min(),
    };
    levels.into_iter().map(of).collect()
}

/// What waits for a tenant stands in no order of its own, so its oldest page isn't known.
fn by_tenant(flows: &[&QueueFlow]) -> Vec<Waited> {
    let waited = flows.iter().flat_map(|flow| flow.waits.iter().filter_map(|(key, _)| key.tenant.as_deref()));
    let tenants: BTreeSet<_> = waited.collect();
    let of = |tenant: &str| Waited {
        what: "for ",
        name: tenant.to_owned(),
        times: sum(flows, |flow| flow.wait_times(|key| key.tenant.as_deref() == Some(tenant))),
        oldest: None,
    };
    tenants.into_iter().map(of).collect()
}

fn sum(flows: &[&QueueFlow], of: impl Fn(&QueueFlow) -> WaitTimes) -> WaitTimes {
    flows.iter().fold(WaitTimes::default(), |all, flow| all.and(of(flow)))
}

fn objects(parts: Vec<Waited>) -> Map<String, Value> {
    parts.into_iter().map(|waited| (waited.name.clone(), waited.object())).collect()
}

fn told_coalesced(flow: &QueueFlow) -> Option<String> {
    let told = |share: f64, of: &str| format!("{:.0}% of the puts {of}", share * 100.0);
    let hour = flow.coalesced_in_an_hour().map(|share| told(share, "in the last hour"));
    let run = flow.coalesced_in_the_run().map(|share| told(share, "in the run"));
    let told: Vec<String> = hour.into_iter().chain(run).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// A rate by the shortest time in which it isn't next to nothing: `2.1/s`, `1.2/min`, `3/h`.
fn per_time(per_second: f64) -> String {
    let times = [(1.0, "s"), (60.0, "min"), (3_600.0, "h")];
    let is_told = |(seconds, _): &&(f64, &str)| per_second == 0.0 || per_second * seconds >= 0.5;
    let (seconds, unit) = times.iter().find(is_told).unwrap_or(&times[2]);
    spoken_rate(per_second * seconds).replace("/s", &format!("/{unit}"))
}

fn spoken_bound(bound: WaitBound) -> String {
    match bound {
        WaitBound::Within(wait) => format!("within {}", spoken(wait)),
        WaitBound::Over(wait) => format!("after more than {}", spoken(wait)),
    }
}

fn compact_bound(bound: WaitBound) -> String {
    match bound {
        WaitBound::Within(wait) => compact(wait),
        WaitBound::Over(wait) => format!(">{}", compact(wait)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n1_a_rate_is_told_by_a_time_in_which_it_is_something() {
        let told = [0.0, 25.0, 0.5, 0.02, 0.001, 0.000_01].map(per_time);
        assert_eq!(told, ["0/s", "25/s", "0.5/s", "1.2/min", "3.6/h", "0.04/h"]);
    }
}
