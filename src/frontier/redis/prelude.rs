//! What the program on the server has in common with `frontier::steps`: numbers, reasons, and the words that stand for
//! values. Its files are given them as Lua constants, printed from the Rust ones.

use std::time::Duration;

use serde::Serialize;

use super::partitions::DIRECTORY;
use super::wire::mark;
use crate::clock::millis;
use crate::frontier::members::BEAT;
use crate::frontier::mutex_key::UNIT_MUTEX;
use crate::frontier::state::{
    AVERAGED, AwayHost, BACK_MS, BATCH_KEPT_MS, BATCHES_KEPT, CAMPAIGN_KEPT_MS, CAMPAIGNS_KEPT, DROPS_KEPT,
    DROPS_KEPT_MS, ENDED_KEPT, ENDED_MS, EPOCH, EVENT_KEPT_MS, EVENT_LEASE_MS, EVENT_PAUSES, FED_WAITING,
    FOR_GOOD, HOUR_SLOTS, LEASE_MS, LONGEST_INTERVAL, MARK_MS, MARKS_KEPT, MAX_LOSSES, MOST_EVENTS, MOST_NOW,
    MOST_PAGES, MOST_TUNED, MOST_WAITS, PageState, Place, QUIET_MS, RUN_SLOT, SLOT_MS, START_TOKEN,
    SessionPlace, SiteSettings, TOLD_MS, Turn, UPLOAD_KEPT_MS, WAIT_BOUNDS, WAIT_ONE, WAITS_KEPT,
    delay_after_loss,
};
use crate::frontier::steps::{
    REMOVED, acts, away, batch, by_lane, claim, feed, gate, lease, lock, pauses, queue, reasons, session,
    settle, site,
};
use crate::frontier::view::SiteNames;
use crate::manners::{MOST_ROBOTS_REDIRECTS, departure, slow_start, wall};
use crate::task::{
    Exclusion, HighWater, LANE, LEAST_PORTION, MOST_BATCHES, MOST_BYTES, MOST_IN_ALL, MOST_PORTION,
    MOST_WAITING, NOW, OF_CAMPAIGN, Priority, PutReply, Settled, TASK_BYTES, TaskOrder, UnitPick,
};

/// What hints are told on that something can be claimed: the partition, in how many ms, and the name of whom it is for.
pub(super) const CHANNEL: &str = "paced:wake";
/// Nobody sleeps longer, as a hint may get lost.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// What the line ends with that begins a module.
const MODULE: &str = "= module(function(";

/// The files as one program, with their constants: one that a single module uses is declared there, all others before the
/// files. A function of Lua has no more than 200 locals.
pub(super) fn with_constants(files: &[&str]) -> String {
    let (mut program, mut own) = (String::new(), vec![String::new(); files.len()]);
    for (name, value) in constants() {
        let place = only_user(files, name).map_or(&mut program, |user| &mut own[user]);
        place.extend(["local ", name, " = ", &value, "\n"]);
    }
    for (file, own) in files.iter().zip(own) {
        let (before, module) = file.split_at(inside(file));
        program.extend([before, &own, module]);
    }
    program
}

/// Where the inside of a file's module begins; its end, where it has none.
fn inside(file: &str) -> usize {
    let line = file.find(MODULE).and_then(|at| Some(at + file[at..].find('\n')? + 1));
    line.unwrap_or(file.len())
}

/// The file whose module alone uses a constant.
fn only_user(files: &[&str], name: &str) -> Option<usize> {
    let is_in = |code: &str| words_of(code).any(|word| word == name);
    let mut users = files.iter().enumerate().filter(|(_, file)| is_in(file));
    let (user, file) = users.next()?;
    (users.next().is_none() && !is_in(&file[..inside(file)])).then_some(user)
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// Each with its value as Lua writes it.
fn constants() -> Vec<(&'static str, String)> {
    let numbers = numbers().into_iter().map(|(name, number)| (name, number.to_string()));
    let texts = texts().into_iter().map(|(name, text)| (name, format!("{text:?}")));
    numbers.chain(texts).chain(lists()).collect()
}

fn lists() -> [(&'static str, String); 4] {
    let list = |values: Vec<String>| format!("{{ {} }}", values.join(", "));
    let allowance = |value| Priority::from_value(value).allowance().to_string();
    [
        ("AFTER_LOSS", list((1..MAX_LOSSES).map(|losses| delay_after_loss(losses).to_string()).collect())),
        ("WAIT_BOUNDS", list(WAIT_BOUNDS.iter().map(ToString::to_string).collect())),
        ("EVENT_PAUSES", list(EVENT_PAUSES.iter().map(ToString::to_string).collect())),
        // By priority, from 1.
        ("ALLOWED", list((1..=Priority::LEAST_URGENT).map(allowance).collect())),
    ]
}

/// Spans are in ms.
fn numbers() -> Vec<(&'static str, i64)> {
    vec![
        ("SLOTS", PageState::SLOTS),
        ("LEASE_MS", LEASE_MS),
        ("BEAT_MS", millis(BEAT)),
        ("BACK_MS", BACK_MS),
        ("MAX_LOSSES", i64::from(MAX_LOSSES)),
        ("REAPED", i64::from(lease::REAPED)),
        ("DEADLY_ROBOTS", millis(lease::DEADLY_ROBOTS)),
        ("ODD_ROBOTS", millis(settle::ODD_ROBOTS)),
        ("ROBOTS_SERVE", millis(settle::ROBOTS_SERVE)),
        ("ROBOTS_HOPS", i64::from(MOST_ROBOTS_REDIRECTS)),
        ("LOOKS", i64::from(claim::LOOKS)),
        ("WIDEST", i64::from(claim::WIDEST)),
        ("DUE_PARTS", i64::from(claim::PARTS)),
        ("TIDIED", i64::from(away::TIDIED)),
        ("MOST_NOW", MOST_NOW.cast_signed()),
        ("DROPS_KEPT", i64::try_from(DROPS_KEPT).unwrap_or_default()),
        ("DROPS_KEPT_MS", DROPS_KEPT_MS),
        ("MOST_TUNED", i64::try_from(MOST_TUNED).unwrap_or_default()),
        ("MOST_WAITING", MOST_WAITING.into()),
        ("MOST_BYTES", MOST_BYTES.cast_signed()),
        ("MOST_IN_ALL", MOST_IN_ALL.into()),
        ("TASK_BYTES", TASK_BYTES.cast_signed()),
        ("MARKS_KEPT", i64::try_from(MARKS_KEPT).unwrap_or_default()),
        ("SWEPT_WINDOWS", i64::from(gate::SWEPT_WINDOWS)),
        ("FED", i64::from(feed::FED)),
        ("FED_WAITING", FED_WAITING.cast_signed()),
        ("SWEPT", i64::from(lock::SWEPT)),
        ("NAMES", i64::from(SiteNames::MOST)),
        ("REMOVED", i64::from(REMOVED)),
        ("QUEUE_LISTED", i64::from(queue::QUEUE_LISTED)),
        ("SLOT_MS", SLOT_MS),
        ("HOUR_SLOTS", i64::try_from(HOUR_SLOTS).unwrap_or_default()),
        ("RUN_SLOT", RUN_SLOT),
        ("WAIT_ONE", WAIT_ONE.cast_signed()),
        ("WAITS_KEPT", WAITS_KEPT),
        ("MOST_WAITS", MOST_WAITS.into()),
        ("MOST_EVENTS", MOST_EVENTS.cast_signed()),
        ("EVENT_KEPT_MS", EVENT_KEPT_MS),
        ("EVENT_LEASE_MS", EVENT_LEASE_MS),
        ("QUIET_MS", QUIET_MS),
        ("CAMPAIGNS_KEPT", i64::try_from(CAMPAIGNS_KEPT).unwrap_or_default()),
        ("CAMPAIGN_KEPT_MS", CAMPAIGN_KEPT_MS),
        ("UPLOAD_KEPT_MS", UPLOAD_KEPT_MS),
        ("MARK_MS", MARK_MS),
        ("LEAST_PORTION", i64::from(LEAST_PORTION)),
        ("MOST_PORTION", i64::from(MOST_PORTION)),
        ("IDLE_MS", site::IDLE_MS),
        ("SESSION_HELD", SessionPlace::HELD),
        ("SESSION_OPEN", SessionPlace::OPEN),
        ("SESSIONS_SWEPT", i64::from(session::SWEPT)),
        ("STEPS_SHOWN", i64::from(session::STEPS_SHOWN)),
        ("HELD_SHOWN", i64::from(session::HELD_SHOWN)),
        ("ENDED_KEPT", i64::try_from(ENDED_KEPT).unwrap_or_default()),
        ("ENDED_MS", ENDED_MS),
        ("BATCH_KEPT_MS", BATCH_KEPT_MS),
        ("BATCHES_KEPT", BATCHES_KEPT.cast_signed()),
        ("BATCHES_SWEPT", i64::from(batch::BATCHES_SWEPT)),
        ("MOST_BATCHES", i64::try_from(MOST_BATCHES).unwrap_or_default()),
        ("MOST_PAGES", MOST_PAGES.cast_signed()),
        ("PAUSES_TOLD", i64::from(pauses::TOLD)),
        ("LANES_LISTED", i64::from(by_lane::LANES_LISTED)),
        ("FOR_GOOD", FOR_GOOD),
        ("MOST_ACTS", i64::from(acts::MOST_ACTS)),
        ("ACTS_KEPT_MS", acts::ACTS_KEPT_MS),
        ("LONGEST_INTERVAL", LONGEST_INTERVAL),
        ("PARALLEL_TIMES", i64::from(SiteSettings::MOST_PARALLEL.0)),
        ("PARALLEL_MOST", i64::from(SiteSettings::MOST_PARALLEL.1)),
        ("LONGEST_TURN", lock::LONGEST_TURN),
        ("GRACE_PARTS", i64::from(departure::GRACE_PARTS)),
        ("LEAST_GRACE", millis(departure::LEAST_GRACE)),
        ("MOST_GRACE", millis(departure::MOST_GRACE)),
        ("AHEAD_PARTS", i64::from(departure::AHEAD_PARTS)),
        ("MOST_AHEAD", millis(departure::MOST_AHEAD)),
        ("LEAD_PARTS", i64::from(departure::LEAD_PARTS)),
        ("MOST_LEAD", millis(departure::MOST_LEAD)),
        ("LONGEST_LEAD", claim::LONGEST_LEAD),
        ("TURN_PARTS", Turn::PARTS),
        ("TURNS_TOLD", i64::from(Turn::TOLD)),
        ("AVERAGED", AVERAGED),
        ("TOLD_MS", TOLD_MS),
        ("EPOCH", EPOCH),
        ("LONGEST_SLEEP", millis(LONGEST_SLEEP)),
        ("MARK_LOW", i64::from(mark::LOW)),
        ("MARK_BLOCK", i64::try_from(mark::BLOCK).unwrap_or_default()),
        ("MARK_TEXT", i64::try_from(mark::TEXT).unwrap_or_default()),
        ("SPREAD_PARTS", wall::SPREAD_PARTS),
        ("MOST_BETWEEN_PROBES", wall::MOST_BETWEEN_PROBES),
        ("LEAST_BLOCK", slow_start::LEAST_BLOCK),
        ("SLOW_STARTS", i64::from(slow_start::STARTS)),
        ("SLOW_STEP", i64::from(slow_start::STARTS_A_STEP)),
        ("FORGIVEN_AFTER", slow_start::FORGIVEN_AFTER),
        ("PRIORITY_ROBOTS", i64::from(Priority::ROBOTS.value())),
        ("PRIORITY_LINK", i64::from(Priority::LINK.value())),
        ("PRIORITY_RECRAWL", i64::from(Priority::RECRAWL.value())),
    ]
}

/// Reasons have the name of what they tell of in braces.
fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("PROGRAM", env!("CARGO_PKG_VERSION").to_owned()),
        ("LANE", LANE.to_owned()),
        ("NOW", NOW.to_owned()),
        ("OF_CAMPAIGN", OF_CAMPAIGN.to_owned()),
        ("STRICT", word(&TaskOrder::Strict)),
        ("DEADLINE", word(&TaskOrder::Deadline)),
        ("EARLIEST", word(&UnitPick::Earliest)),
        ("PARSE_PAUSE", AwayHost::PARSE_PAUSE.to_owned()),
        ("WORKER_DIED", reasons::WORKER_DIED.to_owned()),
        ("NO_RECORD", reasons::NO_RECORD.to_owned()),
        ("ROBOTS_MOVED_ON", reasons::robots_moved_on("{to}")),
        ("FOREIGN_HOST", reasons::foreign_host("{host}", "{owner}")),
        ("BEING_RENAMED", reasons::being_renamed("{site}", "{to}")),
        ("REQUESTS_IN_FLIGHT", reasons::requests_in_flight("{site}")),
        ("UNIT_MUTEX", UNIT_MUTEX.to_owned()),
        ("START_TOKEN", START_TOKEN.to_owned()),
        ("CHANNEL", CHANNEL.to_owned()),
        ("DIRECTORY", format!("{{paced:{DIRECTORY}}}:")),
        ("WAITING", Place::WAITING.to_owned()),
        ("PARKED", Place::PARKED.to_owned()),
        ("DELAYED", Place::DELAYED.to_owned()),
        ("SCHEDULED", Place::SCHEDULED.to_owned()),
        ("RUNNING", Place::RUNNING.to_owned()),
        ("BEHIND", Place::BEHIND.to_owned()),
        ("CREATED", word(&PutReply::Created)),
        ("COALESCED", word(&PutReply::Coalesced)),
        ("DEFERRED", word(&PutReply::Deferred)),
        ("REVIVED", word(&PutReply::Revived)),
        ("KNOWN", word(&PutReply::Known)),
        ("OVER_BUDGET", word(&PutReply::OverBudget)),
        ("MARK_SITE", word(&HighWater::Site)),
        ("MARK_SITE_BYTES", word(&HighWater::SiteBytes)),
        ("MARK_FRONTIER", word(&HighWater::Frontier)),
        ("MARK_BATCHES", word(&HighWater::Batches)),
        ("BUSY", word(&PutReply::Busy)),
        ("KEPT", word(&Settled::Kept)),
        ("DIED", word(&Settled::Died)),
        ("STALE", word(&Settled::Stale)),
        ("EXPIRED", word(&Exclusion::Expired)),
        ("NO_RULE", word(&Exclusion::NoRule)),
        ("SCOPE", word(&Exclusion::Scope)),
    ]
}

/// A value as it travels.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| Some(word.as_str()?.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::program::FILES;
    use super::*;

    fn names() -> BTreeSet<String> {
        constants().into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// The files as code: without comments and without what stands in quotes.
    fn code() -> String {
        let line = |line: &str| {
            let code = line.split("--").next().unwrap_or_default();
            code.split('\'').step_by(2).collect::<Vec<_>>().join(" ")
        };
        FILES.concat().lines().map(line).collect::<Vec<_>>().join("\n")
    }

    fn is_constant(word: &str) -> bool {
        let first = word.chars().next().is_some_and(|first| first.is_ascii_uppercase());
        first && word.len() > 1 && !word.contains(|c: char| c.is_ascii_lowercase())
    }

    fn constants_of(code: &str) -> BTreeSet<String> {
        words_of(code).filter(|word| is_constant(word)).map(str::to_owned).collect()
    }

    /// The constants that the files make themselves.
    fn own() -> BTreeSet<String> {
        let code = code();
        let made = code.lines().filter_map(|line| line.trim().strip_prefix("local ")?.split('=').next());
        made.flat_map(constants_of).collect()
    }

    #[test]
    fn what_the_program_has_in_common_with_the_steps_is_made_by_the_prelude_alone() {
        let (names, own) = (names(), own());
        assert_eq!(own.intersection(&names).collect::<Vec<_>>(), Vec::<&String>::new());
        let used = constants_of(&code());
        let brought: BTreeSet<String> = names.union(&own).cloned().collect();
        assert_eq!(
            used.difference(&brought).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "used, but not there"
        );
        assert_eq!(
            brought.difference(&used).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "there, but not used"
        );
    }

    #[test]
    fn a_constant_is_declared_once_in_the_module_that_alone_uses_it_or_before_all() {
        let files = [
            "local one = module(function(one)\n  return SLOTS + LEASE_MS\nend)\n",
            "return LEASE_MS, BEAT_MS\n",
        ];
        let program = with_constants(&files);
        let at = |part: &str| program.find(part).unwrap_or_else(|| panic!("no `{part}` in {program}"));
        assert!(at("local LEASE_MS = ") < at(files[1]) && at("local BEAT_MS = ") < at(MODULE));
        assert!(at(MODULE) < at("local SLOTS = ") && at("local SLOTS = ") < at("return SLOTS"));
        let program = with_constants(&FILES);
        for name in names() {
            assert_eq!(program.matches(&format!("local {name} = ")).count(), 1, "{name}");
        }
    }

    #[test]
    fn no_reason_of_the_prelude_is_typed_in_the_files() {
        let files = FILES.concat();
        for (name, text) in texts() {
            for part in text.split(['{', '}']).filter(|part| part.trim().contains(' ')) {
                assert!(!files.contains(part), "{name}: `{part}`");
            }
            assert!(text.is_ascii() && !text.is_empty(), "{name}: `{text}`");
        }
    }

    #[test]
    fn no_constant_of_the_program_has_the_name_of_one_of_the_steps() {
        let frontier = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/frontier");
        let mut theirs = BTreeSet::new();
        for folder in ["state", "steps"] {
            for file in std::fs::read_dir(frontier.join(folder)).expect("a folder of the project") {
                let text = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
                let made = text.split("const ").skip(1).filter_map(|rest| rest.split(':').next());
                theirs.extend(made.flat_map(constants_of));
            }
        }
        assert!(theirs.contains("LEASE_MS") && theirs.contains("LOOKS"), "{theirs:?}");
        assert_eq!(own().intersection(&theirs).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
