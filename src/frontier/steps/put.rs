//! A put, row by row of the table "state is a place".

use super::places::{enter, save, shift};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{Deferral, Place, Rare, Running, SiteState, Task, later_expiry};
use crate::task::{Origin, Priority, Put, PutReply, Stage, StoredPage};

/// Puts pages into a site's download queue, in order; `None` if there is no such site.
pub(super) fn put<S: Shelf>(
    shelf: &mut S,
    site: &str,
    puts: Vec<Put>,
    now: i64,
) -> Result<Option<Vec<PutReply>>, S::Error> {
    let Some(mut site) = shelf.site(site)? else { return Ok(None) };
    let replies = put_all(shelf, &mut site, puts, now)?;
    save(shelf, &site)?;
    Ok(Some(replies))
}

/// Puts pages into the download queue of a site that the caller saves.
pub(super) fn put_all<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    puts: Vec<Put>,
    now: i64,
) -> Result<Vec<PutReply>, S::Error> {
    let mut replies = Vec::with_capacity(puts.len());
    for put in puts {
        replies.push(put_one(shelf, site, Stage::Download, put, None, now)?);
    }
    Ok(replies)
}

/// A page whose parse died is parsed again, from where it is kept; whether there was such a dead letter.
pub(super) fn parse_again<S: Shelf>(
    shelf: &mut S,
    site: &str,
    url: CanonicalUrl,
    now: i64,
) -> Result<bool, S::Error> {
    let Some(mut site) = shelf.site(site)? else { return Ok(false) };
    let Some(dead) = shelf.dead(site.page(&url), Stage::Parse)? else { return Ok(false) };
    let Some(page) = shelf.page(site.page(&url))? else { return Ok(false) };
    let put = Put { depth: dead.depth, ..Put::request(url, Priority::LINK) };
    let page = Brought { stored: page.stored, taken: None };
    put_one(shelf, &mut site, Stage::Parse, put, Some(page), now)?;
    save(shelf, &site)?;
    Ok(true)
}

/// A page to parse.
pub(super) struct Brought {
    /// Where it is kept.
    pub(super) stored: StoredPage,
    /// Who takes its parse at once, if that stands nowhere yet.
    pub(super) taken: Option<Running>,
}

/// Puts one page into a stage's queue; for the parse stage with the page that was brought.
pub(super) fn put_one<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    stage: Stage,
    put: Put,
    page: Option<Brought>,
    now: i64,
) -> Result<PutReply, S::Error> {
    let (stored, taken) = page.map(|page| (page.stored, page.taken)).unzip();
    if let Some(task) = shelf.task(site.page(&put.url), stage)? {
        return match task.place {
            Place::Running(_) => put_on_running(shelf, site, task, &put, stored, now),
            Place::Waiting | Place::Delayed { .. } => coalesce(shelf, site, task, &put, stored, now),
        };
    }
    let has_letters = site.counts(stage).letters > 0;
    let letter = if has_letters { shelf.dead(site.page(&put.url), stage)? } else { None };
    let seen = match &letter {
        Some(letter) => letter.run == site.run,
        None => stage == Stage::Download && shelf.is_known(site.page(&put.url), site.run)?,
    };
    if put.origin == Origin::Link && seen {
        site.counts(stage).known += 1;
        return Ok(PutReply::Known);
    }
    if put.origin == Origin::Link && !site.has_budget(put.rule.as_deref()) {
        site.counts(stage).over_budget += 1;
        return Ok(PutReply::OverBudget);
    }
    if letter.is_some() {
        shelf.remove_dead(site.page(&put.url), stage)?;
        let counts = site.counts(stage);
        counts.letters = counts.letters.saturating_sub(1);
    }
    if stage == Stage::Download {
        site.spend(put.rule.as_deref());
    }
    create(shelf, site, stage, put, stored, taken.flatten(), now)?;
    if letter.is_some() {
        site.counts(stage).revived += 1;
        return Ok(PutReply::Revived);
    }
    site.counts(stage).created += 1;
    Ok(PutReply::Created)
}

fn create<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    stage: Stage,
    put: Put,
    stored: Option<StoredPage>,
    taken: Option<Running>,
    now: i64,
) -> Result<(), S::Error> {
    let until = put.at.map(Timestamp::as_millis).filter(|at| *at > now);
    let idle = until.map_or(Place::Waiting, |until| Place::Delayed { until, scheduled: true });
    let task = Task {
        site: site.name.clone(),
        stage,
        url: put.url,
        place: taken.map_or(idle, Place::Running),
        priority: put.priority,
        position: site.next_position(now),
        depth: put.depth,
        origin: put.origin,
        rare: Rare {
            hops: put.hops,
            expires: put.expires.map(Timestamp::as_millis),
            stored,
            ..Rare::default()
        },
    };
    enter(shelf, site, &task)
}

/// A waiting or delayed task stands for the put: most urgent priority, original position.
fn coalesce<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    mut task: Task,
    put: &Put,
    stored: Option<StoredPage>,
    now: i64,
) -> Result<PutReply, S::Error> {
    site.counts(task.stage).coalesced += 1;
    task.priority = task.priority.min(put.priority);
    task.depth = task.depth.min(put.depth);
    if put.origin == Origin::Request {
        task.origin = Origin::Request;
        task.rare.hops = put.hops;
        let expires = put.expires.map(Timestamp::as_millis);
        task.rare.expires = later_expiry(task.rare.expires, expires);
        if stored.is_some() {
            task.rare.stored = stored;
        }
    }
    let scheduled = matches!(task.place, Place::Delayed { scheduled: true, until } if until > now);
    if put.again && scheduled {
        shift(shelf, site, &mut task, Place::Waiting)?;
    } else {
        shelf.save_task(&task)?;
    }
    Ok(PutReply::Coalesced)
}

/// A link asks nothing of a running task; a request asks for one further run, however many requests there are.
fn put_on_running<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    mut task: Task,
    put: &Put,
    stored: Option<StoredPage>,
    now: i64,
) -> Result<PutReply, S::Error> {
    let counts = site.counts(task.stage);
    if put.origin == Origin::Link {
        counts.known += 1;
        return Ok(PutReply::Known);
    }
    let expires = put.expires.map(Timestamp::as_millis);
    let at = put.at.map(Timestamp::as_millis).filter(|at| *at > now);
    let reply = match &mut task.rare.deferral {
        Some(deferral) => {
            counts.coalesced += 1;
            deferral.priority = deferral.priority.min(put.priority);
            deferral.depth = deferral.depth.min(put.depth);
            deferral.hops = put.hops;
            deferral.at = deferral.at.zip(at).map(|(one, other)| one.min(other));
            deferral.expires = later_expiry(deferral.expires, expires);
            deferral.stored = stored.or(deferral.stored.take());
            PutReply::Coalesced
        }
        none => {
            counts.deferred += 1;
            *none = Some(Deferral {
                priority: put.priority,
                depth: put.depth,
                hops: put.hops,
                at,
                expires,
                stored,
            });
            PutReply::Deferred
        }
    };
    shelf.save_task(&task)?;
    Ok(reply)
}
