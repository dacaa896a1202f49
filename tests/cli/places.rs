//! Where the data is: folders, URLs, variables, and files that are not what they should be.

use rusqlite::Connection;

use crate::expected::*;
use crate::support::*;

#[test]
fn without_a_frontier_verbs_say_how_to_begin() {
    let data = TempData::new();
    for words in [&["status"][..], &["put", "shop", "http://a.example/"]] {
        let run = Paced::new(words).data(&data).run().expect_code(1);
        let told = "there is no frontier yet; start with `paced crawl SITE.toml`, or name the data folder with --data";
        assert!(run.stderr.contains(told), "{words:?}: {}", run.stderr);
        assert!(!data.file("frontier.db").exists(), "a look makes no frontier");
    }
    let run = Paced::new(["audit"]).data(&data).run().expect_code(1);
    assert!(run.stderr.contains("no pages are kept there; name the data folder with --data"), "{run:?}");
}

#[test]
fn a_frontier_that_is_not_supported_is_wrong_usage() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    for (url, told) in [
        ("redis://me:secret@127.0.0.1:port/0", "redis://…@127.0.0.1:…/0: "),
        ("redis+cluster://:secret@", "redis+cluster://…@: no node is named; write redis://host:port/db"),
        ("postgres://me:secret@db.example/0", "postgres://…@db.example/0: name a frontier as sqlite:PATH"),
        ("sqlite:", "no path after `sqlite:`"),
        ("mysql://x", "mysql://x: name a frontier as sqlite:PATH"),
        ("frontier.db", "…: name a frontier as sqlite:PATH"),
        ("me:secret@redis.internal:6379", "…@redis.internal:6379: name a frontier as sqlite:PATH"),
        ("redis:/me:secret%40redis.internal", "redis:/me:…: "),
        ("redis://me:secret/0", "redis://me:…/0: "),
        ("redis://127.0.0.1:1?db=3", "redis://127.0.0.1:1?db=3: "),
        ("redis://127.0.0.1:1?db=3", "; write the database as /3, in redis://host:port/3"),
    ] {
        let crawl = Paced::new(["crawl", "--frontier", url]).arg(&file).data(&data).run().expect_code(2);
        let status = Paced::new(["status", "--frontier", url]).data(&data).run().expect_code(2);
        for run in [crawl, status] {
            assert!(run.stderr.contains(told), "{url}: no `{told}` in\n{}", run.stderr);
            assert!(!run.stderr.contains("secret"), "{}", run.stderr);
        }
    }
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn pages_elsewhere_than_in_a_folder_or_a_bucket_are_wrong_usage() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    for (url, told) in [
        (
            "gs://bucket/prefix",
            "--pages gs://…: pages are kept in a folder, or in a bucket named as s3://BUCKET/PREFIX",
        ),
        ("s3://me:secret@bucket/prefix", "--pages s3://…: a bucket's name has 3 to 63 small letters"),
        #[cfg(not(feature = "s3"))]
        (
            "s3://bucket/prefix",
            "--pages s3://bucket/prefix: this paced was built without object storage; build one with it: cargo \
             install --path . --features s3",
        ),
    ] {
        let crawl = Paced::new(["crawl", "--pages", url]).arg(&file).data(&data).run();
        let audit = Paced::new(["audit", "--pages", url]).data(&data).run();
        for run in [crawl.expect_code(2), audit.expect_code(2)] {
            assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
            assert!(!run.stderr.contains("secret"), "{}", run.stderr);
        }
    }
    assert_eq!(site.requests().len(), 0);
}

#[test]
fn a_file_that_is_no_frontier_of_this_version_is_left_as_it_is() {
    let site = small_site();
    let newer: fn(&TempData) = |data| {
        let frontier = Connection::open(data.file("frontier.db")).expect("a frontier");
        frontier.pragma_update(None, "user_version", 99).expect("a version");
    };
    let foreign: fn(&TempData) = |data| {
        std::fs::remove_file(data.file("frontier.db")).expect("the frontier goes");
        let other = Connection::open(data.file("frontier.db")).expect("a database");
        other.execute_batch("CREATE TABLE songs (title TEXT)").expect("a table");
    };
    let garbage: fn(&TempData) = |data| {
        data.write("frontier.db", &"no database at all. ".repeat(500));
    };
    for (spoil, told) in [
        (newer, "written by a newer paced (schema 99); use that version, or another data folder"),
        (foreign, "this is not a frontier of paced; name another with --frontier or --data"),
        (garbage, "this is not a frontier of paced; name another with --frontier or --data"),
    ] {
        let data = TempData::new();
        let file = site_file(&data, &site);
        Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
        assert!(!data.file("frontier.db-wal").exists(), "all of it is in the one file");
        spoil(&data);
        let before = std::fs::read(data.file("frontier.db")).expect("the file");
        let status = Paced::new(["status"]).data(&data).run().expect_code(1);
        let crawl = Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(1);
        for run in [status, crawl] {
            assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
        }
        assert!(before == std::fs::read(data.file("frontier.db")).expect("the file"), "{told}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_one_says_so() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let run = Paced::new(["crawl", "--data"]).arg(&file).arg(&file).run().expect_code(1);
    let told =
        "shop.toml: the data folder can't be used; choose another with --data, or mend its permissions";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    let items = file.join("items.jsonl");
    let run = Paced::new(["crawl", "--items"]).arg(&items).arg(&file).data(&data).run().expect_code(1);
    assert!(run.stderr.contains("could not open"), "{}", run.stderr);
}

#[test]
fn folder_and_frontier_can_be_named_by_variables_and_options_win() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let by_variable = data.file("by-variable");
    Paced::new(["crawl"]).arg(&file).env("PACED_DATA", &by_variable).run().expect_code(0);
    assert!(by_variable.join("frontier.db").exists() && by_variable.join("items/shop.jsonl").exists());
    let frontier = format!("sqlite:{}", data.file("elsewhere/f.db").display());
    let run = Paced::new(["crawl"])
        .arg(&file)
        .env("PACED_FRONTIER", &frontier)
        .arg("--data")
        .arg(data.file("by-option"));
    run.env("PACED_DATA", &by_variable).run().expect_code(0);
    assert!(data.file("elsewhere/f.db").exists() && data.file("by-option/items/shop.jsonl").exists());
    assert!(!data.file("by-option/frontier.db").exists());
    let status =
        Paced::new(["status"]).env("PACED_FRONTIER", &frontier).dir(data.path()).run().expect_code(0);
    assert!(status.stdout.contains("finished"), "{}", status.stdout);
}

#[test]
fn a_file_can_name_the_frontier_so_that_its_password_is_in_no_variable() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let frontier = format!("sqlite:{}", data.file("elsewhere/f.db").display());
    let secret = data.write("frontier.url", &format!("\u{feff}\n{frontier}\n"));
    Paced::new(["crawl"]).arg(&file).data(&data).env("PACED_FRONTIER_FILE", &secret).run().expect_code(0);
    assert!(data.file("elsewhere/f.db").exists() && !data.file("frontier.db").exists());
    // A pipe can be read once, and `status` of an unknown site asks for the URL twice.
    let words = "mkfifo pipe; (echo $URL > pipe &) ; PACED_FRONTIER_FILE=pipe $PACED status nowhere";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", words]).current_dir(data.path()).env("URL", &frontier).env("PACED", paced());
    let told = String::from_utf8(shell.output().expect("a shell").stderr).expect("text");
    assert!(told.contains(&format!("there is no site `nowhere` in {frontier}")), "{told}");
    // The option wins over the file, as over each variable.
    let run = Paced::new(["status", "--frontier", &frontier]).env("PACED_FRONTIER_FILE", "/nowhere");
    assert!(run.dir(data.path()).run().expect_code(0).stdout.contains("finished"));
}

#[test]
fn a_file_that_names_no_frontier_is_wrong_usage_and_is_not_shown() {
    let data = TempData::new();
    for (text, told) in [
        ("", "frontier.url: it is empty; write the frontier's URL into it"),
        ("redis://me:secret@h/0\nand more\n", "frontier.url: it has more than one line"),
        ("redis://me:secret@h:port/0\n", "redis://…@h:…/0: "),
        ("password: secret\n", "password:…: name a frontier as sqlite:PATH"),
    ] {
        let file = data.write("frontier.url", text);
        let run = Paced::new(["status"]).data(&data).env("PACED_FRONTIER_FILE", &file).run().expect_code(2);
        assert!(run.stderr.contains(told) && !run.stderr.contains("secret"), "no `{told}` in {}", run.stderr);
    }
    let missing = Paced::new(["status"]).data(&data).env("PACED_FRONTIER_FILE", data.file("none"));
    let run = missing.run().expect_code(2);
    assert!(run.stderr.contains("PACED_FRONTIER_FILE") && run.stderr.contains("none: No such"), "{run:?}");
    let both = Paced::new(["status"]).data(&data).env("PACED_FRONTIER_FILE", "f");
    let run = both.env("PACED_FRONTIER", "redis://me:secret@h/0").run().expect_code(2);
    assert!(run.stderr.contains("both name the frontier") && !run.stderr.contains("secret"), "{run:?}");
}
