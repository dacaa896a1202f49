//! Answers that are no page, or half of one: repeated where that may help, otherwise a dead letter that says why.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::bad_site::*;
use crate::ground::*;

/// What `[fetch]` says in these tests.
const FETCH: &str = "attempts = 2\nmax_body = \"256KiB\"\ntimeout = \"5s\"\nread_timeout = \"2s\"";

const WHOLE: &str = "<h1>whole</h1>";

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).and_then(|()| gzip.finish()).expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(bytes).and_then(|()| zlib.finish()).expect("memory")
}

fn chunked(chunks: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{chunks}").into()
}

/// Crawls it, and compares what became of its pages with a file.
#[track_caller]
fn crawled_as(name: &str, site: BadSiteBuilder) {
    let site = site.serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/")).fetch(FETCH)]);
    // More of its pages die than come.
    ground.crawl().run().expect_code(3);
    assert_text(name, &told(&ground, site.counts()));
    assert_archived(&ground, &site.counts());
    assert_eq!(ground.view("shop").download.imbalance(), 0);
}

#[test]
fn answers_that_break_off_are_asked_for_again_and_never_kept_as_whole() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\n<h1>half</h1>";
    let site = BadSite::builder()
        .meets("/closed-at-once", |_| ())
        .meets("/closed-in-head", |stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le")))
        .meets("/reset", reset)
        .bytes("/half-a-body", half.to_vec())
        .bytes("/chunks-cut-off", chunked("d\r\n<h1>half</h1>\r\n"))
        .bytes("/chunk-cut-off", chunked("ff\r\n<h1>half</h1>"))
        .bytes("/chunk-size-wrong", chunked("zz\r\n<h1>half</h1>\r\n0\r\n\r\n"))
        .bytes("/chunk-size-huge", chunked("fffffffffffffffff\r\n<h1>half</h1>\r\n0\r\n\r\n"))
        .bytes("/length-too-short", answer_of_length("9", WHOLE))
        .bytes("/length-twice", answer_of_length("5\r\nContent-Length: 14", WHOLE))
        .bytes("/length-no-number", answer_of_length("many", WHOLE))
        .bytes("/no-length", format!("HTTP/1.0 200 OK\r\n\r\n{WHOLE}"))
        .meets("/drips", drips)
        .meets("/silent", |_| std::thread::sleep(Duration::from_secs(8)))
        .meets("/silent-in-body", |stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<h1>");
            std::thread::sleep(Duration::from_secs(8));
        });
    crawled_as("answers_cut.txt", site);
}

fn answer_of_length(length: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Closed without lingering, a connection is reset.
fn reset(stream: &mut TcpStream) {
    let twin = stream.try_clone().and_then(|twin| twin.set_nonblocking(true).map(|()| twin));
    wait(async { tokio::net::TcpStream::from_std(twin?)?.set_zero_linger() }).expect("a socket");
}

/// A byte every 100 ms: never silent for long, never at an end.
fn drips(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while stream.write_all(b"a").is_ok() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn what_is_no_http_is_told_apart_from_what_is_odd_http() {
    let headers = |count: usize| (0..count).map(|n| format!("X-{n}: {n}\r\n")).collect::<Vec<_>>().concat();
    let site = BadSite::builder()
        .bytes("/ssh", "SSH-2.0-OpenSSH_9.2\r\n")
        .bytes("/garbage", vec![0x9c; 3000])
        .bytes("/http-0.9", WHOLE)
        .body("/99-headers", &headers(97), WHOLE)
        .body("/1000-headers", &headers(1000), WHOLE)
        .body("/header-of-1-mb", &format!("X-A: {}\r\n", "a".repeat(1 << 20)), WHOLE)
        .meets("/endless-headers", |stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream.write_all(b"X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n").is_ok() {}
        })
        .bytes("/header-with-nul", answer("200 OK", "X-A: a\0b\r\n", WHOLE.as_bytes()))
        .bytes("/status-998", answer("998 Hardly", "", WHOLE.as_bytes()))
        .bytes("/status-1000", answer("1000 Many", "", WHOLE.as_bytes()))
        .bytes("/status-099", answer("099 Few", "", WHOLE.as_bytes()))
        .bytes(
            "/a-few-1xx",
            [b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5), answer("200 OK", "", WHOLE.as_bytes())].concat(),
        )
        .meets("/storm-of-1xx", |stream| while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {})
        .bytes(
            "/switches-protocols",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x01\x02",
        )
        .bytes(
            "/206-unasked",
            answer("206 Partial Content", "Content-Range: bytes 0-13/99\r\n", WHOLE.as_bytes()),
        )
        .bytes("/204-with-a-body", answer("204 No Content", "", WHOLE.as_bytes()))
        .body("/empty", "", "")
        .body("/no-type", "", WHOLE)
        .body("/type-lies", "Content-Type: text/html\r\n", b"%PDF-1.7\n\x9c\x00\xff\xd8<h1>no page</h1>")
        .body("/type-is-garbage", "Content-Type: {ü;;;=\r\n", WHOLE)
        .body("/charset-lies", "Content-Type: text/html; charset=utf-16le\r\n", WHOLE)
        .body("/charset-unknown", "Content-Type: text/html; charset=none-such\r\n", WHOLE);
    crawled_as("answers_odd.txt", site);
}

#[test]
fn bodies_that_do_not_decode_are_no_page() {
    let coded = |coding: &str| format!("Content-Encoding: {coding}\r\n");
    let packed = gzip(WHOLE.repeat(50).as_bytes());
    let zeros = vec![0; 64 << 20];
    let brotli_zeros = include_bytes!("../data/zeros_64_mib.br");
    let site = BadSite::builder()
        .body("/gzip", &coded("gzip"), gzip(WHOLE.as_bytes()))
        .body("/gzip-twice", &coded("gzip, gzip"), gzip(&gzip(WHOLE.as_bytes())))
        .body("/gzip-thrice", &coded("gzip, gzip, gzip"), gzip(&gzip(&gzip(WHOLE.as_bytes()))))
        .body("/gzip-5-times", &coded("gzip, gzip, gzip, gzip, gzip"), WHOLE)
        .body("/gzip-that-is-none", &coded("gzip"), WHOLE)
        .body("/gzip-cut-off", &coded("gzip"), &packed[..packed.len() / 2])
        .body("/gzip-without-end", &coded("gzip"), &packed[..packed.len() - 8])
        .body("/gzip-and-garbage", &coded("gzip"), [gzip(WHOLE.as_bytes()), b"garbage".to_vec()].concat())
        .body("/gzip-wrong-sum", &coded("gzip"), wrong_sum(&packed))
        .body("/gzip-empty", &coded("gzip"), "")
        .body("/gzip-bomb", &coded("gzip"), gzip(&zeros))
        .body("/gzip-bomb-in-gzip", &coded("gzip, gzip"), gzip(&gzip(&zeros)))
        .body("/deflate-bomb", &coded("deflate"), zlib(&zeros))
        .body("/brotli-bomb", &coded("br"), brotli_zeros)
        .body("/brotli-cut-off", &coded("br"), &brotli_zeros[..brotli_zeros.len() / 2])
        .body("/brotli-that-is-none", &coded("br"), WHOLE)
        .body("/zstd", &coded("zstd"), b"\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00")
        .body("/coding-unknown", &coded("x-mine"), WHOLE);
    crawled_as("answers_coded.txt", site);
}

#[test]
fn a_robots_txt_is_read_up_to_500_kib_whatever_max_body_is_and_none_that_is_cut_while_compressed() {
    let long = format!("User-agent: *\n{}Disallow: /shut\n", "# a word\n".repeat(50_000));
    let (gzipped, noise) =
        (gzip(long.as_bytes()), (0..600_000).map(|_| fastrand::u8(..)).collect::<Vec<_>>());
    for (fields, body, read) in [
        ("", long.as_bytes(), true),
        ("Content-Encoding: gzip\r\n", &gzipped, true),
        ("Content-Encoding: gzip\r\n", &gzip(&noise), false),
    ] {
        let site = BadSite::builder().body("/robots.txt", fields, body);
        let site = site.body("/shut", "", WHOLE).body("/open", "", WHOLE).serve();
        let ground = Ground::new([SiteFile::new("shop", site.url("/")).fetch("max_body = \"20KiB\"")]);
        ground.crawl().args(["--give-up", "1s"]).run().expect_code(if read { 0 } else { 3 });
        let counts = site.counts();
        let asked = |path: &str| counts.get(path).copied().unwrap_or(0);
        assert_eq!((asked("/shut"), asked("/open")), (0, usize::from(read)), "{fields:?} {}", body.len());
    }
}

fn wrong_sum(packed: &[u8]) -> Vec<u8> {
    let mut wrong = packed.to_vec();
    let sum = wrong.len() - 8;
    wrong[sum] ^= 0xff;
    wrong
}

#[test]
fn redirects_of_any_kind_end_with_a_word() {
    let to = |to: &str| answer("302 Found", &format!("Location: {to}\r\n"), b"");
    let site = BadSite::builder()
        .bytes("/to-itself", to("/to-itself"))
        .bytes("/loop", to("/loop-2"))
        .bytes("/loop-2", to("/loop"))
        .bytes("/to-private", to("http://10.0.0.1/"))
        .bytes("/to-metadata", to("http://169.254.169.254/latest/meta-data/"))
        .bytes("/to-file", to("file:///etc/passwd"))
        .bytes("/to-javascript", to("javascript:alert(1)"))
        .bytes("/to-data", to("data:text/html,<h1>x</h1>"))
        .bytes("/to-garbage", *b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: http://[\xff\xfe\r\n\r\n")
        .bytes("/to-nowhere", answer("301 Moved Permanently", "", b""))
        .bytes("/to-empty", to(""))
        .bytes("/to-no-host", to("http:///"))
        .bytes("/multiple-choices", answer("300 Multiple Choices", "", b""))
        .bytes("/not-modified", answer("304 Not Modified", "", b""));
    crawled_as("answers_moved.txt", site);
}

#[test]
fn a_redirect_to_a_url_of_100_kb_is_dead() {
    let far = format!("Location: /{}\r\n", "a".repeat(100_000));
    let site = BadSite::builder().bytes("/far", answer("302 Found", &far, b"")).serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/")).fetch(FETCH)]);
    ground.crawled();
    let dead = ground.dead("shop");
    assert!(dead.len() == 1 && dead["/far"].contains("bytes long, and a URL may have 8192"), "{dead:?}");
    assert_archived(&ground, &site.counts());
}

#[test]
fn a_retry_after_of_any_size_blocks_no_longer_than_the_site_file_allows_and_nonsense_not_at_all() {
    for (value, blocks) in [
        ("99999999999999999999999999", true),
        ("Fri, 31 Dec 9999 23:59:59 GMT", true),
        ("-5", false),
        ("1e9", false),
        ("Mon, 01 Jan 1601 00:00:00 GMT", false),
        ("soon\x01", false),
    ] {
        let refused = answer("503 Service Unavailable", &format!("Retry-After: {value}\r\n"), b"");
        let site = BadSite::builder().bytes("/busy", refused).serve();
        let file = SiteFile::new("shop", site.url("/")).fetch(FETCH).pace("max_retry_after = \"30s\"");
        let ground = Ground::new([file]);
        let run = ground.crawl().arg("--give-up").arg("3s").run();
        let dead = ground.dead("shop");
        assert_eq!(run.code, Some(if blocks { 3 } else { 0 }), "{value}: {}", run.stderr);
        assert_eq!(dead.len(), usize::from(!blocks), "{value}: {dead:?}");
        assert_eq!(run.stderr.contains("with Retry-After: "), blocks, "{value}: {}", run.stderr);
        assert_archived(&ground, &site.counts());
    }
}
