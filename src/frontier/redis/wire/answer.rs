//! The script's answer to a step, read back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::ask::stage;
use super::value::{Odd, Read, Record, Row, all, embedded, is_true, list, odd, parse, some, url, whole};
use crate::clock::Timestamp;
use crate::frontier::state::{DeadState, StageCounts, WorkScope};
use crate::frontier::step::{
    Feeding, Forgotten, Grant, Lock, Lost, Rearm, Registered, Renamed, Reply, Run, Step,
};
use crate::frontier::view::{
    Freshness, Inspection, KnownRobots, Latest, Owner, Says, Standing, View, Whereabouts,
};
use crate::task::{DeadLetter, Exclusion, Lease, Origin, Priority, RobotsErrand, Settled};

/// The reply to `step`.
pub(in crate::frontier::redis) fn answer(step: &Step, value: &Value) -> Read<Reply> {
    Ok(match step {
        Step::Register(_) => Reply::Registered(registered(value)?),
        Step::BeginRun { .. } => {
            let row = Row::of(value)?;
            Reply::Run(Run { number: row.number(0)?, begun: row.flag(1) })
        }
        Step::GiveUp { .. } | Step::Sweep { .. } => Reply::More(is_true(value)),
        Step::Put { .. } => Reply::Puts(some(value).map(all).transpose()?),
        Step::Feed { .. } => Reply::Fed(feeding(value)?),
        Step::Claim(_) => Reply::Grant(grant(value)?),
        Step::Rearm { .. } => Reply::Rearm(rearm(value)?),
        Step::ParseAgain { .. }
        | Step::Landed { .. }
        | Step::Back { .. }
        | Step::Block { .. }
        | Step::Tune { .. }
        | Step::Bury { .. }
        | Step::Unlock { .. }
        | Step::ExtendLock { .. }
        | Step::HoldsLock { .. } => Reply::Done(is_true(value)),
        Step::Extend { .. } | Step::DropLetters { .. } => {
            Reply::Alive(list(value).iter().map(is_true).collect())
        }
        Step::Settle { .. } => Reply::Settled(list(value).iter().map(settled).collect::<Read<_>>()?),
        Step::Forget { .. } => Reply::Forgotten(forgotten(value)?),
        Step::Rename { .. } => Reply::Renamed(renamed(value)?),
        Step::Unbook { .. } | Step::Rebook { .. } | Step::SetGroupInterval { .. } | Step::Enlist { .. } => {
            Reply::Nothing
        }
        Step::Owners => Reply::Owners(list(value).iter().map(owner).collect::<Read<_>>()?),
        Step::TryLock { .. } => Reply::Lock(lock(value)?),
        Step::LockLeft { .. } => Reply::Left(some(value).map(parse).transpose()?),
        Step::Sites => Reply::Names(names(value)?),
        Step::View { .. } => Reply::View(some(value).map(view).transpose()?.map(Box::new)),
        Step::Text { .. } | Step::SiteOf { .. } => Reply::Text(some(value).map(parse).transpose()?),
        Step::Robots { .. } => Reply::Robots(some(value).map(robots).transpose()?),
        Step::Stored { .. } => Reply::Latest(some(value).map(latest).transpose()?),
        Step::Whereabouts { site, .. } => Reply::Whereabouts(Box::new(whereabouts(site, value)?)),
        Step::Freshness { .. } => Reply::Freshness(freshness(value)?),
        Step::DeadLetters { site, .. } => {
            Reply::Letters(list(value).iter().map(|row| letter(site, row)).collect::<Read<_>>()?)
        }
        Step::Inspect => Reply::Inspection(Box::new(inspection(value)?)),
    })
}

/// A list of names.
pub(in crate::frontier::redis) fn names(value: &Value) -> Read<Vec<String>> {
    all(value)
}

/// Why a site is refused, if it is.
pub(in crate::frontier::redis) fn refusal(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// What the directory says of a site that is to be registered.
pub(in crate::frontier::redis) enum Booked {
    Refused(String),
    /// It is booked under a number, and nothing else is booked of it.
    Under {
        number: i64,
        is_all: bool,
    },
}

pub(in crate::frontier::redis) fn booked(value: &Value) -> Read<Booked> {
    if let Some(why) = refusal(value) {
        return Ok(Booked::Refused(why));
    }
    let row = Row::of(value)?;
    Ok(Booked::Under { number: row.number(0)?, is_all: row.flag(1) })
}

/// What a partition says of a site that was booked.
pub(in crate::frontier::redis) enum Admitted {
    As(Registered),
    /// One that was booked later is in force already.
    Late,
}

pub(in crate::frontier::redis) fn admitted(value: &Value) -> Read<Admitted> {
    match Row::of(value)?.text(0)? {
        "late" => Ok(Admitted::Late),
        _ => registered(value).map(Admitted::As),
    }
}

fn registered(value: &Value) -> Read<Registered> {
    let row = Row::of(value)?;
    Ok(match row.text(0)? {
        "version" => Registered::Version(row.number(1)?),
        _ => Registered::Refused(row.text(1)?.to_owned()),
    })
}

fn grant(value: &Value) -> Read<Grant> {
    let row = Row::of(value)?;
    Ok(Grant {
        leases: list(row.at(0)).iter().map(lease).collect::<Read<_>>()?,
        next_in: row.maybe_number(1)?,
        buried: row.flag(2),
        lost: list(row.at(3)).iter().map(lost).collect::<Read<_>>()?,
    })
}

fn lost(value: &Value) -> Read<Lost> {
    let row = Row::of(value)?;
    Ok(Lost {
        site: row.text(0)?.to_owned(),
        stage: stage(row.text(1)?),
        url: url(row.at(2))?,
        losses: row.small(3)?,
        kept_back: row.maybe_number(4)?,
    })
}

fn feeding(value: &Value) -> Read<Feeding> {
    let row = Row::of(value)?;
    Ok(Feeding { put: row.number(0)?.unsigned_abs(), next_in: row.maybe_number(1)? })
}

fn lease(value: &Value) -> Read<Lease> {
    let row = Row::of(value)?;
    let token = u64::from_str_radix(row.text(0)?, 16).map_err(|_| odd(value))?;
    let failures = row.small(14)?;
    let interval = u64::try_from(row.number(12)?).map_err(|_| odd(value))?;
    let priority = u16::try_from(row.number(9)?).map_err(|_| odd(value))?;
    Ok(Lease {
        token,
        site: row.text(1)?.to_owned(),
        stage: stage(row.text(2)?),
        url: url(row.at(3))?,
        fence: row.number(4)?,
        granted_at: row.time(5)?,
        ends_at: row.time(6)?,
        attempts: row.small(7)?,
        origin: if row.flag(8) { Origin::Link } else { Origin::Request },
        priority: Priority::from_value(priority),
        depth: row.small(10)?,
        hops: row.small(11)?,
        interval: Duration::from_millis(interval),
        robots: row.maybe(13, url)?.map(|fetch| RobotsErrand { fetch, failures }),
        robots_until: row.maybe(15, |_| row.time(15))?,
        stored: row.maybe(16, embedded)?,
        version: row.number(17)?,
    })
}

/// A word, or the lease of a parse.
fn settled(value: &Value) -> Read<Settled> {
    if value.is_array() { Ok(Settled::Leased(Box::new(lease(value)?))) } else { parse(value) }
}

fn rearm(value: &Value) -> Read<Rearm> {
    let row = Row::of(value)?;
    Ok(match row.text(0)? {
        "start" => Rearm::StartIn(row.number(1)?),
        "held" => Rearm::Held(row.number(1)?),
        "back" => Rearm::WentBack,
        _ => Rearm::Stale,
    })
}

fn lock(value: &Value) -> Read<Lock> {
    let row = Row::of(value)?;
    Ok(match row.text(0)? {
        "taken" => Lock::Taken(row.number(1)?),
        _ => Lock::Held(row.number(1)?),
    })
}

fn owner(value: &Value) -> Read<Owner> {
    let row = Row::of(value)?;
    Ok(Owner {
        name: row.text(0)?.to_owned(),
        pid: row.small(1)?,
        scope: match row.at(2) {
            Value::Bool(true) => WorkScope::All,
            sites => WorkScope::of(names(sites)?),
        },
        dead: row.flag(3),
    })
}

fn forgotten(value: &Value) -> Read<Forgotten> {
    Ok(match value {
        Value::Array(_) => {
            let row = Row::of(value)?;
            match row.number(2)? {
                0 => Forgotten::Busy {
                    tasks: row.number(0)?.unsigned_abs(),
                    leased: row.number(1)?.unsigned_abs(),
                },
                wait => Forgotten::NotYet { wait },
            }
        }
        _ if value == "partly" => Forgotten::Partly,
        _ if value == "wholly" => Forgotten::Wholly,
        _ => Forgotten::Unknown,
    })
}

fn renamed(value: &Value) -> Read<Renamed> {
    Ok(match value {
        Value::Array(_) => Renamed::Busy { leased: Row::of(value)?.number(0)?.unsigned_abs() },
        _ if value == "done" => Renamed::Done,
        _ if value == "taken" => Renamed::Taken,
        _ => Renamed::Unknown,
    })
}

fn robots(value: &Value) -> Read<KnownRobots> {
    let row = Row::of(value)?;
    Ok(KnownRobots { record: embedded(row.at(0))?, until: row.time(1)?, failures: row.small(2)? })
}

fn freshness(value: &Value) -> Read<Freshness> {
    let row = Row::of(value)?;
    let number = |place| row.number(place).map(i64::unsigned_abs);
    let oldest = row.maybe_number(2)?.map(Timestamp::from_millis);
    Ok(Freshness { fresh: number(0)?, all: number(1)?, oldest })
}

fn letter(site: &str, value: &Value) -> Read<DeadLetter> {
    let row = Row::of(value)?;
    let dead: DeadState = embedded(row.at(2))?;
    Ok(dead.letter(site, stage(row.text(0)?), &url(row.at(1))?))
}

fn view(value: &Value) -> Read<View> {
    let (site, unit) = (Record::of(value, "site")?, Record::of(value, "unit")?);
    let whole_of = Record(value.as_object().ok_or_else(|| odd(value))?);
    let at = whole_of.number("at");
    let blocked = unit.maybe("blocked_until").filter(|until| *until > at);
    let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(View {
        site: site.text("name").unwrap_or_default(),
        unit: site.text("unit").unwrap_or_default(),
        at: Timestamp::from_millis(at),
        run: site.number("run"),
        run_began: Timestamp::from_millis(site.number("run_began")),
        finished: value.get("finished").is_some_and(is_true),
        interval: whole_of.number("interval"),
        parallel: small(whole_of.number("parallel")),
        in_flight: small(site.number("running")),
        download: counts(&site, 'd', value.get("excluded_d"))?,
        parse: counts(&site, 'p', value.get("excluded_p"))?,
        oldest: whole_of.time("oldest"),
        response: site.maybe("response"),
        starts: site.number("starts").unsigned_abs(),
        last_start: unit.time("last_at"),
        due: Timestamp::from_millis(whole_of.number("due")),
        blocked_until: blocked.map(Timestamp::from_millis),
        blocked_why: unit.text("blocked_why").filter(|_| blocked.is_some()),
        paused: site.text("paused"),
        version: site.number("version"),
        says: says(&site, &unit)?,
    })
}

fn says(site: &Record<'_>, unit: &Record<'_>) -> Read<Says> {
    let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let floors: BTreeMap<String, i64> = match site.text("floors") {
        Some(text) if site.number("robots") == 1 => {
            serde_json::from_str(&text).map_err(|_| Odd::of(&text))?
        }
        _ => BTreeMap::new(),
    };
    Ok(Says {
        interval: site.number("interval"),
        tuned_interval: site.maybe("tuned_interval"),
        robots: floors.into_iter().map(|(origin, floor)| (floor, origin)).max(),
        group: unit.maybe("interval").filter(|interval| *interval > 0),
        parallel: small(site.number("parallel")),
        tuned_parallel: site.maybe("tuned_parallel").map(small),
    })
}

fn whereabouts(site: &str, value: &Value) -> Read<Whereabouts> {
    let Some(found) = some(value) else { return Ok(Whereabouts::default()) };
    let part = |name: &str| found.get(name).unwrap_or(&Value::Null);
    Ok(Whereabouts {
        tasks: list(part("tasks")).iter().map(standing).collect::<Read<_>>()?,
        letters: list(part("letters")).iter().map(|row| letter(site, row)).collect::<Read<_>>()?,
        latest: some(part("latest")).map(latest).transpose()?,
        recrawl_at: whole(part("again")).map(Timestamp::from_millis),
        is_known: is_true(part("known")),
    })
}

fn latest(value: &Value) -> Read<Latest> {
    let row = Row::of(value)?;
    Ok(Latest { stored: embedded(row.at(0))?, depth: row.small(1)? })
}

fn standing(value: &Value) -> Read<Standing> {
    let row = Row::of(value)?;
    Ok(Standing {
        stage: stage(row.text(0)?),
        place: row.text(1)?.to_owned(),
        until: whole(row.at(2)).map(Timestamp::from_millis),
        owner: row.at(3).as_str().map(str::to_owned),
        priority: Priority::from_value(u16::try_from(row.number(4)?).map_err(|_| odd(value))?),
        put_at: row.time(5)?,
        depth: row.small(6)?,
        attempts: row.small(7)?,
        losses: row.small(8)?,
        failure: some(row.at(9)).map(parse).transpose()?,
    })
}

fn counts(site: &Record<'_>, stage: char, excluded: Option<&Value>) -> Read<StageCounts> {
    let count = |name| site.count(stage, name);
    let excluded: BTreeMap<Exclusion, u64> = match excluded {
        Some(map @ Value::Object(_)) => parse(map)?,
        _ => BTreeMap::new(),
    };
    Ok(StageCounts {
        waiting: count("waiting"),
        delayed: count("delayed"),
        scheduled: count("scheduled"),
        leased: count("leased"),
        letters: count("letters"),
        created: count("created"),
        revived: count("revived"),
        reruns: count("reruns"),
        done: count("done"),
        dead: count("dead"),
        dropped: count("dropped"),
        coalesced: count("coalesced"),
        deferred: count("deferred"),
        known: count("known"),
        absorbed: count("absorbed"),
        over_budget: count("over_budget"),
        redirected: count("redirected"),
        lost: count("lost"),
        retried: count("retried"),
        excluded,
    })
}

fn inspection(value: &Value) -> Read<Inspection> {
    let rows = |name: &str| value.get(name).map_or(&[][..], list);
    let text = |row: &Row<'_>, place| row.text(place).map(str::to_owned);
    let task = |value| {
        let row = Row::of(value)?;
        Ok((text(&row, 0)?, stage(row.text(1)?), text(&row, 2)?, text(&row, 3)?))
    };
    let due = |value| {
        let row = Row::of(value)?;
        Ok((stage(row.text(0)?), text(&row, 1)?, row.number(2)?))
    };
    let dead = |value| {
        let row = Row::of(value)?;
        Ok((text(&row, 0)?, stage(row.text(1)?), text(&row, 2)?))
    };
    let mut all = Inspection {
        tasks: rows("tasks").iter().map(task).collect::<Read<_>>()?,
        due: rows("due").iter().map(due).collect::<Read<_>>()?,
        dead: rows("dead").iter().map(dead).collect::<Read<_>>()?,
        known: value.get("known").and_then(whole).unwrap_or(0).unsigned_abs(),
    };
    all.tasks.sort();
    all.due.sort();
    all.dead.sort();
    Ok(all)
}
