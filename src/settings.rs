//! `paced.toml` as a checked value: what holds for all sites of a process. What holds for one site is in its own file.

mod fleet;
mod notify;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub use notify::{DEAD_SHARE, Notify, NotifyTo, SHARE_PARTS, WebhookUrl};
use toml::de::DeTable;

pub(crate) use self::fleet::{MOST_RULES, MOST_THRESHOLD, PER, PERS};
use crate::canonical_url::fingerprint;
use crate::quantity::read_rate;
use crate::site::SiteErrors;
use crate::site::read::{Entry, FileKey, Layout, Report, Section, Shape, TextForm, key, words};
use crate::task::{EventKind, FleetRules, MOST_BYTES, MOST_IN_ALL, MOST_WAITING, TaskOrder, UnitPick};

/// Every key of `paced.toml`.
const KEYS: Layout = &[
    ("", TOP),
    ("group", GROUP),
    ("fairness", FAIRNESS),
    ("tenant", TENANT),
    ("high_water", HIGH_WATER),
    ("notify", NOTIFY),
];

const TOP: &[FileKey] = &[
    key("group", Shape::Table(TextForm::Group), "The paces that groups of sites share, by name."),
    key("max_rate", Shape::Text(TextForm::Rate, "none"), "The most request starts a second of the process."),
    key(
        "order",
        Shape::OneOf(|| words(&TaskOrder::WORDS)),
        "Which task of a site and lane goes first. A site takes a change with its next run.",
    ),
    key("pick", Shape::OneOf(|| words(&UnitPick::WORDS)), "Which of the sites that are due goes first."),
    key("lanes", Shape::Table(TextForm::Weight), "Lanes by name, each with its weight from 1 to 100."),
    key(
        "fairness",
        Shape::Sections("fairness"),
        "When a tenant's next tasks go to another lane. The last that matches decides.",
    ),
    key("tenant", Shape::Table(TextForm::Tenant), "Tenants that have rules of their own, by name."),
    key("high_water", Shape::Section("high_water"), "How much may wait."),
    key("notify", Shape::Section("notify"), "By what this machine tells of what fails or ends."),
];

const GROUP: &[FileKey] = &[key(
    "interval",
    Shape::Duration { zero: false, default: None },
    "The least time between the starts of two requests to any of its sites.",
)];

const FAIRNESS: &[FileKey] = &[
    key("lane", Shape::Text(TextForm::Name, ""), "Where the next ones go.").needed(),
    key("threshold", Shape::Count { least: 1, default: None }, "So many go where they would, up to 10,000.")
        .needed(),
    key(
        "per",
        Shape::Duration { zero: false, default: Some(fleet::PER) },
        "Within so long, from 1 s to 31 days.",
    ),
    key(
        "stage",
        Shape::Text(TextForm::Text, "both, each counted apart"),
        "Of downloads alone, or of parses.",
    ),
];

const TENANT: &[FileKey] =
    &[key("fairness", Shape::Sections("fairness"), "Its rules, in place of those for all tenants.").needed()];

const HIGH_WATER: &[FileKey] = &[
    key(
        "site",
        Shape::Count { least: 1, default: Some(MOST_WAITING) },
        "Downloads of a site that wait, at most: then puts are refused, and links wait with their page.",
    ),
    key("site_bytes", Shape::Size(MOST_BYTES), "What they weigh: their URLs, and 100 bytes each."),
    key(
        "frontier",
        Shape::Count { least: 1, default: Some(MOST_IN_ALL) },
        "Downloads of all sites that wait, at most: then puts are refused, and no links.",
    ),
];

const NOTIFY: &[FileKey] = &[
    key(
        "command",
        Shape::List(TextForm::Text, 1, "none"),
        "A program with its arguments, which reads an event as JSON.",
    ),
    key("url", Shape::Text(TextForm::Url, "none"), "An address that an event is posted to as JSON."),
    key("on", Shape::OneOf(|| words(&EventKind::WORDS)), "Of these events alone; all of them without it."),
    key("dead_share", Shape::Any, "So many of a run's ended pages are dead, from 20 on, as in 0.1."),
];

/// What `paced.toml` says; the default is what holds without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// By group, the least time between the starts of two requests to any of its sites; never zero.
    pub groups: BTreeMap<String, Duration>,
    /// The most request starts a second of the whole process; at least 1.
    pub max_rate: Option<u32>,
    /// Lanes, fairness rules, marks and orders, which the frontier holds for all machines; none where the file says nothing of them.
    pub fleet: Option<FleetRules>,
    /// By what this machine tells of events.
    pub notify: Option<Notify>,
    /// What tells the file's text from others; 0 without a file.
    pub mark: u64,
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
        let settings = document.as_ref().map(|table| read(&report, table, text));
        report.finish(settings)
    }
}

fn read<'a>(report: &'a Report<'a>, table: &'a DeTable<'a>, text: &str) -> Settings {
    let top = Section::top(report, KEYS, table);
    Settings {
        groups: top.get("group").map(|entry| groups(&entry)).unwrap_or_default(),
        max_rate: top.get("max_rate").and_then(|entry| max_rate(&entry)),
        fleet: ["order", "pick", "lanes", "fairness", "tenant", "high_water"]
            .iter()
            .any(|key| top.get(key).is_some())
            .then(|| fleet::read(&top)),
        notify: top.get("notify").and_then(|entry| notify::read(&entry)),
        mark: fingerprint(text).cast_unsigned(),
    }
}

fn max_rate(entry: &Entry<'_>) -> Option<u32> {
    let text = entry.text()?;
    match read_rate(text) {
        None => entry.refuse(
            format!("`max_rate` can't be `{text}`"),
            "write request starts a second, as a whole number from 1 on, as in \"50/s\"",
        ),
        rate => rate,
    }
}

fn groups(entry: &Entry<'_>) -> BTreeMap<String, Duration> {
    let what_to_do = "write [group.NAME], and interval = \"2s\" below it";
    let groups = entry.entries("a section", what_to_do);
    groups.iter().filter_map(|entry| Some((entry.key.to_owned(), group(entry, what_to_do)?))).collect()
}

fn group(entry: &Entry<'_>, what_to_do: &str) -> Option<Duration> {
    let section = entry.section(KEYS, "group", what_to_do)?;
    let what = format!("the group `{}` has no `interval`", entry.key);
    section.needed("interval", what, "write interval = \"2s\", or remove the group")?.some_duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let errors = Settings::parse(text, "paced.toml").map_or_else(|errors| errors.errors, |_| Vec::new());
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn groups_and_the_ceiling_of_the_process_are_read() {
        let text =
            "max_rate = \"50/s\"\n[group.shopify]\ninterval = \"2s\"\n[group.own]\ninterval = \"100ms\"\n";
        let settings = Settings::parse(text, "paced.toml").expect("good settings");
        let groups = [("own", Duration::from_millis(100)), ("shopify", Duration::from_secs(2))];
        assert_eq!(settings.groups, groups.map(|(name, interval)| (name.to_owned(), interval)).into());
        assert_eq!(settings.max_rate, Some(50));
        let empty = Settings::parse("", "paced.toml").expect("nothing is needed");
        assert_eq!(Settings { mark: 0, ..empty }, Settings::default());
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = "max_rate = \"0/s\"\nspeed = \"2x\"\nmax_rat = 1\n[group.a]\n[group.b]\ninterval = \"0s\"\n\
                    [group.c]\nintervall = \"1s\"\ninterval = 1\n[lane]\nfast = 3\n[group]\nd = 1\n";
        assert_eq!(
            told(text),
            [
                "paced.toml:1:12: `max_rate` can't be `0/s`; \
                 write request starts a second, as a whole number from 1 on, as in \"50/s\"",
                "paced.toml:2:1: unknown key `speed`; remove it; \
                 the top of the file takes group, max_rate, order, pick, lanes, fairness, tenant, high_water, notify",
                "paced.toml:3:1: unknown key `max_rat`; did you mean `max_rate`?",
                "paced.toml:4:1: the group `a` has no `interval`; write interval = \"2s\", or remove the group",
                "paced.toml:6:12: `interval` can't be zero; write a duration of at least \"1ms\"",
                "paced.toml:8:1: unknown key `intervall`; did you mean `interval`?",
                "paced.toml:9:12: `interval` is an integer, not a duration; \
                 write a number and a unit, as in \"200ms\", \"2s\" or \"6h\"",
                "paced.toml:10:2: unknown key `lane`; did you mean `lanes`?",
                "paced.toml:13:5: `d` is an integer, not a section; \
                 write [group.NAME], and interval = \"2s\" below it",
            ]
        );
    }

    #[test]
    fn settings_that_cannot_be_read_say_why() {
        let told = Settings::load(Path::new("/nowhere/paced.toml")).expect_err("there is none").to_string();
        assert!(told.contains("there is no such file"), "{told}");
    }
}
