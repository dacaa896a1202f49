//! The script's answers, each read into its type.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE64_NOPAD;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::frontier::state::{
    Agreed, BatchCounts, CampaignCounts, CampaignState, DeadState, DropMark, EventEnd, GroupPaused, LastBeat,
    OldestWaiting, PausesOfAll, QueueBooks, QueueFlow, SessionState, SignOfLife, StageCounts, TakenEvent,
    TuneReply, TunedTenants, WaitKey, WorkScope,
};
use crate::frontier::step::{
    Beaten, Begun, CampaignBooked, CampaignCleared, CampaignFed, CampaignMade, CampaignTuned, Feeding,
    Forgotten, Grant, LockReply, Lost, Rearm, Registered, Renamed, Run, SeedReply,
};
use crate::frontier::url_list::UrlChunk;
use crate::frontier::value::{Decoded, FromWire, ReplyRow, embedded, is_true, malformed, parse, read_by};
use crate::frontier::view::{
    CampaignName, CampaignStatus, DatedAct, EventsStatus, Freshness, HeldSession, Inspection, KnownPause,
    KnownRobots, KnownWall, LatestPage, Owner, Queued, Says, SessionStatus, SessionStep, SiteNames,
    UnitStatus, UntoldEvent, UrlStatus, View, Whose,
};
use crate::page::Validators;
use crate::task::{
    BatchNames, DeadLetter, Departure, Event, EventKind, Failure, FleetRules, Lease, Origin, PageKey,
    PutReply, RobotsFetch, RobotsRecord, Settled, StoredPage, TaskOrder,
};

/// Rows of the script: their fields, in its order.
macro_rules! rows {
    ($($type:ident { $($field:ident),* })*) => {
        $(impl FromWire for $type {
            fn read(value: &Value) -> Decoded<Self> {
                let mut row = ReplyRow::of(value)?;
                Ok(Self { $($field: row.next()?),* })
            }
        })*
    };
}

rows! {
    Run { number, begun, is_replaced }
    Begun { run, next, is_given_up }
    Feeding { put, next_in }
    Grant { leases, next_in, buried, lost }
    Lease {
        token, site, stage, url, fence, granted_at, ends_at, attempts, origin, priority, depth, hops, departure, robots,
        robots_until, stored, version, supply, places, parallel, response, tells, probe_of, tenant, urgent,
        session, batches
    }
    BatchCounts {
        created, coalesced, deferred, revived, known, targets, merged, done, dead, excluded, dropped, began_at, ended_at
    }
    RobotsFetch { fetch, failures }
    Lost { site, stage, url, losses, kept_back }
    Beaten { sharers, drained }
    Owner { name, pid, scope, dead, drained, beat }
    LastBeat { at, tells }
    SiteNames { names, next }
    View {
        site, unit, at, run, run_began, finished, interval, parallel, in_flight, download, parse, oldest, response, starts,
        last_start, due, blocked_until, blocked_why, pauses, version, says, seeds, is_given_up, wall, slow_starts,
        held, held_in_all, order
    }
    CampaignName { name, site, number }
    CampaignStatus { campaign, counts, interval, room, at }
    CampaignCounts { open, done, dead, dropped, coalesced }
    CampaignFed { put, next, room }
    HeldSession { name, url }
    SessionStatus { session, next }
    SessionStep { url, priority }
    KnownPause { whose, stage, why, until }
    KnownWall { why, since, url, probe_at, refused, looks }
    Says { interval, tuned_interval, robots, group, parallel, tuned_parallel, least_interval, most_parallel, max_pages, tuned_max_pages, tuned_lane, tuned_group }
    KnownRobots { record, until, failures }
    UrlStatus { tasks, letters, latest, recrawl_at, is_known }
    Queued { url, priority, put_at, depth, lane, tenant, batches }
    UnitStatus { stage, place, until, owner, priority, put_at, depth, attempts, losses, failure, lane, tenant, session, batches }
    Departure { at, unit, site }
    LatestPage { stored, depth }
    Freshness { fresh, all, oldest }
    QueueFlow { at, books, past, run, waits, oldest }
    QueueBooks { entered, gone, puts, coalesced }
    WaitKey { lane, level, tenant, bucket }
    OldestWaiting { lane, priority, put_at }
    Inspection { tasks, due, dead, known }
    TakenEvent { at, failures, event }
    EventsStatus { waiting, failed }
    UntoldEvent { at, kind, site, why, given_up }
}

read_by! {
    Registered: parse;
    PutReply: parse;
    SeedReply: parse;
    Rearm: parse;
    LockReply: parse;
    TuneReply: parse;
    Agreed: parse;
    EventEnd: parse;
    EventKind: parse;
    Event: embedded;
    TaskOrder: parse;
    GroupPaused: parse;
    Whose: parse;
    // Its number, and its text.
    PausesOfAll: |value| {
        let (number, pauses): (i64, String) = FromWire::read(value)?;
        Ok(Self { number, pauses: serde_json::from_str(&pauses).map_err(|_| malformed(value))? })
    };
    // Its time, and of whom as text.
    DropMark: |value| {
        let (at, of): (i64, String) = FromWire::read(value)?;
        Ok(Self { at, of: serde_json::from_str(&of).map_err(|_| malformed(value))? })
    };
    // Their number, and the texts of all tenants, as a text.
    TunedTenants: |value| {
        let (number, texts): (i64, String) = FromWire::read(value)?;
        let texts: BTreeMap<String, String> = serde_json::from_str(&texts).map_err(|_| malformed(value))?;
        let tenants = texts.into_iter().map(|(tenant, rules)| Some((tenant, serde_json::from_str(&rules).ok()?)));
        let tenants = tenants.collect::<Option<_>>().ok_or_else(|| malformed(value))?;
        Ok(Self { number, tenants })
    };
    // Those for all as text, then each tenant's.
    FleetRules: |value| {
        let (for_all, own): (String, Vec<(String, String)>) = FromWire::read(value)?;
        let read = |text: &str| serde_json::from_str(text).map_err(|_| malformed(value));
        let tenants = own.into_iter().map(|(name, rules)| Ok((name, serde_json::from_str(&rules).map_err(|_| malformed(value))?)));
        Ok(Self { tenants: tenants.collect::<Decoded<_>>()?, ..read(&for_all)? })
    };
    CampaignBooked: parse;
    CampaignMade: parse;
    CampaignTuned: parse;
    CampaignCleared: parse;
    CampaignState: embedded;
    UrlChunk: |value| {
        let text = value.as_str().ok_or_else(|| malformed(value))?;
        BASE64_NOPAD.decode(text.as_bytes()).map(Self::from_packed).map_err(|_| malformed(value))
    };
    Forgotten: parse;
    Renamed: parse;
    StageCounts: parse;
    Failure: parse;
    // A task that is older than schema 4 has it as text.
    StoredPage: |value| {
        if value.is_string() {
            return embedded(value);
        }
        let (fetched_at, place, etag, last_modified) = FromWire::read(value)?;
        Ok(Self { place, fetched_at, validators: Validators { etag, last_modified } })
    };
    RobotsRecord: embedded;
    SessionState: embedded;
    SignOfLife: embedded;
    DeadState: embedded;
    // None is false.
    BatchNames: |value| Ok(Option::<Vec<String>>::read(value)?.unwrap_or_default().into_iter().collect());
    // Its time in ms, then the rest.
    DatedAct: |value| {
        let (at, act) = value.as_str().and_then(|entry| entry.split_once(' ')).ok_or_else(|| malformed(value))?;
        let at = at.parse().map(Timestamp::from_millis).map_err(|_| malformed(value))?;
        Ok(Self { at, act: serde_json::from_str(act).map_err(|_| malformed(value))? })
    };
    // A token is text; a count is a number.
    u64: |value| match value.as_str() {
        Some(token) => u64::from_str_radix(token, 16).map_err(|_| malformed(value)),
        None => i64::read(value)?.try_into().map_err(|_| malformed(value)),
    };
    Duration: |value| u64::read(value).map(Self::from_millis);
    Origin: |value| Ok(if is_true(value) { Self::Link } else { Self::Request });
    // `true`: all sites.
    WorkScope: |value| match value.get("lanes") {
        _ if is_true(value) => Ok(Self::All),
        Some(lanes) => Vec::read(lanes).map(Self::of_lanes),
        None => Vec::read(value).map(Self::of),
    };
    // A word, or the lease of a parse.
    Settled: |value| if value.is_array() { Box::read(value).map(Self::Leased) } else { parse(value) };
    DeadLetter: |value| {
        let (stage, url, dead, site): (_, _, DeadState, String) = FromWire::read(value)?;
        Ok(dead.letter(PageKey { site: &site, url: &url }, stage))
    };
}
