//! What a crash or an older build left beside the segments is gone after the next start.

use std::fs;

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
