//! The script's answers, each read into its type.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::frontier::state::{DeadState, StageCounts, WorkScope};
use crate::frontier::step::{Feeding, Forgotten, Grant, Lock, Lost, Rearm, Registered, Renamed, Run};
use crate::frontier::value::{
    Decoded, FromWire, MalformedReply, ReplyRecord, ReplyRow, embedded, is_true, list, malformed, parse,
    some, whole,
};
use crate::frontier::view::{
    Freshness, Inspection, KnownRobots, Latest, Owner, Says, UnitStatus, UrlStatus, View,
};
use crate::task::{DeadLetter, Exclusion, Lease, Origin, PageKey, PutReply, RobotsFetch, Settled};

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

pub(in crate::frontier::redis) fn booked(value: &Value) -> Decoded<Booked> {
    if let Some(why) = refusal(value) {
        return Ok(Booked::Refused(why));
    }
    let row = ReplyRow::of(value)?;
    Ok(Booked::Under { number: row.number(0)?, is_all: row.get(1)? })
}

/// What a partition says of a site that was booked.
pub(in crate::frontier::redis) enum Admitted {
    As(Registered),
    /// One that was booked later is in force already.
    Late,
}

pub(in crate::frontier::redis) fn admitted(value: &Value) -> Decoded<Admitted> {
    match ReplyRow::of(value)?.text(0)? {
        "late" => Ok(Admitted::Late),
        _ => Registered::read(value).map(Admitted::As),
    }
}

impl FromWire for Registered {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(match row.text(0)? {
            "version" => Self::Version(row.get(1)?),
            _ => Self::Refused(row.text(1)?.to_owned()),
        })
    }
}

impl FromWire for Run {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { number: row.get(0)?, begun: row.get(1)? })
    }
}

/// A word.
impl FromWire for PutReply {
    fn read(value: &Value) -> Decoded<Self> {
        parse(value)
    }
}

impl FromWire for Grant {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { leases: row.get(0)?, next_in: row.get(1)?, buried: row.get(2)?, lost: row.get(3)? })
    }
}

impl FromWire for Lost {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self {
            site: row.get(0)?,
            stage: row.get(1)?,
            url: row.get(2)?,
            losses: row.get(3)?,
            kept_back: row.get(4)?,
        })
    }
}

impl FromWire for Feeding {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { put: row.number(0)?.unsigned_abs(), next_in: row.get(1)? })
    }
}

impl FromWire for Lease {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        let token = u64::from_str_radix(row.text(0)?, 16).map_err(|_| malformed(value))?;
        let failures = row.get(14)?;
        let interval = u64::try_from(row.number(12)?).map_err(|_| malformed(value))?;
        Ok(Self {
            token,
            site: row.get(1)?,
            stage: row.get(2)?,
            url: row.get(3)?,
            fence: row.get(4)?,
            granted_at: row.get(5)?,
            ends_at: row.get(6)?,
            attempts: row.get(7)?,
            origin: if row.get(8)? { Origin::Link } else { Origin::Request },
            priority: row.get(9)?,
            depth: row.get(10)?,
            hops: row.get(11)?,
            interval: Duration::from_millis(interval),
            robots: row.get::<Option<_>>(13)?.map(|fetch| RobotsFetch { fetch, failures }),
            robots_until: row.get(15)?,
            stored: some(row.at(16)).map(embedded).transpose()?,
            version: row.get(17)?,
        })
    }
}

/// A word, or the lease of a parse.
impl FromWire for Settled {
    fn read(value: &Value) -> Decoded<Self> {
        if value.is_array() { Ok(Self::Leased(FromWire::read(value)?)) } else { parse(value) }
    }
}

impl FromWire for Rearm {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(match row.text(0)? {
            "start" => Self::StartIn(row.get(1)?),
            "held" => Self::Held(row.get(1)?),
            "back" => Self::WentBack,
            _ => Self::Stale,
        })
    }
}

impl FromWire for Lock {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(match row.text(0)? {
            "taken" => Self::Taken(row.get(1)?),
            _ => Self::Held(row.get(1)?),
        })
    }
}

/// `true`: all sites.
impl FromWire for WorkScope {
    fn read(value: &Value) -> Decoded<Self> {
        if is_true(value) { Ok(Self::All) } else { Vec::read(value).map(Self::of) }
    }
}

impl FromWire for Owner {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { name: row.get(0)?, pid: row.get(1)?, scope: row.get(2)?, dead: row.get(3)? })
    }
}

impl FromWire for Forgotten {
    fn read(value: &Value) -> Decoded<Self> {
        Ok(match value {
            Value::Array(_) => {
                let row = ReplyRow::of(value)?;
                match row.number(2)? {
                    0 => Self::Busy {
                        tasks: row.number(0)?.unsigned_abs(),
                        leased: row.number(1)?.unsigned_abs(),
                    },
                    wait => Self::NotYet { wait },
                }
            }
            _ if value == "partly" => Self::Partly,
            _ if value == "wholly" => Self::Wholly,
            _ => Self::Unknown,
        })
    }
}

impl FromWire for Renamed {
    fn read(value: &Value) -> Decoded<Self> {
        Ok(match value {
            Value::Array(_) => Self::Busy { leased: ReplyRow::of(value)?.number(0)?.unsigned_abs() },
            _ if value == "done" => Self::Done,
            _ if value == "taken" => Self::Taken,
            _ => Self::Unknown,
        })
    }
}

impl FromWire for KnownRobots {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { record: embedded(row.at(0))?, until: row.get(1)?, failures: row.get(2)? })
    }
}

impl FromWire for Freshness {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        let number = |place| row.number(place).map(i64::unsigned_abs);
        Ok(Self { fresh: number(0)?, all: number(1)?, oldest: row.get(2)? })
    }
}

impl FromWire for DeadLetter {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        let dead: DeadState = embedded(row.at(2))?;
        let page = PageKey { site: row.text(3)?, url: &row.get(1)? };
        Ok(dead.letter(page, row.get(0)?))
    }
}

impl FromWire for View {
    fn read(value: &Value) -> Decoded<Self> {
        let (site, unit) = (ReplyRecord::of(value, "site")?, ReplyRecord::of(value, "unit")?);
        let whole_of = ReplyRecord(value.as_object().ok_or_else(|| malformed(value))?);
        let at = whole_of.number("at");
        let blocked = unit.maybe("blocked_until").filter(|until| *until > at);
        let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Self {
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
}

fn says(site: &ReplyRecord<'_>, unit: &ReplyRecord<'_>) -> Decoded<Says> {
    let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let floors: BTreeMap<String, i64> = match site.text("floors") {
        Some(text) if site.number("robots") == 1 => {
            serde_json::from_str(&text).map_err(|_| MalformedReply::of(&text))?
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

impl FromWire for UrlStatus {
    fn read(value: &Value) -> Decoded<Self> {
        let Some(found) = some(value) else { return Ok(Self::default()) };
        let part = |name: &str| found.get(name).unwrap_or(&Value::Null);
        Ok(Self {
            tasks: FromWire::read(part("tasks"))?,
            letters: FromWire::read(part("letters"))?,
            latest: FromWire::read(part("latest"))?,
            recrawl_at: FromWire::read(part("again"))?,
            is_known: FromWire::read(part("known"))?,
        })
    }
}

impl FromWire for Latest {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self { stored: embedded(row.at(0))?, depth: row.get(1)? })
    }
}

impl FromWire for UnitStatus {
    fn read(value: &Value) -> Decoded<Self> {
        let row = ReplyRow::of(value)?;
        Ok(Self {
            stage: row.get(0)?,
            place: row.get(1)?,
            until: row.get(2)?,
            owner: row.get(3)?,
            priority: row.get(4)?,
            put_at: row.get(5)?,
            depth: row.get(6)?,
            attempts: row.get(7)?,
            losses: row.get(8)?,
            failure: some(row.at(9)).map(parse).transpose()?,
        })
    }
}

fn counts(site: &ReplyRecord<'_>, stage: char, excluded: Option<&Value>) -> Decoded<StageCounts> {
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

impl FromWire for Inspection {
    fn read(value: &Value) -> Decoded<Self> {
        let rows = |name: &str| value.get(name).map_or(&[][..], list);
        let task = |value| {
            let row = ReplyRow::of(value)?;
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        };
        let due = |value| {
            let row = ReplyRow::of(value)?;
            Ok((row.get(0)?, row.get(1)?, row.number(2)?))
        };
        let dead = |value| {
            let row = ReplyRow::of(value)?;
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        };
        let mut all = Self {
            tasks: rows("tasks").iter().map(task).collect::<Decoded<_>>()?,
            due: rows("due").iter().map(due).collect::<Decoded<_>>()?,
            dead: rows("dead").iter().map(dead).collect::<Decoded<_>>()?,
            known: value.get("known").and_then(whole).unwrap_or(0).unsigned_abs(),
        };
        all.tasks.sort();
        all.due.sort();
        all.dead.sort();
        Ok(all)
    }
}
