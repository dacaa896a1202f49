//! A site gets another name: all it has stays, above all its pace.

use paced::internals::frontier::{Renamed, Tuning};
use paced::internals::task::{Outcome, PutReply};

use crate::world::{AHEAD, World, at, on_every_backend, path_of, request, url};

async fn rename(w: &World, from: &str, to: &str) -> Renamed {
    w.frontier.rename(from, to).await.expect("answers")
}

/// A URL that site `a` has put, as the site of another name has it.
fn of_a(path: &str) -> paced::internals::task::Put {
    paced::internals::task::Put { url: url("a", path), ..request("a", path) }
}

#[test]
fn i1_a_renamed_site_keeps_its_tasks_books_and_pace() {
    on_every_backend(async |w| {
        assert_eq!(rename(w, "a", "b").await, Renamed::Unknown);
        w.site("a").await;
        w.put_many("a", 6).await;
        let page = w.start().await;
        w.fetched_for(&page, 60_000).await;
        w.pass(1_000);
        let retried = w.start().await;
        w.retry(&retried, 1_900).await;
        w.pass(1_000);
        let dead = w.start().await;
        w.die(&dead).await;
        w.tune("a", Tuning::Interval(Some(1_500))).await;
        let before = w.view("a").await;
        let stored = w.frontier.stored("a", &page.url).await.expect("answers");
        assert!(stored.is_some());
        w.pass(400);

        assert_eq!(rename(w, "a", "b").await, Renamed::Done);
        assert_eq!(w.frontier.view("a").await.expect("answers"), None);
        assert_eq!(w.frontier.sites().await.expect("answers"), ["b"]);
        let after = w.view("b").await;
        assert_eq!((&after.unit, after.run, after.interval), (&"b".to_owned(), before.run, before.interval));
        assert_eq!((&after.download, &after.parse), (&before.download, &before.parse));
        assert_eq!(w.frontier.stored("b", &page.url).await.expect("answers"), stored);
        assert_eq!(w.frontier.site_of(&page.url.host()).await.expect("answers"), Some("b".to_owned()));
        let letters = w.frontier.dead_letters("b", 10).await.expect("answers");
        assert_eq!(letters.iter().map(|letter| &letter.url).collect::<Vec<_>>(), [&dead.url]);
        assert_eq!(rename(w, "a", "c").await, Renamed::Unknown);

        let parse = w.parse().await.expect("it waits");
        assert_eq!((&parse.site, &parse.url), (&"b".to_owned(), &page.url));
        w.done(&parse).await;
        w.pass(1_100 - AHEAD - 1);
        assert_eq!(w.claim().await, None, "the next start is 51 ms away");
        w.pass(1);
        let first = w.start().await;
        assert_eq!((path_of(&first), first.site.as_str()), (path_of(&retried), "b"), "in its old position");
        assert_eq!(first.attempts, 1);
        w.done(&first).await;
        let link = paced::internals::task::Put {
            origin: paced::internals::task::Origin::Link,
            ..of_a(&path_of(&first))
        };
        let known = w.frontier.put("b", vec![link]).await.expect("answers");
        assert_eq!(known, [PutReply::Known], "what was fetched in this run is known under the new name");
        for _ in 0..3 {
            w.pass(1_500);
            let lease = w.start().await;
            w.settle(&lease, Outcome::Done { stored: None, recrawl: None }).await;
        }
        assert_eq!(w.claim().await, None);
    });
}

#[test]
fn i1_a_site_of_the_old_name_asks_nobody_early() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.start().await;
        w.done(&lease).await;
        assert_eq!(rename(w, "a", "b").await, Renamed::Done);
        // Another site of the same unit's name, with the hosts of its own.
        w.site_with("a", |shop| shop.hosts = vec!["new.example".to_owned()]).await;
        let put = paced::internals::task::Put {
            url: "https://new.example/p".parse().expect("a URL"),
            ..request("a", "p")
        };
        w.put_with("a", put).await;
        assert_eq!(w.next_start_in(1_000).await.site, "a");
    });
}

#[test]
fn a_delayed_and_a_scheduled_task_come_at_their_time_under_the_new_name() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", paced::internals::task::Put { at: Some(at(30_000)), ..request("a", "later") }).await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.retry(&lease, 10_000).await;
        assert_eq!(rename(w, "a", "b").await, Renamed::Done);
        w.pass(10_000);
        let lease = w.take().await;
        assert_eq!((path_of(&lease), lease.site.as_str()), ("p".to_owned(), "b"));
        w.done(&lease).await;
        w.pass(19_999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(path_of(&w.take().await), "later");
    });
}

#[test]
fn all_that_is_known_and_when_pages_are_asked_for_again_goes_along() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| (shop.settings.interval, shop.settings.parallel) = (0, 10)).await;
        w.put_many("a", 250).await;
        let mut done = Vec::new();
        while let Some(lease) = w.claim().await {
            if done.is_empty() {
                w.fetched_for(&lease, 60_000).await;
            } else {
                w.done(&lease).await;
            }
            done.push(path_of(&lease));
        }
        assert_eq!((done.len(), rename(w, "a", "b").await), (250, Renamed::Done));
        for path in &done {
            let link =
                paced::internals::task::Put { origin: paced::internals::task::Origin::Link, ..of_a(path) };
            let put = w.frontier.put("b", vec![link]).await.expect("answers");
            assert_eq!(put, [PutReply::Known], "{path}");
        }
        let freshness = w.frontier.freshness("b").await.expect("answers");
        assert_eq!((freshness.fresh, freshness.all), (1, 1));
        w.pass(60_000);
        assert_eq!(w.feed(10).await.put, 1);
        assert_eq!((w.take().await.site, w.claim().await), ("b".to_owned(), None));
    });
}

#[test]
fn a_name_that_is_taken_and_a_site_in_workers_hands_are_refused() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.site("b").await;
        w.put("a", "p").await;
        assert_eq!(rename(w, "a", "b").await, Renamed::Taken);
        assert_eq!(rename(w, "a", "a").await, Renamed::Taken);
        let lease = w.take().await;
        assert_eq!(rename(w, "a", "c").await, Renamed::Busy { leased: 1 });
        w.fetched(&lease).await;
        assert_eq!(rename(w, "a", "c").await, Renamed::Done);
        assert_eq!(w.parse().await.expect("it waits").site, "c");
        assert_eq!(w.view("c").await.parse.leased, 1);
    });
}

#[test]
fn a_site_of_a_group_keeps_the_groups_pace() {
    on_every_backend(async |w| {
        let group = |shop: &mut paced::internals::frontier::Registration| {
            shop.group = Some(("group:g".to_owned(), 2_000));
        };
        for name in ["a", "b"] {
            w.site_with(name, group).await;
            w.put(name, "p").await;
        }
        let first = w.start().await;
        w.done(&first).await;
        assert_eq!(rename(w, &first.site, "c").await, Renamed::Done);
        assert_ne!(w.next_start_in(2_000).await.site, first.site);
        assert_eq!(w.view("c").await.unit, "group:g");
    });
}
