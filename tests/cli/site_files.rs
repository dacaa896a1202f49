//! What `check` and `crawl` say of site files: right ones, wrong ones, missing ones, and two that don't go together.

use crate::expected::*;
use crate::support::*;

const RIGHT: &str = "seeds = [\"https://shop.example/\"]\n[pace]\ncontact = \"a@example.com\"\n\
                     [[page]]\nname = \"all\"\nmatch = \"/**\"\nfollow = \"*\"\n";

/// Sites in the folder `sites` of a data folder, where the program runs.
fn folder(files: &[(&str, &str)]) -> TempData {
    let data = TempData::new();
    for (name, text) in files {
        data.write(&format!("sites/{name}"), text);
    }
    data
}

fn check(folder: &TempData, words: &[&str]) -> Run {
    Paced::new(["check"].iter().chain(words)).dir(folder.path()).run()
}

#[test]
fn a_right_file_is_said_to_be_right_by_name_or_path() {
    let folder = folder(&[("shop.toml", RIGHT)]);
    for words in [&["shop"][..], &["sites/shop.toml"], &["shop", "sites/shop.toml", "./sites/shop.toml"]] {
        let run = check(&folder, words).expect_code(0);
        assert_eq!(
            run.stdout,
            "sites/shop.toml: ok: site shop, one start per 1 s, 1 page rules, hosts shop.example, www.shop.example\n",
            "{words:?}"
        );
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn check_tells_the_pace_of_a_site_s_group_as_well() {
    let of = |group: &str, host: &str, interval: &str| {
        let text = RIGHT.replace("shop.example", host);
        format!("group = \"{group}\"\n{text}")
            .replace("[pace]\n", &format!("[pace]\ninterval = \"{interval}\"\n"))
    };
    let folder = folder(&[
        ("quick.toml", &of("g", "quick.example", "100ms")),
        ("slow.toml", &of("g", "slow.example", "2s")),
        ("one.toml", &of("h", "one.example", "1s")),
        ("two.toml", &of("h", "two.example", "3s")),
    ]);
    folder.write("paced.toml", "[group.g]\ninterval = \"500ms\"\n");
    let run = check(&folder, &["quick", "slow", "one", "two"]).expect_code(0);
    let paces = run.stdout.lines().map(|line| line.split_once(": ok: ").expect("it is right").1);
    let paces: Vec<&str> = paces.map(|told| told.split_once(", 1 page rules").expect("its rule").0).collect();
    assert_eq!(
        paces,
        [
            "site quick, one start per 500 ms, shared by group g",
            "site slow, one start per 2 s, and one start per 500 ms, shared by group g",
            "site one, one start per 3 s, shared by group h",
            "site two, one start per 3 s, shared by group h",
        ]
    );
}

#[test]
fn everything_wrong_with_several_files_is_said_at_once() {
    let bad = RIGHT.replace("contact", "contcat").replace("\"/**\"", "\"\"");
    let folder = folder(&[
        ("a.toml", &bad),
        ("b.toml", "seeds = [\"ftp://b.example/\"]\n[pace\n"),
        ("c.toml", RIGHT),
        ("d.toml", RIGHT),
    ]);
    let names = ["a", "b", "c", "d", "e", "sites/f.toml", "sites"];
    let run = check(&folder, &names).expect_code(2);
    assert_text("check_wrong.txt", &run.stdout);
    let crawl = Paced::new(["crawl"].iter().chain(&names)).dir(folder.path()).run().expect_code(2);
    let prefixed: String = run
        .stdout
        .lines()
        .filter(|line| !line.contains(": ok: "))
        .fold(String::new(), |text, line| text + "paced: " + line + "\n");
    assert_eq!(crawl.stderr, prefixed, "crawl says what check says");
    assert!(!folder.file("paced-data").exists(), "nothing is begun with a wrong file");
}

#[test]
fn check_says_it_as_json_too() {
    let folder = folder(&[("c.toml", RIGHT), ("d.toml", RIGHT)]);
    let run = check(&folder, &["c", "--json"]).expect_code(0);
    let objects = json_lines_of(&run.stdout);
    let right = serde_json::json!({ "file": "sites/c.toml", "site": "c", "ok": true, "warnings": [] });
    assert_eq!(objects, [right]);
    let run = check(&folder, &["c", "d", "--json"]).expect_code(2);
    let objects = json_lines_of(&run.stdout);
    let wrong = &objects[0];
    assert_eq!(
        (&wrong["file"], &wrong["line"], &wrong["column"]),
        (&"sites/d.toml".into(), &1.into(), &9.into())
    );
    assert!(
        wrong["what"].as_str().is_some_and(|what| what.contains("also belongs to sites/c.toml")),
        "{wrong}"
    );
    assert!(wrong["what_to_do"].is_string(), "{wrong}");
    let right: Vec<_> = objects[1..].iter().map(|object| &object["file"]).collect();
    assert_eq!(right, ["sites/c.toml"]);
    folder.write("sites/c.toml", &format!("{RIGHT}[scope]\nmax_pages = 412000\n"));
    let run = check(&folder, &["c", "--json"]).expect_code(0);
    let warning = &json_lines_of(&run.stdout)[0]["warnings"][0];
    assert_eq!(
        (&warning["line"], &warning["what"]),
        (&9.into(), &"412,000 pages at 1 s = 4.8 days".into()),
        "{warning}"
    );
    assert!(run.stderr.contains("412,000 pages at 1 s = 4.8 days"), "people read it too: {}", run.stderr);
}

#[test]
fn a_name_that_no_file_has_lists_those_there_are() {
    let folder = folder(&[("books.toml", RIGHT), ("quotes.toml", RIGHT)]);
    let run = check(&folder, &["boks"]).expect_code(2);
    assert_eq!(
        run.stdout,
        "sites/boks.toml:1:1: there is no site `boks`: no such file; name a site file, or one of books, quotes\n"
    );
}

#[test]
fn wrong_settings_are_said_by_check_and_by_crawl() {
    let folder = folder(&[("shop.toml", RIGHT)]);
    folder.write("paced.toml", "max_rate = 50\n");
    let told = "paced: paced.toml:1:12: ";
    for verb in ["check", "crawl"] {
        let run = Paced::new([verb, "shop"]).dir(folder.path()).run().expect_code(2);
        assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
        let run = Paced::new([verb, "shop", "--config", "none.toml"]).dir(folder.path()).run().expect_code(2);
        assert!(run.stderr.contains("none.toml:1:1: can't read the file: there is no such file"), "{run:?}");
    }
}

#[test]
fn a_site_that_takes_anothers_host_is_refused_by_the_frontier() {
    let (data, site, _) = crawled();
    let thief = site.toml("thief", std::time::Duration::from_millis(10)) + RULES;
    let thief = data.write("thief.toml", &thief);
    let run = Paced::new(["crawl"]).arg(thief).data(&data).run().expect_code(1);
    let host = site.addr().to_string();
    assert!(run.stderr.contains(&host) && run.stderr.contains("shop"), "{}", run.stderr);
    assert_eq!(site.count("/p/1"), 1, "nothing was asked");
}
