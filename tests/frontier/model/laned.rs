//! Lanes, booked: which one each task waits in, by every task that was ever made for its tenant (I10).

use std::collections::BTreeMap;

use paced::internals::frontier::state::StageCounts;
use paced::internals::frontier::{Agreed, QueueChange, Queued};
use paced::internals::task::{
    FleetRules, HighWater, LANE, LaneRule, LaneWish, NOW, Stage, TaskOrder, UnitPick,
};

use super::ledger::{Key, Ledger, Place, Task, differs};
use super::stepped::Ended;

/// Lanes that a put may name.
pub const LANES: [&str; 4] = ["general", "slow", "superslow", "now"];
pub const TENANTS: [&str; 3] = ["acme", "bolt", "corp"];
/// So many texts of rules there are.
pub const RULES: usize = 4;

/// What the ledger knows of a fleet.
#[derive(Default)]
pub struct Fleet {
    pub rules: FleetRules,
    marks: Vec<u64>,
    replaced: Vec<u64>,
    /// What tenants were given while it runs.
    pub tuned: BTreeMap<String, Vec<LaneRule>>,
    /// By stage and tenant, when each task was made that was counted.
    made: BTreeMap<(Stage, String), Vec<i64>>,
}

/// The rules of a text. All that have some count as many tasks, for as long: what one of them forgot none of the others needs.
pub fn rules(which: usize) -> FleetRules {
    let rule = |lane: &str, threshold: u32, per: i64, stage: Option<Stage>| LaneRule {
        lane: lane.to_owned(),
        threshold,
        per,
        stage,
    };
    let lanes = |slow, superslow| [("slow".to_owned(), slow), ("superslow".to_owned(), superslow)].into();
    let longest = |lane: &str| rule(lane, 3, 60_000, None);
    match which {
        0 => FleetRules::default(),
        1 => FleetRules {
            lanes: lanes(3, 1),
            fairness: vec![rule("slow", 1, 5_000, None), longest("superslow")],
            most_bytes: Some(400),
            order: TaskOrder::Deadline,
            ..FleetRules::default()
        },
        2 => FleetRules {
            lanes: lanes(1, 5),
            fairness: vec![longest("slow"), rule("superslow", 2, 1_000, Some(Stage::Download))],
            tenants: [("bolt".to_owned(), vec![longest("slow"), rule("general", 1, 2_000, None)])].into(),
            most_waiting: Some(2),
            most_bytes: None,
            most_in_all: Some(6),
            order: TaskOrder::Deadline,
            pick: UnitPick::Earliest,
        },
        _ => FleetRules {
            lanes: lanes(9, 9),
            fairness: vec![longest("slow")],
            tenants: [("acme".to_owned(), Vec::new())].into(),
            most_waiting: Some(4),
            most_in_all: Some(5),
            pick: UnitPick::Earliest,
            ..FleetRules::default()
        },
    }
}

/// Rules that a tenant is given while it runs: they count as many tasks, for as long, as those of the texts.
pub fn tuned_rules(which: usize) -> Vec<LaneRule> {
    let rule = |lane: &str, threshold: u32, per: i64, stage| LaneRule {
        lane: lane.to_owned(),
        threshold,
        per,
        stage,
    };
    match which {
        0 => Vec::new(),
        1 => vec![rule("superslow", 3, 60_000, None)],
        _ => vec![rule("slow", 3, 60_000, None), rule("superslow", 1, 3_000, Some(Stage::Parse))],
    }
}

impl Fleet {
    pub fn tune(&mut self, tenant: &str, rules: Option<Vec<LaneRule>>) {
        match rules {
            Some(rules) => drop(self.tuned.insert(tenant.to_owned(), rules)),
            None => drop(self.tuned.remove(tenant)),
        }
    }
}

/// There is room: a history has fewer tasks than fit.
pub fn goes_now(wish: &LaneWish, is_later: bool) -> bool {
    wish.lane.as_deref() == Some(NOW) || wish.lane.is_none() && wish.urgent && !is_later
}

impl Ledger {
    /// Whether a process serves the lane of a task (N7).
    pub fn is_served_by(&self, owner: &str, key: &Key) -> bool {
        let lane = self.tasks.get(key).and_then(|task| task.lane.as_deref()).unwrap_or(LANE);
        self.owners.get(owner).is_none_or(|owner| owner.scope.serves(lane))
    }

    /// Rules that others replaced before don't come back (N8).
    pub fn agree(&mut self, rules: &FleetRules, mark: u64, agreed: Agreed) -> Result<(), String> {
        let fleet = &mut self.fleet;
        let expected = if fleet.rules == *rules {
            fleet.marks.push(mark);
            Agreed::InForce
        } else if fleet.replaced.contains(&mark) {
            Agreed::Older
        } else {
            fleet.replaced.append(&mut fleet.marks);
            (fleet.rules, fleet.marks) = (rules.clone(), vec![mark]);
            Agreed::Replaced
        };
        if expected == agreed { Ok(()) } else { differs("N8: agree", expected, agreed) }
    }

    /// A download that waits as it was seen to, and is nobody's robots.txt.
    pub fn requeue(
        &mut self,
        site: &str,
        url: &str,
        change: &QueueChange,
        changed: Option<u32>,
    ) -> Result<(), String> {
        let key = (site.to_owned(), Stage::Download, url.to_owned());
        let is_as_seen = |task: &Task| match change {
            QueueChange::Drop => true,
            QueueChange::Priority { from, .. } => task.priority == from.value() && task.session.is_none(),
            QueueChange::Lane { from, .. } => task.lane.as_deref().unwrap_or(LANE) == from,
        };
        let waits = |task: &Task| task.place == Place::Waiting && !task.errand && is_as_seen(task);
        let waits = self.tasks.get(&key).is_some_and(waits);
        if changed != Some(u32::from(waits)) {
            return differs("N5: changed", waits, changed);
        }
        let Some(task) = self.tasks.get_mut(&key).filter(|_| waits) else { return Ok(()) };
        match change {
            QueueChange::Priority { to, .. } => task.priority = to.value(),
            QueueChange::Lane { to, .. } => task.lane = Some(to.clone()).filter(|lane| lane != LANE),
            QueueChange::Drop => {
                if let Some(name) = self.drop_task(&key) {
                    self.step_ended(&key, &name, Ended::Dropped, None, false);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// The mark that keeps a new page of a site out, whatever the others wait for; that of the frontier keeps no link out (M10).
    pub fn mark_met(&self, site: &str, is_link: bool) -> Option<HighWater> {
        let rules = &self.fleet.rules;
        let waiting = self.idle(Stage::Download).filter(|(name, _)| *name == site).count() as u64;
        if rules.most_waiting.is_some_and(|most| waiting >= most) {
            Some(HighWater::Site)
        } else if rules.most_bytes.is_some_and(|most| self.weight(site, Stage::Download) >= most) {
            Some(HighWater::SiteBytes)
        } else {
            let is_full = rules.most_in_all.is_some_and(|most| self.idle_in_all() >= most);
            (is_full && !is_link).then_some(HighWater::Frontier)
        }
    }

    /// The tasks of a stage that nobody works on: the site of each, and its URL.
    fn idle(&self, stage: Stage) -> impl Iterator<Item = (&str, &str)> {
        let idle = self.tasks.iter().filter(move |(key, task)| key.1 == stage && task.is_idle());
        idle.map(|(key, _)| (key.0.as_str(), key.2.as_str()))
    }

    /// What those of a site weigh, in bytes.
    pub fn weight(&self, site: &str, stage: Stage) -> u64 {
        let urls = self.idle(stage).filter(|(name, _)| *name == site);
        urls.map(|(_, url)| url.len() as u64 + 100).sum()
    }

    /// Downloads of all sites that nobody works on.
    pub fn idle_in_all(&self) -> u64 {
        self.idle(Stage::Download).count() as u64
    }

    pub fn check_fleet(&self, rules: &FleetRules) -> Result<(), String> {
        if self.fleet.rules == *rules { Ok(()) } else { differs("N8: rules", &self.fleet.rules, rules) }
    }

    /// The lane of a task that is made now, and whom it is for.
    pub fn gate(
        &mut self,
        site: &str,
        stage: Stage,
        wish: &LaneWish,
        is_later: bool,
    ) -> (Option<String>, Option<String>) {
        let settings =
            self.sites[site].rules.as_ref().map(|(_, settings)| settings.clone()).unwrap_or_default();
        let tenant = wish.tenant.clone().filter(|tenant| Some(tenant) != settings.tenant.as_ref());
        let lane = if goes_now(wish, is_later) {
            Some(NOW.to_owned())
        } else if wish.lane.is_some() {
            wish.lane.clone()
        } else {
            let ruled = wish.tenant.clone().or(settings.tenant).and_then(|tenant| self.ruled(stage, tenant));
            ruled.or(self.sites[site].tuned_lane.clone()).or(settings.lane)
        };
        (lane.filter(|lane| lane != LANE), tenant)
    }

    fn ruled(&mut self, stage: Stage, tenant: String) -> Option<String> {
        let Fleet { rules, made, tuned, .. } = &mut self.fleet;
        let rules = tuned.get(&tenant).or(rules.tenants.get(&tenant)).unwrap_or(&rules.fairness).iter();
        let rules: Vec<&LaneRule> =
            rules.filter(|rule| rule.stage.is_none_or(|only| only == stage)).collect();
        if rules.is_empty() {
            return None;
        }
        let made = made.entry((stage, tenant)).or_default();
        made.push(self.now);
        let within = |per: i64| made.iter().filter(|at| **at >= self.now - per).count();
        let matching = rules.iter().filter(|rule| within(rule.per) > rule.threshold as usize);
        matching.map(|rule| rule.lane.clone()).next_back()
    }

    /// What waits in a lane is listed in the order in which it goes.
    pub fn check_queue(&self, site: &str, lane: &str, listed: &[Queued]) -> Result<(), String> {
        let is_there = |(key, task): &(&super::ledger::Key, &Task)| {
            (key.0.as_str(), key.1, task.lane.as_deref().unwrap_or(LANE)) == (site, Stage::Download, lane)
                && task.place == Place::Waiting
                && task.priority > 0
        };
        let mut expected: Vec<_> = self.tasks.iter().filter(is_there).collect();
        expected.sort_by_key(|(_, task)| self.order(site, task));
        let expected: Vec<_> =
            expected.into_iter().map(|(key, task)| (key.2.as_str(), task.batches.clone())).collect();
        let listed: Vec<_> = listed
            .iter()
            .map(|page| (page.url.as_str(), page.batches.clone().into_iter().collect()))
            .collect();
        if expected == listed {
            Ok(())
        } else {
            differs(&format!("N5: lane {lane} of {site}"), expected, listed)
        }
    }

    pub fn check_lanes(&self, site: &str, stage: Stage, counts: &StageCounts) -> Result<(), String> {
        let mut lanes = BTreeMap::<String, u64>::new();
        let here = self.tasks.iter().filter(|(key, _)| (key.0.as_str(), key.1) == (site, stage));
        for (_, task) in here.filter(|(_, task)| task.place == Place::Waiting) {
            if let Some(lane) = &task.lane {
                *lanes.entry(lane.clone()).or_default() += 1;
            }
        }
        if lanes == counts.lanes {
            Ok(())
        } else {
            differs(&format!("I10: lanes of {site}"), lanes, &counts.lanes)
        }
    }
}
