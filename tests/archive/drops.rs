//! Pages that ask not to be archived: their answers go, now or when their segment is finished; all else stays.

use std::fs;

use super::*;

async fn kept(archive: &Archive, path: &str, body: &str) -> Place {
    archive.keep(visit(page(&format!("http://shop.example/{path}"), body.as_bytes()))).await.expect("kept")
}

async fn drop_answer(archive: &Archive, place: &Place) {
    archive.drop_answer(place, Timestamp::from_millis(START)).await.expect("noted");
}

fn is_dropped(archive: &Archive, place: &Place) -> bool {
    matches!(archive.read(place), Err(ArchiveError::Dropped { .. }))
}

fn leftovers(dir: &Path) -> Vec<String> {
    names(dir).into_iter().filter(|name| !name.ends_with(".warc.gz")).collect()
}

#[tokio::test]
async fn an_answer_goes_when_its_segment_is_finished_and_its_request_stays() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let first = kept(&archive, "first", "a body that stays").await;
    let going = kept(&archive, "going", &"a body that nobody may keep ".repeat(4_000)).await;
    let last = kept(&archive, "last", "another that stays").await;
    for _ in 0..2 {
        drop_answer(&archive, &going).await;
    }
    assert!(archive.read(&going).is_ok(), "its segment is still written to");
    archive.close().await.expect("closed");
    assert!(is_dropped(&archive, &going));
    assert_eq!(archive.read(&first).expect("read").body, "a body that stays");
    assert_eq!(archive.read(&last).expect("read").body, "another that stays");
    let text = plain(&only_segment(dir.path()));
    assert!(!text.contains("nobody may keep") && text.contains("GET /going "), "{text}");
    let told: Vec<_> = all(dir.path()).into_iter().map(|record| (record.url, record.status)).collect();
    let url = |path: &str| format!("http://shop.example/{path}");
    assert_eq!(told, [(url("first"), Some(200)), (url("going"), Some(200)), (url("last"), Some(200))]);
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

#[tokio::test]
async fn what_a_killed_process_was_to_drop_goes_at_the_next_start() {
    let dir = TempDir::new().expect("a folder");
    let writer = open(dir.path());
    let going = kept(&writer, "going", "a body that nobody may keep").await;
    drop_answer(&writer, &going).await;
    let another = open(dir.path());
    drop_answer(&another, &going).await;
    // One that is only let go of works lists off by its own thread, at some time.
    another.close().await.expect("closed");
    assert!(writer.read(&going).is_ok(), "another process's start leaves it alone");
    let segment = only_segment(dir.path());
    let (open_segment, list) = (fs::read(&segment).expect("read"), format!("{}.drop", segment.display()));
    let listed = fs::read(&list).expect("a list");
    writer.close().await.expect("closed");
    // As a kill would have left it.
    fs::write(&segment, open_segment).expect("written");
    fs::write(&list, listed).expect("written");
    let archive = open(dir.path());
    assert!(is_dropped(&archive, &going));
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

#[tokio::test]
async fn another_process_may_drop_what_this_one_keeps_and_what_is_finished_long_since() {
    let dir = TempDir::new().expect("a folder");
    let (writer, parser) = (open(dir.path()), open(dir.path()));
    let one = kept(&writer, "one", "the first that nobody may keep").await;
    let two = kept(&writer, "two", "the second that nobody may keep").await;
    drop_answer(&parser, &one).await;
    parser.close().await.expect("closed");
    assert!(writer.read(&one).is_ok(), "its segment is still written to");
    writer.close().await.expect("closed");
    assert!(is_dropped(&writer, &one) && writer.read(&two).is_ok());
    let parser = open(dir.path());
    drop_answer(&parser, &two).await;
    parser.close().await.expect("closed");
    assert!(is_dropped(&writer, &one) && is_dropped(&writer, &two));
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

#[tokio::test]
async fn a_list_that_is_torn_or_wrong_harms_nothing() {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let place = kept(&archive, "stays", "a body that stays").await;
    kept(&archive, "next", "another that stays").await;
    archive.close().await.expect("closed");
    let segment = only_segment(dir.path());
    let before = fs::read(&segment).expect("read");
    let (offset, length) = (place.offset(), place.length());
    let wrong = [
        format!("{offset}:{}", length - 1),
        format!("{offset}:{}", length + 100),
        format!("{}:{length}", offset + 1),
        format!("0:{length}"),
        format!("{offset}:{length}:{length}"),
        format!("{offset}:9999999999999999999"),
        "x".to_owned(),
        String::new(),
    ];
    fs::write(format!("{}.drop", segment.display()), wrong.join("\n")).expect("written");
    fs::write(dir.path().join("gone.warc.gz.drop"), format!("{offset}:{length}\n")).expect("written");
    let archive = open(dir.path());
    assert_eq!(archive.read(&place).expect("read").body, "a body that stays");
    assert_eq!(fs::read(&segment).expect("read"), before);
    assert_eq!(leftovers(dir.path()), [""; 0]);
}

#[tokio::test]
async fn a_segment_that_grows_full_loses_what_is_to_go_while_the_next_one_is_written() {
    let dir = TempDir::new().expect("a folder");
    let clock = Clock::fake(Timestamp::from_millis(START));
    let archive = Archive::open_sized(dir.path(), "w", clock, 2_000).expect("a folder");
    let going = kept(&archive, "going", "a body that nobody may keep").await;
    drop_answer(&archive, &going).await;
    let mut next = kept(&archive, "next", "a body that stays").await;
    while next.segment() == going.segment() {
        next = kept(&archive, "next", "a body that stays").await;
    }
    let began = Instant::now();
    while !is_dropped(&archive, &going) {
        assert!(began.elapsed() < Duration::from_secs(30), "it never went");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(archive.read(&next).expect("read").body, "a body that stays");
    archive.close().await.expect("closed");
}
