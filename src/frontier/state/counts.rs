//! The books of one site and stage: where its tasks are, and what became of them.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{Place, Task};
use crate::task::{Exclusion, LANE, TASK_BYTES, TooMuch};

/// Where the tasks of one site and stage are, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageCounts {
    /// Tasks that wait for nothing but their turn or their host.
    pub waiting: u64,
    /// Those of them whose host can't be reached.
    pub parked: u64,
    /// Tasks that wait for a back-off's end.
    pub delayed: u64,
    /// Tasks put for a later time, or behind others of their session.
    pub scheduled: u64,
    /// Those of them that are behind others.
    pub behind: u64,
    /// Tasks under a lease.
    pub leased: u64,
    /// Dead letters kept.
    pub letters: u64,
    /// Puts that made a task.
    pub created: u64,
    /// Dead letters that came back.
    pub revived: u64,
    /// Further runs after a request met a running task.
    pub reruns: u64,
    /// Tasks done, excluded and redirected ones included.
    pub done: u64,
    /// Tasks that died, letters kept or not.
    pub dead: u64,
    /// Tasks given up.
    pub dropped: u64,
    /// Puts that a waiting task stood for already.
    pub coalesced: u64,
    /// Requests that met a running task.
    pub deferred: u64,
    /// Links to pages seen before.
    pub known: u64,
    /// Deferrals that a lost lease or a retry took up.
    pub absorbed: u64,
    /// Links over a budget.
    pub over_budget: u64,
    /// Done by being redirected.
    pub redirected: u64,
    /// Leases lost.
    pub lost: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Links of its pages that were dropped, as they were too many or too long.
    pub dropped_links: u64,
    /// Pages whose structured data or values were left out, as they were too much.
    pub left_out: u64,
    /// Pages whose parse took more than their site's file allows.
    pub too_dear: u64,
    /// What the tasks weigh that nobody works on, in bytes: their URLs, and [`TASK_BYTES`] each.
    pub bytes: u64,
    /// Done by being unwanted, by reason.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// Tasks that may be claimed, by lane; those of the lane that is always there aren't counted here.
    pub lanes: BTreeMap<String, u64>,
}

/// As a site's record has it, which is written with every page, while most counters stay zero. People are shown them all.
pub(super) fn without_zeroes<S: Serializer>(counts: &StageCounts, serializer: S) -> Result<S::Ok, S::Error> {
    macro_rules! counters {
        ($($name:ident)*) => {{
            // All of them: one that is missing here is an error.
            let StageCounts { $($name,)* excluded, lanes } = counts;
            ([$((stringify!($name), $name)),*], excluded, lanes)
        }};
    }
    let (counters, excluded, lanes) = counters!(
        waiting parked delayed scheduled behind leased letters created revived reruns done dead dropped coalesced deferred known absorbed
        over_budget redirected lost retried dropped_links left_out too_dear bytes
    );
    let mut map = serializer.serialize_map(None)?;
    for (name, count) in counters.into_iter().filter(|(_, count)| **count > 0) {
        map.serialize_entry(name, count)?;
    }
    if !excluded.is_empty() {
        map.serialize_entry("excluded", excluded)?;
    }
    if !lanes.is_empty() {
        map.serialize_entry("lanes", lanes)?;
    }
    map.end()
}

impl StageCounts {
    /// What came in must be somewhere (I14): 0 when the books balance.
    pub fn imbalance(&self) -> i128 {
        let entered = self.created + self.revived + self.reruns;
        let left = self.done + self.dead + self.dropped;
        let here = self.waiting + self.delayed + self.scheduled + self.leased;
        i128::from(entered) - i128::from(left) - i128::from(here)
    }

    /// Counts what of a page was too much.
    pub fn add_too_much(&mut self, TooMuch { links, left_out, too_dear }: TooMuch) {
        self.dropped_links += u64::from(links);
        self.left_out += u64::from(left_out);
        self.too_dear += u64::from(too_dear);
    }

    /// Nothing of the run is left here; what was put for a later time doesn't count.
    pub fn is_finished(&self) -> bool {
        self.waiting + self.delayed + self.leased == 0
    }

    /// Tasks that nobody works on: they wait for their turn, their host or their time.
    pub fn idle(&self) -> u64 {
        self.waiting + self.delayed + self.scheduled
    }

    /// Tasks that may be claimed.
    pub fn ready(&self) -> u64 {
        self.waiting.saturating_sub(self.parked)
    }

    /// The lanes that have such tasks: the one that is always there first, then by name.
    pub fn ready_lanes(&self) -> impl Iterator<Item = &str> + Clone {
        let general = (self.ready() > self.lanes.values().sum()).then_some(LANE);
        general.into_iter().chain(self.lanes.keys().map(String::as_str))
    }

    /// Tasks of a lane that wait for nothing but their turn; those that wait for their host are the one's that is always there.
    pub fn waiting_in(&self, lane: &str) -> u64 {
        match lane {
            LANE => self.waiting.saturating_sub(self.lanes.values().sum()),
            lane => self.lanes.get(lane).copied().unwrap_or(0),
        }
    }

    /// Books a task into the place where it stands.
    pub(super) fn enters(&mut self, task: &Task) {
        *self.place(&task.place) += 1;
        self.bytes += weight(task);
        self.parked += u64::from(task.place == Place::Parked);
        self.behind += u64::from(task.place == Place::Behind);
        if let Some(lane) = task.queued_in() {
            *self.lanes.entry(lane.to_owned()).or_default() += 1;
        }
    }

    /// Books a task out of the place where it stands.
    pub(super) fn leaves(&mut self, task: &Task) {
        let count = self.place(&task.place);
        *count = count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(weight(task));
        if task.place == Place::Parked {
            self.parked = self.parked.saturating_sub(1);
        }
        if task.place == Place::Behind {
            self.behind = self.behind.saturating_sub(1);
        }
        let Some(lane) = task.queued_in() else { return };
        if let Some(count) = self.lanes.get_mut(lane) {
            *count = count.saturating_sub(1);
        }
        self.lanes.retain(|_, count| *count > 0);
    }

    fn place(&mut self, place: &Place) -> &mut u64 {
        match place {
            Place::Waiting | Place::Parked => &mut self.waiting,
            Place::Delayed { scheduled: true, .. } | Place::Behind => &mut self.scheduled,
            Place::Delayed { scheduled: false, .. } => &mut self.delayed,
            Place::Running(_) => &mut self.leased,
        }
    }
}

/// What a task weighs in its queue, in bytes; nothing where it runs.
fn weight(task: &Task) -> u64 {
    if task.running().is_some() { 0 } else { task.url.as_str().len() as u64 + TASK_BYTES }
}
