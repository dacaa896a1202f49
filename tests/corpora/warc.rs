//! WARC files of other programs, whole and broken: their answers read back, and walks that go over them.

use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use paced::internals::archive::{Archive, ArchiveError, Filter, scan};
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::content_coding::decode;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tempfile::TempDir;

use super::table::{Share, corpus, rows};

/// Files with records that are not what they say: a wrong length, no date, no HTTP, the end missing. warcio reads some of
/// their bytes all the same; here they are errors.
const BROKEN: [&str; 5] = [
    "pywb__missing-status-text.warc",
    "warciojs__example-bad-length.warc",
    "resiliparse__clueweb-quirk.warc.gz",
    "pywb__example-extra.warc",
    "resiliparse__clipped.warc.gz",
];
/// Records whose `Content-Length` leads past the next record's beginning, or not up to it.
const WRONG_LENGTHS: [&str; 2] = ["warciojs__example-bad-length.warc", "pywb__example.warc"];
const LARGEST: u64 = 64 * 1024 * 1024;

#[test]
fn answers_that_other_programs_kept_are_read_as_warcio_reads_them() {
    let Some(table) = corpus("warc/expected.public.jsonl") else { return };
    let mut share = Share::of("answers in WARC files of others");
    let mut broken = Share::of("broken ones, told so");
    for row in rows(&table) {
        let dir = TempDir::new().expect("a folder");
        let name = copied(&row, dir.path());
        let archive = open(dir.path());
        for record in row["records"].as_array().expect("records") {
            let length = record["length"].as_i64().unwrap_or(-1);
            // What only calls itself chunked is given as it stands; warcio gives the part before the fault.
            let misnamed = row["file"] == "warcat__bad_http_chunked_content.warc";
            if misnamed || record["type"] != "response" || record["format"] != "warc" || length < 0 {
                continue;
            }
            let place = format!("{name}:{}:{length}", record["offset"]).parse().expect("a place");
            let read = archive.read(&place).map_err(|error| error.to_string()).and_then(|stored| {
                let body =
                    decode(&stored.headers, &stored.body, LARGEST).map_err(|error| error.to_string())?;
                let digest = HEXLOWER.encode(digest(&SHA256, &body).as_ref());
                Ok((stored.status.to_string(), stored.url.to_string(), digest))
            });
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            let url = CanonicalUrl::parse(text("uri")).map(String::from).unwrap_or_default();
            let truth = (text("http_status").to_owned(), url, text("decoded_body_sha256").to_owned());
            let line = format!("{place}: {read:?}, not {record}");
            if BROKEN.contains(&row["file"].as_str().unwrap_or_default()) && read != Ok(truth.clone()) {
                broken.count(read.is_err_and(|why| why.contains(" at ") || why.contains("broken")), line);
            } else {
                share.count(read == Ok(truth), line);
            }
        }
    }
    share.reaches(1000, 32);
    broken.reaches(1000, 33);
}

#[test]
fn a_walk_goes_over_files_of_others_and_tells_the_place_of_what_is_broken() {
    let Some(table) = corpus("warc/expected.public.jsonl") else { return };
    let (mut whole, mut broken) = (Share::of("whole WARC files of others"), Share::of("broken ones"));
    for row in rows(&table) {
        let dir = TempDir::new().expect("a folder");
        let name = copied(&row, dir.path());
        let found: Vec<_> = scan(dir.path(), Filter::default()).expect("a walk").collect();
        let is_warc =
            row["records"].as_array().is_some_and(|all| all.iter().all(|one| one["format"] == "warc"));
        let line = format!("{name}: {found:?}, warcio says {}", row["error"]);
        let misleads = WRONG_LENGTHS.contains(&row["file"].as_str().unwrap_or_default());
        if row["error"].is_null() && is_warc && !misleads {
            whole.count(found.is_empty(), line);
        } else {
            let told = |offset: u64| offset == 0 || misleads && offset > 2000;
            let at = matches!(&found[..], [Err(ArchiveError::Damaged { offset, .. })] if told(*offset));
            broken.count(at, line);
        }
    }
    whole.reaches(1000, 19);
    broken.reaches(1000, 6);
}

/// Puts a row's file into a folder of pages, under a name that a walk looks at.
fn copied(row: &Value, dir: &Path) -> String {
    let file = row["file"].as_str().expect("a file");
    let bytes = fs::read(corpus(&format!("warc/files/{file}")).expect("the file of a row")).expect("a file");
    let name = format!("{file}{}", if bytes.starts_with(b"\x1f\x8b") { ".warc.gz" } else { ".warc" });
    fs::write(dir.join(&name), bytes).expect("written");
    name
}

fn open(dir: &Path) -> Archive {
    Archive::open(dir, "corpora", Clock::fake(Timestamp::from_millis(0))).expect("a page store")
}
