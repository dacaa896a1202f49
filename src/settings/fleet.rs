//! Lanes, fairness rules, tenants, marks and orders of `paced.toml`, which are the same for all machines of a fleet.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::KEYS;
use crate::clock::millis;
use crate::quantity::spoken_count;
use crate::site::plain_key;
use crate::site::read::{Entry, Section};
use crate::task::{FleetRules, LANE, LaneRule, NOW, Stage, TaskOrder, UnitPick};

/// Of a rule that names none.
pub(crate) const PER: Duration = Duration::from_hours(24);
/// Within which a rule may count.
pub(crate) const PERS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(31 * 24);
const MOST_WEIGHT: u32 = 100;
/// Of a rule.
pub(crate) const MOST_THRESHOLD: u32 = 10_000;
const MOST_LANES: usize = 16;
/// Of all tenants, or of one.
pub(crate) const MOST_RULES: usize = 16;
const MOST_TENANTS: usize = 10_000;

const STAGES: [(&str, Stage); 2] = [("download", Stage::Download), ("parse", Stage::Parse)];

/// How each of them is written.
const LANES: &str = "write [lanes], and slow = 3 below it";
const RULES: &str = "write [[fairness]], in two brackets";
const RULE: &str = "write it as in { lane = \"slow\", threshold = 100, per = \"1h\" }";
const MARKS: &str = "write [high_water], and site = 1_000_000 below it";
const TENANT: &str = "write [tenant.NAME], and fairness = [{ lane = \"slow\", threshold = 1000 }] below it";

/// What the file says for all machines.
pub(super) fn read(top: &Section<'_>) -> FleetRules {
    let named = top.get("lanes").map(|entry| entry.entries("a section", LANES)).unwrap_or_default();
    if let Some(entry) = top.get("lanes").filter(|_| named.len() > MOST_LANES) {
        entry.refuse::<()>(format!("there are {} lanes", named.len()), format!("keep {MOST_LANES} at most"));
    }
    let others = named.iter().map(|entry| entry.key).filter(|lane| ![LANE, NOW].contains(lane));
    let known: Vec<&str> = [LANE].into_iter().chain(others).collect();
    let marks = top.get("high_water").and_then(|entry| entry.section(KEYS, "high_water", MARKS));
    let mark = |key| marks.as_ref().and_then(|marks| marks.get(key)?.count(1));
    FleetRules {
        lanes: named.iter().filter_map(lane).collect(),
        fairness: top.get("fairness").map(|entry| rules(&entry, &known, RULES)).unwrap_or_default(),
        tenants: top.get("tenant").map(|entry| tenants(&entry, &known)).unwrap_or_default(),
        most_waiting: mark("site"),
        most_bytes: marks.as_ref().and_then(|marks| marks.get("site_bytes")?.size()),
        most_in_all: mark("frontier"),
        order: top.word("order", &TaskOrder::WORDS),
        pick: top.word("pick", &UnitPick::WORDS),
    }
}

fn lane(entry: &Entry<'_>) -> Option<(String, u32)> {
    let weight = up_to(MOST_WEIGHT, entry);
    if entry.key == NOW {
        return entry
            .refuse(format!("the lane `{NOW}` is always there, before all others"), "remove the line");
    }
    let name = plain_key(entry, "lane");
    Some((name?, weight?))
}

/// A list of rules, of which an example says how it is written.
fn rules(entry: &Entry<'_>, known: &[&str], example: &str) -> Vec<LaneRule> {
    if !entry.value.is_array() {
        return entry.wrong_type("a list of rules", example).unwrap_or_default();
    }
    let rules = entry.list();
    if rules.len() > MOST_RULES {
        entry.refuse::<()>(
            format!("there are {} fairness rules", rules.len()),
            format!("keep {MOST_RULES} at most"),
        );
    }
    rules.iter().filter_map(|entry| rule(entry, known)).collect()
}

fn rule(entry: &Entry<'_>, known: &[&str]) -> Option<LaneRule> {
    let rule = entry.section(KEYS, "fairness", RULE)?;
    let none = "a fairness rule has no `lane`";
    let lane = rule.needed("lane", none, "write where the next ones go, as in lane = \"slow\"");
    let none = "a fairness rule has no `threshold`";
    let threshold = rule.needed("threshold", none, "write how many go before them, as in threshold = 100");
    let lane = lane.and_then(|entry| known_lane(&entry, known));
    let threshold = threshold.and_then(|entry| up_to(MOST_THRESHOLD, &entry));
    let (per, stage) = (per(&rule), rule.get("stage").and_then(|entry| entry.word(&STAGES)));
    Some(LaneRule { lane: lane?, threshold: threshold?, per: millis(per?), stage })
}

/// The lane of a rule: a misspelt one would be a lane of its own (F15).
fn known_lane(entry: &Entry<'_>, known: &[&str]) -> Option<String> {
    let lane = entry.text()?;
    if known.contains(&lane) {
        return Some(lane.to_owned());
    }
    let what = match lane {
        NOW => format!("no rule leads to the lane `{NOW}`, which goes before all others"),
        lane => format!("there is no lane `{lane}`"),
    };
    entry.refuse(what, format!("write it into [lanes], or name one that is there: {}", known.join(", ")))
}

fn per(rule: &Section<'_>) -> Option<Duration> {
    let Some(entry) = rule.get("per") else { return Some(PER) };
    let per = entry.some_duration()?;
    if PERS.contains(&per) {
        return Some(per);
    }
    let written = entry.value.as_str().unwrap_or_default();
    entry.refuse(format!("`per` can't be `{written}`"), "write a duration from \"1s\" to \"31d\"")
}

fn tenants(entry: &Entry<'_>, known: &[&str]) -> BTreeMap<String, Vec<LaneRule>> {
    let tenants = entry.entries("a section", TENANT);
    if tenants.len() > MOST_TENANTS {
        let [found, most] = [tenants.len(), MOST_TENANTS].map(|count| spoken_count(count as u64));
        entry.refuse::<()>(format!("there are {found} tenants"), format!("keep {most} at most"));
    }
    tenants.iter().filter_map(|entry| tenant(entry, known)).collect()
}

fn tenant(entry: &Entry<'_>, known: &[&str]) -> Option<(String, Vec<LaneRule>)> {
    let name = plain_key(entry, "tenant");
    let tenant = entry.section(KEYS, "tenant", TENANT)?;
    let none = format!("the tenant `{}` has no `fairness`", entry.key);
    let own = tenant.needed("fairness", none, "write fairness = [] to free it of all rules, or remove it")?;
    let rules = rules(&own, known, TENANT);
    Some((name?, rules))
}

/// A whole number from 1 to that.
fn up_to(most: u32, entry: &Entry<'_>) -> Option<u32> {
    let number = entry.count::<u32>(1)?;
    if number <= most {
        return Some(number);
    }
    let most = spoken_count(most.into());
    entry.refuse(
        format!("`{}` can't be {number}", entry.key),
        format!("write a whole number from 1 to {most}"),
    )
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;
    use crate::task::{FleetRules, LaneRule, Stage, TaskOrder, UnitPick};

    fn told(text: &str) -> Vec<String> {
        let errors = Settings::parse(text, "paced.toml").map_or_else(|errors| errors.errors, |_| Vec::new());
        errors.iter().map(ToString::to_string).collect()
    }

    fn rule(lane: &str, threshold: u32, seconds: i64, stage: Option<Stage>) -> LaneRule {
        LaneRule { lane: lane.to_owned(), threshold, per: seconds * 1_000, stage }
    }

    #[test]
    fn lanes_rules_and_tenants_are_read() {
        let text = "[lanes]\ngeneral = 6\nslow = 3\nsuper-slow = 1\n\
                    [[fairness]]\nlane = \"slow\"\nthreshold = 100\n\
                    [[fairness]]\nlane = \"super-slow\"\nthreshold = 10000\nper = \"1h\"\nstage = \"download\"\n\
                    [tenant.acme]\nfairness = [{ lane = \"slow\", threshold = 1, per = \"31d\", stage = \"parse\" }]\n\
                    [[tenant.big.fairness]]\nlane = \"general\"\nthreshold = 5\nper = \"1s\"\n\
                    [tenant.free]\nfairness = []\n[high_water]\nsite = 1_000\n\
                    site_bytes = \"1MiB\"\nfrontier = 2_000\n";
        let settings = Settings::parse(text, "paced.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let lanes = [("general", 6), ("slow", 3), ("super-slow", 1)];
        let (day, both) = (24 * 3_600, None);
        let tenants = [
            ("acme", vec![rule("slow", 1, 31 * day, Some(Stage::Parse))]),
            ("big", vec![rule("general", 5, 1, both)]),
            ("free", Vec::new()),
        ];
        let fleet = FleetRules {
            lanes: lanes.map(|(lane, weight)| (lane.to_owned(), weight)).into(),
            fairness: vec![
                rule("slow", 100, day, both),
                rule("super-slow", 10_000, 3_600, Some(Stage::Download)),
            ],
            tenants: tenants.map(|(tenant, rules)| (tenant.to_owned(), rules)).into(),
            most_waiting: Some(1_000),
            most_bytes: Some(1 << 20),
            most_in_all: Some(2_000),
            ..FleetRules::default()
        };
        assert_eq!(settings.fleet.as_ref(), Some(&fleet));
        let other = Settings::parse(&format!("# v2\n{text}"), "paced.toml").expect("the same rules");
        assert!(
            other.fleet == settings.fleet && other.mark != settings.mark,
            "a comment makes it another text"
        );
    }

    #[test]
    fn f15_a_rule_names_a_lane_that_is_there_and_all_that_is_wrong_is_said_at_once() {
        let text = "[lanes]\nnow = 3\nslow = 101\n\"my lane\" = 1\nfast = 0\n\
                    [[fairness]]\nlane = \"slo\"\nthreshold = 10001\nper = \"500ms\"\n\
                    [[fairness]]\nlane = \"now\"\nthreshold = 0\nper = \"32d\"\nstage = \"pars\"\n\
                    [[fairness]]\nper = \"0s\"\nstages = \"parse\"\n\
                    [tenant.acme]\n\
                    [tenant.\"a b\"]\nfairness = [{ lane = \"slow\" }, 5]\n\
                    [tenant.c]\nfairness = { lane = \"slow\" }\n\
                    [tenant]\nd = 1\n";
        let known = "write it into [lanes], or name one that is there: general, slow, my lane, fast";
        let name = "use up to 100 of a-z, A-Z, 0-9, `-`, `_` and `.`, beginning with a letter or a digit";
        let tenant = "write [tenant.NAME], and fairness = [{ lane = \"slow\", threshold = 1000 }] below it";
        assert_eq!(
            told(text),
            [
                "paced.toml:2:7: the lane `now` is always there, before all others; remove the line",
                "paced.toml:3:8: `slow` can't be 101; write a whole number from 1 to 100",
                &format!("paced.toml:4:13: `my lane` can't be a lane; {name}"),
                "paced.toml:5:8: `fast` can't be 0; write a whole number from 1 on",
                &format!("paced.toml:7:8: there is no lane `slo`; {known}"),
                "paced.toml:8:13: `threshold` can't be 10001; write a whole number from 1 to 10,000",
                "paced.toml:9:7: `per` can't be `500ms`; write a duration from \"1s\" to \"31d\"",
                &format!(
                    "paced.toml:11:8: no rule leads to the lane `now`, which goes before all others; {known}"
                ),
                "paced.toml:12:13: `threshold` can't be 0; write a whole number from 1 on",
                "paced.toml:13:7: `per` can't be `32d`; write a duration from \"1s\" to \"31d\"",
                "paced.toml:14:9: `stage` can't be `pars`; did you mean `parse`?",
                "paced.toml:15:1: a fairness rule has no `lane`; write where the next ones go, as in lane = \"slow\"",
                "paced.toml:15:1: a fairness rule has no `threshold`; \
                 write how many go before them, as in threshold = 100",
                "paced.toml:16:7: `per` can't be zero; write a duration of at least \"1ms\"",
                "paced.toml:17:1: unknown key `stages`; did you mean `stage`?",
                "paced.toml:18:1: the tenant `acme` has no `fairness`; \
                 write fairness = [] to free it of all rules, or remove it",
                &format!("paced.toml:19:1: `a b` can't be a tenant; {name}"),
                "paced.toml:20:13: a fairness rule has no `threshold`; \
                 write how many go before them, as in threshold = 100",
                "paced.toml:20:32: `fairness` is an integer, not a section; \
                 write it as in { lane = \"slow\", threshold = 100, per = \"1h\" }",
                &format!("paced.toml:22:12: `fairness` is a table, not a list of rules; {tenant}"),
                &format!("paced.toml:24:5: `d` is an integer, not a section; {tenant}"),
            ]
        );
    }

    #[test]
    fn c5_an_order_and_a_pick_are_read_each_alone_is_a_rule_of_the_fleet() {
        let read = |text: &str| Settings::parse(text, "paced.toml").map(|settings| settings.fleet);
        let fleet = |order, pick| Ok(Some(FleetRules { order, pick, ..FleetRules::default() }));
        assert_eq!(read("order = \"deadline\"\n"), fleet(TaskOrder::Deadline, UnitPick::Random));
        assert_eq!(read("pick = \"earliest\"\n"), fleet(TaskOrder::Strict, UnitPick::Earliest));
        assert_eq!(
            read("order = \"strict\"\npick = \"random\"\n"),
            fleet(TaskOrder::Strict, UnitPick::Random)
        );
        assert_eq!(read("max_rate = \"5/s\"\n"), Ok(None), "those of the other machines hold");
        assert_eq!(
            told("order = \"dedline\"\npick = \"first\"\n[lanes]\nslow = 101\n"),
            [
                "paced.toml:1:9: `order` can't be `dedline`; did you mean `deadline`?",
                "paced.toml:2:8: `pick` can't be `first`; write one of random, earliest",
                "paced.toml:4:8: `slow` can't be 101; write a whole number from 1 to 100",
            ]
        );
        assert_eq!(
            told("order = 5\n"),
            ["paced.toml:1:9: `order` is an integer, not a text; write it in quotes"]
        );
    }

    #[test]
    fn sixteen_rules_are_the_most() {
        let of = |count: usize| "[[fairness]]\nlane = \"general\"\nthreshold = 1\n".repeat(count);
        assert_eq!(told(&of(16)), [""; 0]);
        assert_eq!(told(&of(17)), ["paced.toml:1:1: there are 17 fairness rules; keep 16 at most"]);
    }
}
