//! Sites behind the proxy that their file names: HTTP and SOCKS, for http and https, and proxies that refuse.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::bad_site::answer;
use crate::ground::*;
use crate::support::*;
use crate::tls_server::{self, CERTIFICATE};

/// What a proxy was asked for: `CONNECT host:port`, `GET url`, `SOCKS host:port`.
type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy that leads everything to one address, whatever it is asked for.
struct Proxy {
    server: RawServer,
    asked: Asked,
}

impl Proxy {
    /// Speaks HTTP: `CONNECT`, and whole URLs.
    fn http(to: SocketAddr) -> Self {
        Self::of(move |mut stream, asked| {
            let head = RawServer::read_head(&mut stream);
            let mut words = head.split(' ');
            let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
            asked.lock().expect("no panic").push(format!("{method} {target}"));
            let mut site = TcpStream::connect(to)?;
            if method == "CONNECT" {
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            } else {
                let path = path_of(target);
                site.write_all(head.replacen(target, &path, 1).as_bytes())?;
            }
            joined(stream, site)
        })
    }

    /// Speaks SOCKS 5 (RFC 1928), without a password.
    fn socks(to: SocketAddr) -> Self {
        Self::of(move |mut stream, asked| {
            let [_, methods] = read(&mut stream)?;
            stream.read_exact(&mut vec![0; methods.into()])?;
            stream.write_all(&[5, 0])?;
            let [_, _, _, kind] = read(&mut stream)?;
            let host = if kind == 1 {
                Ipv4Addr::from(read(&mut stream)?).to_string()
            } else {
                let [length] = read(&mut stream)?;
                let mut name = vec![0; length.into()];
                stream.read_exact(&mut name)?;
                String::from_utf8_lossy(&name).into_owned()
            };
            let port = u16::from_be_bytes(read(&mut stream)?);
            asked.lock().expect("no panic").push(format!("SOCKS {host}:{port}"));
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
            joined(stream, TcpStream::connect(to)?)
        })
    }

    fn of(meet: impl Fn(TcpStream, &Asked) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let asked = Asked::default();
        let noted = Arc::clone(&asked);
        let server = RawServer::start(move |stream, _| drop(meet(stream, &noted)));
        Self { server, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Passes on what either side says until one is done.
fn joined(mut near: TcpStream, mut far: TcpStream) -> io::Result<()> {
    let (mut near_too, mut far_too) = (near.try_clone()?, far.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut near_too, &mut far_too);
        far_too.shutdown(std::net::Shutdown::Write)
    });
    io::copy(&mut far, &mut near)?;
    near.shutdown(std::net::Shutdown::Both)
}

/// A site behind that proxy, its `robots.txt` not asked for.
fn behind(proxy: &str, seed: &str) -> Ground {
    let file = SiteFile::new("shop", seed).pace("robots = \"ignore\"").fetch(&format!("proxy = {proxy:?}"));
    Ground::new([file.fetch("attempts = 2")])
}

#[test]
fn a_site_behind_an_http_or_a_socks_proxy_is_crawled_and_the_proxy_resolves_the_names() {
    let data = TempData::new();
    let trusted = data.write("shop.pem", CERTIFICATE);
    let page = || answer("200 OK", "", b"<h1>behind</h1>");
    let (plain, tls) = (RawServer::answering(page()), tls_server::answering(CERTIFICATE, page()));
    for (https, socks, asked) in [
        (false, false, "GET http://shop.example/"),
        (true, false, "CONNECT shop.example:443"),
        (false, true, "SOCKS shop.example:80"),
        (true, true, "SOCKS shop.example:443"),
    ] {
        let to = if https { tls.addr() } else { plain.addr() };
        let proxy = if socks { Proxy::socks(to) } else { Proxy::http(to) };
        let scheme = if socks { "socks5h" } else { "http" };
        let seed = if https { "https://shop.example/" } else { "http://shop.example/" };
        let ground = behind(&format!("{scheme}://{}", proxy.server.addr()), seed);
        ground.crawl().arg("--cacert").arg(&trusted).run().expect_code(0);
        assert_eq!(proxy.asked(), [asked]);
        assert_eq!(text(&ground.items("shop")[0]["fields"]["title"]), "behind", "{asked}");
        assert_eq!(ground.audit()["shop"]["starts"], 1, "{asked}");
    }
}

#[test]
fn a_proxy_that_refuses_is_named_and_no_page_is_blamed_for_good() {
    let closed = RawServer::answering("").addr();
    let silent = RawServer::answering("");
    let asks = answer("407 Proxy Authentication Required", "Proxy-Authenticate: Basic\r\n", b"");
    let asks = RawServer::answering(asks);
    let forbids = RawServer::answering(answer("403 Forbidden", "", b""));
    let socks = RawServer::start(|mut stream, _| {
        let _ = read::<3>(&mut stream).and_then(|_| stream.write_all(&[5, 0xff]));
    });
    let url = |scheme: &str, addr: SocketAddr| format!("{scheme}://{addr}");
    let mut told = String::new();
    for (what, proxy, seed) in [
        ("gone, http", url("http", closed), "http://shop.example/"),
        ("gone, https", url("http", closed), "https://shop.example/"),
        ("closes at once, https", url("http", silent.addr()), "https://shop.example/"),
        ("407, http", url("http", asks.addr()), "http://shop.example/"),
        ("407, https", url("http", asks.addr()), "https://shop.example/"),
        ("403, https", url("http", forbids.addr()), "https://shop.example/"),
        ("SOCKS refuses", url("socks5h", socks.addr()), "http://shop.example/"),
        ("SOCKS, name unknown here", url("socks5", socks.addr()), "http://no-such-host.invalid/"),
    ] {
        let ground = behind(&proxy, seed);
        ground.crawl().run().expect_code(1);
        let dead: Vec<String> = ground.dead("shop").into_values().collect();
        let [reason] = &dead[..] else { panic!("{what}: {dead:?}") };
        let reason = reason.split(": failed to lookup").next().unwrap_or(reason);
        assert_eq!(ground.view("shop").download.retried, 1, "{what}: {reason}");
        let _ = writeln!(told, "{what}: {reason}");
    }
    crate::bad_site::assert_text("proxies.txt", &told);
}

#[test]
fn behind_a_proxy_that_wants_a_password_no_robots_txt_counts_as_absent() {
    let asks = RawServer::answering(answer("407 Proxy Authentication Required", "", b""));
    let file = SiteFile::new("shop", "http://shop.example/");
    let ground = Ground::new([file.fetch(&format!("proxy = \"http://{}\"", asks.addr()))]);
    let run = ground.crawl().arg("--give-up").arg("1s").run().expect_code(3);
    assert!(run.stderr.contains("robots.txt of shop.example can't be had: the proxy"), "{}", run.stderr);
    assert_eq!(asks.connections(), 1);
}
