//! HTTP/2 servers that no library would be: what they say and leave out is said frame by frame.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

const PAGES: usize = 8;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` and `:status: 404`, as they are numbered in RFC 7541.
const FOUND: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

/// One connection, as its server sees it.
struct Peer(StreamOwned<ServerConnection, TcpStream>);

impl Peer {
    /// Greets, and allows a hundred streams.
    fn greet(stream: TcpStream) -> Option<Self> {
        let session = ServerConnection::new(tls_server::config(CERTIFICATE, &["h2"])).expect("a session");
        let mut peer = Self(StreamOwned::new(session, stream));
        peer.0.read_exact(&mut [0; 24]).ok()?;
        peer.allow(100);
        Some(peer)
    }

    /// The stream of the next request, none when the connection ended.
    fn request(&mut self) -> Option<u32> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).ok()?;
            let [.., a, b, c, d] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.0.read_exact(&mut payload).ok()?;
            match head[3] {
                HEADERS => return Some(u32::from_be_bytes([a, b, c, d])),
                SETTINGS if head[4] & ACK == 0 => self.say(SETTINGS, ACK, 0, &[]),
                _ => {}
            }
        }
    }

    fn say(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        // Whoever went away reads nothing.
        let _ = self.0.write_all(&frame).and_then(|()| self.0.flush());
    }

    /// So many streams may be open.
    fn allow(&mut self, streams: u32) {
        self.say(SETTINGS, 0, 0, &[&[0, 3][..], &streams.to_be_bytes()].concat());
    }

    fn head(&mut self, stream: u32, status: &[u8]) {
        self.say(HEADERS, END_HEADERS, stream, status);
    }

    fn answer(&mut self, stream: u32, status: &[u8], body: &str) {
        self.head(stream, status);
        self.say(DATA, END_STREAM, stream, body.as_bytes());
    }
}

/// What there is to a request: its connection, as its server sees it, that one's number, its own among all, its stream.
struct Met<'a> {
    peer: &'a mut Peer,
    connection: usize,
    number: usize,
    stream: u32,
}

/// Serves `/robots.txt` first, then a front page with links, then other pages, to each request that `meet` doesn't take.
struct Site {
    server: RawServer,
    /// The number of the connection that each request came on.
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Site {
    fn serve(meet: impl Fn(Met<'_>) -> bool + Send + Sync + 'static) -> Self {
        let (asked, front) = (Arc::<Mutex<Vec<usize>>>::default(), page("front", paths(PAGES)));
        let noted = Arc::clone(&asked);
        let server = RawServer::start(move |stream, connection| {
            let Some(mut peer) = Peer::greet(stream) else { return };
            while let Some(stream) = peer.request() {
                let number = {
                    let mut asked = noted.lock().expect("no panic");
                    asked.push(connection);
                    asked.len()
                };
                if meet(Met { peer: &mut peer, connection, number, stream }) {
                    continue;
                }
                match number {
                    1 => peer.answer(stream, NOT_FOUND, ""),
                    2 => peer.answer(stream, FOUND, &front),
                    _ => peer.answer(stream, FOUND, "<h1>page</h1>"),
                }
            }
        });
        Self { server, asked }
    }

    fn crawled(&self, fetch: &str) -> (Ground, Run) {
        let file = SiteFile::new("shop", "https://shop.example/").interval(ms(50)).pace("parallel = 4");
        let ground = Ground::new([file.fetch(fetch)]);
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{}", self.server.addr());
        let run = ground.crawl().arg("--cacert").arg(&trusted).arg("--connect-to").arg(led).run();
        (ground, run.expect_code(0))
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.lock().expect("no panic").clone()
    }
}

#[test]
fn a_connection_whose_server_allows_no_stream_any_more_is_replaced_and_no_page_loses_an_attempt() {
    in_three_tries(|| {
        let site = Site::serve(|met| {
            if (met.connection, met.number) == (1, 4) {
                met.peer.allow(0);
            }
            false
        });
        let began = Instant::now();
        let (ground, run) = site.crawled("connect_timeout = \"2s\"");
        let took = began.elapsed();
        assert_eq!(ground.items("shop").len(), PAGES + 1, "{}", run.stderr);
        assert_eq!(ground.view("shop").download.retried, 0, "{}", run.stderr);
        assert!(site.asked().ends_with(&[2]), "{:?}", site.asked());
        bound(took < Duration::from_secs(30), format_args!("it took {took:?}"))
    });
}

#[test]
fn a_connection_that_is_silent_until_a_time_out_gets_no_request_any_more() {
    for sends_heads in [false, true] {
        // On the first connection no page is answered but the front page.
        let site = Site::serve(move |met| {
            let is_frozen = met.connection == 1 && met.number > 2;
            if is_frozen && sends_heads {
                met.peer.head(met.stream, FOUND);
            }
            is_frozen
        });
        // What is sent until the last of the first four has waited in vain may wait in vain as well.
        let (ground, run) = site.crawled("read_timeout = \"3s\"\nattempts = 5");
        assert_eq!(ground.items("shop").len(), PAGES + 1, "heads {sends_heads}: {}", run.stderr);
        let asked = site.asked();
        assert!(asked.is_sorted() && asked.ends_with(&[2]), "heads {sends_heads}: {asked:?}");
    }
}

#[test]
fn a_connection_on_which_other_answers_come_stays_in_use_after_a_time_out() {
    let missed = AtomicUsize::new(0);
    let site = Site::serve(move |met| met.number == 3 && missed.fetch_add(1, Ordering::SeqCst) == 0);
    let (ground, run) = site.crawled("read_timeout = \"3s\"\nattempts = 2");
    assert_eq!(ground.items("shop").len(), PAGES + 1, "{}", run.stderr);
    assert_eq!(ground.view("shop").download.retried, 1, "{}", run.stderr);
    assert_eq!(site.server.connections(), 1, "{:?}", site.asked());
}
