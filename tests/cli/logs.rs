//! The log on stderr: for people, for machines, more and less of it.

use regex::Regex;

use crate::expected::*;
use crate::support::*;

fn log(words: &[&str]) -> String {
    let (data, site) = (TempData::new(), small_site());
    site.remove("/p/2");
    let run = Paced::new(["crawl"].iter().chain(words))
        .arg(site_file(&data, &site))
        .data(&data)
        .run()
        .expect_code(0);
    assert_eq!(run.stdout, "", "results alone are on stdout");
    run.stderr
}

#[test]
fn a_line_has_its_time_its_level_and_a_message_that_can_be_read_alone() {
    let log = log(&[]);
    let line = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  ?(INFO|WARN) \S.*$").expect("a pattern");
    for text in log.lines() {
        assert!(line.is_match(text), "{text}");
        assert!(
            text.matches("site=").count() <= 1 && text.matches("url=").count() <= 1,
            "said twice: {text}"
        );
    }
    let dead = log.lines().find(|line| line.contains("dead letter")).expect("a dead letter");
    assert!(dead.contains(" WARN dead letter: HTTP 404 Not Found site=shop url=http://127.0.0.1:"), "{dead}");
    assert!(!log.contains('\x1b'), "no colour where there is no terminal:\n{log}");
}

#[test]
fn the_pulse_says_how_a_site_and_the_process_stand() {
    let log = log(&[]);
    let site = r"pulse site=shop rate=[\d.]+/s allowed=100\.00/s used=\d+% waiting=\d+ oldest=\S+ running=\d+ workers=\d+ response_ms=\d+ eta=\S+ .*early=0";
    let process = r"pulse sites=1 rate=[\d.]+/s sent=[\d.]+/s running=\d+ workers=\d+ waiting=\d+";
    for pattern in [site, process] {
        assert!(Regex::new(pattern).expect("a pattern").is_match(&log), "no {pattern} in\n{log}");
    }
}

/// The log of a crawl of so many sites on one address, told to end early.
fn log_of_many(sites: usize, deadline: &str, words: &[&str]) -> String {
    let (data, shop) = (TempData::new(), small_site());
    let file = |n: usize| {
        let text = format!(
            "seeds = [\"http://s{n:03}.shop.example/\"]\n[pace]\ninterval = \"10s\"\ncontact = \"a@b.example\"\n\n{RULES}"
        );
        data.write(&format!("s{n:03}.toml"), &text)
    };
    let led = format!("::127.0.0.1:{}", shop.addr().port());
    let crawl = Paced::new(["crawl", "--deadline", deadline, "--connect-to", &led]).args(words).data(&data);
    let run = crawl.args((0..sites).map(file)).run().expect_code(3);
    run.stderr
}

#[test]
fn of_500_sites_a_pulse_tells_of_ten_and_of_the_process() {
    let log = log_of_many(500, "12s", &[]);
    let lines: Vec<&str> = log.lines().collect();
    let of_process: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(" pulse sites=")).collect();
    assert!(of_process.len() > 1, "a pulse every 5 s:\n{log}");
    for pulse in of_process.windows(2) {
        let told = &lines[pulse[0] + 1..=pulse[1]];
        assert!(told.len() <= 12, "{}", told.join("\n"));
        assert_eq!(
            told.iter().filter(|line| line.contains(" pulse site=")).count(),
            10,
            "{}",
            told.join("\n")
        );
    }
}

#[test]
fn in_json_and_with_v_a_pulse_tells_of_every_site_that_moves() {
    for (words, pulse) in [(&["--log-format", "json"][..], "\"pulse\",\"site\":"), (&["-v"], " pulse site=")]
    {
        let log = log_of_many(12, "3s", words);
        assert_eq!(log.matches(pulse).count(), 12, "{words:?}:\n{log}");
    }
    assert_eq!(log_of_many(12, "3s", &[]).matches(" pulse site=").count(), 10);
}

#[test]
fn for_machines_each_line_is_one_object() {
    let log = log(&["--log-format", "json", "-v"]);
    let objects = json_lines_of(&log);
    for object in &objects {
        for name in ["timestamp", "level", "message"] {
            assert!(object[name].is_string(), "no {name} in {object}");
        }
    }
    let dead = objects.iter().find(|object| object["message"] == "dead letter: HTTP 404 Not Found");
    let dead = dead.unwrap_or_else(|| panic!("{log}"));
    assert_eq!(
        (&dead["level"], &dead["site"], &dead["stage"]),
        (&"WARN".into(), &"shop".into(), &"download".into())
    );
    assert!(dead["url"].as_str().is_some_and(|url| url.ends_with("/p/2")), "{dead}");
}

#[test]
fn there_is_more_of_it_or_less() {
    assert!(!log(&[]).contains("DEBUG"));
    let verbose = log(&["-v"]);
    assert_eq!(verbose.matches("sent at").count(), 5, "a line a start:\n{verbose}");
    assert!(verbose.contains("status=404") && verbose.contains("/robots.txt"), "{verbose}");
    let quiet = log(&["-q"]);
    assert_eq!(quiet.lines().filter(|line| !line.contains(" WARN ")).count(), 0, "{quiet}");
    assert!(quiet.contains("dead letter"), "{quiet}");
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    assert!(log(&["--color", "always"]).contains("\x1b[33m WARN\x1b[0m dead letter"));
    assert!(!log(&["--color", "never"]).contains('\x1b'));
    assert!(!log(&["--color", "always", "--log-format", "json"]).contains("\\u001b"));
}
