//! A site whose front page and `robots.txt` are fine and whose other pages are answered badly; and what became of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use paced::internals::archive::{self, Filter, Record};
use serde_json::Value;

use crate::ground::*;
use crate::support::*;

type Meet = Arc<dyn Fn(&mut TcpStream) + Send + Sync>;

/// Pages by path, each met by a function that may do as it likes with the connection, which is closed afterwards.
#[derive(Default)]
pub struct BadSiteBuilder(BTreeMap<String, Meet>);

impl BadSiteBuilder {
    /// A page that answers these bytes.
    pub fn bytes(self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        self.meets(path, move |stream| {
            let _ = stream.write_all(&bytes);
        })
    }

    /// A page with a head of these lines and this body, as long as it is.
    pub fn body(self, path: &str, fields: &str, body: impl AsRef<[u8]>) -> Self {
        self.bytes(path, answer("200 OK", fields, body.as_ref()))
    }

    /// A page whose connection is handed over after the request.
    pub fn meets(mut self, path: &str, meet: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        self.0.insert(path.to_owned(), Arc::new(meet));
        self
    }

    /// Serves it.
    pub fn serve(self) -> BadSite {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (pages, noted) = (Arc::new(self.0), Arc::clone(&asked));
        let front = answer("200 OK", "", page("front", pages.keys()).as_bytes());
        let server = RawServer::start(move |mut stream, _| {
            let head = RawServer::read_head(&mut stream);
            let Some(path) = head.split(' ').nth(1) else { return };
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
            match (path, pages.get(path)) {
                (_, Some(meet)) => meet(&mut stream),
                ("/", None) => drop(stream.write_all(&front)),
                _ => drop(stream.write_all(&answer("404 Not Found", "", b""))),
            }
        });
        BadSite { server, asked }
    }
}

/// An answer that HTTP has nothing against.
pub fn answer(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    [head.as_bytes(), fields.as_bytes(), b"\r\n", body].concat()
}

/// The site, being served.
pub struct BadSite {
    server: RawServer,
    asked: Arc<Mutex<Vec<String>>>,
}

impl BadSite {
    /// A site without bad pages.
    pub fn builder() -> BadSiteBuilder {
        BadSiteBuilder::default()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The absolute URL of a path.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// How often each path was asked for.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for path in &*self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            *counts.entry(path.clone()).or_default() += 1;
        }
        counts
    }
}

/// What became of each page, a line each: how often it was asked for, and its item's title or why it is dead.
pub fn told(ground: &Ground, mut arrived: BTreeMap<String, usize>) -> String {
    let (dead, mut told) = (ground.dead("shop"), String::new());
    let title = |item: &Value| (path_of(&text(&item["url"])), item["fields"]["title"].to_string());
    let titles: BTreeMap<String, String> = ground.items("shop").iter().map(title).collect();
    for path in dead.keys() {
        arrived.entry(path.clone()).or_default();
    }
    for (path, count) in arrived {
        let became = match (dead.get(&path), titles.get(&path)) {
            (Some(reason), None) => format!("dead: {reason}"),
            (None, Some(title)) => format!("item: {title}"),
            (None, None) => "neither dead nor an item".to_owned(),
            (Some(reason), Some(title)) => panic!("{path} is both: {reason}, {title}"),
        };
        let _ = writeln!(told, "{path:<24.24} {count}x  {became}");
    }
    told
}

/// Fails unless the archive holds as many requests of each path as arrived, each with its answer or its error, and the
/// audit counts them all (M3).
#[track_caller]
pub fn assert_archived(ground: &Ground, arrived: &BTreeMap<String, usize>) {
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    for record in records(ground) {
        assert!(record.status.is_some() != record.error.is_some(), "{record:?}");
        *kept.entry(path_of(record.url.as_str())).or_default() += 1;
    }
    assert_eq!(&kept, arrived);
    let audit = &ground.audit()["shop"];
    assert_eq!(audit["starts"], arrived.values().sum::<usize>(), "{audit}");
}

/// Every request of the archive.
#[track_caller]
pub fn records(ground: &Ground) -> Vec<Record> {
    let scan = archive::scan(ground.data.file("data/pages").as_path(), Filter::default());
    scan.expect("an archive").map(|record| record.expect("a whole record")).collect()
}

/// Fails unless `text` is that of `tests/network/NAME`; where `PACED_TEST_WRITE` is set it is written there.
#[track_caller]
pub fn assert_text(name: &str, text: &str) {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network")).join(name);
    if std::env::var_os("PACED_TEST_WRITE").is_some() {
        std::fs::write(&file, text).expect("a file beside this one");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    assert!(text == expected, "{} differs\n--- expected\n{expected}\n--- found\n{text}", file.display());
}
