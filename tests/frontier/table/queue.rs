//! Waiting downloads are looked at and changed by people (N5).

use paced::internals::frontier::QueueChange;
use paced::internals::task::{LaneWish, Priority, Put};

use crate::world::{World, at, on_every_backend, path_of, request, urgent, url};

impl World {
    async fn listed(&self, lane: &str) -> Vec<String> {
        let (mut paths, mut after) = (Vec::new(), None);
        loop {
            let some = self.frontier.queued("a", lane, after, 2).await.expect("answers").expect("the site");
            let Some(last) = some.last() else { return paths };
            after = Some(last.place());
            paths.extend(some.iter().map(|task| task.url.url().path().trim_start_matches('/').to_owned()));
        }
    }

    async fn change(&self, paths: &[&str], change: QueueChange) -> u32 {
        let urls = paths.iter().map(|path| url("a", path)).collect();
        self.frontier.requeue("a", urls, change).await.expect("answers").expect("the site")
    }
}

#[test]
fn n5_waiting_downloads_are_listed_lane_by_lane_in_the_order_in_which_they_go() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        for (path, priority) in [("low", 360), ("x", 240), ("y", 240), ("z", 240), ("high", 120)] {
            w.put_with("a", urgent("a", path, priority)).await;
        }
        let wish = LaneWish { lane: Some("slow".to_owned()), tenant: Some("acme".to_owned()), urgent: false };
        w.put_with("a", Put { wish, ..request("a", "slow") }).await;
        w.put_with("a", Put { at: Some(at(9_000)), ..request("a", "later") }).await;
        assert_eq!(w.listed("general").await, ["high", "x", "y", "z", "low"]);
        assert_eq!(w.listed("slow").await, ["slow"]);
        let slow = w.frontier.queued("a", "slow", None, 9).await.expect("answers").expect("the site");
        assert_eq!((slow[0].lane.as_deref(), slow[0].tenant.as_deref()), (Some("slow"), Some("acme")));
        assert_eq!(w.frontier.queued("b", "general", None, 9).await.expect("answers"), None);
        let running = w.take().await;
        assert!(!w.listed("general").await.contains(&path_of(&running)) || path_of(&running) == "slow");
    });
}

#[test]
fn n5_what_waits_is_dropped_raised_lowered_or_moved_and_what_runs_is_left_alone() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let running = {
            w.put("a", "running").await;
            w.take().await
        };
        for path in ["1", "2", "3", "4", "5"] {
            w.put("a", path).await;
        }
        w.put_with("a", Put { at: Some(at(9_000)), ..request("a", "later") }).await;
        let priority = |from, to| {
            let [from, to] = [from, to].map(Priority::from_value);
            QueueChange::Priority { from, to }
        };
        let lane = |from: &str, to: &str| QueueChange::Lane { from: from.to_owned(), to: to.to_owned() };
        assert_eq!(w.change(&["5", "running", "nowhere"], priority(240, 120)).await, 1);
        assert_eq!(w.change(&["1"], priority(240, 360)).await, 1);
        assert_eq!(
            w.change(&["1", "5"], priority(240, 260)).await,
            0,
            "they are not any more as they were seen"
        );
        assert_eq!(w.change(&["2", "later"], QueueChange::Drop).await, 1);
        assert_eq!(w.change(&["3"], lane("general", "slow")).await, 1);
        assert_eq!(w.change(&["3"], lane("general", "now")).await, 0);
        assert_eq!(w.listed("general").await, ["5", "4", "1"]);
        assert_eq!(w.listed("slow").await, ["3"]);
        let books = w.downloads("a").await;
        assert_eq!((books.dropped, books.waiting, books.scheduled, books.leased), (1, 4, 1, 1));
        assert_eq!(
            w.link("a", "2").await,
            paced::internals::task::PutReply::Created,
            "as if never asked for"
        );
        assert_eq!(w.change(&["3"], lane("slow", "general")).await, 1);
        assert_eq!(w.order(0).await, ["5", "3", "4", "2", "1"], "each in its old turn");
        w.done(&running).await;
    });
}
