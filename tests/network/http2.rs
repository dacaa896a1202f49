//! HTTP/2 over TLS: streams share a connection, and what is said of streams and connections ends as it should.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::bad_site::*;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

/// How long the answers to some paths take.
const SLOW: Duration = ms(900);

/// What the site was asked for: path, number of the connection, time.
type Asked = Arc<Mutex<Vec<(String, usize, Duration)>>>;

/// `https://shop.example/` as an HTTP/2 server that says goodbye after so many requests of a connection.
struct Site {
    addr: SocketAddr,
    asked: Asked,
    _runtime: tokio::runtime::Runtime,
}

/// What is still to do with a connection after an answer.
enum Then {
    GoOn,
    SayGoodbye,
    Abort,
}

impl Site {
    fn serve(goodbye_after: usize, links: Vec<String>) -> Self {
        Self::with_streams(u32::MAX, goodbye_after, links)
    }

    /// Allows so many streams at a time.
    fn with_streams(most_streams: u32, goodbye_after: usize, links: Vec<String>) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let addr = listener.local_addr().expect("it is bound");
        let acceptor = TlsAcceptor::from(tls_server::config(CERTIFICATE, &["h2", "http/1.1"]));
        let (asked, front) = (Asked::default(), page("front", links));
        let (noted, began) = (Arc::clone(&asked), Instant::now());
        runtime.spawn(async move {
            for number in 1.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (acceptor, noted, front) = (acceptor.clone(), Arc::clone(&noted), front.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let note = move |path: &str| {
                        let mut asked = noted.lock().expect("no panic");
                        asked.push((path.to_owned(), number, began.elapsed()));
                        asked.iter().filter(|(other, ..)| other == path).count()
                    };
                    let _ = if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                        connection(stream, note, &front, goodbye_after, most_streams).await.is_ok()
                    } else {
                        plainly(stream, note).await.is_ok()
                    };
                });
            }
        });
        Self { addr, asked, _runtime: runtime }
    }

    fn asked(&self) -> Vec<(String, usize, Duration)> {
        self.asked.lock().expect("no panic").clone()
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.asked().into_iter().for_each(|(path, ..)| *counts.entry(path).or_default() += 1);
        counts
    }

    fn crawled(&self, file: SiteFile) -> Ground {
        self.crawled_to(0, file)
    }

    fn crawled_to(&self, code: i32, file: SiteFile) -> Ground {
        let ground = Ground::new([file]);
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{}", self.addr);
        ground.crawl().arg("--cacert").arg(&trusted).arg("--connect-to").arg(led).run().expect_code(code);
        ground
    }
}

/// Meets the requests of one connection, `note` telling how often each path was asked for.
async fn connection(
    stream: TlsStream<TcpStream>,
    note: impl Fn(&str) -> usize,
    front: &str,
    goodbye_after: usize,
    most_streams: u32,
) -> Result<(), h2::Error> {
    let mut server = h2::server::Builder::new();
    let handshake = server.max_concurrent_streams(most_streams).handshake(stream);
    let mut connection: Connection<_, Bytes> = handshake.await?;
    let mut met = 0;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        met += 1;
        let times = note(request.uri().path());
        match answered(&request, respond, times, front)? {
            Then::GoOn if met % goodbye_after == 0 => connection.graceful_shutdown(),
            Then::GoOn => {}
            Then::SayGoodbye => connection.graceful_shutdown(),
            Then::Abort => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
        }
    }
    Ok(())
}

/// Meets the requests of a connection over HTTP/1.1.
async fn plainly(mut stream: TlsStream<TcpStream>, note: impl Fn(&str) -> usize) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        head.push(stream.read_u8().await?);
        if head.ends_with(b"\r\n\r\n") {
            let path = path_of(&String::from_utf8_lossy(&head));
            note(&path);
            stream.write_all(&answer("200 OK", "", page(&path, [""; 0]).as_bytes())).await?;
            head.clear();
        }
    }
}

fn path_of(head: &str) -> String {
    head.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn answered<T>(
    request: &Request<T>,
    mut respond: SendResponse<Bytes>,
    times: usize,
    front: &str,
) -> Result<Then, h2::Error> {
    let path = request.uri().path();
    let head = |status: u16| Response::builder().status(status).body(()).expect("a head");
    let half = |respond: &mut SendResponse<Bytes>| {
        let mut body = respond.send_response(head(200), false)?;
        body.send_data(Bytes::from_static(b"<h1>half</h1>"), false).map(|()| body)
    };
    match path {
        "/refused-once" if times == 1 => respond.send_reset(Reason::REFUSED_STREAM),
        "/refused" => respond.send_reset(Reason::REFUSED_STREAM),
        "/reset" => respond.send_reset(Reason::INTERNAL_ERROR),
        "/wants-http-1.1" => respond.send_reset(Reason::HTTP_1_1_REQUIRED),
        "/half-reset" => half(&mut respond)?.send_reset(Reason::CANCEL),
        "/short" => {
            let head = Response::builder().header("content-length", "500").body(()).expect("a head");
            respond.send_response(head, false)?.send_data(Bytes::from_static(b"<h1>short</h1>"), true)?;
        }
        "/goodbye" => {
            respond.send_response(head(404), true)?;
            return Ok(Then::SayGoodbye);
        }
        "/aborted" => return Ok(Then::Abort),
        slow if slow.starts_with("/slow") => {
            let body = page(slow, [""; 0]);
            tokio::spawn(async move {
                tokio::time::sleep(SLOW).await;
                respond.send_response(head(200), false)?.send_data(body.into(), true)
            });
        }
        "/robots.txt" => drop(respond.send_response(head(404), true)?),
        _ => {
            let body = if path == "/" { front.to_owned() } else { page(path, [""; 0]) };
            respond.send_response(head(200), false)?.send_data(body.into(), true)?;
        }
    }
    Ok(Then::GoOn)
}

#[test]
fn a_site_over_http_2_is_crawled_over_one_connection_and_each_stream_at_its_time() {
    let interval = ms(250);
    let site = Site::serve(usize::MAX, paths(20).collect());
    let ground = site.crawled(SiteFile::new("shop", "https://shop.example/").interval(interval));
    assert_eq!(ground.items("shop").len(), 21);
    let asked = site.asked();
    assert!(asked.iter().all(|(_, connection, _)| *connection == 1), "{asked:?}");
    let arrivals: Vec<Duration> = asked.iter().map(|(_, _, at)| *at).collect();
    assert_gaps_paced(&GapReport::new(&arrivals, &[], interval));
    assert_archived(&ground, &site.counts());
}

#[test]
fn a_server_that_says_goodbye_again_and_again_costs_connections_and_no_page() {
    let site = Site::serve(3, paths(20).collect());
    let ground = site.crawled(SiteFile::new("shop", "https://shop.example/").interval(ms(10)));
    assert_eq!(ground.items("shop").len(), 21);
    assert!(ground.dead("shop").is_empty());
    let connections = site.asked().into_iter().map(|(_, connection, _)| connection).max();
    assert!(connections >= Some(6), "{connections:?}");
    assert_archived(&ground, &site.counts());
}

#[test]
fn streams_and_connections_that_are_reset_are_asked_for_again_and_never_kept_as_whole() {
    let paths = ["refused-once", "refused", "reset", "half-reset", "short", "goodbye", "aborted"];
    let site = Site::serve(usize::MAX, paths.iter().map(|path| format!("/{path}")).collect());
    // One after the other: what is said of a connection is said of all its streams.
    let file = SiteFile::new("shop", "https://shop.example/").pace("parallel = 1").fetch("attempts = 2");
    // More of its pages die than come.
    let ground = site.crawled_to(3, file);
    assert_text("http2.txt", &told(&ground, site.counts()));
    assert_archived(&ground, &site.counts());
}

#[test]
fn l7_where_a_server_allows_one_stream_at_a_time_no_request_queues_behind_a_permit_that_is_spent() {
    let interval = ms(200);
    let paths = (1..9).map(|number| format!("/{}-{number}", if number % 4 == 1 { "slow" } else { "fast" }));
    let site = Site::with_streams(1, usize::MAX, paths.collect());
    let file = SiteFile::new("shop", "https://shop.example/").interval(interval).pace("parallel = 4");
    let ground = site.crawled(file);
    assert_eq!(ground.items("shop").len(), 9);
    let asked = site.asked();
    assert!(asked.iter().all(|(_, connection, _)| *connection == 1), "{asked:?}");
    let arrivals: Vec<Duration> = asked.iter().map(|(_, _, at)| *at).collect();
    assert_gaps_paced(&GapReport::new(&arrivals, &[], interval));
    assert_archived(&ground, &site.counts());
    assert_audited(&ground.audit()["shop"], 10);
}

#[test]
fn a_server_that_wants_http_1_1_for_a_page_is_asked_so_from_then_on() {
    let site = Site::serve(usize::MAX, vec!["/wants-http-1.1".to_owned()]);
    let ground = site.crawled(SiteFile::new("shop", "https://shop.example/").fetch("attempts = 2"));
    assert_eq!(ground.items("shop").len(), 2);
    let connections: Vec<usize> = site.asked().into_iter().map(|(_, connection, _)| connection).collect();
    assert_eq!(connections, [1, 1, 1, 2], "one reset, then a connection of its own");
    assert_archived(&ground, &site.counts());
}
