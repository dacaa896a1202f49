//! The fuzz targets of `fuzz/` without a fuzzer: their seeds, and mutations of these by chance, on any toolchain.
//!
//! By default each target meets its seeds in `fuzz/seeds` and up to a few thousand mutations, always the same ones.
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
use paced::internals::canonical_url::fingerprint;
use paced::internals::clock::thread_time;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What costs no noticeable time in a run without one.
const MUTATIONS: usize = 2000;
/// The same of inputs that grow.
const MUTATIONS_THAT_GROW: usize = 100;
/// The memory that a target may take beside what it began with, in bytes: inputs have up to 5 MiB, and a page's tree the
/// thirtyfold. A length that an input claims is none that may be taken.
const MOST_MEMORY: u64 = 1 << 30;
/// An input that takes longer on a processor is kept, for people to look at: time alone is no find.
const NOTICED: Duration = Duration::from_millis(100);
/// Bytes of a find that are told, as the folder it is kept in may be gone when somebody reads of it.
const TOLD: usize = 4_096;
/// Longer files make poor seeds.
const LONGEST: u64 = 256 * 1024;

#[test]
fn any_bytes_are_a_site_or_errors_with_places() {
    fuzz("site_file", targets::site_file::hold, MUTATIONS);
}

#[test]
fn any_bytes_are_a_robots_txt_with_one_meaning() {
    fuzz("robots", targets::robots::hold, MUTATIONS);
}

#[test]
fn any_bytes_are_a_page_with_sound_links_and_items() {
    fuzz("page", targets::page::hold, MUTATIONS_THAT_GROW);
}

#[test]
fn any_bytes_may_end_a_segment_and_nothing_durable_is_lost() {
    fuzz("warc_tail", targets::warc_tail::hold, MUTATIONS);
}

#[test]
fn any_bytes_are_header_fields_that_ask_for_bounded_things() {
    fuzz("headers", targets::headers::hold, MUTATIONS);
}

#[test]
fn any_bytes_are_no_url_or_one_with_one_spelling() {
    fuzz("canonical_url", targets::canonical_url::hold, MUTATIONS);
}

#[test]
fn any_product_of_any_size_costs_what_its_length_allows() {
    fuzz("structured", targets::structured::hold, MUTATIONS_THAT_GROW);
}

#[test]
fn any_rules_and_any_links_are_judged_within_their_budget() {
    fuzz("robots_links", targets::robots_links::hold, MUTATIONS_THAT_GROW);
}

#[test]
fn any_answer_of_a_redis_is_read_or_told_to_be_none() {
    fuzz("redis_answers", targets::redis_answers::hold, MUTATIONS);
}

#[test]
fn any_bytes_are_a_warc_file_of_another_program() {
    fuzz("foreign_warc", targets::foreign_warc::hold, MUTATIONS);
}

/// Runs a target on its seeds, then on mutations of them, which are so many where no time is told.
fn fuzz(target: &str, hold: fn(&[u8]), mutations: usize) {
    let mut seeds = files_in(&fuzz_folder().join("seeds").join(target));
    assert!(!seeds.is_empty(), "{target} has no seeds");
    let seconds: Option<u64> = setting("PACED_FUZZ_SECONDS").and_then(|text| text.parse().ok());
    let mut run = Run { target, hold, alone: seconds.is_some(), dearest: Duration::ZERO };
    run.begin();
    for seed in &seeds {
        run.check(seed);
    }
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let more = setting("PACED_FUZZ_CORPUS").unwrap_or_default();
    for file in more.split(':').filter(|folder| !folder.is_empty()).flat_map(|f| files_in(Path::new(f))) {
        if Instant::now() < end {
            run.check(&file);
        }
        seeds.push(file);
    }
    let mut mutation = Mutation::of(&seeds, seconds.map_or(1, |_| fastrand::u64(..)));
    let mut runs = 0;
    while if seconds.is_some() { Instant::now() < end } else { runs < mutations } {
        run.check(&mutation.next());
        runs += 1;
    }
    run.end();
    println!("{target}: {} seeds and {runs} mutations, nothing found", seeds.len());
}

/// A target that is run.
struct Run<'a> {
    target: &'a str,
    hold: fn(&[u8]),
    /// No other target is run by this process.
    alone: bool,
    /// The longest that an input took on a processor.
    dearest: Duration,
}

impl Run<'_> {
    /// From now on the process ends where it takes more memory than a target may.
    fn begin(&self) {
        if self.alone {
            fs::create_dir_all(self.folder()).expect("a folder");
            let limit = Some(taken() + MOST_MEMORY);
            let rest = getrlimit(Resource::As).maximum;
            setrlimit(Resource::As, Rlimit { current: limit, maximum: rest }).expect("less than before");
        }
    }

    /// A find is kept as a file, as a fuzzer does, so that it can be run again.
    fn check(&mut self, bytes: &[u8]) {
        // What ends the process, as too much memory does, leaves its input there.
        if self.alone {
            fs::write(self.running(), bytes).expect("written");
        }
        let began = thread_time();
        let held = catch_unwind(AssertUnwindSafe(|| (self.hold)(bytes)));
        let took = thread_time().saturating_sub(began);
        if held.is_err() {
            let place = self.keep("found", bytes);
            let (target, beginning) = (self.target, bytes[..bytes.len().min(TOLD)].escape_ascii());
            panic!(
                "{target} fails on {} bytes, kept in {place}; the reason is above\nthey are \"{beginning}\"",
                bytes.len()
            );
        }
        if self.alone && took > self.dearest.max(NOTICED) {
            self.dearest = took;
            println!("{took:?} for {}", self.keep("dear", bytes));
        }
    }

    fn end(&self) {
        if self.alone {
            fs::remove_file(self.running()).expect("it was there");
        }
    }

    fn keep(&self, word: &str, bytes: &[u8]) -> String {
        let name = format!("{word}-{:016x}", fingerprint(&format!("{bytes:?}")));
        let file = self.folder().join(name);
        let kept = fs::create_dir_all(self.folder()).and_then(|()| fs::write(&file, bytes));
        kept.map_or_else(|error| format!("nowhere ({error})"), |()| file.display().to_string())
    }

    fn running(&self) -> PathBuf {
        self.folder().join("running")
    }

    fn folder(&self) -> PathBuf {
        fuzz_folder().join("artifacts").join(self.target)
    }
}

/// The address space of this process, in bytes.
fn taken() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB"));
    size.and_then(|size| size.parse::<u64>().ok()).expect("a number") << 10
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
