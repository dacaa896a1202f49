//! The server's memory is full: nothing more is taken in, and that is said; what empties the queues goes on.

use paced::internals::frontier::campaigns::{CampaignStarted, UrlList};
use paced::internals::frontier::{Act, Frontier, FrontierError, FrontierErrorKind, WorkScope};
use paced::internals::task::{CampaignPlan, CampaignPortion, Settled};

use std::time::Instant;

use crate::ground::{Ground, SiteFile, ms, page, paths, wait};
use crate::steps::*;
use crate::support::*;

#[test]
fn a_full_memory_refuses_puts_with_the_reason_while_claims_and_settles_go_on() {
    let Some(redis) = RedisServer::builder().set("maxmemory", "16mb").start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        let mut pages = 0;
        let error = loop {
            match put(&frontier, pages..pages + 500).await {
                Ok(_) => pages += 500,
                Err(error) => break error,
            }
            assert!(pages < 2_000_000, "it never was full");
        };
        assert_eq!(error.kind, FrontierErrorKind::MemoryFull, "{error}");
        assert!(error.to_string().contains("maxmemory") && error.is_transient(), "{error}");
        assert!(pages > 1_000, "only {pages} pages fit into 16 MB");

        for _ in 0..20 {
            let leases = claim(&frontier, "one", 10).await.leases;
            assert_eq!(leases.len(), 10);
            for lease in leases {
                assert_eq!(settle(&frontier, "one", &lease, fetched(&lease)).await, Settled::Kept);
            }
        }
        let books = books(&frontier).await;
        assert_eq!(books.done, 200);
        let parse = view(&frontier).await.parse;
        assert_eq!(parse.waiting, 200, "the pages that were fetched go on");

        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        let more = eventually_async(|| put(&frontier, pages..pages + 10)).await;
        assert_eq!(more.len(), 10);
    });
}

/// Starts a campaign of so many pages; 3 of them are asked for at once.
async fn start_campaign(
    frontier: &Frontier,
    name: &str,
    pages: u32,
) -> Result<CampaignStarted, FrontierError> {
    let plan = CampaignPlan { portion: CampaignPortion::Pages(3), ..CampaignPlan::default() };
    let mut list = UrlList::in_chunks_of(2);
    (0..pages).for_each(|page| list.push(url(page)));
    frontier.start_campaign("shop", name, &plan, &mut list, Act::default()).await
}

#[test]
fn a_full_memory_takes_in_no_campaign_nor_pages_of_one_while_what_ends_it_goes_on() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    let full = |redis: &RedisServer| redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    wait(async {
        shop(&frontier, 0, 0).await;
        assert_eq!(start_campaign(&frontier, "all", 6).await.expect("room"), CampaignStarted::Done);
        let top_up = async || {
            let (name, status) = frontier.campaigns().await.expect("answers").remove(0);
            frontier.top_up(&name, &status).await
        };
        full(&redis);
        sleep(1_100).await;
        let keys = redis.cli(&["DBSIZE"]);
        for refused in [top_up().await.map(drop), start_campaign(&frontier, "more", 6).await.map(drop)] {
            let error = refused.expect_err("there is no room");
            assert_eq!(error.kind, FrontierErrorKind::MemoryFull, "{error}");
        }
        assert_eq!(redis.cli(&["DBSIZE"]), keys, "nothing was written");

        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        while eventually_async(&top_up).await > 0 || !work(&frontier, "one").await.is_empty() {}
        full(&redis);
        sleep(1_100).await;
        let status = frontier.campaign("shop", "all").await.expect("answers").expect("it is there");
        let list = &status.campaign.list;
        let noted = frontier.feed_campaign("shop", "all", list, status.campaign.next, Vec::new()).await;
        assert!(noted.expect("an end takes nothing").is_some());
        let status = frontier.campaign("shop", "all").await.expect("answers").expect("it is there");
        assert_eq!((status.campaign.next, status.campaign.ended_at.is_some()), (6, true), "{status:?}");
    });
}

#[test]
fn a_library_that_a_full_memory_has_no_room_for_is_a_full_memory_and_comes_once_there_is_room() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    let is_full = || async {
        let error = frontier.sites().await.expect_err("there is no room");
        assert_eq!(error.kind, FrontierErrorKind::MemoryFull, "{error}");
    };
    wait(async {
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        is_full().await;
        assert_eq!(redis.cli(&["DBSIZE"]), "0", "nothing was written");
        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        shop(&frontier, 0, 1).await;

        redis.cli(&["FUNCTION", "FLUSH"]);
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        is_full().await;
        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(frontier.sites().await.expect("there is room"), ["shop"]);
    });
}

#[test]
fn a_crawl_on_a_full_memory_asks_for_no_page_grows_no_further_and_goes_on_by_itself() {
    const PAGES: usize = 40;
    let Some(redis) = redis_or_skip() else { return };
    let front: Vec<String> = paths(PAGES).collect();
    let mut site = TestSite::builder();
    site = site.page("/", page("front", &front));
    for path in &front {
        let more = format!("{path}/more");
        site = site.page(path, page(path, [&more])).page(&more, page(&more, [""; 0]));
    }
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(100))]);
    let mut crawl = ground.crawl().env("PACED_FRONTIER", redis.url(0)).start();
    eventually("a few pages", || {
        assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
        (site.arrivals().len() > 10).then_some(())
    });
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    eventually("a refusal", || crawl.stderr().contains("no pages are asked for").then_some(()));
    // What is granted by then is still asked for.
    std::thread::sleep(ms(1_500));
    let used = || -> u64 { redis.info("used_memory").and_then(|used| used.parse().ok()).expect("a number") };
    let (asked, before) = (site.arrivals().len(), used());
    std::thread::sleep(ms(5_000));
    let (asked_now, after) = (site.arrivals().len(), used());
    assert_eq!(asked_now, asked, "{}", crawl.stderr());
    assert!(asked < PAGES, "{asked} pages were asked for all the same");
    assert!(after < before + 50_000, "{} bytes more", after - before);

    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let run = crawl.finish().expect_code(0);
    let parse = wait(view(&open(&redis.url(0)))).parse;
    let attempts = (parse.retried, parse.lost, parse.dead);
    assert_eq!(attempts, (0, 0, 0), "parses that were refused went back: {parse:?}");
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
    assert_eq!(ground.items("shop").len(), 2 * PAGES + 1, "each item is there once\n{}", run.stderr);
    for line in ["no pages are asked for", "links are taken in again"] {
        assert_eq!(run.stderr.matches(line).count(), 1, "{line}:\n{}", run.stderr);
    }
}

#[test]
fn while_the_parses_of_others_are_refused_a_process_that_only_downloads_asks_for_no_page_and_none_of_them_counts_as_an_attempt()
 {
    const PAGES: usize = 120;
    let Some(redis) = redis_or_skip() else { return };
    let front: Vec<String> = paths(PAGES).collect();
    let mut site = TestSite::builder().page("/", page("front", &front));
    for path in &front {
        let more = format!("{path}/more");
        site = site.page(path, page(path, [&more])).page(&more, page(&more, [""; 0]));
    }
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(100))]);
    let file = ground.data.file("sites/shop.toml");
    ground.verb("seed").arg(file).env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    let start = |role: &str| {
        let worker = ground.verb("work").env("PACED_FRONTIER", redis.url(0));
        worker.arg("--role").arg(role).arg("--name").arg(role).start()
    };
    let (downloads, parses) = (start("download"), start("parse"));
    eventually("a few pages", || (site.arrivals().len() > 10).then_some(()));
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for process in [&downloads, &parses] {
        eventually("a refusal", || process.stderr().contains("no pages are asked for").then_some(()));
    }
    // What is granted by then is still asked for.
    std::thread::sleep(ms(1_500));
    let used = || -> u64 { redis.info("used_memory").and_then(|used| used.parse().ok()).expect("a number") };
    let (asked, before) = (site.arrivals().len(), used());
    std::thread::sleep(ms(5_000));
    assert_eq!(site.arrivals().len(), asked, "{}", downloads.stderr());
    assert!(asked < PAGES, "{asked} pages were asked for all the same");
    assert!(used() < before + 50_000, "{} bytes more", used() - before);

    // Those that were refused have gone back as they were.
    parses.terminate();
    parses.finish().expect_code(0);
    let frontier = open(&redis.url(0));
    wait(async {
        let refused = view(&frontier).await.parse;
        assert!(refused.waiting + refused.delayed > 0, "{refused:?}");
        let none = (refused.retried, refused.lost, refused.dead, refused.letters);
        assert_eq!(none, (0, 0, 0, 0), "{refused:?}");
        frontier.work_on("test", WorkScope::All).await.expect("answers");
        let began = Instant::now();
        let lease = loop {
            let grant = frontier.claim(want("test", 0, 1)).await.expect("answers");
            match grant.leases.into_iter().next() {
                Some(lease) => break lease,
                None if began.elapsed() < ms(20_000) => sleep(100).await,
                None => panic!("no parse is due: {refused:?}"),
            }
        };
        assert_eq!(lease.attempts, 0);
        assert!(frontier.hand_back(lease.key()).await.expect("answers"));
    });

    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let parses = start("parse");
    let file = ground.data.file("data/items/shop-parse.jsonl");
    // The last line may be under way.
    let items = || std::fs::read_to_string(&file).map_or(0, |items| items.matches('\n').count());
    eventually("all items", || (items() == 2 * PAGES + 1).then_some(()));
    for process in [downloads, parses] {
        process.terminate();
        let run = process.finish().expect_code(0);
        let said = |line: &str| run.stderr.matches(line).count();
        assert!(said("no pages are asked for") <= 1, "{}", run.stderr);
        assert_eq!(said("links are taken in again"), said("no pages are asked for"), "{}", run.stderr);
    }
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
}

/// Asks again until it is taken in.
async fn eventually_async<T, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, FrontierError>>,
{
    for _ in 0..200 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert_eq!(error.kind, FrontierErrorKind::MemoryFull, "{error}"),
        }
        sleep(50).await;
    }
    panic!("there is memory again, and it is refused all the same");
}
