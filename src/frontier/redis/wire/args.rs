//! The arguments of steps as the script reads them; a token is 16 hex digits.

use std::time::Duration;

use data_encoding::BASE64_NOPAD;
use serde_json::{Value, json};

use super::mark::mark;
use crate::canonical_url::{CanonicalUrl, fingerprint};
use crate::clock::{Timestamp, millis};
use crate::frontier::state::{
    CampaignTuning, DroppedOf, Pause, PausesOfAll, SignOfLife, TunedTenants, Tuning,
};
use crate::frontier::step::{Act, Claim, QueueChange, Registration};
use crate::frontier::table::Haste;
use crate::frontier::url_list::{ListKey, UrlChunk};
use crate::frontier::value::ToWire;
use crate::frontier::view::{LetterPlace, QueuePlace};
use crate::frontier::{MutexKey, WorkScope};
use crate::page::Validators;
use crate::task::{
    CampaignPlan, Event, EventKind, FleetRules, LaneRule, LeaseKey, Origin, Outcome, Put, RobotsAccess,
    RobotsRecord, Settlement, Stage, StoredPage, TooMuch, WallSighting,
};

/// In ms.
const CENTURY: i64 = 100 * 365 * 86_400_000;

macro_rules! as_one_value {
    ($($type:ty: $value:expr;)*) => {
        $(impl ToWire for $type {
            fn put(&self, row: &mut Vec<Value>) {
                let value: fn(&Self) -> Value = $value;
                row.push(value(self));
            }
        })*
    };
}

as_one_value! {
    bool: |yes| json!(yes);
    u32: |number| json!(number);
    String: |text| json!(text);
    // A span that the server can count with: longer ones last for a century.
    i64: |ms| json!((*ms).min(CENTURY));
    // A token.
    u64: |token| json!(hex(*token));
    Duration: |wait| json!(millis(*wait));
    CanonicalUrl: |url| json!(url.as_str());
    MutexKey: |mutex| json!(mutex.stored());
    Claim: claim;
    Registration: registration;
    Vec<LeaseKey>: |leases| leases.iter().map(|lease| json!(named(lease))).collect();
    Vec<Settlement>: |settlements| settlements.iter().map(settlement).collect();
    Vec<(Stage, CanonicalUrl)>: |letters| letters.iter().map(|(stage, url)| json!(member(*stage, url))).collect();
    Option<LetterPlace>: |place| or_false(place.as_ref().map(|at| json!([at.died_at, member(at.stage, &at.url)])));
    Vec<Tuning>: |tunings| tunings.iter().flat_map(tuned).collect();
    Vec<CanonicalUrl>: |urls| urls.iter().map(|url| json!(url.as_str())).collect();
    Option<QueuePlace>: |place| {
        or_false(place.as_ref().map(|place| json!([place.priority.value(), place.put_at.as_millis()])))
    };
    // What is changed, and to what.
    QueueChange: |change| match change {
        QueueChange::Drop => json!(["drop"]),
        QueueChange::Priority { from, to } => json!(["priority", from.value(), to.value()]),
        QueueChange::Lane { from, to } => json!(["lane", from, to]),
    };
    // The script keeps it unread.
    Act: |act| json!(json!(act).to_string());
    Option<Act>: |act| or_false(act.as_ref().map(|act| json!(act).to_string()));
    DroppedOf: |of| json!(json!(of).to_string());
    ListKey: |list| json!(list);
    CampaignPlan: |plan| json!(plan);
    Vec<CampaignTuning>: |tunings| json!(tunings);
    // What travels is text.
    UrlChunk: |chunk| json!(BASE64_NOPAD.encode(chunk.packed()));
    // As the script names it.
    Stage: |stage| json!(stage_letter(*stage));
    // What isn't there is false.
    Option<Pause>: |pause| or_false(pause.as_ref());
    Option<SignOfLife>: |tells| or_false(tells.as_ref().map(|tells| json!(tells).to_string()));
    EventKind: |kind| json!(kind);
    Vec<EventKind>: |kinds| json!(kinds);
    Option<String>: |text| or_false(text.as_ref());
    Option<WorkScope>: |scope| scope.as_ref().map_or(json!(false), work_scope);
}

impl ToWire for LeaseKey {
    fn put(&self, row: &mut Vec<Value>) {
        row.extend(named(self).map(Value::String));
    }
}

/// Its number, and its text, which the script keeps.
impl ToWire for PausesOfAll {
    fn put(&self, row: &mut Vec<Value>) {
        row.extend([json!(self.number), json!(json!(self.pauses).to_string())]);
    }
}

/// Its kind and site, and its text, which the script keeps.
impl ToWire for Event {
    fn put(&self, row: &mut Vec<Value>) {
        row.extend([json!(self.kind), json!(self.site), json!(json!(self).to_string())]);
    }
}

/// Each tenant's rules are a text of their own, which the script keeps unread.
impl ToWire for Option<Vec<LaneRule>> {
    fn put(&self, row: &mut Vec<Value>) {
        row.push(or_false(self.as_ref().map(|rules| json!(rules).to_string())));
    }
}

/// Their number, and the texts of all tenants, as a text.
impl ToWire for TunedTenants {
    fn put(&self, row: &mut Vec<Value>) {
        let texts =
            self.tenants.iter().map(|(tenant, rules)| (tenant.clone(), json!(json!(rules).to_string())));
        row.extend([json!(self.number), json!(Value::Object(texts.collect()).to_string())]);
    }
}

/// It stays with the sender.
impl ToWire for Haste {
    fn put(&self, _row: &mut Vec<Value>) {}
}

/// The rules for all, each tenant's own, what tells all of them from others, and whether there are any.
impl ToWire for FleetRules {
    fn put(&self, row: &mut Vec<Value>) {
        let Self { lanes, fairness, tenants, most_waiting, most_bytes, most_in_all, order, pick } = self;
        let mut for_all = json!({ "lanes": lanes, "fairness": fairness, "order": order, "pick": pick });
        let marks =
            [("most_waiting", most_waiting), ("most_bytes", most_bytes), ("most_in_all", most_in_all)];
        for (name, most) in marks {
            if let Some(most) = most {
                for_all[name] = json!(most);
            }
        }
        let for_all = for_all.to_string();
        let own: Vec<_> =
            tenants.iter().map(|(name, rules)| json!([name, json!(rules).to_string()])).collect();
        let digest = fingerprint(&json!(self).to_string()).cast_unsigned();
        row.extend([json!(for_all), json!(own), json!(hex(digest)), json!(*self == Self::default())]);
    }
}

impl ToWire for Option<i64> {
    fn put(&self, row: &mut Vec<Value>) {
        row.push(or_false(*self));
    }
}

impl ToWire for Option<(Duration, String)> {
    fn put(&self, row: &mut Vec<Value>) {
        row.extend(block(self.as_ref()));
    }
}

impl ToWire for WallSighting {
    fn put(&self, row: &mut Vec<Value>) {
        let Self { why, of_site, looks, first, dice } = self;
        let first = first.min(&CENTURY);
        row.push(json!({ "why": why, "of_site": of_site, "looks": looks, "first": first, "dice": dice }));
    }
}

impl ToWire for Option<WallSighting> {
    fn put(&self, row: &mut Vec<Value>) {
        match self {
            Some(refusal) => refusal.put(row),
            None => row.push(json!(false)),
        }
    }
}

/// The rows, then their marks.
impl ToWire for Vec<Put> {
    fn put(&self, row: &mut Vec<Value>) {
        row.extend([json!(puts(self)), json!(marks(self))]);
    }
}

/// Fields of the site, each with its value.
fn tuned(tuning: &Tuning) -> Vec<Value> {
    match tuning {
        Tuning::Interval(interval) => vec![json!(["tuned_interval", or_false(*interval)])],
        Tuning::Parallel(parallel) => vec![json!(["tuned_parallel", or_false(*parallel)])],
        Tuning::MaxPages(most) => vec![json!(["tuned_max_pages", or_false(*most)])],
        Tuning::Lane(lane) => vec![json!(["tuned_lane", or_false(lane.as_ref())])],
        Tuning::Paused(pause) => {
            let (why, until) =
                (pause.as_ref().map(|pause| &pause.why), pause.as_ref().and_then(|pause| pause.until));
            vec![json!(["paused", or_false(why)]), json!(["paused_until", or_false(until)])]
        }
        Tuning::ParsePaused(pause) => vec![json!(["parse_paused", or_false(pause.as_ref())])],
    }
}

/// What the directory must know of a site before it is registered in another partition.
pub(in crate::frontier::redis) fn booked(new: &Registration) -> Value {
    json!({ "name": new.name, "group": or_false(new.group.as_ref().map(|(name, _)| name)), "hosts": new.hosts })
}

/// A token as it is stored.
pub(super) fn hex(token: u64) -> String {
    format!("{token:016x}")
}

fn or_false<T: serde::Serialize>(value: Option<T>) -> Value {
    value.map_or(Value::Bool(false), |value| json!(value))
}

fn time(at: Option<Timestamp>) -> Value {
    or_false(at.map(Timestamp::as_millis))
}

/// What is asked for as the one before it is its URL alone: most links of a page are, and rows take the server's time.
fn puts(list: &[Put]) -> Vec<Value> {
    let like_the_one_before = |place: usize| {
        let before = list.get(place.wrapping_sub(1))?;
        (Put { url: list[place].url.clone(), ..before.clone() } == list[place]).then_some(())
    };
    let row = |place: usize| match like_the_one_before(place) {
        Some(()) => json!(list[place].url.as_str()),
        None => put(&list[place]),
    };
    (0..list.len()).map(row).collect()
}

/// Links alone may be known already.
fn marks(list: &[Put]) -> Vec<Value> {
    let link = |put: &Put| (put.origin == Origin::Link).then(|| mark(&put.url));
    list.iter().map(|put| or_false(link(put))).collect()
}

fn put(put: &Put) -> Value {
    json!([
        put.url.as_str(),
        put.origin == Origin::Link,
        put.priority.value(),
        put.depth,
        put.hops,
        time(put.at),
        time(put.expires),
        put.again,
        or_false(put.rule.as_ref()),
        time(put.unless_newer),
        or_false(put.wish.lane.as_ref()),
        put.wish.urgent,
        or_false(put.wish.tenant.as_ref()),
        or_false(put.session.as_ref().map(|wish| &wish.name)),
        or_false(put.session.as_ref().and_then(|wish| wish.on_failure)),
        or_false((!put.batches.is_empty()).then_some(&put.batches)),
    ])
}

fn claim(claim: &Claim) -> Value {
    let wanted = u64::from(claim.download) + u64::from(claim.parse);
    let tokens: Vec<String> = (0..=wanted).map(|i| hex(claim.token.wrapping_add(i))).collect();
    json!({
        "owner": claim.owner, "tokens": tokens, "download": claim.download, "parse": claim.parse,
        "dice": claim.dice, "lead": claim.lead,
    })
}

fn work_scope(scope: &WorkScope) -> Value {
    match scope {
        WorkScope::All => json!(true),
        WorkScope::Sites(names) => json!(names),
        WorkScope::Lanes(lanes) => json!({ "lanes": lanes }),
    }
}

pub(in crate::frontier::redis) fn registration(new: &Registration) -> Value {
    let budgets = &new.settings.budgets;
    json!({
        "name": new.name, "text": new.text, "hosts": new.hosts,
        "group": or_false(new.group.as_ref().map(|(name, _)| name)),
        "group_interval": new.group.as_ref().map_or(0, |(_, interval)| *interval),
        "interval": new.settings.interval, "parallel": new.settings.parallel, "attempts": new.settings.attempts,
        "lane": or_false(new.settings.lane.as_ref()), "tenant": or_false(new.settings.tenant.as_ref()),
        "min_interval": new.settings.min_interval, "max_parallel": new.settings.max_parallel,
        "robots": i32::from(new.settings.robots), "budgets": or_false((!budgets.is_empty()).then(|| json!(budgets).to_string())),
    })
}

fn settlement(settlement: &Settlement) -> Value {
    let [wait, why] = block(settlement.block.as_ref());
    let [away, away_why] = block(settlement.away.as_ref());
    json!([
        hex(settlement.lease.token),
        or_false(settlement.response.map(millis)),
        wait,
        why,
        outcome(&settlement.outcome),
        or_false(settlement.parse.map(hex)),
        mark(&settlement.lease.url),
        settlement.lease.site,
        member(settlement.lease.stage, &settlement.lease.url),
        too_much(settlement.too_much),
        away,
        away_why,
    ])
}

/// Its counts, if there are some.
fn too_much(counts: TooMuch) -> Value {
    let TooMuch { links, left_out, too_dear } = counts;
    or_false((counts != TooMuch::default()).then(|| json!([links, u8::from(left_out), u8::from(too_dear)])))
}

/// For how long the unit or the site is left alone, and why.
fn block(block: Option<&(Duration, String)>) -> [Value; 2] {
    [or_false(block.map(|(wait, _)| millis(*wait))), or_false(block.map(|(_, why)| why))]
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Done { stored, recrawl } => {
            let mut done = json!({ "how": "done" });
            if let Some(stored) = stored {
                done["stored"] = stored_page(stored);
            }
            if let Some(recrawl) = recrawl {
                done["recrawl"] = json!(millis(*recrawl));
            }
            done
        }
        Outcome::Excluded { why, unused } => json!({ "how": "excluded", "why": why, "unused": unused }),
        Outcome::Redirected { to } => json!({ "how": "redirected", "to": to.as_str() }),
        Outcome::Retry { after, why } => json!({ "how": "retry", "after": millis(*after), "why": why }),
        Outcome::Refused { why } => json!({ "how": "refused", "why": why }),
        Outcome::Postponed { after } => json!({ "how": "postponed", "after": millis(*after) }),
        Outcome::Dead { why } => json!({ "how": "dead", "why": why }),
        Outcome::Robots(record) => robots(record),
        Outcome::RobotsMoved { to } => json!({ "how": "robots_moved", "to": to.as_str() }),
    }
}

/// When it was fetched, where it is, its entity tag and modification date: those that are too long to keep are left out.
fn stored_page(stored: &StoredPage) -> Value {
    let Validators { etag, last_modified } = &stored.validators;
    json!([
        stored.fetched_at.as_millis(),
        stored.place,
        or_false(etag.as_ref()),
        or_false(last_modified.as_ref())
    ])
}

fn robots(record: &RobotsRecord) -> Value {
    let mut robots = json!({
        "how": "robots", "text": json!(record).to_string(), "holds_for": millis(record.holds_for),
    });
    if let RobotsAccess::Unreachable(why) = &record.access {
        robots["why"] = json!(why);
    }
    if let Some(delay) = record.crawl_delay {
        robots["crawl_delay"] = json!(millis(delay));
    }
    if let Some(why) = &record.refuses {
        robots["refuses"] = json!(why);
    }
    robots
}

/// A lease as the script knows it: its token, its site, and its task's stage and URL.
fn named(lease: &LeaseKey) -> [String; 3] {
    [hex(lease.token), lease.site.clone(), member(lease.stage, &lease.url)]
}

/// A task as it stands in an index: its stage and its URL.
fn stage_letter(stage: Stage) -> char {
    if stage == Stage::Parse { 'p' } else { 'd' }
}

fn member(stage: Stage, url: &CanonicalUrl) -> String {
    let letter = stage_letter(stage);
    format!("{letter}{url}")
}
