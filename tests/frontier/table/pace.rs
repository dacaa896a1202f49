//! The timed mutex of a site: interval, tuning, pause, blocks, outsiders.

use paced::internals::frontier::{LockReply, MutexKey, Tuning};
use paced::internals::task::{LeaseKey, Outcome};

use crate::world::{AHEAD, LEAD, at, ms, on_every_backend, starts_at};

#[test]
fn v3_five_waiters_start_at_once_and_then_each_second() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 5).await;
        let mut starts = Vec::new();
        while starts.len() < 5 {
            if let Some(lease) = w.claim().await {
                starts.push((w.now(), starts_at(&lease)));
            }
            w.pass(1);
        }
        assert_eq!(starts, [(0, 10), (960, 1_010), (1_960, 2_010), (2_960, 3_010), (3_960, 4_010)]);
    });
}

#[test]
fn v2_i1_how_long_a_request_takes_never_changes_the_spacing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 4).await;
        let slow = w.start().await;
        let quick = w.next_start_in(1_000).await;
        w.done(&quick).await;
        assert_eq!(w.claim().await, None, "done at once is no reason to start at once");
        w.next_start_in(1_000).await;
        w.done(&slow).await;
        assert_eq!(w.claim().await, None);
    });
}

#[test]
fn v7_fractions_of_a_second_work() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 125).await;
        w.put_many("a", 3).await;
        w.start().await;
        w.pass(125 - 31 - 1);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(starts_at(&w.take().await), 10 + 125);
    });
}

#[test]
fn v8_other_sites_have_their_own_pace() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site(site).await;
            w.put_many(site, 2).await;
        }
        assert_eq!(w.grant(w.want(9, 0)).await.leases.len(), 2);
    });
}

#[test]
fn v6_v11_the_mutex_of_a_site_is_there_to_be_seen_for_one_interval() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        assert_eq!(w.mutex_left("a").await, None);
        let lease = w.take().await;
        assert_eq!(w.mutex_left("a").await, Some(LEAD + 1_000), "after its start");
        w.depart(&lease);
        assert_eq!(w.mutex_left("a").await, Some(1_000));
        w.done(&lease).await;
        w.pass(400);
        assert_eq!(w.mutex_left("a").await, Some(600), "a settled task doesn't release it");
        assert_eq!(w.outsider_locks("a", 1_000).await, LockReply::Held(600));
        w.pass(600);
        assert_eq!(w.mutex_left("a").await, None);
    });
}

#[test]
fn an_outsider_s_lock_moves_the_due_time_to_its_end() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        assert!(matches!(w.outsider_locks("a", 5_000).await, LockReply::Taken(_)));
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(5_000)));
        assert_eq!(w.view("a").await.due, at(5_000));
        w.pass(4_999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        w.start().await;
        assert_eq!(w.mutex_left("a").await, Some(1_000), "now it is the frontier's");
    });
}

#[test]
fn l1_an_outsider_s_unlock_or_shorter_lock_brings_the_due_time_forward() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        w.outsider_locks("a", 60_000).await;
        assert_eq!(w.claim().await, None);
        let mutex = MutexKey::unit("a");
        assert!(w.frontier.extend_lock(&mutex, "outsider", 3_000).await.expect("answers"));
        assert_eq!(w.view("a").await.due, at(3_000));
        assert!(w.outsider_unlocks("a").await);
        w.start().await;
        assert!(!w.outsider_unlocks("a").await, "the frontier's lock is not the outsider's to release");
        assert_eq!(w.mutex_left("a").await, Some(1_000));
    });
}

#[test]
fn l6_a_tuned_interval_is_in_force_for_the_very_next_claim_and_for_outsiders() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 4).await;
        w.start().await;
        w.tune("a", Tuning::Interval(Some(200))).await;
        let after_a_late_one = 200 + 100 - 20;
        assert_eq!(w.mutex_left("a").await, Some(after_a_late_one));
        w.next_start_in(after_a_late_one).await;
        w.pass(150);
        w.tune("a", Tuning::Interval(Some(10_000))).await;
        assert_eq!(w.mutex_left("a").await, Some(9_850));
        w.next_start_in(9_850).await;
        w.tune("a", Tuning::Interval(None)).await;
        assert_eq!(w.view("a").await.interval, 1_000, "back to the file");
        w.next_start_in(1_000 + 250 - 100).await;
    });
}

#[test]
fn l6_an_interval_raised_after_its_lock_was_over_locks_outsiders_out_again() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        w.start().await;
        w.pass(5_000);
        assert_eq!(w.mutex_left("a").await, None);
        w.tune("a", Tuning::Interval(Some(60_000))).await;
        assert_eq!(w.mutex_left("a").await, Some(55_000));
        assert_eq!(w.claim().await, None);
    });
}

#[test]
fn a_tuned_value_wins_over_the_file_until_it_is_given_back() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.tune("a", Tuning::Interval(Some(300))).await;
        w.tune("a", Tuning::Parallel(Some(3))).await;
        w.site_with("a", |a| {
            a.settings.interval = 7_000;
            a.settings.parallel = 5;
        })
        .await;
        let view = w.view("a").await;
        assert_eq!((view.interval, view.parallel), (300, 3));
        w.tune("a", Tuning::Interval(None)).await;
        w.tune("a", Tuning::Parallel(None)).await;
        let view = w.view("a").await;
        assert_eq!((view.interval, view.parallel), (7_000, 5));
    });
}

#[test]
fn l6_a_new_file_s_interval_is_in_force_for_the_very_next_claim() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 3).await;
        w.start().await;
        w.site_with("a", |a| a.settings.interval = 5_000).await;
        assert_eq!(w.mutex_left("a").await, Some(5_000));
        w.pass(5_000 - AHEAD - 1);
        assert_eq!(w.claim().await, None);
        w.site_with("a", |a| a.settings.interval = 100).await;
        w.take().await;
    });
}

#[test]
fn l6_c13_a_tuned_parallel_is_in_force_for_the_very_next_claim() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 1;
        })
        .await;
        w.put_many("a", 9).await;
        assert_eq!(w.grant(w.want(9, 0)).await.leases.len(), 1);
        w.tune("a", Tuning::Parallel(Some(4))).await;
        assert_eq!(w.grant(w.want(9, 0)).await.leases.len(), 3);
        w.tune("a", Tuning::Parallel(Some(2))).await;
        assert_eq!(w.grant(w.want(9, 0)).await.leases.len(), 0);
        assert_eq!(w.view("a").await.in_flight, 4);
    });
}

#[test]
fn l6_i11_a_paused_site_gives_no_download_and_resuming_needs_nothing_else() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        w.tune("a", Tuning::pause("lunch")).await;
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, None), "only another event helps");
        assert_eq!(w.view("a").await.paused().as_deref(), Some("lunch"));
        w.tune("a", Tuning::Paused(None)).await;
        w.take().await;
    });
}

#[test]
fn i11_a_blocked_site_gives_no_download_until_its_block_is_over() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let lease = w.take().await;
        let block = Some((ms(20_000), "503".to_owned()));
        w.settle_with(&lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        w.tune("a", Tuning::Interval(Some(1))).await;
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(20_000)));
        w.pass(20_000);
        w.take().await;
    });
}

#[test]
fn i11_a_block_said_when_the_body_ended_holds_before_the_task_is_settled() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 3).await;
        let lease = w.take().await;
        w.pass(500);
        assert!(w.landed_blocked(&lease, 20_000, "429").await);
        let view = w.view("a").await;
        assert_eq!((view.in_flight, view.download.leased), (0, 1), "it isn't settled");
        assert_eq!((view.blocked_until, view.blocked_why.as_deref()), (Some(at(20_500)), Some("429")));
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(20_000 - AHEAD / 2)));
        w.pass(1_000);
        assert!(w.landed_blocked(&lease, 100, "shorter").await, "once more");
        w.done(&lease).await;
        assert_eq!(w.view("a").await.blocked_until, Some(at(20_500)), "nothing shortens it");
        w.next_start_in(19_000).await;
    });
}

#[test]
fn i11_a_block_holds_for_the_group_even_where_the_lease_is_lost() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |site| site.group = Some(("g".to_owned(), 0))).await;
            w.put(site, "p").await;
        }
        let lost = w.take().await;
        w.pass(30_000);
        assert!(!w.landed_blocked(&lost, 9_000, "429").await, "it is told that it is lost");
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(9_000 - AHEAD / 2)), "neither site");
        let nowhere = LeaseKey { site: "nowhere".to_owned(), ..lost.key() };
        let block = Some((ms(60_000), "429".to_owned()));
        assert!(!w.frontier.landed_with(nowhere, block).await.expect("answers"));
        w.next_start_in(9_000).await;
    });
}

#[test]
fn i11_a_site_can_be_blocked_without_a_task_and_its_group_with_it() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |site| site.group = Some(("g".to_owned(), 0))).await;
            w.put(site, "p").await;
        }
        let block = async |site, wait| w.frontier.block(site, ms(wait), "429").await.expect("answers");
        assert!(block("a", 20_000).await);
        assert!(block("b", 100).await, "nothing shortens it");
        assert!(!block("nowhere", 60_000).await, "there is no such site");
        let view = w.view("b").await;
        assert_eq!((view.blocked_until, view.blocked_why.as_deref()), (Some(at(20_000)), Some("429")));
        assert_eq!(w.claim().await, None);
        w.pass(20_000);
        w.take().await;
    });
}

#[test]
fn i1_a_pause_forgets_no_start() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        w.start().await;
        w.tune("a", Tuning::pause("why not")).await;
        w.tune("a", Tuning::Paused(None)).await;
        assert_eq!(w.claim().await, None);
        w.next_start_in(1_000).await;
    });
}

#[test]
fn a_site_without_pace_takes_no_mutex_and_starts_as_often_as_parallel_allows() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 20).await;
        let grant = w.grant(w.want(20, 0)).await;
        assert_eq!(grant.leases.len(), 8);
        assert_eq!(w.mutex_left("a").await, None);
        assert!(grant.leases.iter().all(|lease| lease.departure.wait().is_zero()));
    });
}

#[test]
fn tuning_a_site_that_is_not_there_says_so() {
    on_every_backend(async |w| {
        assert!(!w.frontier.tune("nowhere", Tuning::Parallel(Some(1))).await.expect("answers"));
    });
}
