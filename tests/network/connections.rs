//! Connections that don't come about: no request is sent, none is kept, and a person is told why.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::bad_site::*;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE, EXPIRED};

/// What is said where a site can't be reached, and of its only page where no `robots.txt` is asked for first.
#[derive(Default)]
struct Told(String);

impl Told {
    /// Crawls a site that begins at this URL, every name of which leads to `addr`.
    #[track_caller]
    fn add(&mut self, what: &str, url: &str, addr: Option<SocketAddr>, arguments: &[&str]) {
        // Short only where it is what is waited for: a busy machine mustn't be taken for a silent one.
        let timeout = if what.starts_with("no answer") { "500ms" } else { "20s" };
        let fetch = format!("connect_timeout = \"{timeout}\"\nattempts = 2");
        let file = SiteFile::new("shop", url).fetch(&fetch);
        let crawl = |file: SiteFile| {
            let ground = Ground::new([file]);
            let paced = arguments.iter().fold(ground.crawl(), Paced::arg);
            let led = addr.map(|addr| format!("::{addr}"));
            let paced = led.iter().fold(paced, |paced, rule| paced.arg("--connect-to").arg(rule));
            (paced.arg("--give-up").arg("1s").run(), ground)
        };
        let (asked_first, with_robots) = crawl(file.clone());
        let log = asked_first.expect_code(3).stderr;
        let line = log.lines().find_map(|line| line.find("robots.txt of ").map(|at| &line[at..]));
        let line = line.unwrap_or_else(|| panic!("{what}: {log}"));
        let (run, without) = crawl(file.pace("robots = \"ignore\""));
        let run = run.expect_code(1);
        let dead: Vec<String> = without.dead("shop").into_values().collect();
        let [reason] = &dead[..] else { panic!("{what}: {dead:?}\n{}", run.stderr) };
        for ground in [&with_robots, &without] {
            assert!(!ground.audit_has("shop"), "{what}: nothing was sent, so nothing is kept");
            assert_eq!(ground.view("shop").download.imbalance(), 0, "{what}");
        }
        // The rest is in the system's words.
        let [line, reason] =
            [line, reason].map(|said| said.split(": failed to lookup").next().unwrap_or(said));
        let again = if without.view("shop").download.retried > 0 { "" } else { ", not tried again" };
        let _ = writeln!(self.0, "# {what}{again}\n{line}\ndead: {reason}\n");
    }
}

#[test]
fn what_keeps_a_connection_from_coming_about_is_said_of_the_site_and_of_the_page() {
    let data = TempData::new();
    let trusted = data.write("shop.pem", CERTIFICATE).display().to_string();
    let expired_root = data.write("expired.pem", EXPIRED).display().to_string();
    let page = || answer("200 OK", "", b"<h1>x</h1>");
    let (fine, expired) =
        (tls_server::answering(CERTIFICATE, page()), tls_server::answering(EXPIRED, page()));
    let plain = RawServer::start(|mut stream, _| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let silent = RawServer::start(|_stream, _| std::thread::sleep(Duration::from_mins(1)));
    let full = Full::new();
    let mut told = Told::default();
    let mut add = |what, url, addr, arguments: &[&str]| told.add(what, url, addr, arguments);
    let shop = "https://shop.example/";
    add("unknown host", "http://no-such-host.invalid/", None, &[]);
    add("refused connection", "http://shop.example/", Some(closed_port()), &[]);
    add("self-signed certificate", shop, Some(fine.addr()), &[]);
    add("certificate of another host", "https://other.example/", Some(fine.addr()), &["--cacert", &trusted]);
    add("expired certificate", shop, Some(expired.addr()), &["--cacert", &expired_root]);
    add("no TLS on the port of TLS", shop, Some(plain.addr()), &[]);
    add("no answer to a connection", "http://shop.example/", Some(full.addr), &[]);
    add("no answer to a TLS handshake", shop, Some(silent.addr()), &[]);
    assert_text("connections.txt", &told.0);
}

fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

/// A port whose queue of connections is full: the kernel answers no further one.
struct Full {
    addr: SocketAddr,
    _runtime: tokio::runtime::Runtime,
    _listener: tokio::net::TcpListener,
    _queued: Vec<std::net::TcpStream>,
}

impl Full {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let entered = runtime.enter();
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let listener = socket.listen(1).expect("a listener");
        let addr = listener.local_addr().expect("it is bound");
        let connect = || std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(300)).ok();
        let queued = std::iter::from_fn(connect).collect();
        drop(entered);
        Self { addr, _runtime: runtime, _listener: listener, _queued: queued }
    }
}

#[test]
fn on_a_stop_tasks_that_wait_for_a_connection_go_back_at_once_with_all_their_attempts() {
    const PAGES: u64 = 5;
    // Long enough for a busy machine to end; those who wait would wait one after the other.
    const PATIENCE: Duration = Duration::from_secs(20);
    in_three_tries(|| {
        let full = Full::new();
        let pages = (1..PAGES).map(|page| format!("http://shop.example/{page}"));
        let file = pages.fold(SiteFile::new("shop", "http://shop.example/"), SiteFile::seed);
        let file = file.interval(ms(20)).pace("robots = \"ignore\"").pace(&format!("parallel = {PAGES}"));
        let ground = Ground::new([file.fetch(&format!("connect_timeout = \"{}s\"", PATIENCE.as_secs()))]);
        ground.verb_on_all("seed").run().expect_code(0);
        let crawl = ground.crawl().arg("--connect-to").arg(format!("::{}", full.addr)).start();
        eventually("tasks that wait", || (ground.status()["shop"]["running"] == PAGES).then_some(()));
        crawl.interrupt();
        let told = Instant::now();
        crawl.finish().expect_code(130);
        let took = told.elapsed();
        let downloads = ground.view("shop").download;
        let left = downloads.waiting + downloads.delayed;
        assert_eq!((left, downloads.leased, downloads.retried), (PAGES, 0, 0), "{downloads:?}");
        bound(took < PATIENCE / 2, format_args!("it ended {took:?} after it was told to"))
    });
}

#[test]
fn a_copy_of_a_tls_site_is_crawled_with_its_certificate() {
    let data = TempData::new();
    let trusted = data.write("shop.pem", CERTIFICATE);
    let server = tls_server::answering(CERTIFICATE, answer("200 OK", "", b"<h1>over TLS</h1>"));
    let ground = Ground::new([SiteFile::new("shop", "https://shop.example/")]);
    let led = format!("::{}", server.addr());
    ground.crawl().arg("--cacert").arg(&trusted).arg("--connect-to").arg(led).run().expect_code(0);
    assert_eq!(text(&ground.items("shop")[0]["fields"]["title"]), "over TLS");
    assert_eq!(ground.audit()["shop"]["starts"], 2);
}

#[test]
fn a_redirect_to_a_private_address_sends_nothing_even_where_it_is_in_scope() {
    let inside = TestSite::builder().page("/", page("secret", [""; 0])).serve();
    let to = |to: &str| answer("302 Found", &format!("Location: {to}\r\n"), b"");
    let by_name = format!("http://localhost:{}/", inside.addr().port());
    let site = BadSite::builder().bytes("/to-name", to(&by_name)).bytes("/to-address", to(&inside.url("/")));
    let site = site.serve();
    let hosts =
        format!("hosts = [\"shop.example\", \"localhost:{0}\", \"127.0.0.1:{0}\"]", inside.addr().port());
    let file = SiteFile::new("shop", "http://shop.example/")
        .scope(&hosts)
        .pace("robots = \"ignore\"")
        .interval(ms(20));
    let text = file.text().replace("allow_private = true\n", "");
    let ground = Ground::of_texts([("shop".to_owned(), text)]);
    let led = format!("shop.example:80:{}", site.addr());
    ground.crawl().arg("--connect-to").arg(led).run().expect_code(3);
    let reasons: Vec<String> = ground.letters("shop").into_iter().map(|letter| letter.why.reason).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().all(|reason| reason.contains("private address")), "{reasons:?}");
    assert!(asked(&inside).is_empty(), "{inside:?}");
    assert_archived(&ground, &site.counts());
}
