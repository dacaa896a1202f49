//! The ground that other tests stand on: the served shops, the saved ones, and the stamps of their arrivals.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use support::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_shop_sells_on_its_pages_what_its_truth_says() {
    let shops = serve([ShopPlan::new("a", 30), ShopPlan::new("b", 3)]).expect("shops");
    let shop = shops.get("a").expect("it was planned");
    let product = shop.plan.truth(21);
    let listing = ask(shop.addr(), "/page/2").expect("an answer").text();
    assert!(listing.contains("href=\"/product/21\"") && listing.contains(&product.price()), "{listing}");
    let page = ask(shop.addr(), "/product/21").expect("an answer");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for value in [&product.gtin, &product.sku, &product.amount, &product.price()] {
        assert!(page.text().contains(value.as_str()), "{value} in {}", page.text());
    }
    assert_ne!(shop.addr(), shops.all()[1].addr());
    for absent in ["/robots.txt", "/product/31", "/page/3", "/page/1"] {
        assert_eq!(ask(shop.addr(), absent).expect("an answer").status, 404, "{absent}");
    }
}

#[test]
fn a_moved_shop_redirects_its_own_links_to_where_its_pages_are() {
    let plan = |name, moved| ShopPlan::new(name, 30).moved(moved);
    let shops = serve([plan("some", Moved::Products), plan("all", Moved::Everything)]).expect("shops");
    for (shop, old, new) in [
        ("some", "/p/7", "/product/7"),
        ("all", "/old/product/7", "/new/product/7"),
        ("all", "/old/page/2", "/new/page/2"),
    ] {
        let addr = shops.get(shop).expect("it was planned").addr();
        let answer = ask(addr, old).expect("an answer");
        assert_eq!((answer.status, answer.header("location")), (301, Some(new)), "{answer:?}");
        assert_eq!(ask(addr, new).expect("an answer").status, 200, "{new}");
    }
}

#[test]
fn a_flaky_shop_fails_now_and_then_and_a_url_at_most_twice() {
    let busy = FaultKind::Unavailable { retry_after: Some(Duration::from_secs(2)) };
    let plan = ShopPlan::new("flaky", 3).fault(2, busy).fault(3, FaultKind::Reset);
    let shops = serve([plan]).expect("a shop");
    let shop = &shops.all()[0];
    let mut seen = Vec::new();
    for _ in 0..10 {
        match ask(shop.addr(), "/product/1") {
            Ok(answer) => {
                assert_eq!(answer.header("retry-after").is_some(), answer.status == 503, "{answer:?}");
                seen.push(answer.status);
            }
            Err(why) => {
                assert_eq!(why.kind(), ErrorKind::ConnectionReset, "{why}");
                seen.push(0);
            }
        }
    }
    assert_eq!(seen, [200, 503, 0, 200, 200, 200, 200, 200, 200, 200]);
    let stamped: Vec<u16> = shop.arrivals().iter().map(|arrival| arrival.status).collect();
    assert_eq!(stamped, seen);
    assert_eq!(ask(shop.addr(), "/product/2").expect("it is the eleventh").status, 200);
    assert_eq!(ask(shop.addr(), "/product/2").expect("it is the twelfth").status, 503);
}

#[test]
fn a_shop_asks_for_a_crawl_delay_and_its_robots_txt_never_fails() {
    let plan = ShopPlan::new("slow", 1)
        .robots("User-agent: *\nCrawl-delay: 1.5\nDisallow:\n")
        .fault(1, FaultKind::Reset);
    let shops = serve([plan]).expect("a shop");
    let robots = ask(shops.all()[0].addr(), "/robots.txt").expect("an answer").text();
    assert_eq!(robots, "User-agent: *\nCrawl-delay: 1.5\nDisallow:\n");
}

#[test]
fn a_cut_body_ends_early_and_a_slow_one_takes_its_pauses() {
    let slow = ShopPlan::new("slow", 1).fault(1, FaultKind::Slow { pause: ms(20) });
    let cut = ShopPlan::new("cut", 1).fault(1, FaultKind::Cut);
    let shops = serve([slow, cut]).expect("shops");
    for (shop, whole, least) in [("slow", true, ms(180)), ("cut", false, ms(0))] {
        let shop = shops.get(shop).expect("it was planned");
        let answer = ask(shop.addr(), "/product/1").expect("an answer");
        let promised: usize = answer.header("content-length").expect("its length").parse().expect("a number");
        assert_eq!(answer.body.len() == promised, whole, "{} of {promised} bytes", answer.body.len());
        assert!(answer.body.len() >= promised / 2, "{} of {promised} bytes", answer.body.len());
        let took = shop.arrivals()[0].took().expect("the answer is here");
        assert!(took >= least, "{took:?}");
    }
}

#[test]
fn an_arrival_is_stamped_before_the_wait_and_its_end_after_it() {
    let site = TestSite::builder().page("/", "x").latency(Latency::between(ms(50), ms(80))).serve();
    let asked = paced::internals::clock::since_boot();
    ask(site.addr(), "/").expect("an answer");
    let answered = paced::internals::clock::since_boot();
    let visit = &site.arrivals()[0];
    let done = visit.done.expect("the answer is here");
    assert!(asked <= visit.at && done <= answered, "{asked:?} {visit:?} {answered:?}");
    assert!(visit.took() >= Some(ms(50)) && answered >= visit.at + ms(50), "{visit:?}");
}

#[test]
fn requests_of_one_connection_carry_its_number() {
    let site = TestSite::builder().page("/", "x").serve();
    let mut stream = TcpStream::connect(site.addr()).expect("a connection");
    for n in 1..=2 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is open");
        eventually("the answer", || (site.count("/") == n).then_some(()));
    }
    ask(site.addr(), "/").expect("an answer");
    let connections: Vec<u64> = site.arrivals().iter().map(|arrival| arrival.connection).collect();
    assert_eq!(connections, [1, 1, 2]);
}

#[test]
fn requests_in_flight_at_once_are_counted() {
    let site = TestSite::builder().page("/", "x").faults(|_| Some(Reply::silence())).serve();
    let mut streams: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(site.addr()).expect("a connection")).collect();
    for stream in &mut streams {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is open");
    }
    eventually("three requests", || (site.count("/") == 3).then_some(()));
    drop(streams);
    eventually("their ends", || site.arrivals().iter().all(|arrival| arrival.done.is_some()).then_some(()));
    ask_in_vain(&site);
    assert_eq!(most_in_flight(&site.arrivals()), 3);
}

/// A visitor that gives up.
fn ask_in_vain(site: &TestSite) {
    let before = site.count("/");
    let mut stream = TcpStream::connect(site.addr()).expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is open");
    eventually("the request", || (site.count("/") > before).then_some(()));
}

#[test]
fn a_test_site_answers_what_it_was_given_and_counts() {
    let site = TestSite::builder()
        .page("/?x=1", "with a query")
        .json("/j", "{}")
        .redirect("/r", 302, "/j")
        .status("/gone", 410)
        .robots("User-agent: *\nDisallow: /x\n")
        .faults(|request| (request.path == "/bad").then(|| Reply::status(500)))
        .serve();
    for (path, status, text) in [
        ("/?x=1", 200, "with a query"),
        ("/j", 200, "{}"),
        ("/r", 302, ""),
        ("/gone", 410, ""),
        ("/robots.txt", 200, "User-agent: *\nDisallow: /x\n"),
        ("/bad", 500, ""),
    ] {
        let answer = ask(site.addr(), path).expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{path}");
    }
    assert_eq!(ask(site.addr(), "/new").expect("an answer").status, 404);
    site.put("/new", Reply::html("here").delivered(Delivery::Chunked));
    let answer = ask(site.addr(), "/new").expect("an answer");
    assert_eq!((answer.header("content-length"), answer.text().as_str()), (None, "4\r\nhere\r\n0\r\n\r\n"));
    site.remove("/new");
    assert_eq!(ask(site.addr(), "/new").expect("an answer").status, 404);
    assert_eq!((site.count("/new"), site.counts()["/j"], site.counts().len()), (3, 1, 7));
    assert!(site.requests()[0].header("host").is_some_and(|host| host.starts_with("127.0.0.1:")));
}

#[test]
fn a_site_comes_back_on_its_port() {
    let site = TestSite::builder().page("/", "first").serve();
    let addr = site.addr();
    assert_eq!(ask(addr, "/").expect("an answer").text(), "first");
    drop(site);
    assert!(ask(addr, "/").is_err());
    let site = TestSite::builder().page("/", "second").port(addr.port()).serve();
    assert_eq!((site.addr(), ask(addr, "/").expect("an answer").text()), (addr, "second".to_owned()));
}

#[test]
fn a_steady_visitor_keeps_the_pace_and_a_hasty_one_does_not() {
    let interval = ms(50);
    let site = TestSite::builder().page("/", "x").serve();
    for (wait, verdict) in [(ms(50), PaceVerdict::Kept), (ms(1), PaceVerdict::Broken)] {
        for _ in 0..10 {
            ask(site.addr(), "/").expect("an answer");
            std::thread::sleep(wait);
        }
        let report = site.gaps(interval);
        assert!(report.verdict() == verdict, "{report}");
    }
}

#[test]
fn a_stall_of_the_server_is_noticed() {
    let site = TestSite::builder()
        .page("/", "x")
        .faults(|_| {
            std::thread::sleep(ms(30));
            None
        })
        .serve();
    ask(site.addr(), "/").expect("an answer");
    let at = site.arrivals()[0].at;
    let stall = eventually("the stall", || {
        site.stalls().into_iter().find(|stall| stall.from <= at && stall.to >= at + ms(30))
    });
    assert!(stall.length() >= ms(30), "{stall:?}");
}

#[test]
fn the_saved_books_are_served_with_an_index_for_a_folder() {
    let Some(corpus) = Corpus::books() else { return };
    let site = corpus.serve();
    let (front, index) = (ask(site.addr(), "/"), ask(site.addr(), "/index.html"));
    assert_eq!(front.expect("an answer").body, index.expect("an answer").body);
    let truth = corpus.truth();
    assert_eq!(truth.len(), 1000);
    for product in &truth {
        let path = product["url_path"].as_str().expect("a path");
        assert!(corpus.pages().contains_key(path), "{path}");
    }
    let path = truth[0]["url_path"].as_str().expect("a path");
    let page = ask(site.addr(), path).expect("an answer").text();
    assert!(page.contains(truth[0]["upc"].as_str().expect("a UPC")), "{page}");
    assert_eq!(site.count(path), 1);
}

#[test]
fn the_saved_shops_with_a_manifest_are_served_by_path_and_query() {
    let Some(corpus) = Corpus::manifest("zyte-ecommerce") else { return };
    let site = corpus.serve();
    let (first, second) = (ask(site.addr(), "/?page=1"), ask(site.addr(), "/?page=2"));
    assert_ne!(first.expect("an answer").body, second.expect("an answer").body);
    assert_eq!(corpus.truth().len(), 1000);
    let Some(quotes) = Corpus::manifest("quotes-toscrape") else { return };
    let site = quotes.site().robots("User-agent: *\nDisallow:\n").serve();
    let answer = ask(site.addr(), "/author/Albert-Einstein").expect("an answer");
    assert_eq!((answer.status, answer.header("location").is_some()), (308, true), "{answer:?}");
    for path in quotes.crawl_truth()["reachable"].as_array().expect("a list") {
        assert!(quotes.pages().contains_key(path.as_str().expect("a path")), "{path}");
    }
}

#[test]
fn a_raw_server_answers_bytes() {
    let server = RawServer::answering("HTTP/1.1 299 Odd\r\n\r\nrest");
    let answer = ask(server.addr(), "/").expect("an answer");
    assert_eq!((answer.status, answer.text().as_str(), server.connections()), (299, "rest", 1));
    let silent = RawServer::start(|stream, _| drop(stream));
    let mut stream = TcpStream::connect(silent.addr()).expect("a connection");
    assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
}

#[test]
fn the_binary_runs_and_what_it_prints_is_kept() {
    let data = TempData::new();
    let run = Paced::new(["--no-such-option"]).data(&data).run();
    assert!(run.code.is_some(), "{run:?}");
    assert_eq!(data.write("a/b.toml", "x"), data.file("a/b.toml"));
    assert_eq!(data.read("a/b.toml"), "x");
}

#[test]
fn a_redis_server_keeps_what_it_wrote_through_a_power_cut_and_ends_with_the_test() {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    assert_ne!(redis.port(), 6379);
    redis.cli_in(3, &["SET", "a", "1"]);
    redis.restart();
    assert_eq!((redis.cli_in(3, &["GET", "a"]), redis.cli(&["GET", "a"])), ("1".to_owned(), String::new()));
    assert_eq!((redis.calls()["get"], redis.info("tcp_port")), (2, Some(redis.port().to_string())));
    let (port, folder) = (redis.port(), redis.folder().to_owned());
    drop(redis);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err() && !folder.exists());
}

#[test]
fn a_redis_server_wants_the_password_and_the_user_it_was_given() {
    let Some(open) = redis_or_skip() else { return };
    let secret = RedisServer::builder().password("sesame").start().expect("the first one started");
    let named = RedisServer::builder().user("crawler", "sesame").start().expect("the first one started");
    assert_eq!(open.url(2), format!("redis://127.0.0.1:{}/2", open.port()));
    assert_eq!(secret.url(0), format!("redis://:sesame@127.0.0.1:{}/0", secret.port()));
    assert_eq!(named.url(0), format!("redis://crawler:sesame@127.0.0.1:{}/0", named.port()));
    assert_eq!(named.cli(&["ACL", "WHOAMI"]), "crawler");
    for server in [&secret, &named] {
        let mut stranger = RedisCli::tcp(server.port()).expect("it listens");
        let said = stranger.say(&["PING"]).expect("an answer");
        assert!(matches!(&said, Said::Error(why) if why.starts_with("NOAUTH")), "{said:?}");
    }
}

#[test]
fn a_redis_server_speaks_tls_alone_or_copies_another_one_or_has_a_clock_that_moves() {
    let Some(first) = redis_or_skip() else { return };
    let copy = RedisServer::builder().replica_of(&first).start().expect("the first one started");
    eventually("the copy follows", || (copy.info("master_link_status")? == "up").then_some(()));
    let said = copy.connect().say(&["SET", "a", "1"]).expect("an answer");
    assert!(matches!(&said, Said::Error(why) if why.starts_with("READONLY")), "{said:?}");

    let tls = RedisServer::builder().tls().start().expect("the first one started");
    assert!(tls.url(0).starts_with("rediss://localhost:"), "{}", tls.url(0));
    let said = RedisCli::tcp(tls.port()).expect("it listens").say(&["PING"]);
    assert!(said.is_err(), "{said:?}");

    let moved = RedisServer::builder().movable_clock().start().expect("the first one started");
    let seconds = || moved.cli(&["TIME"]).lines().next().and_then(|s| s.parse::<i64>().ok()).expect("a time");
    let before = seconds();
    moved.shift_clock(3_600_000);
    assert!((3_600..3_700).contains(&(seconds() - before)));
    moved.shift_clock(-3_600_000);
    assert!((-3_600..-3_500).contains(&(seconds() - before)));
}

#[test]
fn a_paused_redis_server_keeps_everybody_waiting_until_it_goes_on() {
    let Some(redis) = redis_or_skip() else { return };
    let mut cli = redis.connect();
    redis.pause();
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(cli.say(&["PING"]).expect("an answer")));
    assert!(heard.recv_timeout(ms(200)).is_err());
    redis.resume();
    assert_eq!(heard.recv().expect("an answer"), Said::Text("PONG".to_owned()));
}

#[test]
fn databases_of_the_shared_redis_server_are_empty_and_apart() {
    let (Some(one), Some(other)) = (RedisDb::take(), RedisDb::take()) else { return };
    assert_ne!(one.url(), other.url());
    one.cli(&["SET", "a", "1"]);
    assert_eq!((one.cli(&["DBSIZE"]), other.cli(&["DBSIZE"])), ("1".to_owned(), "0".to_owned()));
    let url = one.url();
    drop(one);
    let again = RedisDb::take().expect("it is there");
    assert_eq!((again.url(), again.cli(&["DBSIZE"])), (url, "0".to_owned()));
}

#[test]
fn the_road_to_redis_can_be_closed_and_may_lose_an_answer_to_what_was_done() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let port = road.url(0).rsplit([':', '/']).nth(1).and_then(|port| port.parse().ok()).expect("a port");
    let mut cli = RedisCli::tcp(port).expect("it is open");
    assert_eq!(cli.say(&["INCR", "a"]).expect("an answer"), Said::Number(1));
    road.lose_answer_to("secret");
    assert_eq!(cli.say(&["INCR", "a"]).expect("an answer"), Said::Number(2));
    assert!(cli.say(&["INCR", "secret"]).is_err());
    assert_eq!((redis.cli(&["GET", "secret"]), road.lost()), ("1".to_owned(), 1));
    let mut cli = RedisCli::tcp(port).expect("it is open");
    assert_eq!(cli.say(&["INCR", "secret"]).expect("an answer"), Said::Number(2));
    road.close();
    assert!(cli.say(&["PING"]).is_err());
    assert!(RedisCli::tcp(port).and_then(|mut cli| cli.say(&["PING"])).is_err());
    road.open();
    assert!(RedisCli::tcp(port).and_then(|mut cli| cli.say(&["PING"])).is_ok());
}

#[test]
fn a_redis_cluster_goes_on_with_a_replica_when_a_master_dies() {
    let Some(mut cluster) = RedisCluster::start() else { return };
    assert_eq!((cluster.nodes().count(), cluster.url().matches("127.0.0.1:").count()), (6, 3));
    let (key, before) = ("{paced:0}:x", cluster.master_of("{paced:0}:x").port());
    cluster.master_of(key).cli(&["SET", key, "1"]);
    cluster.master_of(key).cli(&["WAIT", "1", "5000"]);
    cluster.fail_over(key);
    let after = cluster.master_of(key);
    assert_ne!(after.port(), before);
    assert_eq!((after.cli(&["GET", key]), cluster.nodes().count()), ("1".to_owned(), 5));
}
