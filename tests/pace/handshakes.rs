//! A site over TLS whose connections are slow to make and don't last: its pace is kept and used.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::alone;
use crate::ground::*;
use crate::proof::used;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

const INTERVAL: Duration = ms(200);
const PAGES: usize = 120;

#[test]
fn l5_l7_handshakes_of_300_ms_and_a_connection_closed_after_each_fifth_answer_waste_hardly_a_start() {
    let _turn = alone();
    in_three_tries(|| {
        let front = page("front", paths(PAGES));
        let (began, asked) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&asked);
        let answer = move |head: &str| {
            let number = {
                let mut asked = noted.lock().expect("no panic");
                asked.push(began.elapsed());
                asked.len()
            };
            std::thread::sleep(ms(50 + 10 * (number as u64 % 60)));
            let body = if head.starts_with("GET / ") { front.clone() } else { page("page", [""; 0]) };
            let (length, closes) = (body.len(), number.is_multiple_of(5));
            let connection = if closes { "close" } else { "keep-alive" };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n");
            (format!("{head}connection: {connection}\r\n\r\n{body}").into_bytes(), closes)
        };
        let server = tls_server::keeping(CERTIFICATE, |_| std::thread::sleep(ms(300)), answer);
        let file = SiteFile::new("shop", "https://shop.example/").interval(INTERVAL);
        let ground = Ground::new([file.pace("robots = \"ignore\"\nparallel = 16")]);
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{}", server.addr());
        ground.crawl().arg("--cacert").arg(trusted).arg("--connect-to").arg(led).run().expect_code(0);
        assert_audited(&ground.audit()["shop"], PAGES + 1);
        let asked = asked.lock().expect("no panic").clone();
        assert_eq!(asked.len(), PAGES + 1, "each page once");
        let gaps = GapReport::new(&asked, &[], INTERVAL);
        println!("{} connections, {gaps}", server.connections());
        assert!(server.connections() >= PAGES / 5, "they don't last");
        // Its stalls aren't known; what the sender stamped was looked at above.
        bound(gaps.early.len() <= 1, format_args!("{gaps}"))?;
        // From the first page on that the front page led to.
        used(0.97, &[asked[1..].to_vec()], INTERVAL)
    });
}
