//! Text from outside never steers a terminal: each verb meets a hostile site, and prints nothing that does.

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// Clears the screen, sets a title, turns the direction, ends a line, and the same as single characters of C1.
const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{90}q\u{202e}gpj.exe\u{2066}\u{200f}\u{2028}\r\u{7f}";

const RULES: &str = "attempts = 1\n\n[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = [\"a\"]\n\n\
                     [[page]]\nname = \"thing\"\nmatch = \"/p/*\"\nitem = true\nkey = \"sku\"\n  [page.fields]\n  \
                     title = \"h1\"\n  sku = { css = \"b\", required = true }\n";

/// What stands before it in each of them that some verb shows.
const PLACES: [&str; 4] = ["athing", "akey", "amoved", "acoding"];

/// What of it a header's value may have.
const IN_A_HEADER: &str = "\u{9b}31m\u{202e}gpj.exe";

/// Every place of a page, a header, a redirect and a `robots.txt` that some verb shows.
fn hostile_site() -> TestSite {
    let links = "<a href=\"/p/1\">1</a><a href=\"/p/2\">2</a><a href=\"/p/gone\">3</a><a href=\"/p/moved\">4</a>\
                 <a href=\"/p/odd\">5</a><a href=\"/p/forbidden\">6</a><a href=\"/p/coded\">7</a>";
    let thing = format!("<h1>athing{HOSTILE}</h1><b>akey{HOSTILE}</b>");
    TestSite::builder()
        .robots(
            &format!("User-agent: *\nDisallow: /p/forbidden{}*\n", HOSTILE.replace('\r', ""))
                .replace("*\n", "\n"),
        )
        .page("/", format!("{links}<a href=\"http://other.example/{HOSTILE}\">{HOSTILE}</a>"))
        .page("/p/1", thing)
        .page("/p/2", "<h1>No key</h1>")
        .status("/p/gone", 404)
        .redirect("/p/moved", 302, &format!("http://other.example/amoved{IN_A_HEADER}"))
        .reply("/p/odd", Reply::html("x").header("content-type", format!("text/x-atype{IN_A_HEADER}")))
        .reply("/p/coded", Reply::html("x").header("content-encoding", format!("acoding{IN_A_HEADER}")))
        .serve()
}

#[track_caller]
fn assert_calm(words: &[&str], run: &Run) {
    let steers = |c: char| {
        let marks = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'];
        (c.is_control() && !['\n', '\t'].contains(&c))
            || marks.contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{206f}').contains(&c)
    };
    for text in [&run.stdout, &run.stderr] {
        let found: Vec<&str> = text.lines().filter(|line| line.contains(steers)).collect();
        assert!(found.is_empty(), "{words:?} prints {found:?}");
    }
}

#[test]
fn no_verb_prints_what_steers_a_terminal() {
    let (data, site) = (TempData::new(), hostile_site());
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + RULES));
    let thing = site.url("/p/1");
    let run = |words: &[&str]| {
        let run = Paced::new(words).data(&data).dir(data.path()).run();
        assert_calm(words, &run);
        run
    };
    let shop = file.to_str().expect("a path");
    let crawled = run(&["crawl", shop, "-v", "--items", "-"]);
    let items = json_lines_of(&crawled.stdout);
    let title = items[0]["fields"]["title"].as_str().expect("a title");
    assert!(title.contains("\u{1b}[2J") && title.contains('\u{202e}'), "the value is what it was: {title:?}");
    run(&["crawl", shop, "--fresh", "-v", "--log-format", "json"]);
    data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + &RULES.replace("h1", "b")));

    let paths = ["/p/1", "/p/2", "/p/gone", "/p/moved", "/p/odd", "/p/forbidden", "/p/coded"];
    let pages: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
    let mut seen = String::new();
    for json in [&[][..], &["--json"]] {
        let mut verbs: Vec<Vec<&str>> = vec![
            vec!["pause", "shop", "--why", HOSTILE],
            vec!["status"],
            vec!["explain", "shop"],
            vec!["resume", "shop", "--why", HOSTILE],
            vec!["log", "shop"],
            vec!["log"],
            vec!["dead", "list"],
            vec!["plan", "shop"],
            vec!["check", shop],
            vec!["audit"],
            vec!["reparse", shop, "--diff"],
            vec!["try", "--stored", &thing],
            vec!["put", "shop", HOSTILE],
            vec!["dead", "list", "--url", HOSTILE],
            vec!["queue", "shop", "list", "--match", HOSTILE],
            vec!["queue", "shop", "drop", "--tenant", HOSTILE],
            vec!["queue", "shop", "move", "--lane", HOSTILE, "--yes"],
            vec!["explain", HOSTILE],
        ];
        for page in &pages {
            verbs.extend([vec!["explain", page], vec!["dead", "show", page], vec!["try", page]]);
        }
        for words in verbs {
            let run = run(&[&words, json].concat());
            if !json.is_empty() {
                run.stdout.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect("JSON")));
            }
            seen += &run.stdout;
            seen += &run.stderr;
        }
    }
    // Else the site was not as hostile as this test believes.
    for place in PLACES {
        let escaped = Regex::new(&format!(r"{place}.{{0,4}}(\\u\{{?0*[19]b|%1B|%C2%9B)")).expect("a pattern");
        assert!(escaped.is_match(&seen), "nothing showed {place}: {seen}");
    }
    let hostile = format!("{thing}{HOSTILE}");
    for words in [
        &["put", "shop", &hostile][..],
        &["queue", "shop", "list"],
        &["queue", "shop", "list", "--json"],
        &["queue", "shop", "drop"],
        &["queue", "shop", "drop", "--yes", "--match", &format!("re:/p/1|{IN_A_HEADER}"), "--why", HOSTILE],
        &["log", "shop"],
        &["forget", "shop", "--items", "--stored-pages"],
        &["seed", shop],
        &["status", HOSTILE],
    ] {
        run(words);
    }
}

#[test]
fn a_hostile_site_file_or_name_does_not_steer_either() {
    let data = TempData::new();
    let file = data.write("odd.toml", &format!("seeds = [\"ftp://{}\"]\n\"{}\" = 1\n", "\\u202e", "\\u009b"));
    for words in [&["check"][..], &["check", "--json"], &["crawl"], &["seed"]] {
        let run = Paced::new(words).arg(&file).data(&data).run();
        assert_calm(words, &run);
        assert!(!run.stderr.is_empty() || !run.stdout.is_empty(), "{words:?}: {run:?}");
    }
}
