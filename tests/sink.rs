//! Items on a real disk: whole lines, whoever writes them and however they end.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use paced::internals::clock::Timestamp;
use paced::internals::item::Item;
use paced::internals::sink::{ItemSink, SinkError, key, latest, read};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tempfile::TempDir;

/// Tells a test that it runs as the child of another, and on which file.
const CHILD_FILE: &str = "PACED_TEST_ITEMS";

#[tokio::test]
async fn each_site_has_a_file_and_each_item_a_line() {
    let dir = TempDir::new().expect("a folder");
    let items = dir.path().join("items");
    let sink = ItemSink::folder(&items).expect("a sink");
    let (a1, b1, a2) = (item("a", "u1", 1), item("b", "u1", 2), item("a", "u2", 3));
    sink.write(&[a1.clone(), b1.clone()]).await.expect("taken");
    sink.write(std::slice::from_ref(&a2)).await.expect("taken");
    sink.write(&[]).await.expect("nothing to write");
    assert!(!items.join("a.jsonl").exists(), "nothing is written before a flush");
    sink.flush().await.expect("flushed");
    sink.flush().await.expect("nothing to flush");
    assert_eq!(lines(&items.join("a.jsonl")), [a1, a2]);
    assert_eq!(lines(&items.join("b.jsonl")), [b1]);
    let text = fs::read_to_string(items.join("b.jsonl")).expect("text");
    let line = "{\"site\":\"b\",\"page\":\"product\",\"url\":\"u1\",\"fetched_at\":\"2026-11-20T09:00:00.123Z\",\
                \"fields\":{\"n\":2},\"from\":{\"n\":\"css\"}}\n";
    assert_eq!(text, line);
}

#[tokio::test]
async fn writers_of_one_folder_have_files_of_their_own_and_names_that_are_theirs_while_they_run() {
    let dir = TempDir::new().expect("a folder");
    let [torn, others, gone] =
        ["a-w1", "a-w2", "a-gone"].map(|name| dir.path().join(format!("{name}.jsonl")));
    for file in [&torn, &others] {
        fs::write(file, "{\"torn").expect("written");
    }
    // Of one that was killed and has another name by now.
    fs::write(&gone, "{\"whole\": 1}\n{\"torn").expect("written");
    let (first, second) = (item("a", "u1", 1), item("a", "u2", 2));
    let one = ItemSink::folder_of(dir.path(), "w1").expect("a sink");
    let taken = ItemSink::folder_of(dir.path(), "w1").expect_err("the name is taken");
    assert!(matches!(&taken, SinkError::Taken { writer, .. } if writer == "w1"), "{taken}");
    keep(&one, std::slice::from_ref(&first)).await.expect("written");
    assert_eq!(fs::read_to_string(&gone).expect("text"), "{\"whole\": 1}\n");
    let two = ItemSink::folder_of(dir.path(), "w2").expect("another name");
    keep(&two, std::slice::from_ref(&second)).await.expect("written");
    drop(one);
    let again = ItemSink::folder_of(dir.path(), "w1").expect("free again");
    keep(&again, std::slice::from_ref(&first)).await.expect("written");
    assert_eq!(lines(&torn), [first.clone(), first]);
    assert_eq!(lines(&others), [second]);
    for name in ["", "../w", "a/b"] {
        assert!(matches!(ItemSink::folder_of(dir.path(), name), Err(SinkError::Name(_))), "{name}");
    }
}

#[tokio::test]
async fn one_file_takes_all_sites_in_their_order() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("all.jsonl");
    let items = [item("b", "u1", 1), item("a", "u2", 2), item("b", "u3", 3)];
    keep(&ItemSink::file(&path).expect("a sink"), &items).await.expect("written");
    assert_eq!(lines(&path), items);
    keep(&ItemSink::file(&path).expect("opened again"), &items[..1]).await.expect("written");
    assert_eq!(lines(&path).len(), 4, "a file is appended to");
}

#[tokio::test]
async fn the_last_line_of_a_key_wins() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("all.jsonl");
    let keyed = |url, n| Item { key: Some("sku-1".to_owned()), ..item("a", url, n) };
    let items = [item("a", "u1", 1), keyed("u2", 2), item("a", "u1", 3), keyed("u3", 4)];
    keep(&ItemSink::file(&path).expect("a sink"), &items).await.expect("written");
    let newest = latest(&path).expect("read");
    assert_eq!(newest.keys().collect::<Vec<_>>(), ["sku-1", "u1"]);
    assert_eq!((&newest["u1"], &newest["sku-1"]), (&items[2], &items[3]));
    assert_eq!((key(&items[0]), key(&items[1])), ("u1", "sku-1"));
}

#[tokio::test]
async fn a_torn_last_line_is_cut_at_the_next_start_wherever_it_was_torn() {
    let whole = {
        let dir = TempDir::new().expect("a folder");
        let sink = ItemSink::folder(dir.path()).expect("a sink");
        keep(&sink, &[item("a", "u1", 1), item("a", "u2", 2)]).await.expect("written");
        fs::read(dir.path().join("a.jsonl")).expect("text")
    };
    let first = whole.iter().position(|b| *b == b'\n').expect("a line") + 1;
    for cut in 0..=whole.len() {
        let dir = TempDir::new().expect("a folder");
        let path = dir.path().join("a.jsonl");
        fs::write(&path, &whole[..cut]).expect("written");
        ItemSink::folder(dir.path()).expect("a sink");
        let kept = if cut == whole.len() {
            cut
        } else if cut >= first {
            first
        } else {
            0
        };
        assert_eq!(fs::read(&path).expect("text"), &whole[..kept], "cut at {cut}");
    }
}

#[test]
fn a_line_longer_than_a_block_is_cut_back_to_its_beginning() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("a.jsonl");
    for (whole, torn) in [(0, 9000), (1, 4096), (5000, 4095), (5000, 20_000), (4095, 1)] {
        let mut text = vec![b'x'; whole];
        text.extend((whole > 0).then_some(b'\n'));
        let kept = text.len();
        text.extend(vec![b'y'; torn]);
        fs::write(&path, text).expect("written");
        ItemSink::folder(dir.path()).expect("a sink");
        assert_eq!(fs::metadata(&path).expect("there").len(), kept as u64, "{whole} and {torn}");
    }
}

#[tokio::test]
async fn a_line_torn_by_another_process_never_spoils_the_next_one() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("a.jsonl");
    let sink = ItemSink::folder(dir.path()).expect("a sink");
    keep(&sink, &[item("a", "u1", 1)]).await.expect("written");
    OpenOptions::new().append(true).open(&path).expect("there").write_all(b"{\"site\":\"a").expect("written");
    assert_eq!(lines(&path), [item("a", "u1", 1)], "a reader leaves out what isn't whole");
    keep(&sink, &[item("a", "u2", 2)]).await.expect("written");
    assert_eq!(lines(&path), [item("a", "u1", 1), item("a", "u2", 2)]);
}

#[test]
fn several_processes_append_without_mixing_lines() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("all.jsonl");
    let children: Vec<_> = (0..3).map(|_| child_of("child_writes_items", &path, "")).collect();
    for child in children {
        let output = child.wait_with_output().expect("its output");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(lines(&path).len(), 3 * 200);
    assert_eq!(latest(&path).expect("read").len(), 3 * 200);
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_writes_items() {
    let Some(path) = std::env::var_os(CHILD_FILE) else { return };
    let sink = ItemSink::file(Path::new(&path)).expect("a sink");
    for n in 0..100 {
        // Longer than a pipe's or a page's unit, so that a torn write would show.
        let url = |half| format!("{}-{n}-{half}-{}", std::process::id(), "x".repeat(10_000));
        keep(&sink, &[item("a", &url(1), n), item("a", &url(2), n)]).await.expect("written");
    }
}

#[tokio::test]
async fn more_sites_than_files_may_be_open_are_all_written() {
    let dir = TempDir::new().expect("a folder");
    let sink = ItemSink::folder(dir.path()).expect("a sink");
    for round in 0..2 {
        let items: Vec<[Item; 1]> =
            (0..900).map(|site| [item(&format!("site-{site}"), "u1", round)]).collect();
        let writes = items.iter().map(|items| sink.write(items));
        join_all(writes).await.into_iter().for_each(|taken| taken.expect("taken"));
    }
    sink.flush().await.expect("flushed");
    let open = fs::read_dir("/proc/self/fd").expect("open files").count();
    assert!(open < 400, "{open} files are open");
    for site in 0..900 {
        assert_eq!(lines(&dir.path().join(format!("site-{site}.jsonl"))).len(), 2, "site {site}");
    }
}

#[test]
fn a_full_disk_leaves_whole_lines_and_the_next_flush_writes_what_waits() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("all.jsonl");
    // Over its limit of file size a process is killed unless it ignores that signal; then writing fails, in part too.
    let output =
        child_of("child_fills_the_disk", &path, "trap '' XFSZ; ").wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("went on after the full disk"), "{text}");
    assert_eq!(lines(&path), [item("a", "u1", 1), item("a", "u2", 2)]);
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_fills_the_disk() {
    let Some(path) = std::env::var_os(CHILD_FILE) else { return };
    let path = Path::new(&path);
    let sink = ItemSink::file(path).expect("a sink");
    keep(&sink, &[item("a", "u1", 1)]).await.expect("written");
    let length = fs::metadata(path).expect("there").len();
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(length + 50), ..limit }).expect("a limit");
    let refused = keep(&sink, &[item("a", "u2", 2)]).await.expect_err("it doesn't fit");
    assert!(matches!(refused, SinkError::Full { .. }) && refused.is_transient(), "{refused}");
    assert!(refused.to_string().contains("free some space"), "{refused}");
    assert_eq!(fs::metadata(path).expect("there").len(), length, "a part of a line was left");
    setrlimit(Resource::Fsize, limit).expect("no limit");
    sink.flush().await.expect("written");
    println!("went on after the full disk");
}

#[tokio::test]
async fn a_device_that_is_full_says_so() {
    let sink = ItemSink::file(Path::new("/dev/full")).expect("a sink");
    let refused = keep(&sink, &[item("a", "u1", 1)]).await.expect_err("it is full");
    assert!(matches!(refused, SinkError::Full { .. }), "{refused}");
}

#[tokio::test]
async fn items_may_go_into_a_pipe_until_its_reader_hangs_up() {
    let dir = TempDir::new().expect("a folder");
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader =
        Command::new("head").args(["-n", "1"]).arg(&pipe).stdout(Stdio::piped()).spawn().expect("head");
    let sink = ItemSink::file(&pipe).expect("a sink");
    keep(&sink, &[item("a", "u1", 1)]).await.expect("written");
    let output = reader.wait_with_output().expect("its output");
    assert_eq!(serde_json::from_slice::<Item>(&output.stdout).expect("an item"), item("a", "u1", 1));
    let refused = keep(&sink, &[item("a", "u2", 2)]).await.expect_err("nobody reads");
    assert!(matches!(refused, SinkError::Hung { .. }) && !refused.is_transient(), "{refused}");
}

#[tokio::test]
async fn lines_of_two_writers_do_not_mix_in_a_pipe() {
    let dir = TempDir::new().expect("a folder");
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // Slower than the writers, so that the pipe is full most of the time.
    let reading = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let (mut file, mut text, mut piece) =
                (fs::File::open(pipe).expect("a pipe"), Vec::new(), [0; 3_000]);
            while let Ok(read @ 1..) = file.read(&mut piece) {
                text.extend_from_slice(&piece[..read]);
                std::thread::sleep(Duration::from_micros(200));
            }
            text
        }
    });
    let sinks = [(); 2].map(|()| ItemSink::file(&pipe).expect("a sink"));
    let many: Vec<Item> = (0..40).map(|n| item("a", &format!("{n}-{}", "x".repeat(800)), n)).collect();
    for _ in 0..20 {
        join_all(sinks.iter().map(|sink| keep(sink, &many)))
            .await
            .into_iter()
            .for_each(|kept| kept.expect("written"));
    }
    drop(sinks);
    let text = String::from_utf8(reading.join().expect("read")).expect("text");
    let whole = text.lines().filter(|line| serde_json::from_str::<Item>(line).is_ok()).count();
    assert_eq!((whole, text.lines().count()), (2 * 20 * 40, 2 * 20 * 40));
}

#[test]
fn stdout_takes_items_of_all_sites() {
    let output = child_of("child_prints_items", Path::new("-"), "").wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    let items: Vec<Item> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(items, [item("b", "u1", 1), item("a", "u2", 2)], "{text}");
}

#[tokio::test]
#[ignore = "the child of another test"]
async fn child_prints_items() {
    if std::env::var_os(CHILD_FILE).is_none() {
        return;
    }
    // The test's own name stands on a line that isn't ended yet.
    println!();
    let sink = ItemSink::stdout();
    keep(&sink, &[item("b", "u1", 1), item("a", "u2", 2)]).await.expect("written");
    sink.flush().await.expect("flushed");
}

#[tokio::test]
async fn a_line_that_is_no_item_is_named_with_its_number() {
    let dir = TempDir::new().expect("a folder");
    let path = dir.path().join("a.jsonl");
    keep(&ItemSink::file(&path).expect("a sink"), &[item("a", "u1", 1)]).await.expect("written");
    OpenOptions::new().append(true).open(&path).expect("there").write_all(b"{}\n").expect("written");
    let error = latest(&path).expect_err("line 2 is no item").to_string();
    assert!(error.contains("a.jsonl:2: not an item"), "{error}");
}

#[tokio::test]
async fn a_site_whose_name_leads_out_of_the_folder_is_refused() {
    let dir = TempDir::new().expect("a folder");
    let sink = ItemSink::folder(&dir.path().join("items")).expect("a sink");
    for name in ["../out", "a/b", "", ".hidden"] {
        let refused = keep(&sink, &[item(name, "u1", 1)]).await.expect_err("refused");
        assert!(matches!(&refused, SinkError::Name(given) if given == name), "{refused}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 1);
}

/// Starts one test of this file as a process of its own.
fn child_of(test: &str, path: &Path, before: &str) -> std::process::Child {
    Command::new("sh")
        .arg("-c")
        .arg(format!("{before}exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

/// Writes items and waits until the disk has them.
async fn keep(sink: &ItemSink, items: &[Item]) -> Result<(), SinkError> {
    sink.write(items).await?;
    sink.flush().await
}

fn item(site: &str, url: &str, n: u32) -> Item {
    Item {
        site: site.to_owned(),
        page: "product".to_owned(),
        url: url.to_owned(),
        key: None,
        fetched_at: Timestamp::from_millis(1_795_165_200_123),
        noindex: false,
        noarchive: false,
        fields: json!({ "n": n }).as_object().expect("an object").clone(),
        from: [("n".to_owned(), "css".to_owned())].into(),
    }
}

fn lines(path: &Path) -> Vec<Item> {
    read(path).expect("the file").map(|item| item.expect("an item")).collect()
}
