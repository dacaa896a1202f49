//! The fetcher against servers on loopback, the badly behaved ones above all.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paced::internals::canonical_url::{CanonicalUrl, Host, StripQuery};
use paced::internals::fetch::{
    Ceiling, Exchange, FetchError, FetchErrorKind, FetchedPage, Fetcher, FetcherOptions, Request, Unsent,
    Wait,
};
use paced::internals::frontier::permit::Permit;
use paced::internals::manners::Signal;
use paced::internals::page::Validators;
use paced::internals::secret::SecretName;
use paced::internals::site::{FetchRules, Pace, ProxyRule, Scope, Site};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[tokio::test]
async fn an_answer_comes_back_whole_and_the_request_as_it_was_sent() {
    let shop = Shop::answering(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
    );
    let validators = Validators {
        etag: Some("\"1\"".into()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".into()),
    };
    let url = shop.url("/a?b=c");
    let mut site = site();
    site.fetch.headers = vec![("Accept-Language".into(), "ja".into())];
    let request = Request { validators: Some(&validators), ..request(&site, &url) };
    let exchange = fetcher(&[]).get(request, Permit::unpaced()).await.expect("it is sent");
    let fetched = exchange.answer.expect("an answer");
    assert_eq!(
        (fetched.page.status, &fetched.decoded[..], &fetched.page.body[..]),
        (200, &b"hello"[..], &b"hello"[..])
    );
    assert_eq!((fetched.page.header("x-a"), fetched.page.remote), (Some("1"), Some(shop.address)));
    assert_eq!(fetched.page.sent_at, exchange.sent.at);
    assert_eq!((exchange.sent.method, exchange.sent.target.as_str()), ("GET", "/a?b=c"));
    let mut arrived = shop.heads().remove(0);
    for (name, value) in &exchange.sent.headers {
        let line = format!("{name}: {value}\r\n");
        assert!(arrived.contains(&line), "{line} is not in {arrived}");
        arrived = arrived.replace(&line, "");
    }
    assert_eq!(arrived, "GET /a?b=c HTTP/1.1\r\n\r\n", "nothing else is sent");
    assert!(exchange.sent.headers.contains(&("if-none-match".into(), "\"1\"".into())));
    assert!(exchange.sent.headers.contains(&("accept-language".into(), "ja".into())));
}

#[tokio::test]
async fn a_redirect_is_brought_back_and_not_followed() {
    let shop = Shop::answering(b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n");
    let page = shop.get(&site(), "/").await.expect("an answer").page;
    let target = format!("http://{}/caf%E9", shop.address);
    let Signal::Redirect(to) = Signal::of(&page, &Pace::default(), page.sent_at) else {
        panic!("no redirect")
    };
    assert_eq!((to.as_str(), shop.heads().len()), (target.as_str(), 1));
}

#[tokio::test]
async fn a_body_that_ends_early_is_no_page() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nConnection: close\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nhalf\r\n",
    ] {
        let error = Shop::answering(answer).error(&site(), "/").await;
        assert_eq!(error.kind, FetchErrorKind::Truncated, "{error:?}");
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn of_an_answer_that_is_no_page_whatever_body_comes_will_do() {
    let head = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 50\r\nConnection: close\r\n\r\nhalf";
    let page = Shop::answering(head).get(&site(), "/").await.expect("an answer").page;
    assert_eq!((page.status, page.header("retry-after"), &page.body[..]), (503, Some("7"), &b"half"[..]));
}

#[tokio::test]
async fn a_body_that_drips_ends_with_the_whole_time() {
    let mut site = site();
    site.fetch.timeout = Duration::from_millis(300);
    let error = Shop::open(Answer::Drip).error(&site, "/").await;
    assert_eq!(error.kind, FetchErrorKind::Timeout(Wait::Total, site.fetch.timeout));
}

#[tokio::test]
async fn silence_before_and_within_an_answer_ends_with_the_read_time() {
    let mut site = site();
    site.fetch.read_timeout = Duration::from_millis(200);
    for answer in [Answer::Silence(b""), Answer::Silence(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")]
    {
        let error = Shop::open(answer).error(&site, "/").await;
        assert_eq!(error.kind, FetchErrorKind::Timeout(Wait::Read, site.fetch.read_timeout));
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn a_body_over_the_cap_is_refused_as_sent_and_as_decompressed() {
    let mut site = site();
    site.fetch.max_body = 100_000;
    let long = [b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n".to_vec(), vec![b'a'; 300_000]].concat();
    let long = Shop::answering(&long);
    let bomb = gzip(&vec![b'a'; 5_000_000]);
    assert!(bomb.len() < 100_000, "the bomb is small as sent");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let bomb = Shop::answering(&[head.as_bytes(), &bomb].concat());
    for shop in [long, bomb] {
        let error = shop.error(&site, "/").await;
        assert_eq!(error.kind, FetchErrorKind::TooLarge(100_000));
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_compressed_page_is_kept_as_sent_and_given_decompressed() {
    let body = gzip(b"hello");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
    let fetched =
        Shop::answering(&[head.as_bytes(), &body].concat()).get(&site(), "/").await.expect("an answer");
    assert_eq!((&fetched.page.body[..], &fetched.decoded[..]), (&body[..], &b"hello"[..]));
    assert_eq!(fetched.page.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_page_of_another_type_is_refused_and_one_of_no_type_is_not() {
    let answer = |media: &str| format!("HTTP/1.1 200 OK\r\n{media}Content-Length: 2\r\n\r\nok");
    let refused =
        Shop::answering(answer("Content-Type: image/PNG; x=1\r\n").as_bytes()).error(&site(), "/").await;
    assert_eq!(refused.kind, FetchErrorKind::Type("image/png".into()));
    for media in ["", "Content-Type: TEXT/HTML ;charset=utf-8\r\n"] {
        assert!(Shop::answering(answer(media).as_bytes()).get(&site(), "/").await.is_ok(), "{media}");
    }
}

#[tokio::test]
async fn a_robots_txt_is_of_any_type_and_cut_at_500_kib() {
    let body = vec![b'#'; 600_000];
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n", body.len());
    let shop = Shop::answering(&[head.as_bytes(), &body].concat());
    let (mut site, url) = (site(), shop.url("/robots.txt"));
    site.scope.hosts.push(url.host());
    let validators = Validators { etag: Some("\"1\"".into()), last_modified: None };
    let request = Request { robots: true, validators: Some(&validators), ..request(&site, &url) };
    let exchange = fetcher(&[]).get(request, Permit::unpaced()).await.expect("it is sent");
    let decoded = exchange.answer.expect("an answer").decoded;
    assert!((500 * 1024..600_000).contains(&decoded.len()), "{} bytes", decoded.len());
    assert!(!shop.heads()[0].contains("if-none-match"));
}

#[tokio::test]
async fn private_addresses_are_refused_by_name_and_in_every_spelling_and_nothing_arrives() {
    let shop = Shop::answering(OK);
    let port = shop.address.port();
    let mut site = site();
    site.fetch.allow_private = false;
    for host in [
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.1",
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "10.0.0.1",
    ] {
        let url = CanonicalUrl::parse(&format!("http://{host}:{port}/")).expect("a URL");
        let unsent = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await;
        let Err(Unsent::Failed(error)) = unsent else { panic!("{host}: {unsent:?}") };
        assert!(matches!(error.kind, FetchErrorKind::Private(_)), "{host}: {error:?}");
        assert!(!error.is_transient() && error.to_string().contains("allow_private"), "{error}");
    }
    assert_eq!(shop.accepts(), 0);
}

#[tokio::test]
async fn a_host_that_isnt_there_is_no_request() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    for (url, kind) in [
        (format!("http://{closed}/"), FetchErrorKind::Connect),
        ("http://no-such-host.invalid/".to_owned(), FetchErrorKind::Dns),
    ] {
        let (site, url) = (site(), CanonicalUrl::parse(&url).expect("a URL"));
        let unsent = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await;
        let Err(Unsent::Failed(error)) = unsent else { panic!("{unsent:?}") };
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn what_is_no_http_is_an_answer_that_failed() {
    let error = Shop::answering(b"SSH-2.0-OpenSSH\r\n\r\n").error(&site(), "/").await;
    assert_eq!(error.kind, FetchErrorKind::Protocol);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let shop = Shop::answering(OK);
    let (site, fetcher) = (site(), fetcher(&[]));
    for path in ["/a", "/b", "/c"] {
        let url = shop.url(path);
        let exchange = fetcher.get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
        exchange.answer.expect("an answer");
    }
    assert_eq!((shop.accepts(), shop.heads().len()), (1, 3));
}

#[tokio::test]
async fn connect_to_leads_to_a_private_address_whatever_host_and_port_were_asked_for() {
    let shop = Shop::answering(OK);
    let port = shop.address.port();
    let mut site = site();
    site.fetch.allow_private = false;
    for (rule, asked) in [
        (format!("shop.example:80:127.0.0.1:{port}"), "http://shop.example/"),
        (format!("shop.example:8080:127.0.0.1:{port}"), "http://shop.example:8080/"),
        (format!("::127.0.0.1:{port}"), "http://93.184.216.34:81/"),
        (format!("::127.0.0.1:{port}"), "http://[2606:4700::1111]/"),
    ] {
        let url = CanonicalUrl::parse(asked).expect("a URL");
        let fetcher = fetcher(&[&rule]);
        let exchange = fetcher.get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
        let page = exchange.answer.expect("an answer").page;
        assert_eq!((&page.url, page.remote), (&url, Some(shop.address)));
        let host = format!("host: {}\r\n", url.host());
        assert!(
            shop.heads().last().expect("a request").contains(&host),
            "{:?} lacks {host}",
            shop.heads().last()
        );
    }
}

#[tokio::test]
async fn cookies_go_to_the_hosts_of_the_seeds_alone() {
    let (shop, mut site) = (
        Shop::answering(b"HTTP/1.1 200 OK\r\nset-cookie: basket=7; Path=/\r\ncontent-length: 0\r\n\r\n"),
        site(),
    );
    site.fetch.cookies = true;
    let (fetcher, url) = (fetcher(&[]), shop.url("/"));
    for (seed, sent_back) in [("http://elsewhere.example/", false), (url.as_str(), true)] {
        site.seeds = vec![CanonicalUrl::parse(seed).expect("a URL")];
        for _ in 0..2 {
            let exchange = fetcher.get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
            let page = exchange.answer.expect("an answer").page;
            assert_eq!(page.headers.get("set-cookie"), Some("basket=***"), "it is shown nowhere");
        }
        assert_eq!(shop.heads().last().expect("a request").contains("cookie: basket=7"), sent_back);
    }
}

#[tokio::test]
async fn cookies_are_sent_back_only_where_the_site_keeps_them() {
    let shop = Shop::answering(b"HTTP/1.1 200 OK\r\nSet-Cookie: basket=7\r\nContent-Length: 2\r\n\r\nok");
    for (cookies, sent_back) in [(true, true), (false, false)] {
        let (mut site, fetcher) = (site(), fetcher(&[]));
        site.fetch.cookies = cookies;
        site.seeds = vec![shop.url("/")];
        for _ in 0..2 {
            let url = shop.url("/");
            let exchange = fetcher.get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
            let page = exchange.answer.expect("an answer").page;
            assert_eq!(page.headers.get("set-cookie"), Some("basket=***"), "it may be a key to an account");
        }
        assert_eq!(shop.heads().last().expect("a request").contains("cookie: basket=7"), sent_back);
    }
}

#[tokio::test]
async fn a_proxy_gets_requests_only_where_the_site_names_it() {
    let proxy = Shop::answering(OK);
    let mut site = site();
    site.fetch.allow_private = false;
    let at = url::Url::parse(&format!("http://localhost:{}", proxy.address.port())).expect("a URL");
    site.fetch.proxy = Some(ProxyRule::Open(at));
    let url = CanonicalUrl::parse("http://shop.example/a").expect("a URL");
    let exchange = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
    exchange.answer.expect("an answer");
    assert!(proxy.heads()[0].starts_with("GET http://shop.example/a HTTP/1.1"), "{:?}", proxy.heads());
}

fn secret(name: &str) -> SecretName {
    SecretName::of(name, &["shop"]).expect("a name")
}

#[test]
fn the_environments_proxy_is_not_used_and_credentials_come_from_the_named_variable() {
    let proxy = Shop::answering(OK);
    let at = format!("http://{}", proxy.address);
    let status = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "in_a_process_with_proxy_and_credentials", "--ignored"])
        .envs([("http_proxy", &at), ("HTTP_PROXY", &at), ("ALL_PROXY", &at)])
        .envs([("PACED_SECRET_SHOP", "user:pass"), ("PACED_SECRET_SHOP_KEY", "Bearer secret")])
        .env("PACED_SECRET_SHOP_PROXY", "http://me:planted@127.0.0.1:1")
        .status();
    assert!(status.expect("a process").success());
    assert_eq!(proxy.accepts(), 0);
}

#[tokio::test]
#[ignore = "run by the test above, which sets the environment"]
async fn in_a_process_with_proxy_and_credentials() {
    assert!(std::env::var_os("http_proxy").is_some(), "run by the test above");
    let shop = Shop::answering(OK);
    let mut site = site();
    site.fetch.auth_env = Some(secret("PACED_SECRET_SHOP"));
    site.fetch.secret_headers = vec![("X-Key".into(), secret("PACED_SECRET_SHOP_KEY"))];
    let url = shop.url("/");
    site.seeds = vec![url.clone()];
    let exchange = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
    exchange.answer.expect("an answer");
    assert!(shop.heads()[0].contains("authorization: Basic dXNlcjpwYXNz\r\n"));
    let other = Shop::answering(OK);
    let url = other.url("/");
    let exchange = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
    exchange.answer.expect("an answer");
    let unsafe_head = other.heads()[0].clone();
    assert!(!unsafe_head.contains("authorization") && !unsafe_head.contains("x-key"), "{unsafe_head}");
    site.fetch.auth_env = None;
    site.seeds = vec![url.clone()];
    let exchange = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
    assert!(other.heads()[1].contains("x-key: Bearer secret\r\n"));
    let kept = format!("{:?}", exchange.sent);
    assert!(!kept.contains("ecret") && kept.contains("***"), "secrets aren't kept: {kept}");
    // The same host, but where everybody listens.
    site.seeds = vec![CanonicalUrl::parse(&format!("https://{}/", other.address)).expect("a URL")];
    let exchange = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await.expect("it is sent");
    exchange.answer.expect("an answer");
    assert!(!other.heads()[2].contains("x-key"), "{}", other.heads()[2]);
    // A proxy that nobody answers at any more is shown without its password.
    site.fetch.proxy = Some(ProxyRule::Secret(secret("PACED_SECRET_SHOP_PROXY")));
    let told =
        format!("{:?} {:?}", fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await, site.fetch);
    assert!(!told.contains("planted"), "{told}");
}

#[tokio::test]
async fn a_variable_that_isnt_set_is_named_and_nothing_is_sent() {
    let shop = Shop::answering(OK);
    let (mut site, url) = (site(), shop.url("/"));
    site.fetch.auth_env = Some(secret("PACED_SECRET_SHOP_NONE"));
    site.seeds = vec![url.clone()];
    let unsent = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await;
    let Err(Unsent::Failed(error)) = unsent else { panic!("{unsent:?}") };
    assert!(error.to_string().contains("PACED_SECRET_SHOP_NONE") && !error.is_transient(), "{error}");
    assert_eq!(shop.accepts(), 0);
}

#[tokio::test]
async fn a_process_never_starts_more_a_second_than_told() {
    let ceiling = Ceiling::per_second(std::num::NonZeroU32::new(10));
    let began = std::time::Instant::now();
    for _ in 0..4 {
        ceiling.until_ready().await;
    }
    assert!(began.elapsed() >= Duration::from_millis(290), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_fetch_can_be_a_task_of_its_own() {
    let shop = Shop::answering(OK);
    let (fetcher, site, url) = (Arc::new(fetcher(&[])), site(), shop.url("/"));
    let task = tokio::spawn(async move {
        let exchange = fetcher.get(request(&site, &url), Permit::unpaced()).await;
        exchange.expect("it is sent").answer.is_ok()
    });
    assert!(task.await.expect("no panic"));
}

#[tokio::test]
async fn a_copy_of_a_tls_site_is_reached_with_its_certificate_and_refused_without() {
    let shop = Shop::open(Answer::Tls);
    let port = shop.address.port();
    let site = site();
    let cacert = Some(CERTIFICATE.as_bytes().to_vec());
    for (host, asked_port, cacert, refused) in [
        ("shop.example", 443, cacert.clone(), None),
        ("shop.example", 8443, cacert.clone(), None),
        ("shop.example", 443, None, Some(FetchErrorKind::Certificate)),
        ("other.example", 443, cacert, Some(FetchErrorKind::Certificate)),
    ] {
        let connect_to = vec![format!("::127.0.0.1:{port}").parse().expect("a rule")];
        let fetcher = Fetcher::new(FetcherOptions { connect_to, cacert, ..FetcherOptions::default() })
            .expect("a fetcher");
        let url = CanonicalUrl::parse(&format!("https://{host}:{asked_port}/")).expect("a URL");
        let seen = shop.heads().len();
        match fetcher.get(request(&site, &url), Permit::unpaced()).await {
            Ok(exchange) => {
                assert_eq!((&exchange.answer.expect("an answer").decoded[..], refused), (&b"ok"[..], None));
            }
            Err(Unsent::Failed(error)) => assert_eq!((Some(error.kind), shop.heads().len()), (refused, seen)),
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_without_tls_is_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let (site, url) = (site(), CanonicalUrl::parse(&format!("https://{address}/")).expect("a URL"));
    let unsent = fetcher(&[]).get(request(&site, &url), Permit::unpaced()).await;
    let Err(Unsent::Failed(error)) = unsent else { panic!("{unsent:?}") };
    assert_eq!(error.kind, FetchErrorKind::Tls, "{error:?}");
    assert!(error.is_transient());
}

#[test]
fn certificates_that_are_none_are_refused() {
    let options = FetcherOptions { cacert: Some(b"none".to_vec()), ..FetcherOptions::default() };
    assert!(Fetcher::new(options).is_err());
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[derive(Clone, Copy)]
enum Answer {
    /// These bytes; with `Connection: close` in them, the connection ends after.
    Bytes(&'static [u8]),
    /// These bytes, and nothing more.
    Silence(&'static [u8]),
    /// A byte every 20 ms.
    Drip,
    /// `OK`, as `shop.example` over TLS.
    Tls,
}

const CERTIFICATE: &str = include_str!("data/shop.example.cert.pem");
const KEY: &str = include_str!("data/shop.example.key.pem");

/// A server that answers every request alike.
struct Shop {
    address: SocketAddr,
    accepts: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    fn answering(answer: &[u8]) -> Self {
        Self::open(Answer::Bytes(answer.to_vec().leak()))
    }

    fn open(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (accepts, heads) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let shop = Self { address, accepts: Arc::clone(&accepts), heads: Arc::clone(&heads) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                accepts.fetch_add(1, Ordering::SeqCst);
                let (stream, heads) = (stream.expect("a connection"), Arc::clone(&heads));
                std::thread::spawn(move || serve(stream, answer, &heads));
            }
        });
        shop
    }

    fn url(&self, path: &str) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("http://{}{path}", self.address)).expect("a URL")
    }

    async fn exchange(&self, site: &Site, path: &str) -> Exchange {
        let url = self.url(path);
        fetcher(&[]).get(request(site, &url), Permit::unpaced()).await.expect("it is sent")
    }

    async fn get(&self, site: &Site, path: &str) -> Result<FetchedPage, FetchError> {
        self.exchange(site, path).await.answer
    }

    async fn error(&self, site: &Site, path: &str) -> FetchError {
        self.get(site, path).await.expect_err("a failure")
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }

    fn accepts(&self) -> usize {
        self.accepts.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, answer: Answer, heads: &Mutex<Vec<String>>) {
    if matches!(answer, Answer::Tls) {
        return serve_tls(stream, heads);
    }
    while let Some(head) = read_head(&mut stream) {
        heads.lock().expect("no panic").push(head);
        let (Answer::Bytes(first) | Answer::Silence(first)) = answer else { return drip(&mut stream) };
        if stream.write_all(first).is_err() || first.windows(17).any(|w| w == b"Connection: close") {
            return;
        }
        if matches!(answer, Answer::Silence(_)) {
            let _ = stream.read(&mut [0]);
            return;
        }
    }
}

fn serve_tls(stream: TcpStream, heads: &Mutex<Vec<String>>) {
    paced::internals::fetch::install_tls();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
    let config =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let session = rustls::ServerConnection::new(Arc::new(config.expect("a pair"))).expect("a session");
    let mut stream = rustls::StreamOwned::new(session, stream);
    while let Some(head) = read_head(&mut stream) {
        heads.lock().expect("no panic").push(head);
        let _ = stream.write_all(OK);
    }
}

fn drip(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while stream.write_all(b"a").is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(body).and_then(|()| gzip.finish()).expect("memory takes all")
}

fn fetcher(connect_to: &[&str]) -> Fetcher {
    let connect_to = connect_to.iter().map(|rule| rule.parse().expect("a rule")).collect();
    Fetcher::new(FetcherOptions { connect_to, ..FetcherOptions::default() }).expect("a fetcher")
}

fn request<'a>(site: &'a Site, url: &'a CanonicalUrl) -> Request<'a> {
    Request { site, url, validators: None, robots: false }
}

fn site() -> Site {
    Site {
        name: "shop".into(),
        seeds: Vec::new(),
        lane: None,
        tenant: None,
        group: None,
        pace: Pace::default(),
        scope: Scope {
            hosts: vec![Host::parse("shop.example").expect("a host")],
            deny: Vec::new(),
            max_depth: Scope::MAX_DEPTH,
            max_pages: None,
            strip_query: StripQuery::new(Vec::new()),
        },
        fetch: FetchRules { allow_private: true, ..FetchRules::default() },
        pages: Vec::new(),
        text: String::new(),
    }
}
