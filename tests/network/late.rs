//! Starts that grew late while a connection was made: each takes a new start before its request goes out, or goes back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use paced::internals::clock::since_boot;
use paced::internals::manners::grace;
use paced::internals::mutex::TimedMutex;

use crate::bad_site::*;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

const INTERVAL: Duration = ms(300);

/// A site over TLS whose handshakes take their time, and when it was asked.
struct SlowSite {
    server: RawServer,
    asked: Arc<Mutex<Vec<Duration>>>,
}

impl SlowSite {
    /// `shake` says by a connection's number, from 1, how long its handshake takes.
    fn serve(shake: impl Fn(usize) -> Duration + Send + Sync + 'static, pages: usize) -> Self {
        let asked: Arc<Mutex<Vec<Duration>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let front = page("front", paths(pages));
        let reply = move |head: &str| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(since_boot());
            let is_front = head.starts_with("GET / ");
            let body = if is_front { front.clone() } else { page("page", [""; 0]) };
            answer("200 OK", "", body.as_bytes())
        };
        let server = tls_server::serving(CERTIFICATE, move |number| std::thread::sleep(shake(number)), reply);
        Self { server, asked }
    }

    fn ground() -> Ground {
        let file = SiteFile::new("shop", "https://shop.example/").interval(INTERVAL);
        Ground::new([file.pace("robots = \"ignore\"")])
    }

    fn crawl(&self, ground: &Ground) -> Paced {
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{}", self.server.addr());
        ground.crawl().arg("--cacert").arg(trusted).arg("--connect-to").arg(led)
    }

    fn asked(&self) -> Vec<Duration> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[test]
fn l7_a_start_that_grew_late_while_its_connection_was_made_keeps_its_distance_to_those_of_others() {
    // Every other request would come together with the next one, for which the connection is made at once.
    let site = SlowSite::serve(|number| if number % 2 == 0 { INTERVAL * 3 / 2 } else { ms(0) }, 8);
    let ground = SlowSite::ground();
    site.crawl(&ground).run().expect_code(0);
    assert_eq!(ground.items("shop").len(), 9);
    let audit = &ground.audit()["shop"];
    assert_audited(audit, 9);
    let late = audit["lateness_ms"]["p99"].as_u64().expect("on record");
    assert!(ms(late) <= grace(INTERVAL), "what is on record is the start that it took last: {audit}");
    assert_gaps_paced(&GapReport::new(&site.asked(), &[], INTERVAL));
    let view = ground.view("shop");
    assert_eq!((view.download.retried, view.download.lost), (0, 0), "a late start is no attempt");
}

#[test]
fn a_late_start_that_waits_for_somebody_else_goes_back_when_the_process_is_to_end() {
    let site = SlowSite::serve(|_| INTERVAL * 4, 0);
    let ground = SlowSite::ground();
    let mut crawl = site.crawl(&ground).start();
    eventually("a connection under way", || (site.server.connections() == 1).then_some(()));
    let frontier = ground.frontier();
    wait(async {
        let pace = TimedMutex::of_site_in(&frontier, "shop").await.expect("the site");
        let mut held = pace.lock().await.expect("the frontier");
        held.extend(Duration::from_mins(10)).await.expect("it is its own");
    });
    std::thread::sleep(INTERVAL * 6);
    assert!(!crawl.ended(), "{}", crawl.stderr());
    crawl.interrupt();
    crawl.finish().expect_code(130);
    assert!(site.asked().is_empty(), "the start would have been somebody else's");
    let downloads = ground.view("shop").download;
    let left = downloads.waiting + downloads.delayed;
    assert_eq!((left, downloads.leased, downloads.retried), (1, 0, 0), "{downloads:?}");
}
