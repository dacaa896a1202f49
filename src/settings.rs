//! `paced.toml` as a checked value: what holds for all sites of a process. What holds for one site is in its own file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use crate::site::SiteErrors;
use crate::site::read::{Entry, Layout, Report, Section, rate};

/// Every key of `paced.toml`; those of `NOT_YET` are known and refused.
const LAYOUT: Layout = &[
    (
        "",
        &[
            "group",
            "max_rate",
            "lanes",
            "weights",
            "fairness",
            "order",
            "pick",
            "max_rate_per_address",
            "high_water",
            "alarms",
        ],
    ),
    ("group", &["interval"]),
];

const NOT_YET: [&str; 8] =
    ["lanes", "weights", "fairness", "order", "pick", "max_rate_per_address", "high_water", "alarms"];

/// What `paced.toml` says; the default is what holds without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// By group, the least time between the starts of two requests to any of its sites; never zero.
    pub groups: BTreeMap<String, Duration>,
    /// The most request starts a second of the whole process; at least 1.
    pub max_rate: Option<u32>,
}

impl Settings {
    /// Reads and checks a `paced.toml`.
    ///
    /// Errors are all that is wrong with it, each with its place and what to do.
    pub fn load(path: &Path) -> Result<Self, SiteErrors> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| SiteErrors::unreadable(&file, &e))?;
        Self::parse(&text, &file)
    }

    /// Checks the text of a `paced.toml`; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, SiteErrors> {
        let report = Report::new(file, text);
        let document = report.document();
        let settings = document.as_ref().map(|table| read(&report, table));
        report.finish(settings)
    }
}

/// Reads `"50/s"`: whole request starts a second, at least 1.
pub fn parse_rate(text: &str) -> Option<u32> {
    rate(text)
}

fn read<'a>(report: &'a Report<'a>, table: &'a DeTable<'a>) -> Settings {
    let top = Section::top(report, LAYOUT, table);
    for entry in NOT_YET.iter().filter_map(|key| top.get(key)) {
        entry.refuse::<()>(format!("`{}` is not supported yet", entry.key), "remove it");
    }
    Settings {
        groups: top.get("group").map(|entry| groups(&entry)).unwrap_or_default(),
        max_rate: top.get("max_rate").and_then(|entry| max_rate(&entry)),
    }
}

fn max_rate(entry: &Entry<'_>) -> Option<u32> {
    let text = entry.text()?;
    match parse_rate(text) {
        None => entry.refuse(
            format!("`max_rate` can't be `{text}`"),
            "write request starts a second, as a whole number from 1 on, as in \"50/s\"",
        ),
        rate => rate,
    }
}

fn groups(entry: &Entry<'_>) -> BTreeMap<String, Duration> {
    let what_to_do = "write [group.NAME], and interval = \"2s\" below it";
    let Some(groups) = entry.entries() else {
        return entry.wrong_type("a section", what_to_do).unwrap_or_default();
    };
    groups.iter().filter_map(|entry| Some((entry.key.to_owned(), group(entry, what_to_do)?))).collect()
}

fn group(entry: &Entry<'_>, what_to_do: &str) -> Option<Duration> {
    let DeValue::Table(table) = entry.value else { return entry.wrong_type("a section", what_to_do) };
    let section = Section::of(entry.report, LAYOUT, "group", table, entry.span.clone());
    match section.get("interval") {
        Some(interval) => interval.some_duration(),
        None => section.missing(
            format!("the group `{}` has no `interval`", entry.key),
            "write interval = \"2s\", or remove the group",
        ),
    }
}
