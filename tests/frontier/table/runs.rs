//! Runs: begun, gone on with, given up.

use paced::internals::frontier::{Run, SeedReply};
use paced::internals::task::{Put, PutReply, Settled, Stage};

use crate::world::{World, at, ms, on_every_backend, path_of, request, url};

async fn begin(w: &World, paths: &[&str]) -> Run {
    let seeds = paths.iter().map(|path| Put::seed(url("a", path))).collect();
    w.frontier.begin_run("a", seeds).await.expect("answers")
}

async fn begin_fresh(w: &World, paths: &[&str]) -> Run {
    let seeds = paths.iter().map(|path| Put::seed(url("a", path))).collect();
    w.frontier.begin_fresh_run("a", seeds).await.expect("answers")
}

#[test]
fn an_unfinished_run_goes_on_and_puts_no_seeds() {
    on_every_backend(async |w| {
        w.site("a").await;
        assert_eq!(begin(w, &["p"]).await, Run::of(1, true));
        let lease = w.take().await;
        assert_eq!(begin(w, &["p", "q"]).await, Run::of(1, false));
        assert_eq!(w.place("a", "q").await, "absent");
        w.retry(&lease, 60_000).await;
        assert!(!begin(w, &["q"]).await.begun, "a back-off is unfinished");
        w.pass(60_000);
        let lease = w.take().await;
        w.fetched(&lease).await;
        assert!(!begin(w, &["q"]).await.begun, "so is a parse");
        assert!(!w.view("a").await.finished);
        let parse = w.parse().await.expect("a parse");
        w.done(&parse).await;
        assert!(w.view("a").await.finished);
        assert_eq!(begin(w, &["q"]).await, Run::of(2, true));
        w.pass(1_000);
        assert_eq!(path_of(&w.take().await), "q");
    });
}

#[test]
fn known_belongs_to_a_run() {
    on_every_backend(async |w| {
        w.site("a").await;
        begin(w, &["p"]).await;
        w.order(1_000).await;
        assert_eq!(w.link("a", "p").await, PutReply::Known);
        begin(w, &[]).await;
        assert_eq!(w.link("a", "p").await, PutReply::Created);
        assert_eq!(w.frontier.inspect().await.expect("answers").known, 0, "earlier runs are swept");
    });
}

#[test]
fn what_is_put_for_later_keeps_no_run_unfinished() {
    on_every_backend(async |w| {
        w.site("a").await;
        begin(w, &["p"]).await;
        w.order(1_000).await;
        w.put_with("a", Put { at: Some(at(900_000)), ..request("a", "later") }).await;
        assert!(w.view("a").await.finished);
        assert!(begin(w, &[]).await.begun);
        assert_eq!(w.place("a", "later").await, "scheduled");
    });
}

#[test]
fn fresh_gives_up_waiting_delayed_dead_and_known_and_adopts_what_runs() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        begin(w, &["done", "dead", "retried", "running", "fetched", "waiting"]).await;
        w.put_with("a", Put { at: Some(at(900_000)), ..request("a", "later") }).await;
        let mut running = None;
        for _ in 0..5 {
            let lease = w.take().await;
            match path_of(&lease).as_str() {
                "dead" => assert_ne!(w.die(&lease).await, Settled::Stale),
                "retried" => assert_ne!(w.retry(&lease, 60_000).await, Settled::Stale),
                "running" => running = Some(lease),
                "fetched" => assert_ne!(w.fetched(&lease).await, Settled::Stale),
                _ => assert_ne!(w.done(&lease).await, Settled::Stale),
            }
        }
        assert_eq!(w.put("a", "running").await, PutReply::Deferred);
        assert_eq!(begin_fresh(w, &["seed"]).await, Run::of(2, true));
        let inside = w.frontier.inspect().await.expect("answers");
        let left: Vec<_> = inside.tasks.iter().map(|task| (task.1, &*task.2, &*task.3)).collect();
        let expected = [
            (Stage::Download, "https://a.example/running", "running"),
            (Stage::Download, "https://a.example/seed", "waiting"),
        ];
        assert_eq!(left, expected);
        assert_eq!((inside.dead.len(), inside.known), (0, 0));
        let (download, parse) = (w.downloads("a").await, w.parses("a").await);
        assert_eq!((download.dropped, download.letters, parse.dropped), (3, 0, 1));
        w.done(&running.expect("it runs")).await;
        assert_eq!(w.place("a", "running").await, "absent", "what met it was dropped");
        assert_eq!(w.link("a", "running").await, PutReply::Known, "it belongs to the new run");
    });
}

#[test]
fn i1_fresh_forgets_no_start_no_block_no_fence_and_no_tuned_value() {
    on_every_backend(async |w| {
        w.site("a").await;
        begin(w, &["p"]).await;
        w.tune("a", paced::internals::frontier::Tuning::Interval(Some(5_000))).await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        let before = w.view("a").await;
        begin_fresh(w, &["p"]).await;
        let after = w.view("a").await;
        assert_eq!(
            (before.last_start, before.due, before.interval),
            (after.last_start, after.due, after.interval)
        );
        assert_eq!(w.claim().await, None);
        w.pass(5_000);
        let again = w.take().await;
        assert!(again.fence > lease.fence);
        assert!(again.stored.is_some(), "validators are kept");
    });
}

#[test]
fn i16_a_big_queue_and_many_letters_are_given_up_in_steps() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 2_000;
        })
        .await;
        begin(w, &[]).await;
        w.put_many("a", 1_300).await;
        let mut died = 0;
        while died < 40 {
            let lease = w.take().await;
            w.die(&lease).await;
            died += 1;
        }
        begin_fresh(w, &[]).await;
        let inside = w.frontier.inspect().await.expect("answers");
        assert_eq!((inside.tasks.len(), inside.dead.len()), (0, 0));
        let books = w.downloads("a").await;
        assert_eq!((books.dropped, books.letters, books.dead), (1_260, 0, 40));
    });
}

fn seeds(numbers: std::ops::Range<u32>) -> Vec<Put> {
    numbers.map(|number| Put::seed(url("a", &format!("{number:05}")))).collect()
}

#[test]
fn i16_seeds_are_put_in_portions_and_a_run_whose_seeds_are_not_all_put_is_not_finished() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let all = seeds(0..2_500);
        let begun = w.frontier.begin("a", &all, None).await.expect("answers");
        assert_eq!((begun.run, begun.next), (Run::of(1, true), Some(0)));
        assert!(!w.view("a").await.finished, "none is put yet");
        assert_eq!(w.frontier.seed("a", &all, 0).await.expect("answers"), SeedReply::Next(1_000));
        assert_eq!(w.downloads("a").await.waiting, 1_000);
        let lease = w.take().await;
        w.done(&lease).await;
        // Sent again by one who died before it heard the answer, and by another process.
        assert_eq!(w.frontier.seed("a", &all, 0).await.expect("answers"), SeedReply::Next(1_000));
        let run = w.frontier.begin_run("a", all.clone()).await.expect("answers");
        assert_eq!(run, Run::of(1, false), "it goes on");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.done, books.coalesced, books.waiting), (2_500, 1, 0, 2_499));
        assert_eq!(
            w.frontier.seed("a", &all, 0).await.expect("answers"),
            SeedReply::Done,
            "all of them are put"
        );
        assert_eq!(w.downloads("a").await.created, 2_500);
    });
}

#[test]
fn i16_a_list_that_changed_before_all_its_seeds_were_put_is_put_from_its_beginning() {
    on_every_backend(async |w| {
        w.site("a").await;
        let (old, new) = (seeds(0..1_500), seeds(200..1_600));
        w.frontier.begin("a", &old, None).await.expect("answers");
        assert_eq!(w.frontier.seed("a", &old, 0).await.expect("answers"), SeedReply::Next(1_000));
        assert!(!w.frontier.begin_run("a", new).await.expect("answers").begun);
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.coalesced), (1_600, 800));
        assert_eq!(w.frontier.seed("a", &old, 1_000).await.expect("answers"), SeedReply::Another);
    });
}

#[test]
fn i16_a_run_that_is_given_up_grants_nothing_and_whoever_comes_next_gives_up_the_rest() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.frontier.begin_run("a", seeds(0..2_500)).await.expect("answers");
        let lease = w.take().await;
        w.fetched(&lease).await;
        assert!(w.frontier.give_up("a").await.expect("answers"), "250 a step");
        assert_eq!(w.downloads("a").await.dropped, 250);
        assert!(!w.view("a").await.finished);
        assert_eq!((w.claim().await, w.parse().await), (None, None));
        // Its process dies here.
        let run = w.frontier.begin_run("a", seeds(0..3)).await.expect("answers");
        assert_eq!(run, Run::of(2, true));
        let books = w.downloads("a").await;
        assert_eq!((books.waiting, books.created, books.done), (3, 2_503, 1));
        assert_eq!(books.dropped + w.parses("a").await.dropped, 2_500);
        assert_eq!(path_of(&w.take().await), "00000");
    });
}

#[test]
fn i16_seeds_that_are_put_late_or_again_fetch_no_page_of_the_run_twice() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let all = seeds(0..1_500);
        w.frontier.begin("a", &all, None).await.expect("answers");
        // Links lead to seeds that aren't put yet: one is fetched, one is being fetched, one died.
        for path in ["01490", "01491", "01492"] {
            assert_eq!(w.link("a", path).await, PutReply::Created);
        }
        let fetched = w.take().await;
        w.done(&fetched).await;
        let running = w.take().await;
        let died = w.take().await;
        w.die(&died).await;
        assert!(!w.frontier.begin_run("a", all.clone()).await.expect("answers").begun);
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.waiting, books.known, books.revived), (1_500, 1_497, 3, 0));
        assert_eq!(
            (books.deferred, books.letters),
            (0, 1),
            "nothing is asked of what runs, nor of what died"
        );
        w.done(&running).await;
        assert_eq!(w.place("a", &path_of(&running)).await, "absent");
        // What is asked for by hand is still fetched again.
        assert_eq!(w.put("a", &path_of(&fetched)).await, PutReply::Created);
        assert_eq!(w.put("a", &path_of(&died)).await, PutReply::Revived);
    });
}

#[test]
fn i16_a_list_that_changed_fetches_no_page_of_the_run_twice() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let (old, new) = (seeds(0..1_500), seeds(0..1_600));
        w.frontier.begin("a", &old, None).await.expect("answers");
        w.frontier.seed("a", &old, 0).await.expect("answers");
        for _ in 0..10 {
            let lease = w.take().await;
            w.done(&lease).await;
        }
        w.frontier.begin_run("a", new).await.expect("answers");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.known, books.coalesced, books.waiting), (1_600, 10, 990, 1_590));
    });
}

#[test]
fn i16_an_empty_list_stops_no_seeding_and_one_that_changed_after_all_were_put_is_not_put() {
    on_every_backend(async |w| {
        w.site("a").await;
        let all = seeds(0..1_500);
        w.frontier.begin("a", &all, None).await.expect("answers");
        w.frontier.seed("a", &all, 0).await.expect("answers");
        assert!(!begin(w, &[]).await.begun);
        assert_eq!(w.downloads("a").await.created, 1_000);
        assert_eq!(w.view("a").await.seeds, Some((1_000, 1_500)));
        assert_eq!(w.frontier.seed("a", &all, 1_000).await.expect("answers"), SeedReply::Done);
        assert_eq!(w.view("a").await.seeds, None);
        assert!(!w.frontier.begin_run("a", seeds(0..1_600)).await.expect("answers").begun);
        assert_eq!(w.downloads("a").await.created, 1_500);
    });
}

#[test]
fn i16_whose_list_is_the_run_s_no_more_is_told_so() {
    on_every_backend(async |w| {
        w.site("a").await;
        let (one, other) = (seeds(0..2_500), seeds(0..10));
        w.frontier.begin("a", &one, None).await.expect("answers");
        w.frontier.seed("a", &one, 0).await.expect("answers");
        w.frontier.begin_run("a", other.clone()).await.expect("answers");
        assert_eq!(
            w.frontier.seed("a", &one, 1_000).await.expect("answers"),
            SeedReply::Another,
            "all are put"
        );
        assert_eq!(w.frontier.seed("a", &other, 0).await.expect("answers"), SeedReply::Done);
        begin_fresh(w, &["p"]).await;
        assert_eq!(w.frontier.seed("a", &other, 0).await.expect("answers"), SeedReply::Another);
        assert_eq!(w.downloads("a").await.waiting, 1);
    });
}

#[test]
fn i16_who_goes_on_with_a_giving_up_drops_nothing_of_the_run_that_another_one_began_meanwhile() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.frontier.begin_run("a", seeds(0..1_500)).await.expect("answers");
        assert!(w.frontier.give_up_run("a", 1).await.expect("answers"));
        assert!(w.view("a").await.is_given_up);
        let (one, other) = (seeds(0..3), seeds(3..5));
        assert!(w.frontier.begin("a", &one, None).await.expect("answers").is_given_up);
        // The other one is faster: it gives up the rest, begins, and puts its seeds.
        assert_eq!(w.frontier.begin_run("a", other).await.expect("answers"), Run::of(2, true));
        assert!(!w.frontier.go_on_giving_up("a").await.expect("answers"));
        assert!(!w.frontier.give_up_run("a", 1).await.expect("answers"), "it was asked to give up run 1");
        let begun = w.frontier.begin("a", &one, Some(1)).await.expect("answers");
        assert_eq!((begun.run, begun.next, begun.is_given_up), (Run::of(2, false), None, false));
        let books = w.downloads("a").await;
        assert_eq!((books.waiting, books.dropped), (2, 1_500));
        assert!(!w.view("a").await.is_given_up);
    });
}

#[test]
fn i15_when_all_is_done_nothing_is_left_in_any_index() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site(site).await;
            w.put_many(site, 3).await;
        }
        for _ in 0..3 {
            for lease in w.grant(w.want(9, 0)).await.leases {
                w.fetched(&lease).await;
            }
            w.pass(1_000);
        }
        let before = w.frontier.inspect().await.expect("answers");
        assert_eq!(before.due.len(), 2, "two units with something to parse");
        for lease in w.grant(w.want(0, 9)).await.leases {
            w.done(&lease).await;
        }
        let grant = w.grant(w.want(9, 9)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, None));
        let after = w.frontier.inspect().await.expect("answers");
        assert_eq!((after.tasks, after.due, after.dead), (vec![], vec![], vec![]));
    });
}

#[test]
fn how_long_it_takes_is_told_unless_all_that_is_left_is_kept_back() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 3).await;
        assert_eq!(w.view("a").await.eta(), Some(ms(3_000)), "one a second");
        for left in [2, 1] {
            let lease = w.take().await;
            w.retry(&lease, 600_000).await;
            assert_eq!(w.view("a").await.eta(), Some(ms(3_000)), "{left} wait, the others are kept back");
            w.pass(1_000);
        }
        let lease = w.take().await;
        w.retry(&lease, 600_000).await;
        assert_eq!(w.view("a").await.eta(), None, "ten minutes, which isn't known here");
    });
}
