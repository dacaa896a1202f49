//! Sessions: their steps run one at a time, in order, whatever happens to one of them (C6-C8, I7).

use paced::internals::frontier::SessionStatus;
use paced::internals::frontier::{QueueChange, WorkScope};
use paced::internals::task::{
    Exclusion, Failure, LaneWish, OnFailure, Outcome, Priority, Put, PutReply, RobotsAccess, SessionWish,
    Stage,
};

use crate::world::{World, at, ms, on_every_backend, path_of, request, urgent, url};

fn step(path: &str) -> Put {
    step_of("s", path)
}

fn step_of(session: &str, path: &str) -> Put {
    Put { session: Some(SessionWish::of(session)), ..request("a", path) }
}

fn skipping(path: &str) -> Put {
    let session = SessionWish { name: "s".to_owned(), on_failure: Some(OnFailure::Skip) };
    Put { session: Some(session), ..request("a", path) }
}

impl World {
    /// A site without a pace, so that nothing but its session keeps a step back.
    async fn site_of_steps(&self) {
        self.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.attempts = 2;
        })
        .await;
    }

    async fn steps(&self, paths: &[&str]) {
        for path in paths {
            assert_eq!(self.put_with("a", step(path)).await, PutReply::Created);
        }
    }

    /// The paths that can be claimed now, all at once.
    async fn claimable(&self) -> Vec<String> {
        self.grant(self.want(9, 0)).await.leases.iter().map(path_of).collect()
    }

    async fn session(&self) -> SessionStatus {
        self.frontier.session("a", "s").await.expect("answers").expect("it is there")
    }

    /// Steps put, done, dead, dropped.
    async fn counted(&self) -> [u64; 4] {
        let session = self.session().await.session;
        [session.created, session.done, session.dead, session.dropped]
    }

    async fn held(&self) -> Vec<String> {
        self.view("a").await.held.into_iter().map(|held| format!("{} by {}", held.name, held.url)).collect()
    }

    pub(super) async fn drop_letter(&self, path: &str) {
        let letters = vec![(Stage::Download, url("a", path))];
        assert_eq!(self.frontier.drop_letters("a", letters).await.expect("answers"), [true]);
    }
}

#[test]
fn c6_i7_one_step_is_in_hand_at_a_time_in_the_order_of_putting() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2", "3"]).await;
        let counts = w.downloads("a").await;
        assert_eq!((counts.waiting, counts.scheduled, counts.behind), (1, 2, 2));
        for path in ["1", "2", "3"] {
            let mut leases = w.grant(w.want(9, 0)).await.leases;
            assert_eq!(leases.iter().map(path_of).collect::<Vec<_>>(), [path]);
            w.fetched(&leases.remove(0)).await;
        }
        assert_eq!(w.counted().await, [3, 3, 0, 0]);
        assert!(w.session().await.session.ended_at.is_some());
        assert_eq!(w.parses("a").await.waiting, 3, "their parses don't belong to it");
    });
}

#[test]
fn c7_what_uninstalls_never_comes_before_what_installs() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        let install: Vec<Put> = (0..100).map(|n| step(&format!("install-{n:03}"))).collect();
        w.frontier.put("a", install).await.expect("answers");
        w.steps(&["uninstall"]).await;
        let mut order = Vec::new();
        while let Some(lease) = w.claim().await {
            order.push(path_of(&lease));
            assert_eq!(w.claim().await, None, "one at a time");
            w.done(&lease).await;
        }
        assert_eq!(order.len(), 101);
        assert!(order.is_sorted(), "{order:?}");
    });
}

#[test]
fn c8_pages_of_no_session_and_other_sessions_run_beside_it() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        w.put("a", "alone").await;
        w.put_with("a", step_of("t", "t1")).await;
        w.put_with("a", step_of("t", "t2")).await;
        assert_eq!(w.claimable().await, ["1", "alone", "t1"]);
    });
}

#[test]
fn c6_a_more_urgent_newcomer_takes_the_place_of_a_step_that_never_started() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        w.put_with("a", Put { priority: Priority::from_value(120), ..step("urgent") }).await;
        assert_eq!(w.place("a", "1").await, "behind");
        assert_eq!(w.order(1).await, ["urgent", "1", "2"]);
    });
}

/// The hole of the published SQL: the newcomer is first of its session, and not locked.
#[test]
fn c6_i7_a_more_urgent_newcomer_does_not_run_beside_the_step_that_runs() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        w.put_with("a", Put { priority: Priority::from_value(120), ..step("urgent") }).await;
        assert_eq!(w.claim().await, None);
        w.retry(&lease, 5_000).await;
        w.steps(&["3"]).await;
        assert_eq!(w.claim().await, None, "a step that is tried again is the head still");
        w.pass(5_000);
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "1");
        w.done(&lease).await;
        assert_eq!(w.order(1).await, ["urgent", "2", "3"]);
    });
}

#[test]
fn c9_a_step_for_later_holds_back_those_after_it_and_none_before_it() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.put_with("a", Put { at: Some(at(60_000)), ..step("late") }).await;
        assert_eq!(w.place("a", "late").await, "scheduled");
        w.steps(&["early"]).await;
        assert_eq!(w.place("a", "late").await, "behind", "the one that was put for now goes first");
        w.put_with("a", Put { at: Some(at(70_000)), ..step("later") }).await;
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "early");
        w.done(&lease).await;
        assert_eq!(w.claim().await, None);
        w.pass(60_000);
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "late");
        w.pass(20_000);
        assert_eq!(w.claim().await, None, "its time has come, not its turn");
        w.done(&lease).await;
        assert_eq!(w.claimable().await, ["later"]);
    });
}

#[test]
fn i7_a_lost_lease_or_one_that_went_back_keeps_its_place() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        w.work_on("doomed", WorkScope::All).await;
        assert_eq!(path_of(&w.take_as("doomed").await), "1");
        w.frontier.bury("doomed").await.expect("answers");
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "1");
        assert!(w.back(&lease).await);
        assert_eq!(w.claim().await, None);
        w.pass(1_000);
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "1");
        w.settle(&lease, Outcome::Refused { why: Failure::status(430, "430") }).await;
        assert_eq!(
            w.claimable().await,
            ["1"],
            "refused by a wall it is behind others of the site, not of its session"
        );
    });
}

#[test]
fn i7_a_step_whose_host_is_away_holds_its_session() {
    on_every_backend(async |w| {
        w.site_with("a", |a| (a.settings.interval, a.settings.robots) = (0, true)).await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        w.robots(&lease, RobotsAccess::Unreachable("503".to_owned()), 10_000).await;
        assert_eq!(w.claim().await, None);
        assert_eq!(
            (w.place("a", "1").await, w.place("a", "2").await),
            ("parked".to_owned(), "behind".to_owned())
        );
        w.pass(10_000);
        let lease = w.take().await;
        w.robots(&lease, RobotsAccess::Absent, 3_600_000).await;
        assert_eq!(w.order(1).await, ["1", "2"]);
    });
}

#[test]
fn c6_a_robots_txt_that_is_needed_is_no_step_any_more() {
    on_every_backend(async |w| {
        w.site_with("a", |a| (a.settings.interval, a.settings.robots) = (0, true)).await;
        w.steps(&["1", "robots.txt", "2"]).await;
        let lease = w.take().await;
        assert_eq!((path_of(&lease).as_str(), lease.robots.is_some()), ("robots.txt", true));
        assert_eq!(w.counted().await, [3, 0, 0, 1]);
        assert_eq!(w.put_with("a", step("robots.txt")).await, PutReply::Busy);
        w.robots(&lease, RobotsAccess::Absent, 3_600_000).await;
        assert_eq!(w.order(1).await, ["1", "2"]);
    });
}

#[test]
fn c6_a_dead_step_holds_its_session_until_it_is_revived() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.frontier.begin_run("a", Vec::new()).await.expect("answers");
        w.steps(&["1", "2", "3"]).await;
        let lease = w.take().await;
        w.die(&lease).await;
        assert_eq!(w.claim().await, None);
        assert_eq!(w.held().await, ["s by https://a.example/1"]);
        assert!(w.view("a").await.finished, "it keeps no run alive");
        assert_eq!(w.counted().await, [3, 0, 1, 0]);
        w.put_with("a", Put { priority: Priority::from_value(120), ..step("urgent") }).await;
        assert_eq!(w.claim().await, None, "nor does a newcomer go on");
        assert_eq!(w.put_with("a", step_of("t", "1")).await, PutReply::Busy);
        assert_eq!(w.put("a", "1").await, PutReply::Revived);
        assert_eq!(w.held().await, Vec::<String>::new());
        assert_eq!(w.order(1).await, ["1", "urgent", "2", "3"]);
        assert_eq!(w.counted().await, [5, 4, 1, 0]);
    });
}

#[test]
fn c6_a_dead_step_that_is_dropped_lets_the_next_one_go_on() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        for _ in 0..2 {
            let lease = w.take().await;
            w.retry(&lease, 0).await;
        }
        assert_eq!(w.held().await, ["s by https://a.example/1"], "its last attempt failed");
        w.drop_letter("1").await;
        assert_eq!(w.held().await, Vec::<String>::new());
        assert_eq!(w.order(1).await, ["2"]);
        assert!(w.session().await.session.ended_at.is_some());
    });
}

#[test]
fn c6_with_skip_the_next_step_goes_on_after_one_that_died() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.put_with("a", skipping("1")).await;
        w.steps(&["2"]).await;
        let lease = w.take().await;
        w.die(&lease).await;
        assert_eq!(w.held().await, Vec::<String>::new());
        assert_eq!(w.order(1).await, ["2"]);
        assert_eq!(w.counted().await, [2, 1, 1, 0]);
        w.put("a", "1").await;
        assert_eq!(w.counted().await, [2, 1, 1, 0], "a step that is revived then is a page like others");
    });
}

#[test]
fn c6_a_page_that_waits_joins_and_one_that_is_elsewhere_is_busy() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.put("a", "own").await;
        w.steps(&["1"]).await;
        assert_eq!(w.put_with("a", step("own")).await, PutReply::Coalesced);
        assert_eq!(w.place("a", "1").await, "behind", "it was put before it");
        assert_eq!(w.put_with("a", step("own")).await, PutReply::Coalesced);
        assert_eq!(w.put("a", "own").await, PutReply::Coalesced);
        assert_eq!(w.put_with("a", step_of("t", "own")).await, PutReply::Busy);
        assert_eq!(w.frontier.session("a", "t").await.expect("answers"), None, "nothing changed");
        w.put_with("a", urgent("a", "runs", 120)).await;
        let lease = w.take().await;
        assert_eq!(path_of(&lease), "runs");
        assert_eq!(w.put_with("a", step("runs")).await, PutReply::Busy);
        w.done(&lease).await;
        assert_eq!(w.order(1).await, ["own", "1"]);
        assert_eq!(w.counted().await, [2, 2, 0, 0]);
    });
}

#[test]
fn m3_c6_a_step_that_is_put_while_it_runs_runs_once_more_in_its_turn() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        assert_eq!(w.put_with("a", step("1")).await, PutReply::Deferred);
        w.steps(&["3"]).await;
        w.done(&lease).await;
        assert_eq!(w.order(1).await, ["2", "1", "3"], "it was put again before the last one");
        assert_eq!(w.counted().await, [4, 4, 0, 0]);
    });
}

#[test]
fn m3_a_further_run_that_nobody_asked_to_be_a_step_is_none() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        assert_eq!(w.put("a", "1").await, PutReply::Deferred);
        w.done(&lease).await;
        let mut paths = w.claimable().await;
        paths.sort();
        assert_eq!(paths, ["1", "2"]);
        assert_eq!(w.counted().await, [2, 1, 0, 0]);
    });
}

#[test]
fn m3_c6_a_dead_step_that_runs_once_more_goes_before_the_others() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        w.put("a", "1").await;
        w.die(&lease).await;
        assert_eq!(w.held().await, Vec::<String>::new());
        assert_eq!(w.order(1).await, ["1", "2"]);
        assert_eq!(w.counted().await, [3, 2, 1, 0]);
    });
}

#[test]
fn c6_where_a_step_leads_by_a_redirect_takes_its_place() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        assert_eq!(lease.session.as_deref(), Some("s"));
        let target = Put { hops: 1, ..step("target") };
        assert_eq!(w.put_with("a", target.clone()).await, PutReply::Created);
        assert_eq!(w.claim().await, None);
        // After a crash in between it is put once more.
        assert_eq!(w.put_with("a", target).await, PutReply::Coalesced);
        w.settle(&lease, Outcome::Redirected { to: url("a", "target") }).await;
        w.put_with("a", Put { priority: Priority::from_value(120), ..step("urgent") }).await;
        assert_eq!(w.order(1).await, ["target", "urgent", "2"]);
    });
}

#[test]
fn c6_a_redirect_to_a_page_of_another_session_is_not_refused() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2"]).await;
        w.put_with("a", step_of("t", "target")).await;
        let lease = w.take().await;
        assert_eq!(w.put_with("a", Put { hops: 1, ..step("target") }).await, PutReply::Coalesced);
        w.settle(&lease, Outcome::Redirected { to: url("a", "target") }).await;
        assert_eq!(w.claimable().await, ["2", "target"]);
    });
}

#[test]
fn i12_steps_that_expired_go_without_a_start() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        for path in ["1", "2", "3"] {
            w.put_with("a", Put { expires: (path != "3").then(|| at(5_000)), ..step(path) }).await;
        }
        w.pass(10_000);
        assert_eq!(w.claimable().await, ["3"]);
        assert_eq!(w.counted().await, [3, 2, 0, 0]);
        assert_eq!(w.downloads("a").await.excluded.get(&Exclusion::Expired), Some(&2));
    });
}

#[test]
fn n5_a_head_that_is_dropped_lets_the_next_one_in_and_none_is_raised_or_lowered() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2", "3"]).await;
        let change = async |path: &str, change| {
            w.frontier.requeue("a", vec![url("a", path)], change).await.expect("answers")
        };
        let [from, to] = [240, 360].map(Priority::from_value);
        assert_eq!(change("1", QueueChange::Priority { from, to }).await, Some(0));
        assert_eq!(change("1", QueueChange::Drop).await, Some(1));
        assert_eq!(w.order(1).await, ["2", "3"]);
        assert_eq!(w.counted().await, [3, 2, 0, 1]);
    });
}

#[test]
fn n5_all_steps_of_a_session_that_nobody_works_on_are_dropped() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2", "3"]).await;
        w.put_with("a", step_of("t", "t1")).await;
        let drop_all = async || {
            let mut dropped = 0;
            loop {
                match w.frontier.drop_steps("a", "s").await.expect("answers") {
                    0 => return dropped,
                    some => dropped += some,
                }
            }
        };
        let lease = w.take().await;
        assert_eq!(drop_all().await, 2, "one runs");
        w.retry(&lease, 5_000).await;
        assert_eq!(drop_all().await, 1);
        assert_eq!(w.claimable().await, ["t1"]);
        assert_eq!(w.counted().await, [3, 0, 0, 3]);
        assert!(w.session().await.session.ended_at.is_some());
    });
}

#[test]
fn c7_who_asks_for_a_step_as_a_page_like_others_changes_no_order() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1"]).await;
        w.put_with("a", Put { at: Some(at(60_000)), ..step("late") }).await;
        w.steps(&["2"]).await;
        for again in [false, true] {
            let put = Put { again, ..urgent("a", "2", 120) };
            assert_eq!(w.put_with("a", put).await, PutReply::Coalesced);
            assert_eq!(w.put_with("a", Put { again, ..urgent("a", "late", 120) }).await, PutReply::Coalesced);
        }
        w.link("a", "2").await;
        assert_eq!(w.order(1).await, ["1", "2"]);
        w.pass(60_000);
        assert_eq!(w.order(1).await, ["late"]);
    });
}

#[test]
fn c6_a_link_a_seed_or_a_recrawl_revives_no_step_that_holds_its_session() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.put("a", "1").await;
        let lease = w.take().await;
        w.fetched_for(&lease, 10_000).await;
        w.done(&w.parse().await.expect("it waits")).await;
        w.steps(&["1", "2"]).await;
        let lease = w.take().await;
        w.die(&lease).await;
        w.frontier.begin_run("a", vec![request("a", "1")]).await.expect("answers");
        assert_eq!(w.link("a", "1").await, PutReply::Known);
        w.pass(20_000);
        assert_eq!(w.feed(9).await.put, 0);
        assert_eq!(w.held().await.len(), 1);
        assert_eq!(w.put("a", "1").await, PutReply::Revived);
    });
}

/// Several puts in one step are read together; one of them may move what a later one names.
#[test]
fn c6_i14_puts_of_one_call_that_move_each_other_lose_no_step() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        let now = |path: &str| Put { wish: LaneWish { urgent: true, ..LaneWish::default() }, ..step(path) };
        let high = |path: &str| Put { priority: Priority::from_value(120), ..now(path) };
        let put = async |puts: Vec<Put>| w.frontier.put("a", puts).await.expect("answers");
        put(vec![now("2"), now("3")]).await;
        assert_eq!(put(vec![high("1"), now("2"), step("3")]).await[1..], [PutReply::Coalesced; 2]);
        assert_eq!(w.place("a", "2").await, "behind");
        assert_eq!(w.order(1).await, ["1", "2", "3"]);
        put(vec![Put { at: Some(at(60_000)), ..step("late") }]).await;
        put(vec![step("early"), step("late"), step("last")]).await;
        w.pass(70_000);
        assert_eq!(w.claimable().await, ["early"]);
    });
}

#[test]
fn c4_the_steps_of_an_operator_go_before_others_when_their_turn_comes() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.put_many("a", 20).await;
        for path in ["1", "2"] {
            w.put_with("a", Put { wish: LaneWish { urgent: true, ..LaneWish::default() }, ..step(path) })
                .await;
        }
        let (first, second) = (w.take().await, w.take().await);
        assert_eq!((path_of(&first).as_str(), path_of(&second).as_str()), ("1", "00000"));
        w.done(&first).await;
        assert_eq!(path_of(&w.take().await), "2");
    });
}

#[test]
fn c6_a_run_that_is_given_up_takes_its_sessions_along() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2", "3"]).await;
        w.put_with("a", step_of("t", "t1")).await;
        w.put_with("a", step_of("t", "t2")).await;
        let dying = w.take().await;
        w.die(&dying).await;
        let running = w.take().await;
        assert_eq!(path_of(&running), "t1");
        while w.frontier.give_up("a").await.expect("answers") {}
        assert_eq!(w.held().await, Vec::<String>::new());
        assert_eq!(w.counted().await, [3, 0, 1, 2]);
        assert!(w.session().await.session.ended_at.is_some());
        assert_eq!(w.put_with("a", step_of("t", "t3")).await, PutReply::Created);
        assert_eq!(w.claim().await, None, "the step that runs is adopted by the next run");
        w.done(&running).await;
        assert_eq!(w.claimable().await, ["t3"]);
    });
}

#[test]
fn c11_a_session_is_told_for_a_day_after_its_end_and_then_begins_anew() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1"]).await;
        w.put_with("a", Put { priority: Priority::from_value(360), ..step("2") }).await;
        let next: Vec<String> = w.session().await.next.iter().map(|step| step.url.to_string()).collect();
        assert_eq!(next, ["https://a.example/2"]);
        assert_eq!(w.order(1).await, ["1", "2"]);
        w.pass(86_400_000 - 10);
        assert_eq!(w.counted().await, [2, 2, 0, 0]);
        w.pass(10);
        assert_eq!(w.frontier.session("a", "s").await.expect("answers"), None);
        w.steps(&["3"]).await;
        assert_eq!(w.counted().await, [1, 0, 0, 0]);
    });
}

#[test]
fn i17_a_thousand_sessions_of_a_site_are_remembered_and_none_for_longer_than_a_day() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        let steps = |from: u32| (from..from + 1_003).map(|n| step_of(&format!("s{n:05}"), &n.to_string()));
        w.frontier.put("a", steps(0).collect()).await.expect("answers");
        while let Some(lease) = w.claim().await {
            w.done(&lease).await;
            w.pass(1);
        }
        let is_known = async |name: &str| w.frontier.session("a", name).await.expect("answers").is_some();
        assert_eq!(
            [is_known("s00002").await, is_known("s00003").await, is_known("s01002").await],
            [false, true, true]
        );
        w.pass(86_400_000);
        // Each run that begins forgets some.
        assert!(w.sessions_kept().is_none_or(|kept| kept == 1_000));
        for _ in 0..4 {
            w.frontier.begin_run("a", Vec::new()).await.expect("answers");
        }
        assert!(w.sessions_kept().is_none_or(|kept| kept == 0));
    });
}

#[test]
fn a_session_goes_with_its_site_to_another_name_and_is_forgotten_with_it() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        w.steps(&["1", "2", "3"]).await;
        let lease = w.take().await;
        w.die(&lease).await;
        while w.frontier.rename("a", "b").await.expect("answers")
            == paced::internals::frontier::Renamed::Partly
        {}
        let view = w.view("b").await;
        assert_eq!((view.held.len(), view.download.behind), (1, 2));
        let status = w.frontier.session("b", "s").await.expect("answers").expect("it is there");
        assert_eq!(status.next.len(), 2);
        assert_eq!(w.frontier.session("a", "s").await.expect("answers"), None);
        let letters = vec![(Stage::Download, url("a", "1"))];
        w.frontier.drop_letters("b", letters).await.expect("answers");
        assert_eq!(w.order(1).await, ["2", "3"]);
        assert!(w.sessions_kept().is_none_or(|kept| kept == 1));
        w.pass(ms(1_000).as_millis().try_into().expect("short"));
        while w.frontier.forget("b").await.expect("answers") == paced::internals::frontier::Forgotten::Partly
        {
        }
        assert!(w.sessions_kept().is_none_or(|kept| kept == 0));
    });
}

#[test]
fn c4_f7_a_long_feed_of_an_operator_s_steps_goes_before_nobody() {
    on_every_backend(async |w| {
        w.site_of_steps().await;
        let now = |path: &str| Put { wish: LaneWish { urgent: true, ..LaneWish::default() }, ..step(path) };
        let feed: Vec<Put> = (0..150).map(|n| now(&n.to_string())).collect();
        w.put_many("a", 1).await;
        w.frontier.put("a", feed).await.expect("answers");
        for n in 0..101 {
            let lease = w.take().await;
            assert_eq!(path_of(&lease), n.to_string(), "the head and a hundred behind it");
            w.done(&lease).await;
        }
        assert_eq!(path_of(&w.take().await), "00000", "it was put before");
        assert_eq!(path_of(&w.take().await), "101");
    });
}
