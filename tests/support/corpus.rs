//! The saved shops, served on loopback, and the true values of what they sell. They are read in place and never copied here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paced::internals::demo::reply::ShopReply as Reply;
use serde::Deserialize;
use serde_json::Value;

use super::{TestSite, TestSiteBuilder, skip};

/// The folder of test data: `PACED_CORPORA`, else beside the project. None, said loudly, where it is missing.
pub fn corpora() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora");
    let folder = std::env::var_os("PACED_CORPORA").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    skip(format!("no test data at {}; set PACED_CORPORA to where it is", folder.display()));
    None
}

/// A file with one JSON value a line.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = read_text(path);
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    rows.map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{}: {why}", path.display())))
        .collect()
}

/// One saved shop.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    pages: BTreeMap<String, Reply>,
}

impl Corpus {
    /// books.toscrape.com: plain files, 1000 products on 1181 pages.
    pub fn books() -> Option<Self> {
        let folder = corpora()?.join("shops/books-toscrape");
        let root = unpacked(&folder)?;
        let mut pages = BTreeMap::new();
        for file in files(&root) {
            let path = file.strip_prefix(&root).expect("it was found below the root").to_string_lossy();
            let reply = Reply::status(200).header("content-type", media_type(&file)).with_body(read(&file));
            if let Some(folder) = path.strip_suffix("index.html") {
                pages.insert(format!("/{folder}"), reply.clone());
            }
            pages.insert(format!("/{path}"), reply);
        }
        Some(Self { folder, pages })
    }

    /// A shop whose `manifest.jsonl` says what each path and query answers: `zyte-ecommerce` or `quotes-toscrape`.
    pub fn manifest(name: &str) -> Option<Self> {
        let folder = corpora()?.join("shops").join(name);
        let root = unpacked(&folder)?;
        let rows = json_lines(&folder.join("manifest.jsonl")).into_iter();
        let rows = rows.map(|row| serde_json::from_value::<Row>(row).expect("a row of a manifest"));
        let pages = rows.map(|row| (row.url.clone(), row.reply(&root))).collect();
        Some(Self { folder, pages })
    }

    /// The answers by path and query.
    pub fn pages(&self) -> &BTreeMap<String, Reply> {
        &self.pages
    }

    /// The true values, one a product (for quotes: one a quote or an author).
    pub fn truth(&self) -> Vec<Value> {
        json_lines(&self.folder.join("truth.jsonl"))
    }

    /// What links reach.
    pub fn crawl_truth(&self) -> Value {
        serde_json::from_str(&read_text(&self.folder.join("crawl_truth.json"))).expect("JSON")
    }

    /// A site of these pages, for further wishes.
    pub fn site(&self) -> TestSiteBuilder {
        self.pages.iter().fold(TestSite::builder(), |site, (path, reply)| site.reply(path, reply.clone()))
    }

    /// Serves it as it is.
    pub fn serve(&self) -> TestSite {
        self.site().serve()
    }
}

#[derive(Deserialize)]
struct Row {
    url: String,
    status: u16,
    file: Option<String>,
    content_type: Option<String>,
    location: Option<String>,
}

impl Row {
    fn reply(self, root: &Path) -> Reply {
        let reply = Reply::status(self.status);
        let reply =
            self.content_type.into_iter().fold(reply, |reply, kind| reply.header("content-type", kind));
        let reply = self.location.into_iter().fold(reply, |reply, to| reply.header("location", to));
        self.file.into_iter().fold(reply, |reply, file| reply.with_body(read(&root.join(file))))
    }
}

/// The archive's files, unpacked once for each state of the archive and kept among the build's temporary files.
fn unpacked(shop: &Path) -> Option<PathBuf> {
    let archive = shop.join("site.tar.zst");
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let root = kept.join(format!("shop-{}", &blake3::hash(&read(&archive)).to_hex()[..16]));
    if root.is_dir() {
        return Some(root);
    }
    let zstd = Command::new("zstd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if zstd.is_err() {
        skip("no `zstd` to unpack the saved shops with; install the package of that name");
        return None;
    }
    let fresh = tempfile::tempdir_in(kept).expect("a temporary folder");
    let mut tar = Command::new("tar");
    tar.args(["-I", "zstd --long=27", "-xf"]).arg(&archive).arg("-C").arg(fresh.path());
    let status = tar.status().expect("tar runs");
    assert!(status.success(), "tar could not unpack {}: {status}", archive.display());
    // Another test may have been quicker; what it unpacked is as good.
    if let Err(why) = fs::rename(fresh.path(), &root) {
        assert!(root.is_dir(), "{}: {why}", root.display());
    }
    Some(root)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn media_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("css") => "text/css",
        _ => "application/octet-stream",
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn read_text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}
