//! The page store on a real folder: what was kept is read back, whatever happened to its writers.

#[path = "../support/answered.rs"]
mod answered;
mod erase;
mod leftovers;
#[path = "../support/load.rs"]
mod load;
#[path = "../support/tries.rs"]
mod tries;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use answered::{answer, answered};
use bytes::Bytes;
use paced::internals::archive::{
    Archive, ArchiveError, COMMIT_PAGES, Filter, Record, RecordPlace, SentRequest, Visit, VisitOutcome, scan,
};
use paced::internals::audit::Audit;
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::page::{Headers, Page};
use paced::internals::task::Departure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tries::{bound, in_three_tries};

const START: i64 = 1_795_165_200_123;
/// Tells a test that it runs as the child of another, and on which folder.
const CHILD_DIR: &str = "PACED_TEST_ARCHIVE";

#[tokio::test]
async fn a_page_is_read_back_as_it_was_kept() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let body: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut sent = page("https://shop.example/a?x=1&y=%C3%A9", &body);
    sent.status = 404;
    sent.headers = headers(&[
        ("content-type", b"text/html"),
        ("set-cookie", b"a=1"),
        ("x-latin", b"caf\xe9"),
        ("set-cookie", b"b=2"),
        ("content-length", b"70000"),
        ("empty", b""),
    ]);
    let place = archive.keep(visit(sent.clone())).await.expect("kept");
    let stored = archive.read(&place).expect("read");
    assert_eq!(stored.url, sent.url);
    assert_eq!(stored.fetched_at, sent.sent_at);
    assert_eq!((stored.status, stored.response), (404, sent.response));
    assert_eq!(stored.body, body);
    let by_name = |mut h: Vec<(String, Vec<u8>)>| {
        h.sort_by(|a, b| a.0.cmp(&b.0));
        h
    };
    assert_eq!(by_name(stored.headers.0), by_name(sent.headers.0));
    assert_eq!(place.to_string().parse(), Ok(place.clone()));
    archive.close().await.expect("closed");
    assert_eq!(archive.read(&place).expect("read after closing").body, body);
}

#[tokio::test]
async fn a_chunked_answer_is_kept_with_headers_that_fit_its_body() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let mut sent = page("http://shop.example/", b"whole");
    sent.headers =
        headers(&[("transfer-encoding", b"chunked"), ("content-length", b"9"), ("etag", b"\"v\"")]);
    let place = archive.keep(visit(sent)).await.expect("kept");
    let stored = archive.read(&place).expect("read");
    assert_eq!(stored.headers, headers(&[("etag", b"\"v\""), ("content-length", b"5")]));
}

#[tokio::test]
async fn a_304_is_a_revisit_and_its_place_is_the_stored_body() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let stored = archive.keep(visit(page("http://shop.example/p", b"the body"))).await.expect("kept");
    let mut answer = page("http://shop.example/p", b"");
    (answer.status, answer.sent_at) = (304, Timestamp::from_millis(START + 60_000));
    let confirmed_at = Timestamp::from_millis(START + 30_000);
    let outcome =
        VisitOutcome::NotModified { page: answer.clone(), of: stored.clone(), fetched_at: confirmed_at };
    let place = archive.keep(Visit { outcome, ..visit(answer) }).await.expect("kept");
    assert_eq!(place, stored);
    assert_eq!(archive.read(&place).expect("read").body, "the body");
    archive.close().await.expect("closed");
    let text = plain(&only_segment(dir.path()));
    let revisit = text.split("WARC/1.1\r\n").find(|r| r.contains("WARC-Type: revisit")).expect("a revisit");
    let first = text.split("WARC/1.1\r\n").find(|r| r.contains("WARC-Type: response")).expect("a response");
    let id = field(first, "WARC-Record-ID");
    assert_eq!(field(revisit, "WARC-Refers-To"), id);
    assert_eq!(field(revisit, "WARC-Refers-To-Target-URI"), "http://shop.example/p");
    assert_eq!(field(revisit, "WARC-Refers-To-Date"), Timestamp::from_millis(START).to_string());
    assert_eq!(field(revisit, "WARC-Profile"), "http://netpreserve.org/warc/1.1/revisit/server-not-modified");
}

#[tokio::test]
async fn every_request_is_on_record_failures_too() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let ok = archive.keep(visit(page("http://shop.example/ok", b"fine"))).await.expect("kept");
    let outcome = VisitOutcome::Failed { error: "connection reset\r\nby peer".to_owned() };
    let failed = Visit { outcome, ..visit(page("http://shop.example/bad", b"")) };
    let told = archive.keep(failed).await.expect("kept");
    let records = all(dir.path());
    assert_eq!(records.len(), 2, "{records:#?}");
    let fine = Record { place: Some(ok), status: Some(200), bytes: records[0].bytes, ..asked("ok") };
    assert!(records[0].bytes > 4);
    assert_eq!(records[0], fine);
    let error = Some("connection reset  by peer".to_owned());
    assert_eq!(records[1], Record { place: Some(told.clone()), error, ..asked("bad") });
    let read = archive.read(&told);
    assert!(matches!(&read, Err(ArchiveError::Damaged { .. })), "{read:?}");
    let text = plain(&only_segment(dir.path()));
    let request = text.split("WARC/1.1\r\n").nth(2).expect("a request");
    assert!(
        request.contains("\r\n\r\nGET /ok HTTP/1.1\r\nhost: shop.example\r\nuser-agent: paced\r\n\r\n"),
        "{request}"
    );
    for (name, value) in [
        ("WARC-Type", "request"),
        ("WARC-Date", "2026-11-20T09:00:00.123Z"),
        ("WARC-IP-Address", "192.0.2.7"),
        ("Paced-Site", "shop"),
        ("Paced-Unit", "shops"),
        ("Paced-Start-At", "2026-11-20T09:00:00.121Z"),
        ("Paced-Unit-Wait-Ms", "500"),
        ("Paced-Site-Wait-Ms", "1500"),
        ("Paced-Fence", "42"),
    ] {
        assert_eq!(field(request, name), value);
    }
}

#[test]
fn many_pages_share_one_commit() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    in_three_tries(|| runtime.block_on(pages_that_come_together()));
}

async fn pages_that_come_together() -> Result<(), String> {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let keeps: Vec<_> = (0..64).map(|n| keep_spawned(&archive, n)).collect();
    let mut places = Vec::new();
    for keep in keeps {
        places.push(keep.await.expect("no panic").expect("kept"));
    }
    for (n, place) in places.iter().enumerate() {
        assert_eq!(archive.read(place).expect("read").body, body_of(n));
    }
    let commits = archive.commits();
    println!("{commits} commits for 64 pages");
    assert!(commits > 0);
    bound(commits <= 6, format_args!("{commits} commits for 64 pages"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_bounded_in_pages() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let count = COMMIT_PAGES * 3;
    let keeps: Vec<_> = (0..count).map(|n| keep_spawned(&archive, n)).collect();
    for keep in keeps {
        keep.await.expect("no panic").expect("kept");
    }
    assert!(archive.commits() >= 3, "{} commits", archive.commits());
    assert_eq!(all(dir.path()).len(), count);
}

#[tokio::test]
async fn a_folder_where_nothing_was_kept_stays_empty_and_a_closed_one_keeps_no_more() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(&dir.path().join("pages"));
    archive.close().await.expect("closed");
    archive.close().await.expect("closed twice");
    assert_eq!(names(&dir.path().join("pages")), Vec::<String>::new());
    let late = archive.keep(visit(page("http://shop.example/", b"late"))).await;
    assert!(matches!(late, Err(ArchiveError::Closed)), "{late:?}");
    assert_eq!(all(&dir.path().join("nowhere")), []);
}

#[tokio::test]
async fn a_segment_that_is_full_is_followed_by_the_next() {
    let dir = TempDir::new().expect("a folder");
    let clock = Clock::fake(Timestamp::from_millis(START));
    let archive = Archive::open_sized(dir.path(), "host-1", clock.clone(), 1).expect("open");
    let mut places = Vec::new();
    for n in 0..3 {
        clock.advance(Duration::from_secs(1));
        let sent = page("http://shop.example/", body_of(n).as_bytes());
        places.push(archive.keep(visit(sent)).await.expect("kept"));
    }
    archive.close().await.expect("closed");
    let expected = [
        "20261120T090001Z-host-1-00001.warc.gz",
        "20261120T090002Z-host-1-00002.warc.gz",
        "20261120T090003Z-host-1-00003.warc.gz",
    ];
    assert_eq!(names(dir.path()), expected);
    for (n, place) in places.iter().enumerate() {
        assert_eq!(place.segment(), expected[n]);
        assert_eq!(archive.read(place).expect("read").body, body_of(n));
    }
    assert_eq!(all(dir.path()).len(), 3);
}

#[tokio::test]
async fn two_writers_of_one_folder_have_a_segment_each_and_read_each_other() {
    let dir = TempDir::new().expect("a folder");
    let (one, two) = (open(dir.path()), open(dir.path()));
    let first = one.keep(visit(page("http://shop.example/1", b"one"))).await.expect("kept");
    let second = two.keep(visit(page("http://shop.example/2", b"two"))).await.expect("kept");
    assert_ne!(first.segment(), second.segment());
    assert_eq!(two.read(&first).expect("read").body, "one");
    assert_eq!(one.read(&second).expect("read").body, "two");
    // As if its writer were in the middle of a record.
    let growing = dir.path().join(first.segment());
    let length = fs::metadata(&growing).expect("there").len();
    fs::OpenOptions::new()
        .append(true)
        .open(&growing)
        .expect("there")
        .write_all(b"\x1f\x8b")
        .expect("written");
    let third = open(dir.path());
    assert_eq!(fs::metadata(&growing).expect("there").len(), length + 2, "a segment in use was cut");
    assert!(names(dir.path()).contains(&format!("{}.open", first.segment())), "{:?}", names(dir.path()));
    let more = one.keep(visit(page("http://shop.example/3", b"three"))).await.expect("kept");
    assert_eq!(third.read(&more).expect("read").body, "three");
    assert_eq!(more.segment(), first.segment(), "a segment in use was taken away");
    assert_eq!(all(dir.path()).len(), 3);
}

#[tokio::test]
async fn a_place_is_there_as_long_as_its_bytes_are() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let place = archive.keep(visit(page("http://shop.example/", b"body"))).await.expect("kept");
    assert!(archive.has(&place).await);
    let beyond = |offset| {
        format!("{}:{offset}:{}", place.segment(), place.length()).parse::<RecordPlace>().expect("a place")
    };
    let later = beyond(place.offset() + 1);
    assert!(!archive.has(&later).await);
    assert!(matches!(archive.read(&later), Err(ArchiveError::Missing { .. })));
    assert!(matches!(archive.read(&beyond(0)), Err(ArchiveError::Damaged { .. })));
    let endless = format!("{}:1:{}", place.segment(), u64::MAX).parse().expect("a place");
    assert!(matches!(archive.read(&endless), Err(ArchiveError::Missing { .. })));
    archive.close().await.expect("closed");
    fs::remove_file(dir.path().join(place.segment())).expect("removed");
    assert!(!archive.has(&place).await);
    let gone = archive.read(&place).expect_err("nothing there");
    assert!(matches!(gone, ArchiveError::Missing { .. }) && !gone.is_transient(), "{gone}");
}

#[tokio::test]
async fn a_torn_tail_is_cut_wherever_it_was_torn() {
    let grown = TempDir::new().expect("a folder");
    let archive = open(grown.path());
    let first = archive.keep(visit(page("http://shop.example/1", b"first"))).await.expect("kept");
    let segment = grown.path().join(first.segment());
    let marker = format!("{}.open", first.segment());
    let marked = fs::read(grown.path().join(&marker)).expect("a marker");
    let last = archive.keep(visit(page("http://shop.example/2", b"last"))).await.expect("kept");
    let whole = fs::read(&segment).expect("the segment");
    let (durable, answer) = (first.offset() + first.length(), last.offset());
    let end = answer + last.length();
    assert_eq!(end, whole.len() as u64);

    // A marker that a power cut spoiled tells nothing: the segment is then read from its beginning.
    for (marked, step) in [(&marked[..], 1), (b"", 50), (b"torn", 50)] {
        for cut in (durable..=end).rev().step_by(step) {
            let dir = TempDir::new().expect("a folder");
            let torn = dir.path().join(first.segment());
            fs::write(&torn, &whole[..usize::try_from(cut).expect("small")]).expect("written");
            fs::write(dir.path().join(&marker), marked).expect("written");
            let kept = if cut == end {
                end
            } else if cut >= answer {
                answer
            } else {
                durable
            };
            // A walk before the repair sees whole records only, and no error.
            let before = all(dir.path()).iter().filter(|r| r.status.is_some()).count();
            assert_eq!(before, if cut == end { 2 } else { 1 }, "cut at {cut}");
            let archive = open(dir.path());
            assert_eq!(fs::metadata(&torn).expect("there").len(), kept, "cut at {cut}");
            assert_eq!(archive.read(&first).expect("read").body, "first");
            assert_eq!(archive.has(&last).await, cut == end);
            assert_eq!(names(dir.path()), [first.segment()]);
        }
    }
}

#[tokio::test]
async fn a_tail_of_garbage_is_cut_and_a_segment_of_nothing_is_removed() {
    let grown = TempDir::new().expect("a folder");
    let archive = open(grown.path());
    let place = archive.keep(visit(page("http://shop.example/1", b"first"))).await.expect("kept");
    let marker = format!("{}.open", place.segment());
    let dir = TempDir::new().expect("a folder");
    fs::copy(grown.path().join(&marker), dir.path().join(&marker)).expect("copied");
    let mut bytes = fs::read(grown.path().join(place.segment())).expect("the segment");
    bytes.extend([0; 10_000]);
    fs::write(dir.path().join(place.segment()), bytes).expect("written");
    fs::write(dir.path().join("x.warc.gz"), b"").expect("written");
    fs::write(dir.path().join("x.warc.gz.open"), b"").expect("written");
    fs::write(dir.path().join("gone.warc.gz.open"), b"").expect("written");
    assert_eq!(all(dir.path()).len(), 1);
    let archive = open(dir.path());
    assert_eq!(
        fs::metadata(dir.path().join(place.segment())).expect("there").len(),
        place.offset() + place.length()
    );
    assert_eq!(archive.read(&place).expect("read").body, "first");
    assert_eq!(names(dir.path()), [place.segment()]);
}

#[tokio::test]
async fn a_closed_segment_is_not_looked_into_and_its_damage_is_told() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let first = archive.keep(visit(page("http://shop.example/1", b"first"))).await.expect("kept");
    let second = archive.keep(visit(page("http://shop.example/2", b"second"))).await.expect("kept");
    archive.close().await.expect("closed");
    let path = dir.path().join(first.segment());
    let mut bytes = fs::read(&path).expect("the segment");
    let at = usize::try_from(first.offset() + first.length()).expect("small");
    bytes[at] ^= 0xff;
    fs::write(&path, &bytes).expect("written");
    let archive = open(dir.path());
    assert_eq!(fs::read(&path).expect("the segment"), bytes, "kept bytes were cut");
    assert_eq!(archive.read(&second).expect("read").body, "second");
    let found: Vec<_> = scan(dir.path(), Filter::default()).expect("a walk").collect();
    assert_eq!(found.iter().filter(|r| r.is_ok()).count(), 1, "{found:?}");
    let damage = found.iter().find_map(|r| r.as_ref().err());
    assert!(matches!(damage, Some(ArchiveError::Damaged { .. })), "{found:?}");
}

#[tokio::test]
async fn a_walk_takes_only_what_is_asked_for() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    for (site, at) in [("a", 0), ("b", 1000), ("a", 2000), ("a", 3000)] {
        let sent = Page { sent_at: Timestamp::from_millis(START + at), ..page("http://shop.example/", b"x") };
        archive.keep(Visit { site: site.to_owned(), ..visit(sent) }).await.expect("kept");
    }
    let count =
        |filter| scan(dir.path(), filter).expect("a walk").inspect(|r| assert!(r.is_ok(), "{r:?}")).count();
    let at = |ms| Some(Timestamp::from_millis(START + ms));
    let sites = vec!["a".to_owned()];
    assert_eq!(count(Filter { sites: sites.clone(), ..Filter::default() }), 3);
    assert_eq!(count(Filter { since: at(1000), until: at(3000), ..Filter::default() }), 2);
    assert_eq!(count(Filter { sites, since: at(1000), until: at(3000) }), 1);
}

#[tokio::test]
async fn i1_an_audit_finds_an_early_start_between_two_processes() {
    let dir = TempDir::new().expect("a folder");
    let (one, two) = (open(dir.path()), open(dir.path()));
    for (archive, at) in [(&one, 0), (&two, 1500), (&one, 3000), (&two, 3700), (&one, 5200)] {
        let sent = Page { sent_at: Timestamp::from_millis(START + at), ..page("http://shop.example/", b"x") };
        archive.keep(visit(sent)).await.expect("kept");
    }
    let report = Audit::of(all(dir.path())).report().remove(0);
    assert_eq!((report.unit.as_str(), report.starts, report.early), ("shops", 5, 1), "{report:?}");
    let early = report.early_starts[0];
    assert_eq!((early.at, early.gap), (Timestamp::from_millis(START + 3700), Duration::from_millis(700)));
    assert_eq!(report.gaps.expect("gaps").min, Duration::from_millis(700));
    assert_eq!(report.statuses, BTreeMap::from([(200, 5)]));
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_told_is_kept() {
    let dir = TempDir::new().expect("a folder");
    let mut child = child_of("child_keeps_pages_until_it_is_killed", dir.path(), "");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let places = lines
        .map(|line| line.expect("a line"))
        .filter_map(|line| line.strip_prefix("kept ").map(str::to_owned));
    let reader = open(dir.path());
    let places: Vec<RecordPlace> = places
        .take(200)
        .map(|text| text.parse().expect("a place"))
        .inspect(|place| assert_eq!(reader.read(place).expect("read while it writes").status, 200))
        .collect();
    child.kill().expect("killed");
    child.wait().expect("gone");
    // What a kill in the middle of a write leaves.
    let segment = only_segment(dir.path());
    let mut torn = fs::OpenOptions::new().append(true).open(&segment).expect("the segment");
    torn.write_all(&fs::read(&segment).expect("the segment")[..100]).expect("written");
    let archive = open(dir.path());
    assert_eq!(places.len(), 200);
    for place in &places {
        assert_eq!(archive.read(place).expect("read after the kill").status, 200);
    }
    let records = all(dir.path());
    assert!(records.iter().filter(|r| r.status == Some(200)).count() >= 200, "{}", records.len());
    assert_eq!(names(dir.path()).len(), 1, "{:?}", names(dir.path()));
    assert_eq!(plain_length(&segment), records_in(&segment));
}

#[test]
fn a_process_killed_while_it_goes_from_segment_to_segment_loses_nothing() {
    let dir = TempDir::new().expect("a folder");
    let (mut kept, mut rotations) = (Vec::<RecordPlace>::new(), 0);
    for round in 0..6 {
        let mut child = child_of("child_keeps_pages_in_small_segments", dir.path(), "");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let places =
            lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix("kept ")?.to_owned()));
        let before = names(dir.path()).len();
        // Each commit fills a segment, so that it is killed in the middle of going to the next, more often than not.
        kept.extend(places.take(60 + 7 * round).map(|text| text.parse::<RecordPlace>().expect("a place")));
        child.kill().expect("killed");
        child.wait().expect("gone");
        rotations += names(dir.path()).len() - before;
    }
    assert!(rotations > 20, "{rotations}");
    let archive = open(dir.path());
    for place in &kept {
        assert_eq!(archive.read(place).expect("read after the kill").status, 200);
    }
    assert!(names(dir.path()).iter().all(|name| name.ends_with(".warc.gz")), "{:?}", names(dir.path()));
    for name in names(dir.path()) {
        assert!(plain(&dir.path().join(&name)).starts_with("WARC/1.1"), "{name}");
    }
    assert!(all(dir.path()).iter().filter(|r| r.status == Some(200)).count() >= kept.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn child_keeps_pages_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    keep_on(&open(Path::new(&dir))).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn child_keeps_pages_in_small_segments() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let (writer, clock) =
        (paced::internals::archive::writer_name(), Clock::fake(Timestamp::from_millis(START)));
    keep_on(&Archive::open_sized(Path::new(&dir), &writer, clock, 4_000).expect("a page store")).await;
}

/// Keeps pages for ever, and tells where.
async fn keep_on(archive: &Archive) {
    for round in 0.. {
        let keeps: Vec<_> = (0..10).map(|n| keep_spawned(archive, round * 10 + n)).collect();
        for keep in keeps {
            println!("kept {}", keep.await.expect("no panic").expect("kept"));
        }
    }
}

#[test]
fn a_full_disk_fails_the_commit_and_the_next_one_works() {
    let dir = TempDir::new().expect("a folder");
    // Over its limit of file size a process is killed unless it ignores that signal; then writing fails, in part too.
    let child = child_of("child_fills_the_disk", dir.path(), "trap '' XFSZ; ");
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("went on after the full disk"), "{text}");
    let records = all(dir.path());
    assert_eq!(records.iter().map(|r| r.status).collect::<Vec<_>>(), [Some(200); 2]);
    assert_eq!(names(dir.path()).len(), 1, "{:?}", names(dir.path()));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of another test"]
async fn child_fills_the_disk() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let (dir, archive) = (PathBuf::from(&dir), open(Path::new(&dir)));
    let first = archive.keep(visit(page("http://shop.example/1", b"first"))).await.expect("kept");
    let length = first.offset() + first.length();
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(length + 2000), ..limit }).expect("a limit");
    let noise: Vec<u8> = (0..50_000).map(|_| fastrand::u8(..)).collect();
    let keeps: Vec<_> = (0..3)
        .map(|_| {
            let (archive, visit) = (archive.clone(), visit(page("http://shop.example/2", &noise)));
            tokio::spawn(async move { archive.keep(visit).await })
        })
        .collect();
    for keep in keeps {
        let refused = keep.await.expect("no panic").expect_err("it doesn't fit");
        assert!(matches!(refused, ArchiveError::Full { .. }) && refused.is_transient(), "{refused}");
        assert!(refused.to_string().contains("free some space"), "{refused}");
    }
    assert_eq!(fs::metadata(dir.join(first.segment())).expect("there").len(), length);
    setrlimit(Resource::Fsize, limit).expect("no limit");
    let second = archive.keep(visit(page("http://shop.example/2", &noise))).await.expect("kept");
    assert_eq!(
        (second.segment(), archive.read(&second).expect("read").body),
        (first.segment(), noise.into())
    );
    archive.close().await.expect("closed");
    println!("went on after the full disk");
}

#[tokio::test]
async fn warcio_finds_nothing_wrong_with_any_kind_of_record() {
    let Some(venv) = venv() else { return };
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let mut odd = page("https://shop.example/%E5%93%81?q=1", &[0, 159, 146, 150, b'\r', b'\n', b'\r', b'\n']);
    odd.headers = headers(&[
        ("transfer-encoding", b"chunked"),
        ("x-latin", b"caf\xe9"),
        ("content-type", b"text/html"),
    ]);
    let stored = archive.keep(visit(odd)).await.expect("kept");
    for status in [200, 204, 301, 404, 503, 599] {
        let page = Page { status, ..page("http://shop.example/", b"") };
        archive.keep(visit(page)).await.expect("kept");
    }
    let answer = Page { status: 304, ..page("https://shop.example/%E5%93%81?q=1", b"") };
    let outcome =
        VisitOutcome::NotModified { page: answer.clone(), of: stored, fetched_at: Timestamp::from_millis(0) };
    archive.keep(Visit { outcome, ..visit(answer) }).await.expect("kept");
    let outcome = VisitOutcome::Failed { error: "timed out".to_owned() };
    archive.keep(Visit { outcome, ..visit(page("http://shop.example/", b"")) }).await.expect("kept");
    archive.close().await.expect("closed");
    let segment = only_segment(dir.path());
    let checked = run(Command::new(venv.join("bin/warcio")).arg("check").arg("-v").arg(&segment));
    assert!(!checked.contains("digest failed") && checked.contains("digest pass"), "{checked}");
    let read = run(Command::new(venv.join("bin/python")).arg("-c").arg(READ_WITH_WARCIO).arg(&segment));
    let kinds: Vec<&str> = read.lines().collect();
    assert_eq!(kinds.len(), 1 + 9 * 2, "{read}");
    assert_eq!(kinds[..3], ["warcinfo", "request GET", "response 200 8"], "{read}");
    assert_eq!(kinds[15..], ["request GET", "revisit 304 0", "request GET", "metadata"], "{read}");
}

const READ_WITH_WARCIO: &str = "
import sys
from warcio.archiveiterator import ArchiveIterator
for r in ArchiveIterator(open(sys.argv[1], 'rb')):
    line = r.rec_type
    if r.http_headers and line == 'request':
        line += ' ' + r.http_headers.protocol
    elif r.http_headers:
        line += ' %s %d' % (r.http_headers.get_statuscode(), len(r.content_stream().read()))
    print(line)
";

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The Python environment of `tests/venv.sh`.
fn venv() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv");
    let venv = std::env::var_os("PACED_VENV").map_or_else(beside, PathBuf::from);
    if venv.join("bin/warcio").exists() {
        return Some(venv);
    }
    let missing = format!("no warcio in {}; `sh tests/venv.sh` puts it there", venv.display());
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    eprintln!("SKIPPED: {missing}");
    None
}

/// Starts one test of this file as a process of its own.
fn child_of(test: &str, dir: &Path, before: &str) -> std::process::Child {
    Command::new("sh")
        .arg("-c")
        .arg(format!("{before}exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

fn open(dir: &Path) -> Archive {
    let clock = Clock::fake(Timestamp::from_millis(START));
    Archive::open(dir, &paced::internals::archive::writer_name(), clock).expect("a page store")
}

fn keep_spawned(archive: &Archive, n: usize) -> tokio::task::JoinHandle<Result<RecordPlace, ArchiveError>> {
    let (archive, visit) = (archive.clone(), visit(page("http://shop.example/", body_of(n).as_bytes())));
    tokio::spawn(async move { archive.keep(visit).await })
}

fn body_of(n: usize) -> String {
    format!("the body of page {n}")
}

fn page(url: &str, body: &[u8]) -> Page {
    let remote = Some(SocketAddr::from(([192, 0, 2, 7], 443)));
    Page { remote, ..answer(url, Timestamp::from_millis(START), Bytes::copy_from_slice(body)) }
}

fn headers(fields: &[(&str, &[u8])]) -> Headers {
    Headers(fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect())
}

fn visit(page: Page) -> Visit {
    let visit = answered(page);
    let headers = vec![("user-agent".to_owned(), "paced".to_owned())];
    let request = SentRequest { headers, ..visit.request };
    let departure = Departure { at: START - 2, unit: 500, site: 1500 };
    Visit { unit: "shops".to_owned(), departure, fence: 42, request, ..visit }
}

/// The record of a request that `visit` makes, as yet unanswered.
fn asked(path: &str) -> Record {
    Record {
        site: "shop".to_owned(),
        unit: "shops".to_owned(),
        start_at: Some(Timestamp::from_millis(START - 2)),
        unit_wait: Some(Duration::from_millis(500)),
        site_wait: Duration::from_millis(1500),
        fence: 42,
        signed_by: None,
        url: format!("http://shop.example/{path}"),
        sent_at: Timestamp::from_millis(START),
        status: None,
        bytes: 0,
        error: None,
        place: None,
    }
}

fn all(dir: &Path) -> Vec<Record> {
    scan(dir, Filter::default()).expect("a walk").map(|record| record.expect("a record")).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn only_segment(dir: &Path) -> PathBuf {
    let mut segments = names(dir);
    segments.retain(|name| name.ends_with(".warc.gz"));
    assert_eq!(segments.len(), 1, "{segments:?}");
    dir.join(&segments[0])
}

fn plain(segment: &Path) -> String {
    let mut bytes = Vec::new();
    let file = File::open(segment).expect("the segment");
    std::io::copy(&mut flate2::read::MultiGzDecoder::new(file), &mut bytes).expect("whole members");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn field<'a>(record: &'a str, name: &str) -> &'a str {
    let start = format!("{name}: ");
    record
        .lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap_or_else(|| panic!("no {name} in {record}"))
}

/// How many records begin in the inflated segment.
fn plain_length(segment: &Path) -> usize {
    plain(segment).matches("WARC/1.1\r\nWARC-Type:").count()
}

/// How many records a foreign eye sees: the warcinfo, and each request with its answer where it has one.
fn records_in(segment: &Path) -> usize {
    let dir = segment.parent().expect("a folder");
    1 + all(dir).iter().map(|r| 1 + usize::from(r.place.is_some())).sum::<usize>()
}
