//! A site's records go; what others stored stays where it is, and is read as before by anyone.

use std::fs;

use paced::internals::archive::Erased;

use super::*;

/// A page of so many bytes that don't pack.
fn noise(bytes: usize) -> Vec<u8> {
    let mut chance = fastrand::Rng::with_seed(7);
    (0..bytes).map(|_| chance.u8(..)).collect()
}

fn of(site: &str, path: &str, body: &[u8]) -> Visit {
    Visit { site: site.to_owned(), ..visit(page(&format!("http://{site}.example/{path}"), body)) }
}

async fn erase(archive: &Archive, site: &'static str) -> Erased {
    archive.erase(move |record| record.site == site, Timestamp::from_millis(START)).await.expect("erased")
}

fn sites(dir: &Path) -> Vec<String> {
    all(dir).into_iter().map(|record| record.site).collect()
}

#[tokio::test]
async fn a_sites_records_go_and_those_of_others_stay_where_they_are() {
    let dir = TempDir::new().expect("a folder");
    let writer = open(dir.path());
    // One that is longer than a header's comment may be, and several in a row.
    let long = noise(200_000);
    let mut places = Vec::new();
    for (site, path, body) in [
        ("gone", "first", &b"the secret of the first"[..]),
        ("stays", "a", b"the body of a"),
        ("gone", "long", &long),
        ("gone", "next", b"next"),
        ("stays", "b", &long),
        ("gone", "last", b"last"),
    ] {
        places.push((site, writer.keep(of(site, path, body)).await.expect("kept"), body));
    }
    let outcome = VisitOutcome::Failed { error: "timed out".to_owned() };
    writer.keep(Visit { outcome, ..of("gone", "failed", b"") }).await.expect("kept");
    let still = erase(&writer, "gone").await;
    assert_eq!(still, Erased { left: 5, ..Erased::default() }, "it is still written to");
    writer.close().await.expect("closed");

    let segment = only_segment(dir.path());
    let before = fs::metadata(&segment).expect("the segment").len();
    assert!(plain(&segment).contains("the secret"));
    let archive = open(dir.path());
    assert_eq!(erase(&archive, "gone").await, Erased { requests: 5, ..Erased::default() });
    assert_eq!(erase(&archive, "gone").await, Erased::default(), "there is nothing left");
    assert_eq!(fs::metadata(&segment).expect("the segment").len(), before);
    let left = plain(&segment);
    assert!(!left.contains("gone") && !left.contains("secret") && left.contains("the body of a"));
    assert_eq!(names(dir.path()).len(), 1, "no copy is left over: {:?}", names(dir.path()));
    assert_eq!(sites(dir.path()), ["stays", "stays"]);
    for (site, place, body) in places {
        match archive.read(&place) {
            Ok(stored) => assert_eq!((site, &stored.body[..]), ("stays", body)),
            Err(error) => assert_eq!(site, "gone", "{error}"),
        }
    }
    read_by_warcio(&segment);

    assert_eq!(erase(&archive, "stays").await, Erased { requests: 2, segments: 1, left: 0 });
    assert!(names(dir.path()).is_empty(), "nothing but blanks was left of it");
}

/// Another program reads what is left, from the first record to the last.
fn read_by_warcio(segment: &Path) {
    let Some(venv) = venv() else { return };
    let checked = run(Command::new(venv.join("bin/warcio")).arg("check").arg("-v").arg(segment));
    assert!(!checked.contains("digest failed") && checked.contains("digest pass"), "{checked}");
    let read = run(Command::new(venv.join("bin/python")).arg("-c").arg(READ_WITH_WARCIO).arg(segment));
    let count = |kind: &str| read.lines().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("warcinfo"), count("request"), count("response 200")), (1, 2, 2), "{read}");
    assert!(count("metadata") >= 5, "{read}");
}

#[tokio::test]
async fn a_segment_of_one_site_goes_as_a_whole_and_others_are_not_touched() {
    let dir = TempDir::new().expect("a folder");
    let keep = async |site| {
        let archive = open(dir.path());
        archive.keep(of(site, "p", b"body")).await.expect("kept");
        archive.close().await.expect("closed");
    };
    keep("b").await;
    let others = only_segment(dir.path());
    let kept = fs::read(&others).expect("a segment");
    keep("a").await;
    assert_eq!(erase(&open(dir.path()), "a").await, Erased { requests: 1, segments: 1, left: 0 });
    assert_eq!(only_segment(dir.path()), others);
    assert_eq!(fs::read(&others).expect("a segment"), kept);
}

#[tokio::test]
async fn while_some_of_it_is_still_written_to_nothing_is_erased() {
    let dir = TempDir::new().expect("a folder");
    let earlier = open(dir.path());
    let kept = earlier.keep(of("gone", "earlier", b"body")).await.expect("kept");
    earlier.close().await.expect("closed");
    let writer = open(dir.path());
    writer.keep(of("gone", "now", b"body")).await.expect("kept");
    assert_eq!(erase(&open(dir.path()), "gone").await, Erased { left: 1, ..Erased::default() });
    assert_eq!(writer.read(&kept).expect("read").body, "body");
    writer.close().await.expect("closed");
    assert_eq!(erase(&open(dir.path()), "gone").await, Erased { requests: 2, segments: 2, left: 0 });
}

#[tokio::test]
async fn a_damaged_segment_is_told_and_the_others_are_erased() {
    let dir = TempDir::new().expect("a folder");
    for _ in 0..2 {
        let archive = open(dir.path());
        for n in 0..3 {
            archive.keep(of("gone", &n.to_string(), b"body")).await.expect("kept");
        }
        archive.close().await.expect("closed");
    }
    let damaged = dir.path().join(&names(dir.path())[0]);
    let mut bytes = fs::read(&damaged).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 200].fill(0xff);
    fs::write(&damaged, bytes).expect("a segment");
    let error = open(dir.path()).erase(|record| record.site == "gone", Timestamp::from_millis(START)).await;
    assert!(matches!(error, Err(ArchiveError::Damaged { .. })), "{error:?}");
    assert_eq!(names(dir.path()).len(), 1, "the whole one went");
}
