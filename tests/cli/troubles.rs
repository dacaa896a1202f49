//! Files that are not what they should be, and sites that give nothing: what is said, and how it ends.

use std::fmt::Write;
use std::path::Path;

use rusqlite::Connection;

use crate::expected::*;
use crate::support::*;

/// What a verb said of trouble, without what differs from run to run.
fn told(run: &Run, data: &TempData, site: &TestSite) -> String {
    let words = run.stderr.lines().filter_map(|line| {
        let logged = line.split_once(" WARN ").or_else(|| line.split_once("ERROR "));
        line.strip_prefix("paced: ").or(logged.map(|(_, words)| words.trim_start()))
    });
    let words = words.fold(String::new(), |text, line| text + "    " + line + "\n");
    words.replace(&data.path().display().to_string(), "DATA").replace(&site.addr().to_string(), "SHOP")
}

/// A crawl and a look on a data folder that was spoiled after a whole crawl.
fn after(name: &str, spoil: impl Fn(&TempData)) -> String {
    let (data, site, file) = crawled();
    spoil(&data);
    let crawl = Paced::new(["crawl"]).arg(&file).data(&data).run();
    let status = Paced::new(["status"]).data(&data).run();
    let [crawled, looked] = [&crawl, &status].map(|run| told(run, &data, &site));
    assert!(!crawl.stderr.contains("panicked") && !status.stderr.contains("panicked"), "{name}: {crawl:?}");
    let [crawl, status] = [crawl, status].map(|run| run.code.expect("it ends by itself"));
    format!("{name}\n  crawl: exit code {crawl}\n{crawled}  status: exit code {status}\n{looked}")
}

fn frontier(data: &TempData) -> Connection {
    Connection::open(data.file("frontier.db")).expect("the frontier")
}

fn cut(file: &Path, to: usize) {
    let bytes = std::fs::read(file).expect("a file");
    std::fs::write(file, &bytes[..bytes.len().min(to)]).expect("a shorter file");
}

fn replaced_by_a_file(data: &TempData, name: &str) {
    std::fs::remove_dir_all(data.file(name)).expect("a folder");
    data.write(name, "not a folder");
}

#[test]
fn a_frontier_that_others_keep_locked_is_told_with_what_to_do() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let others = frontier(&data);
    others.execute_batch("BEGIN EXCLUSIVE").expect("nobody else is there");
    let run = Paced::new(["seed"]).arg(&file).data(&data).run().expect_code(1);
    assert!(run.stderr.contains("other processes keep it locked; try again once they are done"), "{run:?}");
}

#[test]
fn who_only_looks_waits_for_nobody_who_writes() {
    let (data, ..) = crawled();
    let others = frontier(&data);
    others.execute_batch("BEGIN IMMEDIATE").expect("nobody else is there");
    for words in [&["status"][..], &["status", "shop", "--json"], &["explain", "shop"], &["dead", "list"]] {
        Paced::new(words).data(&data).run().expect_code(0);
    }
}

#[test]
fn what_is_wrong_with_a_data_folder_is_told_with_what_to_do() {
    let mut text = String::new();
    for (name, spoil) in [
        ("the frontier is cut in half", (|data| cut(&data.file("frontier.db"), 65_536)) as fn(&TempData)),
        ("the frontier has no bytes: nothing was ever in it", |data| cut(&data.file("frontier.db"), 0)),
        ("the frontier is a text", |data| drop(data.write("frontier.db", &"no database. ".repeat(999)))),
        ("the frontier is of an older version", |data| {
            frontier(data).pragma_update(None, "user_version", 1).expect("a version");
        }),
        ("the frontier is of a newer version", |data| {
            frontier(data).pragma_update(None, "user_version", 99).expect("a version");
        }),
        ("the frontier belongs to another program", |data| {
            frontier(data).pragma_update(None, "application_id", 1_234).expect("a mark");
        }),
        ("the frontier is a folder", |data| {
            std::fs::remove_file(data.file("frontier.db")).expect("the frontier");
            std::fs::create_dir(data.file("frontier.db")).expect("a folder");
        }),
        ("its log is another file's: what it holds is not read", |data| {
            drop(data.write("frontier.db-wal", &"not a log. ".repeat(999)));
        }),
        ("the pages' folder is a file", |data| replaced_by_a_file(data, "pages")),
        ("the items' folder is a file", |data| replaced_by_a_file(data, "items")),
    ] {
        text += &after(name, spoil);
    }
    assert_text("troubles_of_folders.txt", &text);
}

#[test]
fn a_data_folder_that_cannot_be_written_says_so_and_is_left_as_it_is() {
    with_mounts("troubles::a_data_folder_that_cannot_be_written_says_so_and_is_left_as_it_is", || {
        let (site, disk, files) = (small_site(), SmallDisk::new(8_192), TempData::new());
        let (data, file) = (disk.data(), site_file(&files, &site));
        let crawl = || Paced::new(["crawl"]).arg(&file).data(data).run();
        let say = |run: Run| format!("  exit code {}\n{}", run.code.unwrap_or(-1), told(&run, data, &site));
        disk.read_only(true);
        let without = say(crawl());
        disk.read_only(false);
        crawl().expect_code(0);
        disk.read_only(true);
        let (with, looked) = (say(crawl()), say(Paced::new(["status"]).data(data).run()));
        let text = format!(
            "a read-only disk without a crawl\n{without}a read-only disk with one\n{with}a look at it\n{looked}"
        );
        assert_text("troubles_of_a_read_only_disk.txt", &text);
        disk.read_only(false);
        assert_eq!(status(data)["state"], "finished");
    });
}

#[test]
fn sites_that_are_not_there_or_give_nothing_say_why() {
    let mut text = String::new();
    let mut say = |name: &str, run: Run, data: &TempData, site: &TestSite| {
        let (code, told) = (run.code.unwrap_or(-1), told(&run, data, site));
        writeln!(text, "{name}\n  exit code {code}\n{}", told.trim_end()).expect("a text");
    };
    let (data, site) = (TempData::new(), small_site());
    let rules = RULES.replace("match = \"/\"", "match = \"/list/*\"");
    let file = data.write("shop.toml", &(site.toml("shop", std::time::Duration::from_millis(10)) + &rules));
    for verb in ["crawl", "seed"] {
        let run = Paced::new([verb]).arg(&file).data(&data).run();
        say(&format!("{verb}: a seed that no rule takes"), run, &data, &site);
    }
    let crawl = |name: &str| Paced::new(["crawl", name]).dir(data.path()).data(&data).run();
    say("crawl: a site that isn't there, and no folder `sites`", crawl("books"), &data, &site);
    std::fs::create_dir(data.file("sites")).expect("a folder");
    say("crawl: a site that isn't there, in an empty folder", crawl("books"), &data, &site);
    say("crawl: a folder", crawl("sites"), &data, &site);
    say("crawl: a folder, with its slash", crawl("sites/"), &data, &site);
    let work = Paced::new(["work", "--until-empty", "--sites", "sites"]).dir(data.path()).data(&data).run();
    say("work: an empty folder of site files", work, &data, &site);
    assert_eq!(site.requests().len(), 0);

    let site = TestSite::builder().page("/", "").robots("User-agent: *\nDisallow: /\n").serve();
    let run = Paced::new(["crawl"]).arg(site_file(&data, &site)).data(&data).run();
    say("crawl: everything is forbidden by robots.txt", run, &data, &site);
    let data = TempData::new();
    let site = TestSite::builder().reply("/", Reply::text("plain".to_owned())).serve();
    let run = Paced::new(["crawl"]).arg(site_file(&data, &site)).data(&data).run();
    say("crawl: no answer is of an accepted type", run, &data, &site);
    let (data, site) = (TempData::new(), TestSite::builder().serve());
    let run = Paced::new(["crawl"]).arg(site_file(&data, &site)).data(&data).run();
    say("crawl: nothing is there", run, &data, &site);
    assert_text("troubles_of_sites.txt", &text);
}
