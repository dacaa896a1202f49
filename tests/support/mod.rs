//! What integration tests stand on: sites on loopback, the saved shops, the binary, temporary data folders.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of this")]

mod binary;
mod corpus;
mod keyboard;
mod load;
pub mod moved_clock;
mod raw_server;
mod redis_cli;
mod redis_cluster;
mod redis_proxy;
mod redis_server;
mod redis_steps;
mod small_disk;
mod test_site;
mod tries;

pub use binary::{Paced, Run, Running, paced};
pub use corpus::{Corpus, corpora, json_lines};
pub use raw_server::RawServer;
pub use redis_cli::{RedisCli, Said};
pub use redis_cluster::RedisCluster;
pub use redis_proxy::RedisProxy;
pub use redis_server::{RedisDb, RedisServer, RedisServerBuilder, free_port, redis_or_skip};
pub use redis_steps::HeardSteps;
pub use small_disk::{SmallDisk, may_mount, with_mounts};
pub use test_site::{TestSite, TestSiteBuilder};
pub use tries::{bound, in_three_tries};

pub use paced::internals::demo::arrivals::{Arrival, Stall, most_in_flight};
pub use paced::internals::demo::gaps::{GapReport, PaceVerdict, used_share};
pub use paced::internals::demo::plan::{FaultKind, Latency, Moved, ShopPlan};
pub use paced::internals::demo::reply::{Delivery, ShopReply as Reply, ShopRequest as Request};
pub use paced::internals::demo::shop::{Shop, Shops, serve};

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long something may take that will happen in the end. Only a hang reaches it.
const PATIENCE: Duration = Duration::from_mins(3);

/// A data folder that goes with the test.
#[derive(Debug)]
pub struct TempData(tempfile::TempDir);

impl TempData {
    /// An empty folder.
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("paced-test-").tempdir().expect("a temporary folder"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file into it and tells its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("a folder in the temporary folder");
        }
        std::fs::write(&path, text).expect("a file in the temporary folder");
        path
    }

    /// A file of it, as text.
    pub fn read(&self, name: &str) -> String {
        let path = self.file(name);
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }
}

/// Waits until `look` finds something.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// As `eventually`, with a patience of one's own.
#[track_caller]
pub fn within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < patience, "waited {patience:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An answer as it came, read until the connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of its first line.
    pub status: u16,
    /// Its head, as text.
    pub head: String,
    /// What came after the head.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The first header field of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// One GET over a connection of its own, with nothing of the product in it.
pub fn ask(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer { status: status.ok_or(io::ErrorKind::InvalidData)?, head, body: bytes.split_off(end + 4) })
}

/// Says why a test did nothing, past the test runner's capture; where `CI` is set that is a failure.
pub fn skip(why: impl Display) {
    assert!(std::env::var_os("CI").is_none(), "not to be skipped where CI is set: {why}");
    let _ = writeln!(io::stderr(), "SKIPPED: {why}");
}
