//! `monitor` counts and shows, and decides nothing: rooms that count into it are told nothing, but for what a report prints.

use regex::Regex;

use crate::{Source, Wrong, fail_on, source, sources};

/// What a run's report prints, once all work is done.
const TOLD: &[&str] = &["tally", "total"];

#[test]
fn the_monitor_is_asked_for_nothing_but_what_a_report_prints() {
    fail_on(sources().iter().flat_map(asked));
}

/// Methods of `monitor` that other rooms could ask something, and places in `work` that ask.
fn asked(source: &Source) -> Vec<Wrong> {
    let (pattern, allowed) = match source.module().as_str() {
        "monitor" => (r"(?s)\bpub (?:async )?fn (\w+)\s*\(\s*&(?:mut )?self\b[^{;]*?\)\s*->", TOLD),
        "work" => (r"\bmonitor(?:\(\))?\s*\.\s*(tally|total)\s*\(", &[][..]),
        _ => return Vec::new(),
    };
    let found = Regex::new(pattern).expect("a pattern");
    let found = found.captures_iter(&source.code).filter(|found| !allowed.contains(&&found[1]));
    let wrong = found.map(|found| {
        let line = source.code[..found.get(1).expect("a name").start()].matches('\n').count() + 1;
        source.wrong(line, format!("`{}` tells what the monitor counted", &found[1]))
    });
    wrong.collect()
}

#[test]
fn a_question_to_the_monitor_is_found() {
    for (path, text, lines) in [
        ("monitor/counts.rs", "impl M {\n    pub fn is_full(&self) -> bool {\n", "2"),
        (
            "monitor/counts.rs",
            "impl M {\n    pub fn loads(\n        &mut self,\n        of: u8,\n    ) -> Vec<u8> {\n",
            "2",
        ),
        ("monitor/counts.rs", "pub fn tally(&self, site: &str) -> Tally {\n", ""),
        ("monitor/counts.rs", "pub fn sent(&self) {\n}\npub(super) fn of(&self) -> u8 {\n}\n", ""),
        ("monitor/counts.rs", "pub fn sent(&self) {\n}\nfn new() -> Self {\n}\n", ""),
        ("work/claim.rs", "if parts.monitor.total().pages > 3 {}", "1"),
        ("work/claim.rs", "parts.monitor.item(site);", ""),
        ("run/worker.rs", "let total = monitor.total();", ""),
    ] {
        let lines_found: Vec<String> =
            asked(&source(path, text)).iter().map(|wrong| wrong.line.to_string()).collect();
        assert_eq!(lines_found.join(" "), lines, "{path}: {text}");
    }
}
