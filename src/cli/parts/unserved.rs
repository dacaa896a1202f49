//! Lanes whose tasks no living worker takes.

use serde_json::{Value, json};

use super::lanes::ready_by_lane;
use crate::frontier::{Owner, View};
use crate::monitor::NO_WORKER;
use crate::task::{NOW, Stage};

/// A lane of a site in which something may be claimed, and which none of those serves that work on the site.
pub(in crate::cli) struct Unserved {
    lane: String,
    downloads: u64,
    parses: u64,
}

impl Unserved {
    /// For people.
    pub(in crate::cli) fn told(&self) -> String {
        let stages = [(self.downloads, "download"), (self.parses, "parse")];
        let counts = stages.iter().filter(|(count, _)| *count > 0).map(|(count, stage)| match count {
            1 => format!("1 {stage}"),
            _ => format!("{count} {stage}s"),
        });
        let (lane, counts) = (&self.lane, counts.collect::<Vec<_>>().join(" and "));
        format!("no worker serves the lane {lane}: {counts} in it")
    }

    /// For scripts.
    pub(in crate::cli) fn object(&self) -> Value {
        json!({ "lane": self.lane, "downloads": self.downloads, "parses": self.parses })
    }
}

/// Why no process claims what can be claimed of a site's downloads, where that is so.
pub(in crate::cli) fn nobody(view: &View, at_work: &[Owner], unserved: &[Unserved]) -> Option<String> {
    if unserved.is_empty() {
        let is_worked_on = at_work.iter().any(|owner| owner.works_on(&view.site));
        return (!is_worked_on).then(|| NO_WORKER.to_owned());
    }
    let left: u64 = unserved.iter().map(|lane| lane.downloads).sum();
    let holds_all_up = left > 0 && left >= view.download.ready() && view.in_flight == 0;
    holds_all_up.then(|| unserved.iter().map(Unserved::told).collect::<Vec<_>>().join("; "))
}

/// None where nobody works on the site at all: that is told otherwise.
pub(in crate::cli) fn unserved(view: &View, at_work: &[Owner]) -> Vec<Unserved> {
    let own: Vec<&Owner> = at_work.iter().filter(|owner| owner.works_on(&view.site)).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut unserved = Vec::<Unserved>::new();
    for (stage, counts) in [(Stage::Download, &view.download), (Stage::Parse, &view.parse)] {
        let is_served = |lane: &str| own.iter().any(|owner| owner.scope.serves(lane) && owner.takes(stage));
        for (lane, count) in ready_by_lane(counts).into_iter().filter(|(lane, n)| *n > 0 && !is_served(lane))
        {
            let place = unserved.iter().position(|known| known.lane == lane).unwrap_or(unserved.len());
            if place == unserved.len() {
                unserved.push(Unserved { lane: lane.to_owned(), downloads: 0, parses: 0 });
            }
            let known = &mut unserved[place];
            *(if stage == Stage::Download { &mut known.downloads } else { &mut known.parses }) = count;
        }
    }
    unserved.sort_by_key(|unserved| unserved.lane != NOW);
    unserved
}
