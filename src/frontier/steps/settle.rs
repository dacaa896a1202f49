//! How a task ends, row by row of the table "state is a place".

use std::time::Duration;

use super::lease::{absorb, held, lease_of, leased};
use super::places::{die, finish, give_back_start, retime, save, save_unit, shift};
use super::put::{Brought, put_one};
use super::reasons;
use crate::clock::millis;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{PageState, Place, RobotsState, Running, SiteState, Task, WorkScope};
use crate::manners::MOST_ROBOTS_REDIRECTS;
use crate::task::{
    Exclusion, Failure, LeaseKey, Origin, Outcome, Priority, Put, RobotsAccess, RobotsRecord, Settled,
    Settlement, Stage, StoredPage,
};

/// How long a `robots.txt` is left alone that ended in a way it should not.
pub(in crate::frontier) const ODD_ROBOTS: Duration = Duration::from_hours(1);

/// Settles tasks, in order. The same call again gets the same answers and changes nothing.
pub(super) fn settle<S: Shelf>(
    shelf: &mut S,
    owner_name: &str,
    token: u64,
    settlements: Vec<Settlement>,
    now: i64,
) -> Result<Vec<Settled>, S::Error> {
    let owner = shelf.owner(owner_name)?;
    let last = owner.as_ref().and_then(|owner| owner.last.settled.as_ref());
    let parses: Vec<Option<LeaseKey>> = settlements.iter().map(parse_asked_for).collect();
    let replies = match last {
        Some((last, replies)) if *last == token => replies.clone(),
        _ => {
            let living = owner.filter(|owner| !owner.dead);
            let taker = living.is_some().then_some(owner_name);
            let replies = settlements.into_iter().map(|settlement| settle_one(shelf, settlement, taker, now));
            let replies = replies.collect::<Result<Vec<_>, _>>()?;
            if let Some(mut owner) = living {
                owner.last.settled = Some((token, replies.clone()));
                shelf.save_owner(owner_name, &owner)?;
            }
            replies
        }
    };
    parses.into_iter().zip(replies).map(|(parse, reply)| with_parse(shelf, parse, reply)).collect()
}

fn parse_asked_for(settlement: &Settlement) -> Option<LeaseKey> {
    settlement.parse.map(|token| LeaseKey { token, stage: Stage::Parse, ..settlement.lease.key() })
}

/// The answer with the lease of the parse, if it runs.
fn with_parse<S: Shelf>(shelf: &mut S, parse: Option<LeaseKey>, reply: Settled) -> Result<Settled, S::Error> {
    let task = match (&reply, parse) {
        (Settled::Kept, Some(parse)) => leased(shelf, &parse)?,
        _ => None,
    };
    let lease = task.map(|task| lease_of(shelf, &task)).transpose()?.flatten();
    Ok(lease.map_or(reply, |lease| Settled::Leased(Box::new(lease))))
}

fn settle_one<S: Shelf>(
    shelf: &mut S,
    settlement: Settlement,
    taker: Option<&str>,
    now: i64,
) -> Result<Settled, S::Error> {
    let lease = settlement.lease.key();
    let Some(task) = held(shelf, &lease, now)? else { return Ok(Settled::Stale) };
    let Some(mut site) = shelf.site(&task.site)? else { return Ok(Settled::Stale) };
    if let Some(response) = settlement.response {
        site.observe(millis(response));
    }
    let unused = matches!(settlement.outcome, Outcome::Excluded { unused: true, .. });
    let stage = task.stage;
    let dead_before = site.counts(stage).dead;
    let taker = taker.zip(settlement.parse);
    conclude(shelf, &mut site, task, settlement.outcome, taker, now)?;
    let died = site.counts(stage).dead > dead_before;
    save(shelf, &site)?;
    if unused && stage == Stage::Download {
        give_back_start(shelf, &site.unit, lease.token, now)?;
    }
    block_for(shelf, &site.unit, settlement.block, now)?;
    Ok(if died { Settled::Died } else { Settled::Kept })
}

fn conclude<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    task: Task,
    outcome: Outcome,
    taker: Option<(&str, u64)>,
    now: i64,
) -> Result<(), S::Error> {
    let outcome = if task.rare.errand.is_some() { as_errand(outcome) } else { outcome };
    match outcome {
        Outcome::Done { stored, recrawl } => done(shelf, site, task, stored, recrawl, taker, now),
        Outcome::Excluded { why, .. } => {
            *site.counts(task.stage).excluded.entry(why).or_default() += 1;
            if matches!(why, Exclusion::NoRule | Exclusion::Scope) {
                forget_recrawl(shelf, &task)?;
            }
            finish(shelf, site, task, now)
        }
        Outcome::Redirected { .. } => {
            site.counts(task.stage).redirected += 1;
            finish(shelf, site, task, now)
        }
        Outcome::Retry { after, why } => retry(shelf, site, task, after, why, now),
        Outcome::Dead { why } => {
            let mut task = task;
            task.rare.attempts += 1;
            die(shelf, site, task, why, now)
        }
        Outcome::Robots(record) => keep_robots(shelf, site, task, record, now),
        Outcome::RobotsMoved { to } if task.rare.hops < MOST_ROBOTS_REDIRECTS => {
            let mut task = task;
            let hops = task.rare.hops + 1;
            absorb(site, &mut task, now);
            task.rare.errand = Some(to);
            task.rare.hops = hops;
            task.priority = Priority::ROBOTS;
            shift(shelf, site, &mut task, Place::Waiting)
        }
        Outcome::RobotsMoved { to } => {
            let why = reasons::robots_moved_on(to.as_str());
            keep_robots(shelf, site, task, unreachable(why, ODD_ROBOTS), now)
        }
    }
}

/// A `robots.txt` is never delayed, dead or excluded: every way in which it ends leaves a record.
fn as_errand(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Robots(_) | Outcome::RobotsMoved { .. } => outcome,
        Outcome::Retry { after, why } => Outcome::Robots(unreachable(why.reason, after)),
        Outcome::Dead { why } => Outcome::Robots(unreachable(why.reason, ODD_ROBOTS)),
        Outcome::Done { .. } | Outcome::Excluded { .. } | Outcome::Redirected { .. } => {
            Outcome::Robots(unreachable(reasons::NO_RECORD.to_owned(), ODD_ROBOTS))
        }
    }
}

fn unreachable(why: String, holds_for: Duration) -> RobotsRecord {
    RobotsRecord { access: RobotsAccess::Unreachable(why), holds_for, crawl_delay: None, refuses: None }
}

fn done<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    task: Task,
    stored: Option<StoredPage>,
    recrawl: Option<Duration>,
    taker: Option<(&str, u64)>,
    now: i64,
) -> Result<(), S::Error> {
    if let (Some(stored), Some(running), Stage::Download) = (stored, task.running(), task.stage) {
        let fence = running.fence;
        let before = shelf.page(task.page())?;
        if before.as_ref().is_none_or(|before| before.fence <= fence) {
            let (stored, depth) = (stored.clone(), task.depth);
            let mut page = PageState { stored, fence, depth, recrawl: None, recrawl_at: None };
            page.recrawl_from(now, recrawl.map(millis));
            shelf.save_page(task.page(), before.as_ref(), &page)?;
        }
        let put = Put {
            origin: Origin::Request,
            depth: task.depth,
            hops: task.rare.hops,
            ..Put::request(task.url.clone(), task.priority)
        };
        let taken = parse_for(shelf, site, taker, now)?;
        put_one(shelf, site, Stage::Parse, put, Some(Brought { stored, taken }), now)?;
    }
    finish(shelf, site, task, now)
}

/// Who takes the parse at once: as a claim of one parse would, where no other one waits.
fn parse_for<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    taker: Option<(&str, u64)>,
    now: i64,
) -> Result<Option<Running>, S::Error> {
    let Some((owner, token)) = taker else { return Ok(None) };
    let is_busy = shelf.next_due(Stage::Parse, &WorkScope::All)?.is_some();
    Ok((!is_busy).then(|| Running::granted(Stage::Parse, token, owner, site.next_fence(now), 0, now)))
}

/// A page that the site's file doesn't want any more isn't asked for again.
fn forget_recrawl<S: Shelf>(shelf: &mut S, task: &Task) -> Result<(), S::Error> {
    if let Some(before) = shelf.page(task.page())?.filter(|page| page.recrawl.is_some()) {
        let mut page = before.clone();
        page.recrawl_from(0, None);
        shelf.save_page(task.page(), Some(&before), &page)?;
    }
    Ok(())
}

/// Tried again in its old position; where a request met it, the retry is that request's run.
fn retry<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    mut task: Task,
    after: Duration,
    why: Failure,
    now: i64,
) -> Result<(), S::Error> {
    task.rare.attempts += 1;
    if task.rare.attempts >= site.settings.attempts {
        return die(shelf, site, task, why, now);
    }
    site.counts(task.stage).retried += 1;
    task.rare.history.push(why);
    let until = now + millis(after);
    absorb(site, &mut task, until);
    shift(shelf, site, &mut task, Place::Delayed { until, scheduled: false })
}

/// Keeps what a `robots.txt` said: a floor for the pace, or a block.
pub(super) fn keep_robots<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    mut task: Task,
    record: RobotsRecord,
    now: i64,
) -> Result<(), S::Error> {
    let origin = task.url.origin();
    let before = shelf.robots_brief(&origin)?.map_or(0, |robots| robots.failures);
    let unreachable = matches!(record.access, RobotsAccess::Unreachable(_));
    let until = now + millis(record.holds_for);
    match record.crawl_delay {
        Some(delay) => drop(site.floors.insert(origin.clone(), millis(delay))),
        None if unreachable => {}
        None => drop(site.floors.remove(&origin)),
    }
    let refuses = record.refuses.clone();
    let failures = if unreachable { before + 1 } else { 0 };
    shelf.save_robots(&origin, &RobotsState { record, until, failures })?;
    task.rare.errand = None;
    finish(shelf, site, task, now)?;
    save(shelf, site)?;
    if let Some(why) = refuses {
        block(shelf, &site.unit, until, why)?;
    }
    match shelf.unit(&site.unit)? {
        Some(unit) => retime(shelf, &unit, now),
        None => Ok(()),
    }
}

/// No start of the unit for so long, if the site said so.
pub(super) fn block_for<S: Shelf>(
    shelf: &mut S,
    unit: &str,
    said: Option<(Duration, String)>,
    now: i64,
) -> Result<(), S::Error> {
    match said {
        Some((wait, why)) => block(shelf, unit, now + millis(wait), why),
        None => Ok(()),
    }
}

/// No start of the unit before `until`.
fn block<S: Shelf>(shelf: &mut S, unit: &str, until: i64, why: String) -> Result<(), S::Error> {
    let Some(mut unit) = shelf.unit(unit)? else { return Ok(()) };
    if until > unit.blocked_until {
        unit.blocked_until = until;
        unit.blocked_why = Some(why);
        save_unit(shelf, &unit)?;
    }
    Ok(())
}
