//! A site that goes away in the middle of a crawl and comes back: it is left alone meanwhile, and no page is lost.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::bad_site::*;
use crate::ground::*;
use crate::support::*;

const PAGES: usize = 40;
const INTERVAL: Duration = Duration::from_millis(100);
/// After so many pages it goes away.
const ANSWERED: usize = 8;
/// For so long; a page that is asked for as soon as its back-off allows spends its five attempts in 8 s or so.
const AWAY: Duration = Duration::from_secs(14);

/// What is the matter with it.
#[derive(Default)]
struct Outage {
    pages: AtomicUsize,
    began: Mutex<Option<Instant>>,
    missed: AtomicUsize,
}

impl Outage {
    /// Serves a page, unless the site is away: then `meet` does what it does.
    fn page(&self, stream: &mut TcpStream, meet: &[u8]) {
        if self.pages.fetch_add(1, Ordering::SeqCst) >= ANSWERED {
            let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
            if began.get_or_insert_with(Instant::now).elapsed() < AWAY {
                self.missed.fetch_add(1, Ordering::SeqCst);
                return drop(stream.write_all(meet));
            }
        }
        drop(stream.write_all(&answer("200 OK", "", b"<h1>whole</h1>")));
    }
}

/// Crawls a site that goes away; what the crawl said, and how many requests met nobody.
fn crawl(meet: &'static [u8]) -> (String, usize) {
    let outage = Arc::new(Outage::default());
    let site = (0..PAGES).fold(BadSite::builder(), |site, page| {
        let outage = Arc::clone(&outage);
        site.meets(&format!("/{page}"), move |stream| outage.page(stream, meet))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/")).interval(INTERVAL)]);
    let run = ground.crawl().run().expect_code(0);
    assert_eq!(ground.dead("shop").len(), 0, "{}", run.stderr);
    assert_eq!(ground.items("shop").len(), PAGES + 1, "{}", run.stderr);
    assert_archived(&ground, &site.counts());
    (run.stderr, outage.missed.load(Ordering::SeqCst))
}

/// It was noticed once, and asked no more often than it takes to notice.
fn left_alone(said: &str, missed: usize, why: &str) -> Result<(), String> {
    let opened = said.matches("the site is left alone: breaker open: pages can't be had").count();
    assert!(opened >= 1 && said.contains(why), "{said}");
    assert_eq!(said.matches("breaker closed: the site answers again").count(), 1, "{said}");
    println!("{missed} requests met nobody, {opened} times it was left alone");
    assert!(missed >= 5, "{missed} requests met nobody: {said}");
    // They go on until the fifth that failed is settled, and each time that it is looked at again.
    bound(missed <= 5 + 3 * opened, format_args!("{missed} requests met nobody: {said}"))
}

#[test]
fn a_site_that_is_down_for_a_while_is_left_alone_and_no_page_dies() {
    in_three_tries(|| {
        let (said, missed) = crawl(b"");
        left_alone(&said, missed, "the last: ")
    });
}

#[test]
fn a_site_that_stays_away_is_given_up_and_its_pages_wait_for_the_next_crawl() {
    let site = (0..PAGES).fold(BadSite::builder(), |site, page| site.meets(&format!("/{page}"), |_| ()));
    let site = site.serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/"))]);
    let run = ground.crawl().arg("--give-up").arg("2s").run().expect_code(3);
    assert!(run.stderr.contains("without an answer: blocked until "), "{}", run.stderr);
    let downloads = ground.view("shop").download;
    assert_eq!((downloads.dead, downloads.waiting + downloads.delayed), (0, PAGES as u64), "{downloads:?}");
}

#[test]
fn a_gateway_whose_server_is_gone_is_left_alone_and_no_page_dies() {
    in_three_tries(|| {
        let gone = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let (said, missed) = crawl(gone);
        left_alone(&said, missed, "the last: HTTP 502")
    });
}

#[test]
fn a_site_of_a_group_that_is_down_holds_no_neighbour_back_and_loses_no_page_to_its_answers() {
    let gone = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let down =
        (0..PAGES).fold(BadSite::builder(), |site, page| site.bytes(&format!("/{page}"), gone)).serve();
    let well = star(PAGES).serve();
    let file = |name: &str, url: String| SiteFile::new(name, url).interval(INTERVAL).top("group = \"g\"");
    let ground = Ground::new([file("down", down.url("/")), file("well", well.url("/"))]);
    let run = ground.crawl().arg("--give-up").arg("2s").run().expect_code(3);
    let (away, fine) = (ground.view("down"), ground.view("well"));
    let with_robots = PAGES as u64 + 2;
    assert_eq!((fine.download.done, fine.blocked_until), (with_robots, None), "{}", run.stderr);
    assert_eq!((away.download.dead, away.download.waiting + away.download.delayed), (0, PAGES as u64));
    let why = away.blocked_why.expect("it is held back");
    assert!(why.contains("breaker open") && why.ends_with("HTTP 502"), "{why}");
    let missed = away.download.retried;
    assert!((5..=20).contains(&missed), "{missed} requests in vain: {}", run.stderr);
}
