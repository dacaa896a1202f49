//! The parse stage: after the download, and never gated by its pace.

use paced::internals::frontier::Tuning;
use paced::internals::task::{Outcome, Put, Settled, Stage};

use crate::world::{ms, on_every_backend, page, request, url};

#[test]
fn v12_a_download_with_a_page_goes_on_to_the_parse_stage() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", paced::internals::task::Put { depth: 2, ..request("a", "p") }).await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        assert_eq!(w.place_in("a", Stage::Parse, "p").await, "waiting");
        let parse = w.parse().await.expect("a parse");
        assert_eq!((parse.stage, parse.url.clone(), parse.depth), (Stage::Parse, url("a", "p"), 2));
        assert_eq!(parse.stored.as_ref().map(|stored| &stored.place), Some(&format!("warc/{}", lease.fence)));
        assert!(parse.departure.wait().is_zero());
        assert_eq!(w.done(&parse).await, Settled::Kept);
        assert_eq!(w.place_in("a", Stage::Parse, "p").await, "absent");
    });
}

#[test]
fn v12_pace_parallel_pause_and_block_gate_downloads_alone() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 60_000;
            a.settings.parallel = 1;
        })
        .await;
        w.put_many("a", 4).await;
        for i in 0..4 {
            let lease = w.take().await;
            let block = (i == 3).then(|| (ms(900_000), "429".to_owned()));
            let stored = Some(page("warc", lease.granted_at));
            w.settle_with(&lease, Outcome::Done { stored, recrawl: None }, block).await;
            w.pass(60_000);
        }
        w.tune("a", Tuning::pause("lunch")).await;
        w.tune("a", Tuning::Parallel(Some(1))).await;
        let grant = w.grant(w.want(10, 10)).await;
        assert_eq!(grant.leases.len(), 4);
        assert!(grant.leases.iter().all(|lease| lease.stage == Stage::Parse));
        assert_eq!(w.view("a").await.in_flight, 0);
    });
}

#[test]
fn v12_a_parse_takes_no_start() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        w.pass(1_000);
        let parse = w.parse().await.expect("a parse");
        let before = w.view("a").await;
        assert_eq!(w.rearm(&parse).await, crate::world::Rearmed::StartIn(0));
        w.back(&parse).await;
        let after = w.view("a").await;
        assert_eq!((before.last_start, before.due), (after.last_start, after.due));
        w.take().await;
    });
}

#[test]
fn m3_a_page_fetched_again_while_it_is_parsed_is_parsed_again_with_the_newest_body() {
    on_every_backend(async |w| {
        w.site("a").await;
        for _ in 0..2 {
            w.put("a", "p").await;
            let lease = w.take().await;
            w.fetched(&lease).await;
            w.pass(1_000);
            if w.parses("a").await.leased == 0 {
                assert!(w.parse().await.is_some());
            }
        }
        let books = w.parses("a").await;
        assert_eq!((books.leased, books.deferred, books.waiting), (1, 1, 0));
    });
}

#[test]
fn a_page_fetched_again_before_it_was_parsed_is_parsed_once_with_the_newest_body() {
    on_every_backend(async |w| {
        w.site("a").await;
        let mut newest = 0;
        for _ in 0..2 {
            w.put("a", "p").await;
            let lease = w.take().await;
            newest = lease.fence;
            w.fetched(&lease).await;
            w.pass(1_000);
        }
        let parse = w.parse().await.expect("a parse");
        assert_eq!(parse.stored.expect("a page").place, format!("warc/{newest}"));
        assert_eq!(w.parse().await, None);
    });
}

#[test]
fn parses_of_several_sites_take_turns() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |shop| shop.settings.interval = 0).await;
            w.put_many(site, 3).await;
        }
        let grant = w.grant(w.want(6, 0)).await;
        for lease in &grant.leases {
            w.fetched(lease).await;
        }
        let mut sites = Vec::new();
        for _ in 0..6 {
            w.pass(1);
            sites.push(w.parse().await.expect("a parse").site);
        }
        assert_eq!(sites, ["a", "b", "a", "b", "a", "b"]);
    });
}

#[test]
fn i13_a_page_whose_parse_died_is_parsed_again_from_where_it_is_kept() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { depth: 3, ..request("a", "p") }).await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        assert!(!w.frontier.parse_again("a", &url("a", "p")).await.expect("a step"), "it waits");
        let parse = w.parse().await.expect("a parse");
        w.die(&parse).await;
        assert!(!w.frontier.parse_again("a", &url("a", "other")).await.expect("a step"));
        assert!(!w.frontier.parse_again("none", &url("a", "p")).await.expect("a step"));
        assert!(w.frontier.parse_again("a", &url("a", "p")).await.expect("a step"));
        assert!(!w.frontier.parse_again("a", &url("a", "p")).await.expect("a step"), "once");
        let again = w.parse().await.expect("a parse");
        assert_eq!((again.attempts, again.stored, again.depth), (0, parse.stored, 3));
        assert!(w.claim().await.is_none(), "nothing is downloaded");
        let books = w.parses("a").await;
        assert_eq!((books.letters, books.revived, books.dead), (0, 1, 1));
        w.check_books().await;
    });
}

#[test]
fn i16_parses_of_a_group_take_turns_by_the_names_of_its_sites() {
    on_every_backend(async |w| {
        let names: Vec<String> = (0..12).map(|n| format!("s{n:02}")).collect();
        for name in &names {
            w.site_with(name, |site| {
                site.group = Some(("g".to_owned(), 0));
                site.settings.interval = 0;
            })
            .await;
            w.put_many(name, 3).await;
        }
        let leases = w.grant(w.want(36, 0)).await.leases;
        assert_eq!(leases.len(), 36);
        for lease in &leases {
            w.fetched(lease).await;
        }
        for name in names.iter().chain(&names[..6]) {
            assert_eq!(w.parse().await.expect("it waits").site, *name);
        }
        let of_named = async |named: &[&str]| {
            let leases = w.grant_of(named, w.want(0, 3)).await.leases;
            leases.into_iter().map(|lease| lease.site).collect::<Vec<_>>()
        };
        assert_eq!(of_named(&["s03", "s08"]).await, ["s08", "s03", "s08"]);
        assert_eq!(w.parse().await.expect("it waits").site, "s09");
    });
}
