//! Where a URL stands, and whose the values in force are.

use paced::internals::frontier::{Tuning, UnitStatus, UrlStatus};
use paced::internals::task::Stage;

use crate::world::{OWNER, World, on_every_backend, url};

async fn of(w: &World, path: &str) -> UrlStatus {
    w.frontier.whereabouts("a", &url("a", path)).await.expect("answers")
}

fn task(found: &UrlStatus) -> &UnitStatus {
    assert_eq!(found.tasks.len(), 1, "{found:?}");
    &found.tasks[0]
}

#[test]
fn a_url_is_followed_from_its_putting_to_its_page() {
    on_every_backend(async |w| {
        assert_eq!(of(w, "p").await, UrlStatus::default(), "no such site");
        w.site("a").await;
        assert_eq!(of(w, "p").await, UrlStatus::default(), "never met");
        w.pass(7_000);
        w.put("a", "p").await;
        let put_at = w.clock.now();
        w.pass(1_000);
        let found = of(w, "p").await;
        let waiting = task(&found);
        assert_eq!(
            (waiting.place.as_str(), waiting.stage, waiting.put_at),
            ("waiting", Stage::Download, put_at)
        );
        assert_eq!((waiting.until, &waiting.owner, waiting.depth, waiting.attempts), (None, &None, 0, 0));
        assert_eq!(waiting.priority.to_string(), "user:middle");

        let lease = w.take().await;
        let found = of(w, "p").await;
        let running = task(&found);
        assert_eq!((running.place.as_str(), running.owner.as_deref()), ("running", Some(OWNER)));
        assert!(running.until.is_some_and(|until| until > w.clock.now()), "{running:?}");

        w.retry(&lease, 5_000).await;
        let found = of(w, "p").await;
        let delayed = task(&found);
        assert_eq!((delayed.place.as_str(), delayed.attempts), ("delayed", 1));
        assert_eq!(delayed.until, Some(w.clock.now().plus(std::time::Duration::from_secs(5))));
        assert_eq!(delayed.failure.as_ref().and_then(|failure| failure.status), Some(503));
        assert_eq!(of(w, "q").await, UrlStatus::default(), "another URL");

        w.pass(5_000);
        let lease = w.take().await;
        w.fetched_for(&lease, 60_000).await;
        let found = of(w, "p").await;
        assert_eq!((task(&found).stage, task(&found).place.as_str()), (Stage::Parse, "waiting"));
        assert!(found.stored().is_some(), "{found:?}");
        assert_eq!(found.recrawl_at, Some(w.clock.now().plus(std::time::Duration::from_mins(1))));
        let lease = w.parse().await.expect("it waits");
        w.done(&lease).await;
        let found = of(w, "p").await;
        assert!(found.tasks.is_empty() && found.stored().is_some() && found.is_known, "{found:?}");
    });
}

#[test]
fn i13_a_dead_url_shows_its_letter() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.die(&lease).await;
        let found = of(w, "p").await;
        assert!(found.tasks.is_empty(), "{found:?}");
        let letter = &found.letters[0];
        assert_eq!(
            (letter.stage, letter.why.status, &letter.url),
            (Stage::Download, Some(410), &url("a", "p"))
        );
        assert_eq!(found.letters.len(), 1);
    });
}

#[test]
fn a_site_tells_whose_its_values_are() {
    on_every_backend(async |w| {
        w.site("a").await;
        let says = w.view("a").await.says;
        assert_eq!((says.interval, says.parallel), (1_000, 8));
        assert_eq!(
            (says.tuned_interval, says.tuned_parallel, says.robots, says.group),
            (None, None, None, None)
        );
        w.tune("a", Tuning::Interval(Some(3_000))).await;
        w.tune("a", Tuning::Parallel(Some(2))).await;
        let view = w.view("a").await;
        assert_eq!((view.says.tuned_interval, view.says.tuned_parallel), (Some(3_000), Some(2)));
        assert_eq!((view.interval, view.parallel), (3_000, 2));
    });
}

#[test]
fn i16_the_names_of_many_sites_are_told_in_order_and_each_once() {
    on_every_backend(async |w| {
        let names: Vec<String> = (0..1_100).map(|n| format!("s{n:04}")).collect();
        for name in names.iter().rev() {
            w.site(name).await;
        }
        assert_eq!(w.frontier.sites().await.expect("answers"), names);
    });
}
