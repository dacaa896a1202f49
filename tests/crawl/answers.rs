//! What sites answer, and what becomes of it: failures and their repeats, redirects, bodies of all kinds, pages unchanged.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use paced::internals::task::Stage;

use crate::ground::*;
use crate::support::*;

const NONE: [&str; 0] = [];

#[test]
fn a_page_that_fails_at_first_is_fetched_again_until_it_comes() {
    let mut failures = 0;
    let site = star(3).faults(move |request| {
        let fails = request.path == "/p/2" && failures < 2;
        failures += usize::from(fails);
        fails.then(|| Reply::status(503))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    assert_eq!((site.count("/p/1"), site.count("/p/2")), (1, 3));
    assert_eq!(ground.items("shop").len(), 4);
    let view = ground.view("shop");
    assert_eq!((view.download.retried, view.download.dead, view.finished), (2, 0, true));
}

#[test]
fn a_page_that_asks_not_to_be_archived_says_so_in_its_item_and_stays_in_the_archive() {
    let asking = Reply::html(format!("<meta name=robots content=noarchive>{}", page("one", NONE)));
    let site = star(2)
        .reply("/p/1", asking.header("etag", "\"v1\""))
        .faults(|request| (request.header("if-none-match").is_some()).then(|| Reply::status(304)));
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    ground.crawled();
    let told = |item: &serde_json::Value| item["url"].as_str().is_some_and(|url| url.ends_with("/p/1"));
    let (asked, others): (Vec<_>, Vec<_>) = ground.items("shop").into_iter().partition(told);
    assert!(asked.len() == 2 && asked.iter().all(|item| item["noarchive"] == true), "{asked:?}");
    assert!(others.iter().all(|item| item.get("noarchive").is_none()), "{others:?}");
    let statuses: Vec<u16> = site.arrivals().iter().filter(|a| a.path == "/p/1").map(|a| a.status).collect();
    assert_eq!(statuses, [200, 304], "the stored answer is confirmed");
    assert!(ground.letters("shop").is_empty(), "{:?}", ground.letters("shop"));
}

#[test]
fn a_page_that_always_fails_is_dead_after_its_attempts_with_all_its_reasons() {
    let site = star(1).status("/p/1", 500).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("attempts = 2")]);
    let run = ground.crawled();
    let letters = ground.letters("shop");
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.attempts, letter.history.len(), letter.stage), (2, 2, Stage::Download));
    assert_eq!(
        (letter.why.status, letter.why.reason.as_str()),
        (Some(500), "HTTP 500 Internal Server Error")
    );
    assert_eq!(site.count("/p/1"), 2);
    assert!(run.stderr.contains("dead letter: HTTP 500"), "{}", run.stderr);
}

#[test]
fn a_404_is_a_dead_letter_at_once_and_the_exit_code_tells_on_demand() {
    let site = star(2).status("/p/2", 404).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    assert_eq!(
        ground.dead("shop").into_iter().collect::<Vec<_>>(),
        [("/p/2".into(), "HTTP 404 Not Found".into())]
    );
    assert_eq!(site.count("/p/2"), 1);
    ground.crawl().arg("--fail-on-dead").run().expect_code(3);
    assert_eq!(site.count("/p/2"), 2, "a new run asks again");
}

#[test]
fn retry_after_silences_every_site_of_the_group() {
    let interval = ms(200);
    in_three_tries(|| {
        let mut asked_before = false;
        let busy = star(6).faults(move |request| {
            let first = request.path == "/p/1" && !std::mem::replace(&mut asked_before, true);
            first.then(|| Reply::status(429).header("retry-after", "2"))
        });
        let (busy, calm) = (busy.serve(), star(12).serve());
        let file = |name, site| {
            SiteFile::of(name, site).interval(interval).top("group = \"pair\"").pace("parallel = 1")
        };
        let ground = Ground::new([file("busy", &busy), file("calm", &calm)]);
        let run = ground.crawled();
        assert!(
            run.stderr.contains("left alone: HTTP 429 Too Many Requests with Retry-After: 2"),
            "{}",
            run.stderr
        );
        let refused = busy.arrivals().iter().find(|arrival| arrival.status == 429).expect("a refusal").at;
        let both = busy.arrivals().into_iter().chain(calm.arrivals());
        let meanwhile =
            both.filter(|arrival| arrival.at > refused && arrival.at < refused + ms(2_000)).count();
        assert_eq!((ground.items("busy").len(), ground.items("calm").len()), (7, 13));
        println!("{meanwhile} requests right after the refusal");
        bound(
            meanwhile <= 1,
            format_args!("{meanwhile} requests, where one in flight alone was to be expected"),
        )
    });
}

#[test]
fn i11_retry_after_voids_starts_that_are_granted_and_not_sent_yet() {
    let interval = ms(400);
    in_three_tries(|| {
        let mut asked_before = false;
        // Each answer ends right before the next start, which was granted by then.
        let site = star(6).latency(Latency::fixed(interval.saturating_sub(ms(12)))).faults(move |request| {
            let first = request.path == "/p/2" && !std::mem::replace(&mut asked_before, true);
            first.then(|| Reply::status(429).header("retry-after", "2"))
        });
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site).interval(interval).pace("parallel = 8")]);
        let run = ground.crawl().env("RUST_LOG", "paced=debug").run().expect_code(0);
        let refusal = site.arrivals().into_iter().find(|arrival| arrival.status == 429).expect("a refusal");
        let told = refusal.done.expect("it was answered");
        let meanwhile = |arrival: &Arrival| arrival.at > told && arrival.at < told + ms(1_900);
        let asked: Vec<_> = site.arrivals().into_iter().filter(meanwhile).collect();
        let view = ground.view("shop");
        assert_eq!((ground.items("shop").len(), view.download.retried, view.download.lost), (7, 1, 0));
        bound(asked.is_empty(), format_args!("asked after the refusal: {asked:?}"))?;
        bound(run.stderr.contains("blocked or slowed down meanwhile"), "no start was granted by then")
    });
}

#[test]
fn sites_of_one_group_share_one_pace() {
    let interval = ms(100);
    let sites = [star(7).serve(), star(7).serve()];
    let file = |name, site| SiteFile::of(name, site).interval(interval).top("group = \"pair\"");
    let ground = Ground::new([file("a", &sites[0]), file("b", &sites[1])]);
    ground.crawled();
    let arrivals: Vec<_> = sites.iter().flat_map(TestSite::arrivals).map(|arrival| arrival.at).collect();
    let stalls: Vec<_> = sites.iter().flat_map(TestSite::stalls).collect();
    let gaps = GapReport::new(&arrivals, &stalls, interval);
    assert_eq!(arrivals.len(), 2 * 9);
    assert_gaps_paced(&gaps);
    assert_eq!(ground.audit()["group:pair"]["starts"], 18);
}

#[test]
fn redirects_are_followed_each_hop_once_and_each_at_its_time() {
    let interval = ms(60);
    let site = TestSite::builder().page("/", page("front", ["/a", "/x"]));
    let site = site.redirect("/a", 301, "/b").redirect("/b", 302, "/c?d=1").redirect("/c?d=1", 308, "/end");
    let site = site.page("/end", page("end", ["/after"])).page("/after", page("after", NONE));
    let site = site.redirect("/x", 307, "/y").redirect("/y", 303, "/x").serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    ground.crawled();
    assert_eq!(ground.item_paths("shop"), ["/", "/after", "/end"]);
    assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
    ground.assert_paced("shop", &site, interval);
    assert_eq!(ground.view("shop").download.redirected, 5);
    assert!(ground.dead("shop").is_empty());
}

#[test]
fn redirects_that_lead_nowhere_are_dead_letters_that_say_what_to_do() {
    let site =
        TestSite::builder().page("/", page("front", ["/self", "/far", "/far2", "/0", "/denied", "/odd"]));
    let site = site.redirect("/self", 302, "/self").redirect("/far", 301, "http://other.example/x");
    let site = site.redirect("/far2", 301, "https://127.0.0.1:1/").redirect("/denied", 301, "/cart/1");
    let site = site.redirect("/odd", 301, "mailto:a@b.example");
    let site = (0..12).fold(site, |site, n| site.redirect(&format!("/{n}"), 301, &format!("/{}", n + 1)));
    let site = site.page("/12", page("never reached", NONE)).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).scope("deny = [\"/cart\"]")]);
    // More pages died than came (W8).
    ground.crawl().run().expect_code(3);
    let dead = ground.dead("shop");
    let expected = [
        ("/10", "redirected more than 10 times"),
        ("/far", "redirected out of scope to other.example: add it to scope.hosts"),
        ("/far2", "redirected out of scope to 127.0.0.1:1: add it to scope.hosts"),
        ("/odd", "leads to `mailto:a@b.example`, which is no page"),
        ("/self", "redirected to itself"),
    ];
    assert_eq!(
        dead.keys().map(String::as_str).collect::<Vec<_>>(),
        expected.map(|(path, _)| path),
        "{dead:#?}"
    );
    for (path, reason) in expected {
        assert!(dead[path].contains(reason), "{path}: {}", dead[path]);
    }
    assert_eq!((site.count("/11"), site.count("/cart/1")), (0, 0));
}

#[test]
fn a_redirect_to_another_crawled_site_goes_on_there() {
    let there = TestSite::builder().page("/", page("there", NONE)).page("/moved", page("moved", ["/next"]));
    let there = there.page("/next", page("next", NONE)).robots("User-agent: *\nDisallow: /shut\n").serve();
    let here = TestSite::builder().page("/", page("here", ["/gone", "/shut"]));
    let here =
        here.redirect("/gone", 301, &there.url("/moved")).redirect("/shut", 301, &there.url("/shut")).serve();
    let ground = Ground::new([SiteFile::of("here", &here), SiteFile::of("there", &there)]);
    ground.crawled();
    assert_eq!(ground.item_paths("here"), ["/"]);
    assert_eq!(ground.item_paths("there"), ["/", "/moved", "/next"]);
    assert_eq!(there.count("/shut"), 0);
}

#[test]
fn a_link_to_another_crawled_site_goes_into_its_queue() {
    let there = TestSite::builder().page("/", page("there", NONE)).page("/deep", page("deep", NONE)).serve();
    let here = TestSite::builder()
        .page("/", page("here", [there.url("/deep"), "http://foreign.example/".into()]))
        .serve();
    let ground = Ground::new([SiteFile::of("here", &here), SiteFile::of("there", &there)]);
    ground.crawled();
    assert_eq!(ground.item_paths("there"), ["/", "/deep"]);
    assert_eq!(asked(&here), ["/robots.txt", "/"]);
}

#[test]
fn connections_that_break_are_tried_again_and_bodies_that_never_end_die() {
    let mut resets = 0;
    let cut = Reply::html(page("cut", NONE).repeat(50)).delivered(Delivery::Cut { after: 300 });
    let site = star(1).page("/", page("front", ["/p/1", "/cut"])).reply("/cut", cut).faults(move |request| {
        let breaks = request.path == "/p/1" && resets < 1;
        resets += usize::from(breaks);
        breaks.then(Reply::reset)
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("attempts = 2")]);
    ground.crawled();
    assert_eq!(ground.item_paths("shop"), ["/", "/p/1"]);
    assert_eq!((site.count("/p/1"), site.count("/cut")), (2, 2));
    let dead = ground.dead("shop");
    assert_eq!(dead.keys().collect::<Vec<_>>(), ["/cut"], "{dead:?}");
    let audit = &ground.audit()["shop"];
    assert_eq!((&audit["starts"], &audit["unanswered"]), (&6.into(), &3.into()), "{audit}");
}

#[test]
fn a_body_over_the_bound_dies_and_a_media_type_not_asked_for_is_excluded() {
    let site = TestSite::builder().page("/", page("front", ["/big", "/chunked", "/bomb", "/pdf", "/json"]));
    let big = page("big", (0..2_000).map(|n| format!("/big/{n}")));
    let bomb = Reply::html(gzip(&big)).header("content-encoding", "gzip");
    let site =
        site.page("/big", big.clone()).reply("/chunked", Reply::html(big).delivered(Delivery::Chunked));
    let site = site.reply("/bomb", bomb).json("/json", "{}");
    let site =
        site.reply("/pdf", Reply::status(200).header("content-type", "application/pdf").with_body("%PDF"));
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("max_body = \"20KiB\"")]);
    // More pages died than came (W8).
    ground.crawl().run().expect_code(3);
    let dead = ground.dead("shop");
    assert_eq!(dead.keys().collect::<Vec<_>>(), ["/big", "/bomb", "/chunked"], "{dead:?}");
    assert!(dead.values().all(|reason| reason.contains("max_body")), "{dead:?}");
    assert_eq!(ground.status()["shop"]["download"]["excluded"]["type"], 2);
    assert_eq!(ground.item_paths("shop"), ["/"]);
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).expect("memory");
    gzip.finish().expect("memory")
}

/// One uncompressed meta-block and an empty last one (RFC 7932 section 9.2).
fn brotli(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a short text");
    let head = (length - 1) << 4 | 1 << 20;
    [&head.to_le_bytes()[..3], text.as_bytes(), &[3]].concat()
}

#[test]
fn compressed_pages_are_read_and_lead_on() {
    let coded = |body: Vec<u8>, coding: &str| Reply::html(body).header("content-encoding", coding);
    let site = TestSite::builder().page("/", page("front", ["/gz", "/br"]));
    let site = site.reply("/gz", coded(gzip(&page("packed", ["/p/1"])), "gzip"));
    let site = site.reply("/br", coded(brotli(&page("pressed", ["/p/2"])), "br"));
    let site = paths(2).fold(site, |site, path| site.page(&path, page(&path, NONE))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    let titles: BTreeSet<String> =
        ground.items("shop").iter().map(|item| text(&item["fields"]["title"])).collect();
    assert_eq!(titles, ["front", "packed", "pressed", "/p/1", "/p/2"].map(str::to_owned).into());
    let accepted = site.requests()[1].header("accept-encoding").unwrap_or_default().to_owned();
    assert!(accepted.contains("gzip") && accepted.contains("br"), "{accepted}");
}

/// The archive's records of one WARC type.
fn records(ground: &Ground, kind: &str) -> usize {
    let mut text = Vec::new();
    for entry in std::fs::read_dir(ground.data.file("data/pages")).expect("an archive") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "gz") {
            let file = std::fs::File::open(path).expect("a segment");
            MultiGzDecoder::new(file).read_to_end(&mut text).expect("whole members");
        }
    }
    String::from_utf8_lossy(&text).matches(&format!("WARC-Type: {kind}\r\n")).count()
}

#[test]
fn a_second_crawl_asks_what_changed_and_unchanged_pages_still_give_items_and_links() {
    let stamp = "Sat, 21 Nov 2026 00:00:00 GMT";
    let site = TestSite::builder().page("/", page("front", ["/tagged", "/dated"]));
    let tagged = Reply::html(page("tagged", ["/from-tagged"])).header("etag", "\"v1\"");
    let dated = Reply::html(page("dated", ["/from-dated"])).header("last-modified", stamp);
    let site = site.reply("/tagged", tagged).reply("/dated", dated);
    let site = site.page("/from-tagged", page("a", NONE)).page("/from-dated", page("b", NONE));
    let site = site.faults(move |request| {
        let same = request.header("if-none-match") == Some("\"v1\"")
            || request.header("if-modified-since") == Some(stamp);
        same.then(|| Reply::status(304))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    assert_eq!((records(&ground, "revisit"), ground.items("shop").len()), (0, 5));
    ground.crawled();
    let statuses: Vec<u16> = site
        .arrivals()
        .iter()
        .filter(|a| a.path == "/tagged" || a.path == "/dated")
        .map(|a| a.status)
        .collect();
    assert_eq!((statuses.len(), statuses.iter().filter(|status| **status == 304).count()), (4, 2));
    assert_eq!(records(&ground, "revisit"), 2);
    let mut twice = ground.item_paths("shop");
    twice.dedup();
    assert_eq!((twice.len(), ground.items("shop").len()), (5, 10));
    assert_eq!((site.count("/from-tagged"), site.count("/from-dated"), site.count("/robots.txt")), (2, 2, 1));
    ground.crawled();
    assert_eq!(records(&ground, "revisit"), 4, "a confirmed page is asked for with its validators again");
}

#[test]
fn budgets_depth_and_deny_keep_pages_out() {
    let site = TestSite::builder().page("/", page("front", ["/list/1", "/cart", "/cart/2", "/nowhere"]));
    let list = |n: usize| page(n, [format!("/list/{}", n + 1), format!("/item/{n}"), format!("/item/{n}0")]);
    let site = (1..8).fold(site, |site, n| site.page(&format!("/list/{n}"), list(n)));
    let rules = r#"
[[page]]
name = "list"
match = ["/", "/list/*"]
follow = "*"
[[page]]
name = "item"
match = ["/item/*", "/cart", "/cart/*"]
max_pages = 3
"#;
    let site = site.serve();
    let file = SiteFile::of("shop", &site).pages(rules).scope("deny = [\"/cart\"]").scope("max_depth = 4");
    let ground = Ground::new([file]);
    ground.crawled();
    let asked: BTreeSet<String> = asked(&site).into_iter().collect();
    let lists = ["/", "/list/1", "/list/2", "/list/3", "/list/4"];
    assert!(lists.iter().all(|path| asked.contains(*path)), "{asked:?}");
    assert_eq!(asked.iter().filter(|path| path.starts_with("/item/")).count(), 3, "{asked:?}");
    assert_eq!(asked.len(), 1 + lists.len() + 3, "{asked:?}");
    assert_eq!(ground.view("shop").download.over_budget, 3);
}

#[test]
fn a_site_is_crawled_up_to_its_most_pages() {
    let site = star(9).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).scope("max_pages = 4")]);
    ground.crawled();
    assert_eq!((ground.items("shop").len(), site.arrivals().len()), (4, 1 + 4));
}

#[test]
fn nofollow_is_obeyed_on_a_link_in_a_page_and_in_a_header() {
    let front = page("front", ["/in-page", "/in-header", "/free"])
        + "<a rel=\"external nofollow\" href=\"/hidden/1\">hidden</a>";
    let in_page = page("in page", ["/hidden/2"])
        .replace("<title>", "<meta name=\"robots\" content=\"NOFOLLOW\"><title>");
    let in_header = Reply::html(page("in header", ["/hidden/3"])).header("x-robots-tag", "nofollow");
    let site = TestSite::builder().page("/", front).page("/in-page", in_page).reply("/in-header", in_header);
    let site = site.page("/free", page("free", NONE)).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    assert_eq!(ground.item_paths("shop"), ["/", "/free", "/in-header", "/in-page"]);
    assert!(asked(&site).iter().all(|path| !path.starts_with("/hidden/")), "{site:?}");
}

#[test]
fn a_page_without_a_required_field_is_a_dead_letter_of_its_parse_and_still_leads_on() {
    let site = star(2).page("/p/1", page("", ["/p/3"])).page("/p/3", page("three", NONE)).serve();
    let rules = EVERY_PAGE.replace("title = \"h1\"", "title = { css = \"h1\", required = true }");
    let ground = Ground::new([SiteFile::of("shop", &site).pages(&rules)]);
    ground.crawled();
    assert_eq!(ground.item_paths("shop"), ["/", "/p/2", "/p/3"]);
    let letters = ground.letters("shop");
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.stage, path_of(letter.url.as_str())), (Stage::Parse, "/p/1".to_owned()));
    assert_eq!(letter.why.reason, "rule `page`: required field not found: title");
}

#[test]
fn a_linked_page_that_wants_a_cookie_first_is_fetched_once_it_is_there() {
    let mut given = false;
    let site = star(2).faults(move |request| {
        let first = request.path == "/p/2" && !std::mem::replace(&mut given, true);
        first.then(|| Reply::status(302).header("location", "/p/2").header("set-cookie", "seen=1; Path=/"))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("cookies = true")]);
    ground.crawled();
    assert_eq!(ground.item_paths("shop"), ["/", "/p/1", "/p/2"]);
    assert_eq!(site.count("/p/2"), 2);
}

#[test]
fn a_linked_page_that_sends_to_itself_for_ever_is_a_dead_letter() {
    let site = star(2).redirect("/p/2", 302, "/p/2").serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("cookies = true")]);
    ground.crawled();
    assert_eq!(site.count("/p/2"), 11);
    let letters = ground.letters("shop");
    assert!(letters[0].why.reason.starts_with("redirected more than 10 times"), "{letters:?}");
}

#[test]
fn cookies_are_kept_and_sent_back_where_a_site_asks_for_it() {
    for cookies in [true, false] {
        let site =
            star(2).reply("/", Reply::html(page("front", paths(2))).header("set-cookie", "basket=7; Path=/"));
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site).fetch(&format!("cookies = {cookies}"))]);
        ground.crawled();
        for request in site.requests() {
            let sent = request.header("cookie");
            let due = cookies && request.path.starts_with("/p/");
            assert_eq!(sent, due.then_some("basket=7"), "{} with cookies = {cookies}", request.path);
        }
    }
}

#[test]
fn every_request_says_who_asks_and_carries_the_headers_of_the_site_file() {
    let site = star(1).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).fetch("headers = { Accept-Language = \"ja\" }")]);
    ground.crawled();
    for request in site.requests() {
        let agent = request.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("paced/") && agent.ends_with("(+test@example.com)"), "{agent}");
        assert_eq!(request.header("accept-language"), Some("ja"), "{}", request.path);
    }
}
