//! Values set while a site runs: within bounds, in force for the very next claim, and whose they are.

use paced::internals::frontier::{Act, DatedAct, Forgotten, Pause, SiteSettings, TuneReply, Tuning};
use paced::internals::task::PutReply;

use crate::world::{START, World, at, on_every_backend, shop};

fn act(did: &str) -> Act {
    Act { who: "ann@desk".to_owned(), did: did.to_owned(), why: "a sale".to_owned() }
}

async fn tuned(w: &World, site: &str, tunings: Vec<Tuning>) -> TuneReply {
    w.frontier.tune_by(act(&format!("tune {}", tunings.len())), site, tunings).await.expect("an answer")
}

/// A site of one start a second that may be tuned to half of that, and to four requests at once.
async fn bounded(w: &World) {
    let mut new = shop("a");
    new.settings = SiteSettings { min_interval: 500, max_parallel: 4, parallel: 2, ..new.settings };
    w.frontier.register(new).await.expect("registered");
}

async fn in_force(w: &World) -> (i64, u32) {
    let view = w.view("a").await;
    (view.interval, view.parallel)
}

#[test]
fn l6_a_value_within_the_file_s_bounds_is_in_force_and_one_outside_says_what_can_be() {
    on_every_backend(async |w| {
        bounded(w).await;
        let interval = |ms| vec![Tuning::Interval(Some(ms))];
        let parallel = |most| vec![Tuning::Parallel(Some(most))];
        assert_eq!(tuned(w, "a", interval(499)).await, TuneReply::Interval(500, 86_400_000));
        assert_eq!(tuned(w, "a", interval(86_400_001)).await, TuneReply::Interval(500, 86_400_000));
        assert_eq!(tuned(w, "a", parallel(5)).await, TuneReply::Parallel(1, 4));
        assert_eq!(tuned(w, "a", parallel(0)).await, TuneReply::Parallel(1, 4));
        assert_eq!(tuned(w, "b", interval(500)).await, TuneReply::Unknown);
        assert_eq!(in_force(w).await, (1_000, 2), "what was refused changed nothing");
        assert_eq!(tuned(w, "a", [interval(500), parallel(5)].concat()).await, TuneReply::Parallel(1, 4));
        assert_eq!(in_force(w).await, (1_000, 2), "all of them or none");
        assert_eq!(tuned(w, "a", [interval(500), parallel(4)].concat()).await, TuneReply::Done);
        assert_eq!(in_force(w).await, (500, 4));
        assert_eq!(tuned(w, "a", interval(86_400_000)).await, TuneReply::Done);
        assert_eq!(
            tuned(w, "a", vec![Tuning::Interval(None), Tuning::Parallel(None)]).await,
            TuneReply::Done
        );
        assert_eq!(in_force(w).await, (1_000, 2), "the file's again");
    });
}

#[test]
fn l6_a_file_that_allows_less_than_was_set_wins() {
    on_every_backend(async |w| {
        bounded(w).await;
        assert_eq!(
            tuned(w, "a", vec![Tuning::Interval(Some(500)), Tuning::Parallel(Some(4))]).await,
            TuneReply::Done
        );
        let mut new = shop("a");
        new.settings = SiteSettings { min_interval: 800, max_parallel: 3, ..new.settings };
        w.frontier.register(new).await.expect("registered");
        assert_eq!(in_force(w).await, (800, 3));
    });
}

#[test]
fn i1_a_tuned_interval_is_no_shorter_than_the_one_of_its_group() {
    on_every_backend(async |w| {
        w.site_with("a", |new| new.group = Some(("g".to_owned(), 3_000))).await;
        assert_eq!(
            tuned(w, "a", vec![Tuning::Interval(Some(2_000))]).await,
            TuneReply::Interval(3_000, 86_400_000)
        );
    });
}

#[test]
fn c13_more_pages_of_a_run_are_taken_once_max_pages_is_raised_and_it_is_never_lowered() {
    on_every_backend(async |w| {
        w.site("a").await;
        let pages = |most| vec![Tuning::MaxPages(Some(most))];
        assert_eq!(tuned(w, "a", pages(9)).await, TuneReply::Unbounded);
        w.site_with("a", |new| {
            new.settings.budgets = [(String::new(), 2), ("rule".to_owned(), 3)].into();
        })
        .await;
        assert_eq!(tuned(w, "a", pages(1)).await, TuneReply::MaxPages(2, 1_000_000_000_000));
        let mut put = Vec::new();
        for path in ["1", "2", "3"] {
            put.push(w.link("a", path).await);
        }
        assert_eq!(put, [PutReply::Created, PutReply::Created, PutReply::OverBudget]);
        assert_eq!(tuned(w, "a", pages(4)).await, TuneReply::Done);
        assert_eq!(tuned(w, "a", pages(3)).await, TuneReply::MaxPages(4, 1_000_000_000_000));
        assert_eq!((w.link("a", "3").await, w.link("a", "4").await), (PutReply::Created, PutReply::Created));
        assert_eq!(w.link("a", "5").await, PutReply::OverBudget);
        assert_eq!(w.view("a").await.says.most_pages(), Some(4));
        assert_eq!(tuned(w, "a", vec![Tuning::MaxPages(None)]).await, TuneReply::Done);
        assert_eq!(w.view("a").await.says.most_pages(), Some(2), "the file's again");
    });
}

#[test]
fn c13_f17_tasks_made_from_now_on_wait_in_the_lane_that_was_set() {
    on_every_backend(async |w| {
        w.site_with("a", |new| new.settings.lane = Some("slow".to_owned())).await;
        w.put("a", "1").await;
        let lane = |lane: Option<&str>| vec![Tuning::Lane(lane.map(str::to_owned))];
        assert_eq!(tuned(w, "a", lane(Some("slower"))).await, TuneReply::Done);
        w.put("a", "2").await;
        w.link("a", "3").await;
        assert_eq!(tuned(w, "a", lane(Some("general"))).await, TuneReply::Done);
        w.put("a", "4").await;
        assert_eq!(tuned(w, "a", lane(None)).await, TuneReply::Done);
        w.put("a", "5").await;
        let lanes = w.downloads("a").await.lanes;
        let expected = [("slow".to_owned(), 2), ("slower".to_owned(), 2)].into();
        assert_eq!((w.downloads("a").await.waiting, lanes), (5, expected));
    });
}

#[test]
fn i11_l1_a_pause_that_ends_by_itself_needs_no_other_event() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let pause = Pause { why: "lunch".to_owned(), until: Some(START + 20_000) };
        assert_eq!(tuned(w, "a", vec![Tuning::Paused(Some(pause))]).await, TuneReply::Done);
        let view = w.view("a").await;
        assert_eq!(view.pause().as_deref(), Some(&*format!("paused until {}: lunch", at(20_000))));
        assert_eq!(view.next_start(), Some(at(20_000)));
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(20_000)));
        w.pass(20_000);
        assert_eq!(w.view("a").await.pause(), None);
        w.take().await;
    });
}

#[test]
fn i11_a_pause_that_was_to_end_by_itself_can_be_made_longer_and_lifted() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let pause = Pause { why: "lunch".to_owned(), until: Some(START + 20_000) };
        tuned(w, "a", vec![Tuning::Paused(Some(pause))]).await;
        tuned(w, "a", vec![Tuning::pause("for good")]).await;
        w.pass(30_000);
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, None));
        tuned(w, "a", vec![Tuning::Paused(None)]).await;
        w.take().await;
    });
}

#[test]
fn what_people_did_is_kept_latest_first_with_who_and_why_and_goes_with_the_site() {
    on_every_backend(async |w| {
        w.site("a").await;
        tuned(w, "a", vec![Tuning::Interval(Some(2_000))]).await;
        tuned(w, "a", vec![Tuning::Parallel(Some(0))]).await;
        w.pass(10);
        assert!(w.frontier.note("a", act("dead letters: 3 revived")).await.expect("kept"));
        assert!(!w.frontier.note("b", act("nothing")).await.expect("answered"), "there is no such site");
        let dated = |ms, did: &str| DatedAct { at: at(ms), act: act(did) };
        let expected = vec![dated(10, "dead letters: 3 revived"), dated(0, "tune 1")];
        assert_eq!(w.frontier.acts("a").await.expect("acts"), expected, "what was refused isn't among them");
        w.frontier.rename("a", "z").await.expect("renamed");
        assert_eq!(w.frontier.acts("z").await.expect("acts"), expected);
        assert_eq!(w.frontier.acts("a").await.expect("acts"), []);
        while w.frontier.forget("z").await.expect("answered") != Forgotten::Wholly {}
        assert_eq!(w.frontier.acts("z").await.expect("acts"), []);
        assert!(w.frontier.note("", act("forget z")).await.expect("kept"));
        assert_eq!(w.frontier.acts("").await.expect("acts"), [dated(10, "forget z")]);
    });
}

#[test]
fn i17_of_what_people_did_a_thousand_acts_and_400_days_are_kept() {
    on_every_backend(async |w| {
        w.site("a").await;
        for nth in 0..1_003 {
            assert!(w.frontier.note("a", act(&nth.to_string())).await.expect("kept"));
        }
        let acts = w.frontier.acts("a").await.expect("acts");
        assert_eq!((acts.len(), &*acts[0].act.did, &*acts[999].act.did), (1_000, "1002", "3"));
        w.pass(400 * 86_400_000 + 1);
        assert_eq!(w.frontier.acts("a").await.expect("acts"), []);
        assert!(w.frontier.note("a", act("new")).await.expect("kept"));
        assert_eq!(w.frontier.acts("a").await.expect("acts").len(), 1);
    });
}

/// Sites of a group that waits 2 s.
async fn grouped(w: &World) {
    for name in ["a", "b"] {
        w.site_with(name, |new| new.group = Some(("g".to_owned(), 2_000))).await;
        w.put_many(name, 3).await;
    }
}

async fn tune_group(w: &World, group: &str, interval: Option<i64>) -> TuneReply {
    w.frontier.tune_group(group, interval).await.expect("an answer")
}

#[test]
fn f17_l6_a_group_is_slowed_while_it_runs_and_no_faster_than_its_files_say() {
    on_every_backend(async |w| {
        grouped(w).await;
        assert_eq!(tune_group(w, "h", Some(5_000)).await, TuneReply::Unknown);
        for outside in [1_999, 86_400_001] {
            assert_eq!(tune_group(w, "g", Some(outside)).await, TuneReply::Interval(2_000, 86_400_000));
        }
        let first = w.start().await;
        let started = w.now();
        assert_eq!(tune_group(w, "g", Some(10_000)).await, TuneReply::Done);
        for site in ["a", "b"] {
            let view = w.view(site).await;
            assert_eq!(
                (view.interval, view.says.group, view.says.tuned_group),
                (10_000, Some(2_000), Some(10_000))
            );
            assert_eq!(view.due, at(started + 10_000), "in force for the very next start");
        }
        w.pass(9_000);
        assert!(w.claim().await.is_none());
        w.pass(1_000);
        w.start().await;
        let least = TuneReply::Interval(10_000, 86_400_000);
        assert_eq!(tuned(w, "a", vec![Tuning::Interval(Some(9_999))]).await, least, "a site's is no shorter");
        assert_eq!(tune_group(w, "g", None).await, TuneReply::Done);
        assert_eq!((w.view("b").await.interval, w.view("b").await.says.tuned_group), (2_000, None));
        w.done(&first).await;
    });
}

#[test]
fn f17_what_a_group_was_set_to_ends_with_its_last_site() {
    on_every_backend(async |w| {
        grouped(w).await;
        assert_eq!(tune_group(w, "g", Some(10_000)).await, TuneReply::Done);
        w.site("a").await;
        assert_eq!(w.view("b").await.interval, 10_000);
        w.site("b").await;
        assert_eq!(w.view("b").await.interval, 1_000, "it is in no group");
        assert_eq!(tune_group(w, "g", Some(10_000)).await, TuneReply::Unknown);
        grouped(w).await;
        assert_eq!(w.view("b").await.interval, 2_000);
    });
}
