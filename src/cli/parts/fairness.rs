//! A tenant's rules as people write them while sites run, and as they are told (F17).

use std::time::Duration;

use super::Trouble;
use crate::clock::millis;
use crate::quantity::{read_duration, spoken, spoken_count, written};
use crate::settings::{MOST_RULES, MOST_THRESHOLD, PER, PERS};
use crate::task::{FleetRules, LaneRule, NOW, Stage};

const STAGES: [(&str, Stage); 2] = [("download", Stage::Download), ("parse", Stage::Parse)];
/// No rule at all.
const NONE: &str = "fairness=none";
const HOW: &str = "write `lane=slow threshold=100 per=1h`, a `lane` first for each rule, or `fairness=none`";

/// Reads rules, each beginning with its lane, among those of the fleet.
pub(in crate::cli) fn read(words: &[String], fleet: &FleetRules) -> Result<Vec<LaneRule>, Trouble> {
    if words.iter().map(String::as_str).eq([NONE]) {
        return Ok(Vec::new());
    }
    let mut rules: Vec<(LaneRule, Option<u32>)> = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| wrong(&format!("`{word}` sets nothing")))?;
        if key == "lane" {
            let lane = lane(value, fleet)?;
            rules.push((LaneRule { lane, threshold: 0, per: millis(PER), stage: None }, None));
            continue;
        }
        let Some((rule, threshold)) = rules.last_mut() else {
            return Err(wrong(&format!("`{word}` belongs to no rule")));
        };
        match key {
            "threshold" => *threshold = Some(of_threshold(value)?),
            "per" => rule.per = per(value)?,
            "stage" => rule.stage = Some(stage(value)?),
            other => return Err(wrong(&format!("a tenant has no `{other}`"))),
        }
    }
    if rules.len() > MOST_RULES {
        return Err(Trouble::usage(format!("there are {} rules: keep {MOST_RULES} at most", rules.len())));
    }
    let none = |lane: &str| wrong(&format!("the rule of the lane `{lane}` has no threshold"));
    rules
        .into_iter()
        .map(|(rule, threshold)| {
            let threshold = threshold.ok_or_else(|| none(&rule.lane))?;
            Ok(LaneRule { threshold, ..rule })
        })
        .collect()
}

fn wrong(what: &str) -> Trouble {
    Trouble::usage(format!("{what}: {HOW}"))
}

fn lane(value: &str, fleet: &FleetRules) -> Result<String, Trouble> {
    if value != NOW && fleet.has_lane(value) {
        return Ok(value.to_owned());
    }
    let known = fleet.known_lanes();
    Err(Trouble::usage(format!(
        "lane can be {known}, not `{value}` (lanes of paced.toml hold from the next crawl, seed or work on)"
    )))
}

fn of_threshold(value: &str) -> Result<u32, Trouble> {
    let number = value.parse().ok().filter(|number| (1..=MOST_THRESHOLD).contains(number));
    let most = spoken_count(MOST_THRESHOLD.into());
    number.ok_or_else(|| Trouble::usage(format!("threshold can be 1 to {most}, not `{value}`")))
}

fn per(value: &str) -> Result<i64, Trouble> {
    let per = read_duration(value).filter(|per| PERS.contains(per)).map(millis);
    let [least, most] = [PERS.start(), PERS.end()].map(|bound| spoken(*bound));
    per.ok_or_else(|| Trouble::usage(format!("per can be {least} to {most}, not `{value}`")))
}

fn stage(value: &str) -> Result<Stage, Trouble> {
    let stage = STAGES.iter().find(|(name, _)| *name == value).map(|(_, stage)| *stage);
    stage.ok_or_else(|| Trouble::usage(format!("stage can be download or parse, not `{value}`")))
}

/// Rules as people read them.
pub(in crate::cli) fn told(rules: &[LaneRule]) -> String {
    let of = |stage: Stage| STAGES.iter().find(|(_, named)| *named == stage).map_or("", |(name, _)| name);
    let rule = |rule: &LaneRule| {
        let per = written(Duration::from_millis(rule.per.unsigned_abs()));
        let stage = rule.stage.map(|stage| format!(" of {}", of(stage))).unwrap_or_default();
        format!("{} after {}{stage} in {per}", rule.lane, spoken_count(rule.threshold.into()))
    };
    let told: Vec<String> = rules.iter().map(rule).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(words: &str) -> Result<String, String> {
        let lanes = [("slow".to_owned(), 3), ("slower".to_owned(), 1)].into();
        let fleet = FleetRules { lanes, ..FleetRules::default() };
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        read(&words, &fleet).map(|rules| told(&rules)).map_err(|trouble| format!("{trouble:?}"))
    }

    #[test]
    fn f17_rules_are_read_each_from_its_lane_on() {
        let both = "lane=slow threshold=100 lane=slower threshold=1000 per=1h stage=parse";
        let told = "slow after 100 in 24h, slower after 1,000 of parse in 1h";
        assert_eq!(read_of(both).as_deref(), Ok(told));
        assert_eq!(read_of("fairness=none").as_deref(), Ok("none"));
    }

    #[test]
    fn f17_what_can_not_be_is_refused_with_what_can() {
        for (words, why) in [
            ("lane=fast threshold=1", "lane can be general, slow, slower, not `fast`"),
            ("lane=now threshold=1", "lane can be general, slow, slower, not `now`"),
            ("lane=slow threshold=0", "threshold can be 1 to 10,000, not `0`"),
            ("lane=slow threshold=10001", "threshold can be 1 to 10,000, not `10001`"),
            ("lane=slow threshold=1 per=500ms", "per can be 1 s to 31 days, not `500ms`"),
            ("lane=slow threshold=1 stage=both", "stage can be download or parse, not `both`"),
            ("lane=slow", "the rule of the lane `slow` has no threshold: write `lane=slow threshold=100"),
            ("threshold=1 lane=slow", "`threshold=1` belongs to no rule"),
            ("interval=5s", "`interval=5s` belongs to no rule"),
            ("lane=slow parallel=5", "a tenant has no `parallel`"),
        ] {
            let said = read_of(words).expect_err(words);
            assert!(said.contains(why), "{words}: {said}");
        }
    }
}
