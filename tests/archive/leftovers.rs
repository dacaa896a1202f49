//! What a crash or an older build left beside the segments is gone after the next start.

use std::fs;
use std::io::Read as _;

use super::*;

#[tokio::test]
async fn unfinished_copies_and_lists_of_drops_are_removed_at_the_next_start_and_pages_stay() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let place = archive.keep(visit(page("http://shop.example/", b"the body"))).await.expect("kept");
    archive.close().await.expect("closed");
    let segment = only_segment(dir.path());
    let before = fs::read(&segment).expect("a segment");
    let beside = |ending: &str| format!("{}{ending}", segment.display());
    fs::write(beside(".erasing"), &before[..before.len() / 2]).expect("written");
    fs::write(beside(".drop"), format!("{}:{}\n", place.offset(), place.length())).expect("written");
    fs::write(dir.path().join("gone.warc.gz.drop"), "0:100\n").expect("written");
    fs::write(dir.path().join("notes.drop"), "somebody else's").expect("written");

    let archive = open(dir.path());
    assert_eq!(archive.read(&place).expect("read").body, "the body");
    assert_eq!(fs::read(&segment).expect("a segment"), before);
    let name = segment.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(names(dir.path()), [name, "notes.drop".to_owned()]);
}

#[tokio::test]
async fn the_copy_of_a_segment_that_is_being_erased_from_stays() {
    let dir = TempDir::new().expect("a folder");
    let copy = dir.path().join("a.warc.gz.erasing");
    fs::write(&copy, "half").expect("written");
    let erasing = File::open(dir.path()).expect("a folder");
    rustix::fs::flock(&erasing, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    open(dir.path());
    assert!(copy.exists());
    drop(erasing);
    open(dir.path());
    assert!(!copy.exists());
}

#[test]
fn what_cannot_be_removed_or_mended_is_named_and_holds_up_no_start() {
    let dir = TempDir::new().expect("a folder");
    let stuck = ["a.warc.gz.erasing", "a.warc.gz.drop", "c.warc.gz"].map(|name| dir.path().join(name));
    fs::write(dir.path().join("c.warc.gz.open"), "").expect("written");
    let goes = dir.path().join("b.warc.gz.erasing");
    // A folder is no file to be removed or cut, whoever asks for it.
    for path in &stuck {
        fs::create_dir(path).expect("made");
    }
    fs::write(&goes, "half").expect("written");
    let log = logged(|| drop(open(dir.path())));
    for path in &stuck {
        assert!(log.contains("WARN") && log.contains(&path.display().to_string()), "{log}");
    }
    assert!(!goes.exists(), "{log}");
}

/// What is logged by this thread meanwhile.
fn logged(work: impl FnOnce()) -> String {
    let (mut log, written) = std::io::pipe().expect("a pipe");
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(std::sync::Mutex::new(written));
    tracing::subscriber::with_default(subscriber.finish(), work);
    let mut text = String::new();
    log.read_to_string(&mut text).expect("read");
    text
}
