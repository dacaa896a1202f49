//! The S3 server of `server.py`, what it was asked for and what is in its bucket; and tests in a process of their own, as
//! a process has one set of `AWS_` variables.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::{ClientConfigKey, ObjectStoreExt};
use paced::internals::archive::{Filter, Location, Record, scan};
use regex::Regex;
use tempfile::TempDir;

use crate::support::*;

/// The bucket that is there.
pub const BUCKET: &str = "shop-pages";
/// Tells a test that it runs in a process of its own.
const ALONE: &str = "PACED_TEST_S3";

/// A running server; it ends with the test.
pub struct Server {
    process: Child,
    orders: Option<ChildStdin>,
    done: BufReader<ChildStdout>,
    pub s3: S3,
    _log: TempDir,
}

/// How to reach a server.
#[derive(Clone, Debug)]
pub struct S3 {
    pub url: String,
    pub key: String,
    pub secret: String,
    pub log: PathBuf,
}

impl Server {
    /// A server with an empty bucket; none where it can't be had.
    pub fn start() -> Option<Self> {
        let venv = venv()?;
        let dir = TempDir::new().expect("a folder");
        let log = dir.path().join("requests.log");
        let mut process = Command::new(venv.join("bin/python"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/s3/server.py"))
            .arg(BUCKET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("python starts");
        let orders = process.stdin.take();
        let mut done = BufReader::new(process.stdout.take().expect("its output"));
        let mut line = String::new();
        done.read_line(&mut line).expect("a line");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let [url, key, secret] = words.try_into().unwrap_or_else(|words| {
            panic!("the server said {words:?}\n{}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        Some(Self { process, orders, done, s3: S3 { url, key, secret, log }, _log: dir })
    }

    /// Makes a bucket, or removes it with what is in it.
    pub fn order(&mut self, what: &str, bucket: &str) {
        let orders = self.orders.as_mut().expect("its input is open");
        writeln!(orders, "{what} {bucket}").expect("it reads");
        let mut line = String::new();
        self.done.read_line(&mut line).expect("a line");
        assert_eq!(line, "done\n", "{}", std::fs::read_to_string(&self.s3.log).unwrap_or_default());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl S3 {
    /// The variables that lead to it.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", self.url.clone()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", self.key.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.secret.clone()),
        ]
    }

    fn of_this_process() -> Option<Self> {
        let of = |name: &str| std::env::var(name).expect("the parent sets it");
        let log = PathBuf::from(std::env::var_os(ALONE)?);
        let (url, key, secret) =
            (of("AWS_ENDPOINT_URL"), of("AWS_ACCESS_KEY_ID"), of("AWS_SECRET_ACCESS_KEY"));
        Some(Self { url, key, secret, log })
    }

    /// The requests for the bucket so far: method, and path with query.
    pub fn requests(&self) -> Vec<(String, String)> {
        let log = std::fs::read_to_string(&self.log).expect("the log");
        let line =
            Regex::new(&format!(r"(GET|PUT|HEAD|POST|DELETE) (/{BUCKET}\S*) HTTP")).expect("a pattern");
        let found = line.captures_iter(&log).map(|found| (found[1].to_owned(), found[2].to_owned()));
        // The server's own set-up made the bucket.
        found.skip(1).collect()
    }

    /// How many of the requests were of that method, for an object or for a listing.
    pub fn count(&self, method: &str, listing: bool) -> usize {
        let fits = |(m, path): &&(String, String)| m == method && path.contains("list-type") == listing;
        self.requests().iter().filter(fits).count()
    }

    /// Every object below a prefix, by key.
    pub async fn objects(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        paced::internals::fetch::install_tls();
        let store = AmazonS3Builder::new()
            .with_endpoint(&self.url)
            .with_bucket_name(BUCKET)
            .with_region("us-east-1")
            .with_access_key_id(&self.key)
            .with_secret_access_key(&self.secret)
            .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp), "true")
            .build()
            .expect("a client");
        let page = store.list_paginated(Some(prefix), PaginatedListOptions::default()).await.expect("a list");
        assert_eq!(page.page_token, None, "more objects than a test makes");
        let mut objects = Vec::new();
        for object in page.result.objects {
            let bytes =
                store.get(&object.location).await.expect("an object").bytes().await.expect("its bytes");
            objects.push((object.location.to_string(), bytes.to_vec()));
        }
        objects.sort();
        objects
    }

    /// All objects below a prefix as files in a folder; their names.
    pub async fn download(&self, prefix: &str, folder: &Path) -> Vec<PathBuf> {
        let save = |(key, bytes): (String, Vec<u8>)| {
            let file = folder.join(key.rsplit('/').next().expect("a name"));
            std::fs::write(&file, bytes).expect("written");
            file
        };
        self.objects(prefix).await.into_iter().map(save).collect()
    }
}

/// Runs a test in a process of its own, with the variables of a server of its own. `name` is the test's.
#[track_caller]
pub fn alone(name: &str, test: impl AsyncFnOnce(S3)) {
    if let Some(s3) = S3::of_this_process() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(test(s3));
    }
    let Some(server) = Server::start() else { return };
    let text = run_alone(name, &server.s3);
    assert!(text.contains("test result: ok. 1 passed"), "{text}");
}

/// Runs a test of this file in a process of its own and returns what it printed.
pub fn run_alone(name: &str, s3: &S3) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--include-ignored", "--nocapture"]).env(ALONE, &s3.log);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    let output = command.envs(s3.variables()).output().expect("its output");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

/// A prefix of the bucket.
pub fn at(prefix: &str) -> Location {
    let url = format!("s3://{BUCKET}/{prefix}");
    url.parse().expect("a location")
}

/// Every request on record there. It blocks.
pub async fn all(location: &Location) -> Vec<Record> {
    let location = location.clone();
    let walk = move || {
        let records = scan(location, Filter::default()).expect("a walk");
        records.map(|record| record.expect("a record")).collect()
    };
    tokio::task::spawn_blocking(walk).await.expect("no panic")
}

/// The Python environment of `tests/venv.sh`.
pub fn venv() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let venv = std::env::var_os("PACED_VENV").map_or_else(beside, PathBuf::from);
    if venv.join("bin/warcio").exists() && venv.join("bin/moto_server").exists() {
        return Some(venv);
    }
    skip(format_args!("no moto in {}; `sh tests/venv.sh` puts it there", venv.display()));
    None
}
