//! `order = "deadline"`: tasks go by when they were put and what their level allows, so that none waits for ever (C5).

use paced::internals::frontier::{Agreed, QueueChange, Tuning};
use paced::internals::task::{FleetRules, LaneWish, Priority, Put, Stage, TaskOrder};

use crate::world::{World, at, on_every_backend, path_of, request, urgent, url};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl World {
    /// The fleet goes by that order from now on.
    async fn goes_by(&self, order: TaskOrder) {
        let mark = 1 + order as u64;
        let agreed = self.frontier.agree(FleetRules { order, ..FleetRules::default() }, mark).await;
        assert_ne!(agreed.expect("answers"), Agreed::Older);
    }

    /// A site without a pace that goes by deadlines.
    async fn by_deadline(&self) {
        self.goes_by(TaskOrder::Deadline).await;
        self.site_with("a", |a| a.settings.interval = 0).await;
    }

    async fn put_at_level(&self, path: &str, priority: &str) {
        let priority = priority.parse().expect("a priority");
        self.put_with("a", Put { priority, ..request("a", path) }).await;
    }

    async fn begin(&self) {
        assert!(self.frontier.begin_run("a", Vec::new()).await.expect("answers").begun);
    }

    async fn goes_in(&self) -> TaskOrder {
        self.view("a").await.order
    }

    async fn listed_in(&self, lane: &str, at_once: u32) -> Vec<String> {
        let (mut paths, mut after) = (Vec::new(), None);
        loop {
            let some =
                self.frontier.queued("a", lane, after, at_once).await.expect("answers").expect("the site");
            let Some(last) = some.last() else { return paths };
            after = Some(last.place());
            paths.extend(some.iter().map(|task| task.url.url().path().trim_start_matches('/').to_owned()));
        }
    }
}

/// One start a minute, and each minute brings a page of a level above: of high and middle in turn. When the page that was put first is
/// started, in ms.
async fn start_of_low_work(w: &World, order: TaskOrder) -> Option<i64> {
    w.goes_by(order).await;
    w.site_with("a", |a| a.settings.interval = MINUTE).await;
    w.put_at_level("low", "system:low").await;
    for minute in 0..25 * 60 {
        let busier = if minute % 2 == 0 { "system:high" } else { "user:middle" };
        w.put_at_level(&format!("busy-{minute}"), busier).await;
        if let Some(lease) = w.claim().await {
            if path_of(&lease) == "low" {
                return Some(w.now());
            }
            w.done(&lease).await;
        }
        w.pass(MINUTE);
    }
    None
}

#[test]
fn c5_low_work_is_started_by_its_day_s_end_though_middle_and_high_work_arrives_for_ever() {
    on_every_backend(async |w| {
        let started = start_of_low_work(w, TaskOrder::Deadline).await;
        let started = started.expect("it is started");
        assert!((DAY - HOUR - MINUTE..=DAY).contains(&started), "{started}");
    });
}

#[test]
fn c5_in_the_strict_order_the_same_work_waits_for_ever() {
    on_every_backend(async |w| {
        assert_eq!(start_of_low_work(w, TaskOrder::Strict).await, None);
    });
}

#[test]
fn c4_c5_an_operator_overtakes_in_both_orders() {
    on_every_backend(async |w| {
        for order in [TaskOrder::Deadline, TaskOrder::Strict] {
            w.goes_by(order).await;
            w.site_with("a", |a| a.settings.interval = 0).await;
            w.begin().await;
            assert_eq!(w.goes_in().await, order);
            for (path, priority) in [("old", "user:middle"), ("older", "system:low")] {
                w.put_at_level(path, priority).await;
            }
            w.pass(MINUTE);
            w.put_at_level("asked", "operator").await;
            assert_eq!(w.order(0).await, ["asked", "old", "older"], "{order}");
        }
    });
}

#[test]
fn c5_a_task_goes_by_its_put_and_its_level_s_allowance_and_not_by_who_asked() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        w.put_at_level("low", "user:low").await;
        w.put_at_level("operators-low", "operator:low").await;
        w.put_at_level("systems", "system:middle").await;
        w.put_at_level("users", "user:middle").await;
        w.put_at_level("high", "system:high").await;
        w.pass(HOUR + MINUTE);
        w.put_at_level("later-high", "user:high").await;
        w.put_at_level("later", "user:middle-2").await;
        w.pass(22 * HOUR - 2 * MINUTE);
        w.put_at_level("before-low", "system:middle").await;
        w.pass(2 * MINUTE);
        w.put_at_level("after-low", "user:middle").await;
        let expected = [
            "operators-low",
            "high",
            "systems",
            "users",
            "later-high",
            "later",
            "before-low",
            "low",
            "after-low",
        ];
        assert_eq!(w.listed_in("general", 1).await, expected);
        assert_eq!(w.listed_in("general", 4).await, expected);
        assert_eq!(w.listed_in("general", 100).await, expected);
        assert_eq!(w.order(0).await, expected);
    });
}

#[test]
fn c5_of_one_deadline_the_one_that_was_put_first_goes_first() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        w.put_at_level("low", "user:low").await;
        w.pass(23 * HOUR);
        w.put_at_level("middle", "user:middle").await;
        w.pass(HOUR);
        w.put_at_level("high", "user:high").await;
        for at_once in 1..4 {
            assert_eq!(w.listed_in("general", at_once).await, ["low", "middle", "high"]);
        }
        assert_eq!(w.order(0).await, ["low", "middle", "high"]);
    });
}

#[test]
fn c5_a_robots_txt_goes_before_all_that_is_overdue() {
    on_every_backend(async |w| {
        w.goes_by(TaskOrder::Deadline).await;
        w.site_with("a", |a| a.settings.robots = true).await;
        w.put_at_level("page", "operator:high").await;
        w.pass(2 * DAY);
        w.put_with("a", urgent("a", "probe", 0)).await;
        assert!(w.take().await.robots.is_some());
        assert_eq!(
            w.listed_in("general", 9).await,
            ["page"],
            "what is as urgent as a robots.txt isn't listed"
        );
    });
}

#[test]
fn c5_i8_a_retry_and_a_lost_lease_keep_the_deadline() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        w.put_at_level("tried", "user:middle").await;
        let lease = w.take().await;
        w.pass(10);
        w.put_at_level("next", "user:middle").await;
        w.retry(&lease, 1_000).await;
        w.pass(1_000);
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "tried");
        w.pass(31_000);
        w.put_at_level("high", "user:high").await;
        assert_eq!(w.order(0).await, ["high", "tried", "next"], "its lease was lost");
    });
}

#[test]
fn c5_a_put_that_finds_a_page_waiting_makes_it_more_urgent_from_its_old_put_on() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        w.put_at_level("low", "user:low").await;
        w.pass(2 * HOUR);
        w.put_at_level("middle", "user:middle").await;
        w.put_at_level("low", "user:middle").await;
        assert_eq!(w.order(0).await, ["low", "middle"], "it should have gone an hour ago");
    });
}

#[test]
fn n5_c5_what_is_raised_or_lowered_goes_by_the_deadline_of_its_new_level() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        for path in ["1", "2", "3"] {
            w.put_at_level(path, "user:middle").await;
        }
        let change = async |path: &str, from: u16, to: u16| {
            let [from, to] = [from, to].map(Priority::from_value);
            let urls = vec![url("a", path)];
            w.frontier.requeue("a", urls, QueueChange::Priority { from, to }).await.expect("answers")
        };
        assert_eq!(change("1", 240, 340).await, Some(1));
        assert_eq!(change("3", 240, 140).await, Some(1));
        w.pass(HOUR + MINUTE);
        w.put_at_level("high", "user:high").await;
        let expected = ["3", "2", "high", "1"];
        assert_eq!(w.listed_in("general", 2).await, expected);
        assert_eq!(w.order(0).await, expected);
    });
}

#[test]
fn c5_parses_go_by_deadline_too() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        for (path, priority) in [("middle", "user:middle"), ("high", "user:high")] {
            w.put_at_level(path, priority).await;
            let lease = w.take().await;
            w.fetched(&lease).await;
            w.pass(2 * HOUR);
        }
        let first = w.parse().await.expect("it waits");
        assert_eq!((first.stage, path_of(&first).as_str()), (Stage::Parse, "middle"), "it is overdue");
    });
}

#[test]
fn c5_each_lane_has_its_own_order() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        let into = |lane: &str| LaneWish { lane: Some(lane.to_owned()), ..LaneWish::default() };
        for (path, value, lane) in [("1", 360, "now"), ("2", 120, "general"), ("3", 240, "now")] {
            w.put_with("a", Put { wish: into(lane), ..urgent("a", path, value) }).await;
        }
        assert_eq!(w.listed_in("now", 1).await, ["3", "1"]);
        assert_eq!(w.order(0).await, ["3", "1", "2"]);
    });
}

#[test]
fn c5_a_site_takes_another_order_with_its_next_run_and_not_before() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.begin().await;
        let puts = async || {
            w.put_at_level("system", "system:middle").await;
            w.put_at_level("user", "user:middle").await;
        };
        puts().await;
        w.goes_by(TaskOrder::Deadline).await;
        w.site_with("a", |a| a.settings.interval = 0).await;
        assert!(!w.frontier.begin_run("a", Vec::new()).await.expect("answers").begun, "it isn't finished");
        assert_eq!(w.goes_in().await, TaskOrder::Strict);
        assert_eq!(w.order(0).await, ["user", "system"]);
        w.begin().await;
        assert_eq!(w.goes_in().await, TaskOrder::Deadline);
        puts().await;
        assert_eq!(w.order(0).await, ["system", "user"]);
        w.goes_by(TaskOrder::Strict).await;
        puts().await;
        assert_eq!(w.order(0).await, ["system", "user"], "its run goes on");
        w.begin().await;
        puts().await;
        assert_eq!(w.order(0).await, ["user", "system"]);
    });
}

#[test]
fn c5_a_site_that_never_began_a_run_takes_an_order_when_it_is_registered() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.goes_by(TaskOrder::Deadline).await;
        assert_eq!(w.goes_in().await, TaskOrder::Strict);
        w.site_with("a", |a| a.settings.interval = 0).await;
        assert_eq!(w.goes_in().await, TaskOrder::Deadline);
        w.frontier.rename("a", "b").await.expect("renamed");
        w.frontier.rename("b", "a").await.expect("renamed");
        assert_eq!(w.goes_in().await, TaskOrder::Deadline, "it is the site's own");
    });
}

#[test]
fn c5_what_was_put_in_one_order_goes_by_the_other_one_from_the_next_run_on() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_at_level("waits-system", "system:middle").await;
        w.put_at_level("waits-user", "user:middle").await;
        let later = |path: &str, priority: u16| Put { at: Some(at(5_000)), ..urgent("a", path, priority) };
        w.put_with("a", later("later-system", 260)).await;
        w.put_with("a", later("later-user", 240)).await;
        w.goes_by(TaskOrder::Deadline).await;
        w.begin().await;
        w.pass(5_000);
        let expected = ["waits-system", "waits-user", "later-system", "later-user"];
        assert_eq!(w.order(0).await, expected, "each by its own put");
        for path in ["1", "2"] {
            w.put_at_level(path, if path == "1" { "system:middle" } else { "user:middle" }).await;
        }
        let running = w.take().await;
        w.goes_by(TaskOrder::Strict).await;
        w.frontier.begin_fresh_run("a", Vec::new()).await.expect("begun");
        assert_eq!(w.goes_in().await, TaskOrder::Strict);
        w.put_at_level("user", "user:middle").await;
        w.retry(&running, 0).await;
        assert_eq!(w.order(0).await, ["user", "1"], "what ran is the new run's, and goes by its order");
    });
}

#[test]
fn c5_a_tuned_or_paused_site_keeps_its_order() {
    on_every_backend(async |w| {
        w.by_deadline().await;
        w.put_at_level("system", "system:middle").await;
        w.put_at_level("user", "user:middle").await;
        w.tune("a", Tuning::pause("lunch")).await;
        w.tune("a", Tuning::Paused(None)).await;
        assert_eq!(w.order(0).await, ["system", "user"]);
    });
}
