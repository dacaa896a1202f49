//! Events that operators are to be told: taken in at most once an hour, told by one process, tried again (C19).

use paced::internals::frontier::{EventEnd, EventsStatus, TakenEvent};
use paced::internals::task::{Event, EventKind};

use crate::world::{START, World, on_every_backend};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const ALL: [EventKind; 5] = [
    EventKind::RunFailed,
    EventKind::SiteGivenUp,
    EventKind::Walled,
    EventKind::DeadShare,
    EventKind::CampaignDone,
];

fn walled(site: &str) -> Event {
    Event::new(EventKind::Walled, site, format!("{site} refuses")).with("refused", 3)
}

impl World {
    async fn post_event(&self, event: &Event) -> bool {
        self.next().post_event(event.clone()).await.expect("answers")
    }

    async fn take_event(&self, kinds: &[EventKind], token: u64) -> Option<TakenEvent> {
        self.next().take_event(kinds, token).await.expect("answers")
    }

    async fn end_event(&self, event: &Event, token: u64, failed: Option<&str>) -> EventEnd {
        self.next().end_event(event, token, failed.map(str::to_owned)).await.expect("answers")
    }

    async fn events(&self) -> EventsStatus {
        self.frontier.events_status().await.expect("answers")
    }
}

#[test]
fn c19_an_event_is_given_to_one_process_and_told_once() {
    on_every_backend(async |w| {
        assert_eq!(w.take_event(&ALL, 1).await, None);
        assert!(w.post_event(&walled("a")).await);
        assert_eq!(w.events().await, EventsStatus { waiting: 1, failed: None });
        let taken = w.take_event(&ALL, 1).await.expect("it waits");
        assert_eq!((taken.at.as_millis(), taken.failures), (START, 0));
        assert_eq!(taken.event, walled("a"));
        assert_eq!(w.take_event(&ALL, 2).await, None, "the first one has it in hand");
        assert_eq!(w.end_event(&taken.event, 1, None).await, EventEnd::Told);
        assert_eq!(w.end_event(&taken.event, 1, None).await, EventEnd::Stale);
        w.pass(HOUR);
        assert_eq!(w.take_event(&ALL, 3).await, None);
        assert_eq!(w.events().await, EventsStatus::default());
    });
}

#[test]
fn c19_of_a_kind_and_site_there_is_one_event_an_hour() {
    on_every_backend(async |w| {
        assert!(w.post_event(&walled("a")).await);
        assert!(!w.post_event(&walled("a")).await);
        assert!(w.post_event(&walled("b")).await, "another site");
        let failed = Event::new(EventKind::RunFailed, "a", "no page came");
        assert!(w.post_event(&failed).await, "another kind");
        for token in 1..=3 {
            let taken = w.take_event(&ALL, token).await.expect("it waits");
            w.end_event(&taken.event, token, None).await;
        }
        w.pass(HOUR - 1);
        assert!(!w.post_event(&walled("a")).await, "told, and within the hour");
        assert_eq!(w.take_event(&ALL, 9).await, None);
        w.pass(1);
        assert!(w.post_event(&walled("a")).await);
        assert_eq!(w.take_event(&ALL, 10).await.map(|taken| taken.event), Some(walled("a")));
    });
}

#[test]
fn c19_a_process_takes_the_kinds_that_it_tells_those_that_are_due_longest_first() {
    on_every_backend(async |w| {
        for (kind, site) in [(EventKind::Walled, "b"), (EventKind::Walled, "a"), (EventKind::DeadShare, "a")]
        {
            w.post_event(&Event::new(kind, site, "")).await;
        }
        w.pass(1);
        w.post_event(&Event::new(EventKind::RunFailed, "a", "")).await;
        assert_eq!(w.take_event(&[EventKind::CampaignDone], 1).await, None);
        assert_eq!(w.take_event(&[], 1).await, None);
        let mut taken = Vec::new();
        for token in 1..=4 {
            let event = w.take_event(&ALL, token).await.expect("it waits").event;
            taken.push((event.kind, event.site));
        }
        let of = |kind, site: &str| (kind, site.to_owned());
        assert_eq!(
            taken,
            [
                of(EventKind::Walled, "a"),
                of(EventKind::Walled, "b"),
                of(EventKind::DeadShare, "a"),
                of(EventKind::RunFailed, "a")
            ]
        );
    });
}

#[test]
fn c19_an_event_whose_process_died_is_given_to_the_next_one() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        let taken = w.take_event(&ALL, 1).await.expect("it waits");
        w.pass(44_999);
        assert_eq!(w.take_event(&ALL, 2).await, None);
        w.pass(1);
        let again = w.take_event(&ALL, 2).await.expect("nobody has it any more");
        assert_eq!((&again.event, again.failures), (&taken.event, 0));
        assert_eq!(w.end_event(&taken.event, 1, Some("late")).await, EventEnd::Stale, "it is another one's");
        assert_eq!(w.end_event(&again.event, 2, None).await, EventEnd::Told);
    });
}

#[test]
fn c19_whoever_stood_still_while_nobody_else_took_it_may_still_end_it() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        let taken = w.take_event(&ALL, 1).await.expect("it waits");
        w.pass(10 * MINUTE);
        assert_eq!(w.end_event(&taken.event, 1, None).await, EventEnd::Told);
        assert_eq!(w.take_event(&ALL, 2).await, None);
    });
}

#[test]
fn c19_an_event_that_could_not_be_told_is_tried_after_1_5_30_and_120_minutes_and_then_given_up() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        for (failures, minutes) in [(0, 1), (1, 5), (2, 30), (3, 120)] {
            let taken = w.take_event(&ALL, 1).await.expect("it is due");
            assert_eq!(taken.failures, failures);
            let again = w.end_event(&taken.event, 1, Some("HTTP 500")).await;
            assert_eq!(again, EventEnd::Again(minutes * MINUTE));
            let untold = w.events().await.failed.expect("it failed");
            assert_eq!(
                (untold.site.as_str(), untold.why.as_str(), untold.given_up),
                ("a", "HTTP 500", false)
            );
            assert_eq!(untold.at.as_millis(), w.clock.now().as_millis());
            w.pass(minutes * MINUTE - 1);
            assert_eq!(w.take_event(&ALL, 2).await, None);
            w.pass(1);
        }
        let taken = w.take_event(&ALL, 1).await.expect("the last try");
        assert_eq!(w.end_event(&taken.event, 1, Some("HTTP 500")).await, EventEnd::GivenUp);
        w.pass(3 * HOUR);
        assert_eq!(w.take_event(&ALL, 2).await, None);
        let status = w.events().await;
        assert_eq!((status.waiting, status.failed.map(|untold| untold.given_up)), (0, Some(true)));
    });
}

#[test]
fn c19_one_that_is_told_in_the_end_is_no_failure_any_more_and_the_latest_failure_is_shown() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        w.post_event(&walled("b")).await;
        for (token, why) in [(1, "first"), (2, "second")] {
            let taken = w.take_event(&ALL, token).await.expect("it waits");
            w.end_event(&taken.event, token, Some(why)).await;
            w.pass(1);
        }
        let shown = async || w.events().await.failed.map(|untold| (untold.site, untold.why));
        assert_eq!(shown().await, Some(("b".to_owned(), "second".to_owned())));
        w.pass(MINUTE);
        for token in 3..=4 {
            let taken = w.take_event(&ALL, token).await.expect("it is due");
            w.end_event(&taken.event, token, None).await;
        }
        assert_eq!((shown().await, w.events().await.waiting), (None, 0));
    });
}

#[test]
fn c19_a_newer_event_takes_the_place_of_one_that_is_in_hand() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        let old = w.take_event(&ALL, 1).await.expect("it waits");
        w.pass(HOUR);
        let newer = Event::new(EventKind::Walled, "a", "again");
        assert!(w.post_event(&newer).await);
        assert_eq!(w.end_event(&old.event, 1, None).await, EventEnd::Stale);
        assert_eq!(w.take_event(&ALL, 2).await.map(|taken| taken.event), Some(newer));
    });
}

#[test]
fn c19_what_nobody_took_in_a_day_is_no_news() {
    on_every_backend(async |w| {
        w.post_event(&walled("a")).await;
        w.pass(24 * HOUR - 1);
        w.post_event(&walled("b")).await;
        w.pass(1);
        let taken = w.take_event(&ALL, 1).await.expect("the younger one waits");
        assert_eq!(taken.event.site, "b");
        assert_eq!(w.events().await.waiting, 1);
    });
}

#[test]
fn c19_of_more_than_a_thousand_events_the_oldest_go() {
    on_every_backend(async |w| {
        for n in 0..1_003 {
            assert!(w.post_event(&walled(&format!("s{n:04}"))).await);
            w.pass(1);
        }
        assert_eq!(w.events().await.waiting, 1_000);
        let mut sites = Vec::new();
        for token in 1..=1_001 {
            sites.extend(w.take_event(&ALL, token).await.map(|taken| taken.event.site));
        }
        assert_eq!((sites.len(), sites[0].as_str(), sites[999].as_str()), (1_000, "s0003", "s1002"));
    });
}
