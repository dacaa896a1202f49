//! Tasks that no living worker takes: nobody serves their lane, or nobody has the role for them.

use serde_json::{Value, json};

use super::lanes::ready_by_lane;
use crate::frontier::state::StageCounts;
use crate::frontier::{Owner, View};
use crate::monitor::NO_WORKER;
use crate::task::{NOW, Stage};

/// What may be claimed of a site, and which none of those takes that work on it. Empty where nobody works on the site at all:
/// that is told otherwise.
#[derive(Debug, Default)]
pub(in crate::cli) struct Unserved {
    /// The lanes that none of them serves.
    lanes: Vec<UnservedLane>,
    /// The stages that none of them takes, in any lane, with what is ready there.
    stages: Vec<(Stage, u64)>,
}

#[derive(Debug)]
struct UnservedLane {
    lane: String,
    downloads: u64,
    parses: u64,
}

impl Unserved {
    /// Of the living processes those that work on the site count.
    pub(in crate::cli) fn of(view: &View, at_work: &[Owner]) -> Self {
        let own: Vec<&Owner> = at_work.iter().filter(|owner| owner.works_on(&view.site)).collect();
        let mut unserved = Self::default();
        if own.is_empty() {
            return unserved;
        }
        for (stage, counts) in [(Stage::Download, &view.download), (Stage::Parse, &view.parse)] {
            let takers: Vec<&&Owner> = own.iter().filter(|owner| owner.takes(stage)).collect();
            if takers.is_empty() {
                unserved.stages.extend((counts.ready() > 0).then(|| (stage, counts.ready())));
            } else {
                unserved
                    .count_lanes(stage, counts, |lane| takers.iter().any(|owner| owner.scope.serves(lane)));
            }
        }
        unserved.lanes.sort_by_key(|unserved| unserved.lane != NOW);
        unserved
    }

    fn count_lanes(&mut self, stage: Stage, counts: &StageCounts, is_served: impl Fn(&str) -> bool) {
        for (lane, count) in ready_by_lane(counts).into_iter().filter(|(lane, n)| *n > 0 && !is_served(lane))
        {
            let place = self.lanes.iter().position(|known| known.lane == lane).unwrap_or(self.lanes.len());
            if place == self.lanes.len() {
                self.lanes.push(UnservedLane { lane: lane.to_owned(), downloads: 0, parses: 0 });
            }
            let known = &mut self.lanes[place];
            *(if stage == Stage::Download { &mut known.downloads } else { &mut known.parses }) = count;
        }
    }

    /// A line for each, for people.
    pub(in crate::cli) fn told(&self) -> Vec<String> {
        let stages = self.stages.iter().map(|(stage, count)| {
            let waits = if *count == 1 { "waits" } else { "wait" };
            let stage = noun(*stage);
            format!("no worker takes {stage}s: {count} {waits} (`paced work --role {stage}`)")
        });
        stages.chain(self.lanes.iter().map(UnservedLane::told)).collect()
    }

    /// For scripts.
    pub(in crate::cli) fn object(&self) -> [(&'static str, Value); 2] {
        let lanes = self.lanes.iter().map(|UnservedLane { lane, downloads, parses }| {
            json!({ "lane": lane, "downloads": downloads, "parses": parses })
        });
        let stages = self.stages.iter().map(|(stage, count)| json!({ "stage": stage, "ready": count }));
        [("unserved_lanes", lanes.collect()), ("unserved_stages", stages.collect())]
    }

    /// How much of a stage nobody takes.
    fn left(&self, stage: Stage) -> u64 {
        let in_lanes = self.lanes.iter().map(|lane| match stage {
            Stage::Download => lane.downloads,
            Stage::Parse => lane.parses,
        });
        let in_all = self.stages.iter().filter(|(of, _)| *of == stage).map(|(_, count)| *count);
        in_lanes.chain(in_all).sum()
    }
}

impl UnservedLane {
    fn told(&self) -> String {
        let stages = [(self.downloads, Stage::Download), (self.parses, Stage::Parse)];
        let counts = stages.iter().filter(|(count, _)| *count > 0).map(|(count, stage)| match count {
            1 => format!("1 {}", noun(*stage)),
            _ => format!("{count} {}s", noun(*stage)),
        });
        let (lane, counts) = (&self.lane, counts.collect::<Vec<_>>().join(" and "));
        format!("no worker serves the lane {lane}: {counts} in it")
    }
}

fn noun(stage: Stage) -> &'static str {
    match stage {
        Stage::Download => "download",
        Stage::Parse => "parse",
    }
}

/// Why no process claims what can be claimed of a site, where nothing else of it goes on.
pub(in crate::cli) fn nobody(view: &View, at_work: &[Owner], unserved: &Unserved) -> Option<String> {
    if !at_work.iter().any(|owner| owner.works_on(&view.site)) {
        return Some(NO_WORKER.to_owned());
    }
    let (download, parse) = (&view.download, &view.parse);
    let is_held_up = |stage, ready: u64| ready > 0 && unserved.left(stage) >= ready;
    let are_parses_left = download.ready() + download.parked + download.delayed + parse.leased == 0;
    let is_stuck = is_held_up(Stage::Download, download.ready())
        || are_parses_left && is_held_up(Stage::Parse, parse.ready());
    (view.in_flight == 0 && is_stuck).then(|| unserved.told().join("; "))
}
