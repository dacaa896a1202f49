//! Requests leave at the moment that their start was granted for, on connections new and old, in a crawl and in a `try`.

use paced::internals::archive::{Filter, scan};
use paced::internals::manners::departure::LATE;

use crate::alone;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

const PAGES: usize = 40;
/// So many that one of them may be late.
const HANDSHAKES: usize = 101;

/// How far from its time each request was sent that was kept.
fn all_of(ground: &Ground) -> Vec<u64> {
    let records = scan(&*ground.pages(), Filter::default()).expect("a walk");
    let mut late: Vec<u64> = records
        .map(|record| {
            let record = record.expect("a record");
            let start_at = record.start_at.expect("its time is on record");
            record.sent_at.as_millis().abs_diff(start_at.as_millis())
        })
        .collect();
    late.sort_unstable();
    late
}

/// All but one in a hundred were sent within what counts as exact.
fn exact(ground: &Ground, requests: usize) -> Result<(), String> {
    let late = all_of(ground);
    assert_eq!(late.len(), requests, "each request is on record");
    let rank = |percent: usize| late[(late.len() * percent).div_ceil(100) - 1];
    let (p50, p99) = (rank(50), rank(99));
    println!("{requests} starts, lateness p50 {p50} ms, p99 {p99} ms, the latest {} ms", rank(100));
    bound(ms(p99) <= LATE, format_args!("p99 of the lateness is {p99} ms"))
}

/// Five sites; one that closes its connections is asked on a new one each time.
fn crawl(shared: &Shared, closes: bool) -> Result<(), String> {
    let connection = if closes { "close" } else { "keep-alive" };
    let served = |_| {
        let links = page("front", paths(PAGES));
        let site = TestSite::builder().faults(move |request| {
            let body = if request.path == "/" { links.clone() } else { page("page", [""; 0]) };
            Some(Reply::html(body).header("connection", connection))
        });
        site.serve()
    };
    let sites: Vec<TestSite> = (0..5).map(served).collect();
    let file = |(number, site)| {
        SiteFile::of(&format!("s{number}"), site).interval(ms(200)).pace("robots = \"ignore\"")
    };
    let ground = Ground::on(shared, sites.iter().enumerate().map(file));
    ground.crawled();
    for site in &sites {
        let connections = site.arrivals().iter().map(|arrival| arrival.connection).max();
        assert_eq!(connections == Some(PAGES as u64 + 1), closes, "{connections:?} connections");
    }
    exact(&ground, 5 * (PAGES + 1))
}

#[test]
fn l7_requests_leave_at_their_time_on_connections_that_are_there() {
    let _turn = alone();
    on_each_frontier(|shared| in_three_tries(|| crawl(shared, false)));
}

#[test]
fn l7_requests_leave_at_their_time_on_connections_that_are_made_for_them() {
    let _turn = alone();
    on_each_frontier(|shared| in_three_tries(|| crawl(shared, true)));
}

/// One site over TLS, each of whose handshakes takes as long as three intervals, and which closes after each answer.
#[test]
fn l7_requests_leave_at_their_time_though_handshakes_take_300_ms() {
    let _turn = alone();
    in_three_tries(|| {
        let front = page("front", paths(HANDSHAKES - 1));
        let reply = move |head: &str| {
            let body = if head.starts_with("GET / ") { front.clone() } else { page("page", [""; 0]) };
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n");
            format!("{head}connection: close\r\n\r\n{body}").into_bytes()
        };
        let server = tls_server::serving(CERTIFICATE, |_| std::thread::sleep(ms(300)), reply);
        let file = SiteFile::new("shop", "https://shop.example/").interval(ms(100));
        let ground = Ground::new([file.pace("robots = \"ignore\"")]);
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{}", server.addr());
        ground.crawl().arg("--cacert").arg(trusted).arg("--connect-to").arg(led).run().expect_code(0);
        assert_audited(&ground.audit()["shop"], HANDSHAKES);
        exact(&ground, HANDSHAKES)
    });
}

#[test]
fn l7_the_requests_of_a_try_leave_at_their_time() {
    let _turn = alone();
    on_each_frontier(|shared| {
        in_three_tries(|| {
            let site = star(1).serve();
            let file = SiteFile::of("shop", &site).interval(ms(200)).pace("robots = \"ignore\"");
            let ground = Ground::on(shared, [file]);
            for _ in 0..5 {
                ground
                    .verb("try")
                    .arg(site.url("/p/1"))
                    .arg("--site")
                    .arg(ground.file("shop"))
                    .run()
                    .expect_code(0);
            }
            exact(&ground, 5)
        });
    });
}
