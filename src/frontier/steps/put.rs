//! A put, row by row of the table "state is a place".

use super::gate::goes_now;
use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BatchJoin, DeadState, Deferral, MOST_NOW, Place, Rare, Running, SiteState, Task, later_expiry,
};
use crate::task::{BatchNames, HighWater, LANE, NOW, Origin, Priority, Put, PutReply, Stage, StoredPage};

/// A page on its way into a stage's queue.
pub(super) struct Incoming {
    /// What is asked for.
    pub(super) put: Put,
    /// The queue.
    pub(super) stage: Stage,
    /// Parse: where the page is kept.
    pub(super) stored: Option<StoredPage>,
    /// Parse: who takes it at once, if it stands nowhere yet.
    pub(super) taken: Option<Running>,
    /// A seed of the run: a page that it has fetched or fetches now isn't fetched again.
    pub(super) is_seed: bool,
    /// Parse: the batches that count its page.
    pub(super) carried: BatchNames,
    /// It is refused where as much waits as may, beside so many downloads of other sites: a put by somebody who can put it again.
    pub(super) refused_beside: Option<u64>,
}

impl Incoming {
    /// Into the download queue.
    fn download(put: Put) -> Self {
        let stage = Stage::Download;
        let carried = BatchNames::default();
        Self { put, stage, stored: None, taken: None, is_seed: false, carried, refused_beside: None }
    }

    /// Into the parse queue, from where the page is kept.
    pub(super) fn parse(put: Put, stored: StoredPage) -> Self {
        Self { stage: Stage::Parse, stored: Some(stored), ..Self::download(put) }
    }

    /// It is a step of another session than that which the page's dead letter holds. The target of a redirect takes its origin's
    /// place as far as it can.
    fn is_of_another(&self, held: Option<&str>) -> bool {
        let wish = self.put.session.as_ref().filter(|_| self.put.hops == 0);
        held.zip(wish).is_some_and(|(held, wish)| wish.name != held)
    }

    /// Whether the page has room for its batches beside those that it is of, and its further run. The target of a redirect goes without.
    fn has_room_beside(&self, own: &BatchNames, further: &BatchNames) -> bool {
        self.put.hops > 0 || BatchNames::have_room([own, further, &self.put.batches])
    }

    /// It asks nothing of a page that the run has seen.
    fn passes(&self) -> bool {
        self.is_seed || self.put.origin == Origin::Link
    }
}

impl<S: Shelf> Moment<'_, S> {
    /// Puts pages into a site's download queue, in order; `None` if there is no such site. So many downloads wait in other parts of
    /// the frontier.
    pub(super) fn put(
        &mut self,
        site: &str,
        puts: Vec<Put>,
        elsewhere: i64,
    ) -> Done<S, Option<Vec<PutReply>>> {
        let Some(mut site) = self.shelf.site(site)? else { return Ok(None) };
        let is_asked = puts.iter().any(|put| put.origin == Origin::Request);
        let beside = if is_asked { self.beside(&site, elsewhere)? } else { 0 };
        let replies = puts.into_iter().map(|put| {
            // The target of a redirect takes the place of its origin, and what is as urgent as a robots.txt shows whether there is
            // a wall.
            let may_be_refused = put.hops == 0 && put.priority != Priority::ROBOTS;
            let refused_beside = may_be_refused.then_some(beside);
            self.put_one(&mut site, Incoming { refused_beside, ..Incoming::download(put) })
        });
        let replies = replies.collect::<Result<Vec<_>, _>>()?;
        self.save(&site)?;
        Ok(Some(replies))
    }

    /// Puts pages that are taken in whatever waits into the download queue of a site that the caller saves.
    pub(super) fn put_all(&mut self, site: &mut SiteState, puts: Vec<Put>, is_seed: bool) -> Done<S> {
        let mut puts = puts.into_iter();
        puts.try_for_each(|put| self.put_one(site, Incoming { is_seed, ..Incoming::download(put) }).map(drop))
    }

    /// Puts one page that is taken in whatever waits into the download queue of a site that the caller saves.
    pub(super) fn put_here(&mut self, site: &mut SiteState, put: Put) -> Done<S, PutReply> {
        self.put_one(site, Incoming::download(put))
    }

    /// A page whose parse died is parsed again, from where it is kept; whether there was such a dead letter.
    pub(super) fn parse_again(&mut self, site: &str, url: CanonicalUrl) -> Done<S, bool> {
        let Some(mut site) = self.shelf.site(site)? else { return Ok(false) };
        let Some(dead) = self.shelf.dead(site.page(&url), Stage::Parse)? else { return Ok(false) };
        let Some(page) = self.shelf.page(site.page(&url))? else { return Ok(false) };
        let put = Put { depth: dead.depth, ..Put::request(url, Priority::LINK) };
        self.put_one(&mut site, Incoming::parse(put, page.stored))?;
        self.save(&site)?;
        Ok(true)
    }

    /// Puts one page into a stage's queue.
    pub(super) fn put_one(&mut self, site: &mut SiteState, new: Incoming) -> Done<S, PutReply> {
        let Incoming { put, stage, .. } = &new;
        let stage = *stage;
        if stage == Stage::Download {
            self.books_change(site)?;
        }
        if let Some(task) = self.shelf.task(site.page(&put.url), stage)? {
            return self.put_on(site, task, new);
        }
        let has_letters = site.counts(stage).letters > 0;
        let letter = if has_letters { self.shelf.dead(site.page(&put.url), stage)? } else { None };
        let held = letter.as_ref().and_then(|letter| letter.session.clone());
        if new.is_of_another(held.as_deref()) {
            return Ok(PutReply::Busy);
        }
        let seen = match &letter {
            // What holds a session is an operator's to revive.
            Some(letter) => letter.run == site.run || letter.session.is_some(),
            None => stage == Stage::Download && self.shelf.is_known(site.page(&put.url), site.run)?,
        };
        let is_new_enough = letter.is_none() && self.is_new_enough(site, &new)?;
        if new.passes() && seen || is_new_enough {
            site.counts(stage).known += 1;
            self.know_in_batches(site, put)?;
            return Ok(PutReply::Known);
        }
        if put.origin == Origin::Link && !site.has_budget(put.rule.as_deref()) {
            site.counts(stage).over_budget += 1;
            return Ok(PutReply::OverBudget);
        }
        let mark = if letter.is_none() { self.mark_met(site, &new)? } else { None };
        if let Some(mark) = mark {
            return Ok(PutReply::Refused(mark));
        }
        let own = letter.as_ref().map(|letter| letter.batches.clone()).unwrap_or_default();
        if !new.has_room_beside(&own, &BatchNames::default()) {
            return Ok(PutReply::Refused(HighWater::Batches));
        }
        if letter.is_some() {
            self.remove_letter(site, stage, &put.url)?;
        }
        if stage == Stage::Download {
            site.spend(put.rule.as_deref());
        }
        self.create(site, new, letter.as_ref())?;
        if letter.is_some() {
            site.counts(stage).revived += 1;
            return Ok(PutReply::Revived);
        }
        site.counts(stage).created += 1;
        Ok(PutReply::Created)
    }

    /// How many downloads wait beside those of a site, where so many wait in other parts of the frontier.
    fn beside(&mut self, site: &SiteState, elsewhere: i64) -> Done<S, u64> {
        let in_all = self.shelf.idle_in_all()?;
        Ok(in_all.saturating_sub(site.download.idle()) + elsewhere.max(0).unsigned_abs())
    }

    /// Whether nothing more is put of a campaign, as as much waits as may (M10).
    pub(super) fn takes_no_portion(&mut self, site: &SiteState, elsewhere: i64) -> Done<S, bool> {
        let (beside, fleet) = (self.beside(site, elsewhere)?, self.shelf.fleet()?);
        let idle = site.download.idle();
        let is_full = beside + idle >= fleet.rules.most_in_all();
        Ok(is_full || fleet.rules.mark_of_site(idle, site.download.bytes).is_some())
    }

    /// The mark that keeps a new page out (M10); that of the frontier keeps no link out.
    fn mark_met(&mut self, site: &SiteState, new: &Incoming) -> Done<S, Option<HighWater>> {
        let Some(beside) = new.refused_beside else { return Ok(None) };
        let (fleet, idle) = (self.shelf.fleet()?, site.download.idle());
        let is_full = new.put.origin == Origin::Request && beside + idle >= fleet.rules.most_in_all();
        let of_site = fleet.rules.mark_of_site(idle, site.download.bytes);
        Ok(of_site.or(is_full.then_some(HighWater::Frontier)))
    }

    /// A page that is in hand: it isn't, or it isn't to be, a step of two sessions.
    fn put_on(&mut self, site: &mut SiteState, task: Task, mut new: Incoming) -> Done<S, PutReply> {
        let is_fixed = task.running().is_some() || task.rare.errand.is_some();
        let further =
            task.rare.deferral.as_ref().map(|deferral| deferral.batches.clone()).unwrap_or_default();
        if !new.has_room_beside(&task.rare.batches, &further) {
            return Ok(PutReply::Refused(HighWater::Batches));
        }
        let is_elsewhere = match (&new.put.session, &task.rare.session) {
            (None, _) => false,
            (Some(_), None) => is_fixed,
            (Some(wish), Some(name)) => wish.name != *name,
        };
        if is_elsewhere {
            if new.put.hops == 0 {
                return Ok(PutReply::Busy);
            }
            new.put.session = None;
        } else if let Some(wish) = &new.put.session {
            self.tell_session(site, wish)?;
        }
        match task.place {
            Place::Running(_) => self.defer(site, task, new),
            Place::Waiting | Place::Parked | Place::Behind | Place::Delayed { .. } => {
                self.coalesce(site, task, new)
            }
        }
    }

    /// Whether the page was fetched since the time that the put names.
    fn is_new_enough(&mut self, site: &SiteState, new: &Incoming) -> Done<S, bool> {
        let Some(since) = new.put.unless_newer.filter(|_| new.stage == Stage::Download) else {
            return Ok(false);
        };
        let page = self.shelf.page(site.page(&new.put.url))?;
        Ok(page.is_some_and(|page| page.stored.fetched_at >= since))
    }

    /// The page of a letter is for whom it was, unless the put says another one. One that held a session goes on as its head.
    fn create(&mut self, site: &mut SiteState, new: Incoming, letter: Option<&DeadState>) -> Done<S> {
        let Incoming { mut put, stage, stored, taken, carried, .. } = new;
        let held = letter.and_then(|letter| letter.session.as_deref());
        let (mut batches, how) = match letter {
            Some(letter) => (self.revive_batches(site, letter)?, BatchJoin::Revived),
            None => (BatchNames::default(), BatchJoin::Created),
        };
        self.carry_batches(site, &mut batches, carried)?;
        self.join_batches(site, &mut batches, &put, how)?;
        put.wish.tenant = put.wish.tenant.or_else(|| letter.and_then(|letter| letter.tenant.clone()));
        let idle = self.asked_for(put.at.map(Timestamp::as_millis));
        let is_later = matches!(idle, Place::Delayed { .. }) && taken.is_none();
        let joins = put.session.filter(|_| held.is_none());
        let session = held.map(str::to_owned).or_else(|| joins.as_ref().map(|wish| wish.name.clone()));
        let expires = put.expires.map(Timestamp::as_millis);
        let after = put.at.map(Timestamp::as_millis).filter(|_| session.is_some() && is_later);
        let begun = held.is_some();
        let idle = if joins.is_some() { Place::Behind } else { idle };
        let mut task = Task {
            site: site.name.clone(),
            stage,
            url: put.url,
            place: taken.map_or_else(|| idle.clone(), Place::Running),
            priority: put.priority,
            position: site.next_position(self.now),
            depth: put.depth,
            origin: put.origin,
            rare: Rare { hops: put.hops, expires, stored, session, after, begun, batches, ..Rare::default() },
        };
        // A long feed of steps goes before nobody, as any other feed.
        let is_crowded = joins.is_some() && site.counted(stage).behind >= MOST_NOW;
        self.stand_in_lane(site, &mut task, &put.wish, is_later || is_crowded)?;
        if let Place::Running(running) = &task.place
            && !self.is_served_by(&running.owner, task.rare.lane.as_deref().unwrap_or(LANE))?
        {
            task.place = idle;
        }
        self.enter(site, &task)?;
        match joins {
            Some(wish) => self.joined(site, &wish),
            None => self.release(site, held, true),
        }
    }

    /// A waiting or delayed task stands for the put: most urgent priority, original position. It keeps its lane, unless the put
    /// goes before all others.
    fn coalesce(&mut self, site: &mut SiteState, mut task: Task, new: Incoming) -> Done<S, PutReply> {
        let put = new.put;
        site.counts(task.stage).coalesced += 1;
        self.carry_batches(site, &mut task.rare.batches, new.carried)?;
        self.join_batches(site, &mut task.rare.batches, &put, BatchJoin::Coalesced)?;
        // Where it stands in its session is the session's own matter.
        let is_foreign = task.rare.session.is_some() && put.session.is_none();
        if !is_foreign {
            task.priority = task.priority.min(put.priority);
        }
        task.depth = task.depth.min(put.depth);
        if put.origin == Origin::Request {
            task.origin = Origin::Request;
            task.rare.hops = put.hops;
            task.rare.expires = later_expiry(task.rare.expires, put.expires.map(Timestamp::as_millis));
            task.rare.stored = new.stored.or(task.rare.stored);
        }
        if task.rare.lane.as_deref() != Some(NOW)
            && goes_now(site, task.stage, &put.wish, task.place != Place::Waiting)
        {
            self.change_lane(site, &mut task, Some(NOW.to_owned()))?;
        }
        let until = match task.place {
            Place::Delayed { until, scheduled } if until > self.now => Some((until, scheduled)),
            _ => None,
        };
        let is_pulled = put.again && !is_foreign && until.is_none_or(|(_, scheduled)| scheduled);
        if is_pulled {
            task.rare.after = None;
        }
        if let Some(wish) = put.session.filter(|_| task.rare.session.is_none()) {
            task.rare.session = Some(wish.name.clone());
            task.rare.after = until.filter(|_| !is_pulled).map(|(until, _)| until);
            self.shift(site, &mut task, Place::Behind)?;
            self.joined(site, &wish)?;
            return Ok(PutReply::Coalesced);
        }
        if is_pulled && until.is_some() {
            self.shift(site, &mut task, Place::Waiting)?;
        } else {
            self.shelf.save_task(&task)?;
        }
        self.reorder(site, &task)?;
        Ok(PutReply::Coalesced)
    }

    /// A link or a seed asks nothing of a running task, nor does a request that wants nothing newer; another request asks for one
    /// further run, however many requests there are.
    fn defer(&mut self, site: &mut SiteState, mut task: Task, new: Incoming) -> Done<S, PutReply> {
        let counts = site.counts(task.stage);
        let granted_at = task.running().map_or(0, |running| running.granted_at);
        let is_new_enough = new.put.unless_newer.is_some_and(|since| granted_at >= since.as_millis());
        if new.passes() || is_new_enough {
            counts.known += 1;
            self.know_in_batches(site, &new.put)?;
            return Ok(PutReply::Known);
        }
        let Incoming { put, stored, carried, .. } = new;
        let asked = Deferral {
            priority: put.priority,
            depth: put.depth,
            hops: put.hops,
            at: put.at.map(Timestamp::as_millis).filter(|at| *at > self.now),
            expires: put.expires.map(Timestamp::as_millis),
            stored,
            wish: put.wish.clone(),
            turn: put.session.as_ref().map(|_| site.next_position(self.now)),
            batches: BatchNames::default(),
        };
        let counts = site.counts(task.stage);
        let (reply, count, mut deferral) = match task.rare.deferral.take() {
            Some(before) => (PutReply::Coalesced, &mut counts.coalesced, before.joined_by(asked)),
            None => (PutReply::Deferred, &mut counts.deferred, asked),
        };
        *count += 1;
        let joined = if reply == PutReply::Deferred { BatchJoin::Deferred } else { BatchJoin::Coalesced };
        self.carry_batches(site, &mut deferral.batches, carried)?;
        self.join_batches(site, &mut deferral.batches, &put, joined)?;
        task.rare.deferral = Some(deferral);
        self.shelf.save_task(&task)?;
        Ok(reply)
    }
}
