//! Hosts that are written oddly, and connections that a server ends between requests.

use std::io::Write;
use std::net::TcpListener;

use crate::bad_site::*;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

#[test]
fn a_literal_ipv6_host_is_crawled_under_its_port() {
    let listener = match TcpListener::bind("[::1]:0") {
        Ok(listener) => listener,
        Err(why) => return skip(format!("no IPv6 on loopback: {why}")),
    };
    let addr = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head = RawServer::read_head(&mut stream);
            let body = if head.contains(&format!("host: {addr}\r\n")) { page("six", [""; 0]) } else { head };
            let _ = stream.write_all(&answer("200 OK", "", body.as_bytes()));
        }
    });
    let ground = Ground::new([SiteFile::new("shop", format!("http://{addr}/")).pace("robots = \"ignore\"")]);
    ground.crawled();
    assert_eq!(text(&ground.items("shop")[0]["fields"]["title"]), "six");
    assert_eq!(records(&ground)[0].url, format!("http://{addr}/"));
}

#[test]
fn a_host_with_a_trailing_dot_is_crawled_with_and_without_tls() {
    let body = || answer("200 OK", "", b"<h1>dot</h1>");
    let (plain, tls) = (RawServer::answering(body()), tls_server::answering(CERTIFICATE, body()));
    for (seed, addr) in [("http://shop.example./", plain.addr()), ("https://shop.example./", tls.addr())] {
        let ground = Ground::new([SiteFile::new("shop", seed).pace("robots = \"ignore\"")]);
        let trusted = ground.data.write("shop.pem", CERTIFICATE);
        let led = format!("::{addr}");
        let run = ground.crawl().arg("--cacert").arg(&trusted).arg("--connect-to").arg(led).run();
        assert_eq!(ground.items("shop").len(), 1, "{seed}: {:?}\n{}", ground.dead("shop"), run.stderr);
    }
}

#[test]
fn connections_that_are_closed_between_requests_cost_no_page_and_no_storm() {
    // It says that the connection stays, and closes it: some requests meet a connection that is gone.
    let server = RawServer::start(|mut stream, _| {
        let head = RawServer::read_head(&mut stream);
        let path = head.split(' ').nth(1).unwrap_or_default();
        let body = if path == "/" { page("front", paths(30)) } else { page(path, [""; 0]) };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let _ = stream.write_all(head.as_bytes());
    });
    let file = SiteFile::new("shop", server.url("/")).pace("robots = \"ignore\"").interval(ms(5));
    let ground = Ground::new([file]);
    ground.crawled();
    assert_eq!(ground.items("shop").len(), 31);
    assert!(ground.dead("shop").is_empty(), "{:?}", ground.dead("shop"));
    let view = ground.view("shop");
    eprintln!("{} tried again", view.download.retried);
    assert_eq!(records(&ground).len() as u64, 31 + view.download.retried, "each send is kept, and no more");
}
