//! What the pages show is run: each line of `sh`, and each command of `console` with what it prints.

use regex::Regex;

use crate::markdown::{Block, Page, manual};
use crate::reader::{Desk, Town};

/// Lines of shell in README and `docs/` that are shown and not run.
const MOST_NOT_RUN: usize = 10;
/// What can stand behind an opening fence.
const KNOWN: &[&str] = &["sh", "sh no-run", "sh redis", "console", "toml", "json", "rust", "text"];
/// These pages begin with nothing; the others with sites that were crawled.
const FROM_NOTHING: &[&str] = &["README.md", "docs/first-site.md", "docs/workers.md"];

#[test]
fn each_line_of_shell_runs_and_each_console_prints_what_it_shows() {
    let town = Town::open();
    let pages = manual();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let readers: Vec<_> = pages.iter().map(|page| scope.spawn(|| wrong_on(page, &town))).collect();
        readers.into_iter().flat_map(|reader| reader.join().expect("no panic")).collect()
    });
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn few_lines_are_not_run_and_each_is_marked() {
    let mut not_run = Vec::new();
    for page in manual() {
        for (info, block) in page.fences() {
            assert!(KNOWN.contains(&info), "{}: a fence of `{info}`", page.at(block.line));
            if info == "sh no-run" {
                not_run.extend(commands(block).map(|line| format!("{}: {line}", page.at(block.line))));
            }
        }
    }
    assert!(not_run.len() <= MOST_NOT_RUN, "{} lines:\n{}", not_run.len(), not_run.join("\n"));
}

/// What on a page isn't as it says.
fn wrong_on(page: &Page, town: &Town) -> Vec<String> {
    let runs = |info: &str| info == "sh" || info == "console" || (info == "sh redis" && town.has_redis());
    let blocks: Vec<(&str, &Block)> = page.fences().filter(|(info, _)| runs(info)).collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    let desk = Desk::new(town).with_settings_of(page);
    let desk = if FROM_NOTHING.contains(&page.name.as_str()) { desk } else { desk.crawled() };
    blocks
        .iter()
        .filter_map(|(info, block)| {
            let wrong =
                if *info == "console" { wrong_console(&desk, block) } else { wrong_lines(&desk, block) };
            wrong.map(|what| format!("{}: {what}", page.at(block.line)))
        })
        .collect()
}

fn wrong_lines(desk: &Desk<'_>, block: &Block) -> Option<String> {
    let printed = desk.run(&block.text());
    (!matches!(printed.code, Some(0 | 3)))
        .then(|| format!("exit code {:?}\n{}{}", printed.code, printed.text, printed.log))
}

fn wrong_console(desk: &Desk<'_>, block: &Block) -> Option<String> {
    let mut wrong = Vec::new();
    for (command, shown) in sessions(block) {
        let printed = desk.run(&command);
        if masked(&shown) != masked(&printed.text) {
            wrong.push(format!(
                "$ {command}\n--- shown\n{shown}\n--- printed\n{}{}",
                printed.text, printed.log
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

/// The commands of a console, each with what stands below it.
fn sessions(block: &Block) -> Vec<(String, String)> {
    let mut sessions: Vec<(String, String)> = Vec::new();
    for line in &block.lines {
        match (line.strip_prefix("$ "), sessions.last_mut()) {
            (Some(command), _) => sessions.push((command.to_owned(), String::new())),
            (None, Some((_, shown))) => shown.extend([line.as_str(), "\n"]),
            (None, None) => panic!("{}: a console begins with `$ `", block.line),
        }
    }
    sessions
}

/// The lines of a block that are commands.
fn commands(block: &Block) -> impl Iterator<Item = &String> {
    block.lines.iter().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// The text with placeholders for what differs from run to run: times, durations, sizes, and blanks of columns.
fn masked(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
        (r"\b\d+(\.\d+)?\s?(ms|s|min|m|h|days?)\b", "SPAN"),
        (r"\b\d+ bytes|bytes +\d+", "SIZE"),
        (r", www\.shop\.example", ""),
        (r"[ \t]+", " "),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, with)| {
        Regex::new(pattern).expect("a pattern").replace_all(&text, *with).into_owned()
    })
}

#[test]
fn placeholders_stand_for_times_and_sizes_alone() {
    assert_eq!(masked("at 2026-11-21T07:31:02.585Z,  in 140 ms: 8 pages"), "at TIME, in SPAN: 8 pages");
    assert_eq!(masked("one start per 2s, 5812 bytes, 200: 48"), "one start per SPAN, SIZE, 200: 48");
}
