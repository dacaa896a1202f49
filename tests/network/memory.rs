//! Bodies that are too much: reading stops at the bound, and memory stays flat.

use std::io::Write;
use std::time::Duration;

use crate::answers::gzip;
use crate::bad_site::*;
use crate::ground::*;

/// The most memory a crawl may ever have held, in KiB: about twice of what it takes.
const FLAT: u64 = 80 * 1024;

/// Crawls to its end and tells the most memory that the process held, in KiB.
fn crawled_within(ground: &Ground, code: i32) -> u64 {
    let mut running = ground.crawl().start();
    let mut peak = 0;
    while !running.ended() {
        peak = peak.max(peak_kib(running.pid()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    running.finish().expect_code(code);
    eprintln!("{peak} KiB at most");
    assert!(peak > 0, "it was never looked at");
    peak
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_body_of_60_mb_is_read_as_far_as_max_body_and_bombs_are_undone_as_far() {
    let zeros = vec![0; 64 << 20];
    let (bomb, nested) = (gzip(&zeros), gzip(&gzip(&zeros)));
    let long = |stream: &mut std::net::TcpStream| {
        let piece = vec![b'a'; 64 * 1024];
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 62914560\r\n\r\n");
        for _ in 0..960 {
            if stream.write_all(&piece).is_err() {
                return;
            }
        }
    };
    let endless = |stream: &mut std::net::TcpStream| {
        let piece = format!("10000\r\n{}\r\n", "a".repeat(0x10000));
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(piece.as_bytes()).is_ok() {}
    };
    let mut site = BadSite::builder();
    for n in 0..8 {
        site = site.meets(&format!("/60-mb/{n}"), long).meets(&format!("/endless/{n}"), endless);
        site = site.body(&format!("/bomb/{n}"), "Content-Encoding: gzip\r\n", &bomb);
        site = site.body(&format!("/nested/{n}"), "Content-Encoding: gzip, gzip\r\n", &nested);
    }
    let site = site.serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/")).fetch("max_body = \"1MiB\"")]);
    let peak = crawled_within(&ground, 3);
    assert!(peak < FLAT, "{peak} KiB");
    let dead = ground.dead("shop");
    assert_eq!(dead.len(), 4 * 8, "{dead:#?}");
    assert!(dead.values().all(|reason| reason.contains("over 1048576 bytes")), "{dead:#?}");
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
    assert_archived(&ground, &site.counts());
}

#[test]
fn pages_of_100_000_nested_elements_are_read_as_far_as_a_browser_would() {
    let mut site = BadSite::builder();
    for (path, tag) in
        [("/divs", "<div>"), ("/spans", "<span>"), ("/bold", "<b>"), ("/tables", "<table><td>")]
    {
        let body = format!("<h1>{path}</h1><a href=/next>next</a>{}deep", tag.repeat(100_000));
        site = site.body(path, "Content-Type: text/html\r\n", body);
    }
    let site = site.body("/next", "", "<h1>next</h1>").serve();
    let ground = Ground::new([SiteFile::new("shop", site.url("/"))]);
    let peak = crawled_within(&ground, 0);
    assert!(peak < FLAT, "{peak} KiB");
    assert_eq!(ground.item_paths("shop"), ["/", "/bold", "/divs", "/next", "/spans", "/tables"]);
    assert!(ground.dead("shop").is_empty());
}
