//! The fuzz targets of `fuzz/` without a fuzzer: their seeds, and mutations of these by chance, on any toolchain.
//!
//! By default each target meets its seeds in `fuzz/seeds` and a few thousand mutations, always the same ones.
//! `PACED_FUZZ_SECONDS` runs it for so long, with mutations of its own each time; `PACED_FUZZ_CORPUS` names folders with
//! more files to mutate, divided by `:`. `sh tests/fuzz.sh` sets both, and uses a coverage-guided fuzzer where there is one.

#[path = "fuzz/mutation.rs"]
mod mutation;
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutation::Mutation;

/// What a run without a time costs no noticeable time.
const MUTATIONS: usize = 2000;
/// Longer files make poor seeds.
const LONGEST: u64 = 256 * 1024;

#[test]
fn any_bytes_are_a_site_or_errors_with_places() {
    fuzz("site_file", targets::site_file::hold);
}

#[test]
fn any_bytes_are_a_robots_txt_with_one_meaning() {
    fuzz("robots", targets::robots::hold);
}

#[test]
fn any_bytes_are_a_page_with_sound_links_and_items() {
    fuzz("page", targets::page::hold);
}

#[test]
fn any_bytes_may_end_a_segment_and_nothing_durable_is_lost() {
    fuzz("warc_tail", targets::warc_tail::hold);
}

#[test]
fn any_bytes_are_header_fields_that_ask_for_bounded_things() {
    fuzz("headers", targets::headers::hold);
}

#[test]
fn any_bytes_are_no_url_or_one_with_one_spelling() {
    fuzz("canonical_url", targets::canonical_url::hold);
}

/// Runs a target on its seeds, then on mutations of them.
fn fuzz(target: &str, hold: fn(&[u8])) {
    let mut seeds = files_in(&fuzz_folder().join("seeds").join(target));
    assert!(!seeds.is_empty(), "{target} has no seeds");
    for seed in &seeds {
        check(target, hold, seed);
    }
    let more = setting("PACED_FUZZ_CORPUS").unwrap_or_default();
    seeds.extend(more.split(':').filter(|folder| !folder.is_empty()).flat_map(|f| files_in(Path::new(f))));
    let seconds: Option<u64> = setting("PACED_FUZZ_SECONDS").and_then(|text| text.parse().ok());
    let mut mutation = Mutation::of(&seeds, seconds.map_or(1, |_| fastrand::u64(..)));
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let mut runs = 0;
    while if seconds.is_some() { Instant::now() < end } else { runs < MUTATIONS } {
        check(target, hold, &mutation.next());
        runs += 1;
    }
    println!("{target}: {} seeds and {runs} mutations, nothing found", seeds.len());
}

/// A find is kept as a file, as a fuzzer does, so that it can be run again.
fn check(target: &str, hold: fn(&[u8]), bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| hold(bytes))).is_ok() {
        return;
    }
    let folder = fuzz_folder().join("artifacts").join(target);
    let file = folder
        .join(format!("found-{:016x}", paced::internals::canonical_url::fingerprint(&format!("{bytes:?}"))));
    let kept = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, bytes));
    let place = kept.map_or_else(|error| format!("nowhere ({error})"), |()| file.display().to_string());
    panic!("{target} fails on {} bytes, kept in {place}; the reason is above", bytes.len());
}

fn files_in(folder: &Path) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a seed")).collect()
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let entry = entry.expect("an entry");
        let kind = entry.metadata().expect("its kind");
        if kind.is_dir() {
            files_below(&entry.path(), files);
        } else if kind.len() <= LONGEST {
            files.push(entry.path());
        }
    }
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
