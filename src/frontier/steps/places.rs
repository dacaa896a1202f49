//! The moves between places. Each keeps the task, its site's books and the unit's due time true together.

use std::mem::take;

use super::gate::goes_now;
use super::session::{Leaving, Left};
use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::clock::millis;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BatchEnd, DeadState, MutexState, Place, SiteState, SlowStart, Start, Task, UnitDue, UnitState, UnitWait,
    Wall, WorkScope, later_expiry, mutex_token,
};
use crate::manners::departure::MOST_AHEAD;
use crate::task::{Failure, NOW, Priority, Stage};

impl<S: Shelf> Moment<'_, S> {
    /// Puts a task that stood nowhere into a place.
    pub(super) fn enter(&mut self, site: &mut SiteState, task: &Task) -> Done<S> {
        site.enters(task);
        self.shelf.add_task(task)
    }

    /// Moves a task from the place where it stands to another.
    pub(super) fn shift(&mut self, site: &mut SiteState, task: &mut Task, to: Place) -> Done<S> {
        leave(site, task);
        task.place = to;
        site.enters(task);
        self.shelf.save_task(task)
    }

    /// Moves a task to another lane; where it stands stays.
    pub(super) fn change_lane(
        &mut self,
        site: &mut SiteState,
        task: &mut Task,
        lane: Option<String>,
    ) -> Done<S> {
        site.leaves(task);
        task.rare.lane = lane;
        site.enters(task);
        self.shelf.save_task(task)
    }

    /// Moves a task to where it backs off.
    pub(super) fn delay(&mut self, site: &mut SiteState, task: &mut Task, until: i64) -> Done<S> {
        self.shift(site, task, Place::Delayed { until, scheduled: false })
    }

    /// Takes a task out for good.
    fn remove(&mut self, site: &mut SiteState, task: &Task) -> Done<S> {
        leave(site, task);
        self.shelf.remove_task(task)
    }

    /// Done: gone and known, or, where a request met it, waiting once more at a new position.
    pub(super) fn finish(&mut self, site: &mut SiteState, task: Task) -> Done<S> {
        self.finish_before(site, task, None)
    }

    /// Done, and that page takes its place in its session.
    pub(super) fn finish_before(
        &mut self,
        site: &mut SiteState,
        mut task: Task,
        next: Option<&CanonicalUrl>,
    ) -> Done<S> {
        self.end_batches(site, take(&mut task.rare.batches), BatchEnd::Done)?;
        if task.stage == Stage::Download {
            self.books_change(site)?;
            self.shelf.add_known(site.page(&task.url), site.run)?;
        }
        site.counts(task.stage).done += 1;
        self.end(site, task, Leaving { next, ..Left::Done.alone() })
    }

    /// Dead: a letter is kept, which may hold its session, or, where a request met it, it waits once more.
    pub(super) fn die(&mut self, site: &mut SiteState, mut task: Task, why: Failure) -> Done<S> {
        if task.stage == Stage::Download {
            self.books_change(site)?;
        }
        site.counts(task.stage).dead += 1;
        let session = if self.is_to_hold(site, &task)? { task.rare.session.clone() } else { None };
        let runs_again = task.rare.deferral.is_some();
        if let Some(name) = &session {
            self.died_in_session(site, name, runs_again)?;
        }
        let batches = take(&mut task.rare.batches);
        if let Some(deferral) = &mut task.rare.deferral {
            self.carry_batches(site, &mut deferral.batches, batches)?;
            return match session {
                Some(_) => self.rerun(site, task, None),
                None => self.end(site, task, Left::Dead.alone()),
            };
        }
        let mut history = task.rare.history.clone();
        history.push(why.clone());
        let (attempts, depth) = (task.rare.attempts, task.depth);
        let is_holding = session.is_some();
        self.end_batches(site, batches.clone(), BatchEnd::Dead)?;
        let tenant = task.rare.tenant.clone();
        let (died_at, run) = (self.now, site.run);
        let dead = DeadState { why, attempts, history, died_at, run, depth, session, batches, tenant };
        site.counts(task.stage).letters += 1;
        self.shelf.save_dead(task.page(), task.stage, &dead)?;
        if is_holding { self.remove(site, &task) } else { self.end(site, task, Left::Dead.alone()) }
    }

    /// Nobody wants a task any more that nobody works on.
    pub(super) fn drop_task(&mut self, site: &mut SiteState, task: &Task) -> Done<S> {
        if task.stage == Stage::Download {
            self.books_change(site)?;
        }
        site.counts(task.stage).dropped += 1;
        self.end_batches_of(site, task, BatchEnd::Dropped)?;
        self.leave_for_good(site, task, Left::Dropped.alone())
    }

    /// A task that runs again anyway, not before `starts`, stands for the request that met it as well, unless that one is for
    /// later.
    pub(super) fn absorb(&mut self, site: &mut SiteState, task: &mut Task, starts: i64) -> Done<S> {
        let met = task.rare.deferral.take_if(|deferral| deferral.is_served_by(starts));
        let Some(mut deferral) = met else { return Ok(()) };
        site.counts(task.stage).absorbed += 1;
        if goes_now(site, task.stage, &deferral.wish, false) {
            task.rare.lane = Some(NOW.to_owned());
        }
        self.carry_batches(site, &mut task.rare.batches, take(&mut deferral.batches))?;
        // Where it stands in its session is the session's own matter.
        let is_foreign = task.rare.session.is_some() && deferral.turn.is_none();
        deferral.priority = if is_foreign { task.priority } else { task.priority.min(deferral.priority) };
        deferral.expires = later_expiry(task.rare.expires, deferral.expires);
        let errand = task.rare.errand.clone();
        task.take_up(deferral);
        if errand.is_some() {
            task.priority = Priority::ROBOTS;
            task.rare.errand = errand;
        }
        Ok(())
    }

    fn end(&mut self, site: &mut SiteState, task: Task, leaving: Leaving<'_>) -> Done<S> {
        match task.rare.deferral {
            Some(_) => self.rerun(site, task, Some(leaving)),
            None => self.leave_for_good(site, &task, leaving),
        }
    }

    /// Takes a task out, of its session as well.
    fn leave_for_good(&mut self, site: &mut SiteState, task: &Task, leaving: Leaving<'_>) -> Done<S> {
        self.remove(site, task)?;
        match &task.rare.session {
            Some(name) => self.left(site, (name, &task.url), leaving),
            None => Ok(()),
        }
    }

    /// Takes a dead letter away.
    pub(super) fn remove_letter(
        &mut self,
        site: &mut SiteState,
        stage: Stage,
        url: &CanonicalUrl,
    ) -> Done<S> {
        let letters = &mut site.counts(stage).letters;
        *letters = letters.saturating_sub(1);
        self.shelf.remove_dead(site.page(url), stage)
    }

    /// The further run is a task of its own: a new turn, not before the time that was asked for. Where it doesn't leave its session,
    /// it goes on in its place there.
    fn rerun(&mut self, site: &mut SiteState, mut task: Task, leaving: Option<Leaving<'_>>) -> Done<S> {
        let Some(mut deferral) = task.rare.deferral.take() else { return Ok(()) };
        site.counts(task.stage).reruns += 1;
        let to = self.asked_for(deferral.at);
        self.stand_in_lane(site, &mut task, &deferral.wish, to != Place::Waiting)?;
        let left = leaving.zip(task.rare.session.clone());
        let again = deferral.turn.is_some() && left.is_some();
        task.position = deferral.turn.filter(|_| again).unwrap_or_else(|| site.next_position(self.now));
        (task.rare.after, task.rare.begun) = (None, left.is_none() && task.rare.begun);
        if again {
            task.rare.after = deferral.at.filter(|at| *at > self.now);
        } else if left.is_some() {
            task.rare.session = None;
        }
        task.rare.batches = take(&mut deferral.batches);
        task.take_up(deferral);
        self.shift(site, &mut task, if again { Place::Behind } else { to })?;
        match left {
            Some((leaving, name)) => self.left(site, (&name, &task.url), Leaving { again, ..leaving }),
            None => Ok(()),
        }
    }

    /// Where a task goes that was asked for at that time, in ms.
    pub(super) fn asked_for(&self, at: Option<i64>) -> Place {
        let later = at.filter(|at| *at > self.now);
        later.map_or(Place::Waiting, |until| Place::Delayed { until, scheduled: true })
    }

    /// Saves a site and, as it may be the one whose interval holds, the due time of its unit.
    pub(super) fn save(&mut self, site: &SiteState) -> Done<S> {
        self.shelf.save_site(site)?;
        match self.shelf.unit(&site.unit)? {
            Some(unit) => self.save_unit(&unit),
            None => Ok(()),
        }
    }

    /// The unit of that name; one that was never asked where there is none.
    pub(super) fn unit_or_new(&mut self, name: &str) -> Done<S, UnitState> {
        Ok(self.shelf.unit(name)?.unwrap_or_else(|| UnitState::new(name)))
    }

    /// Saves a unit with the due time that follows from it.
    pub(super) fn save_unit(&mut self, unit: &UnitState) -> Done<S> {
        let due = self.due(unit)?;
        self.shelf.save_unit(unit, due)
    }

    /// When the unit's next start may be: two waits hold at once, its own and that of one of its ready sites.
    pub(super) fn due(&mut self, unit: &UnitState) -> Done<S, UnitDue> {
        let wait = self.wait_of(unit)?;
        let (ends, ahead) = (unit.ends(wait), unit.ahead(wait));
        Ok(UnitDue { ends, ahead, due: ends.max(self.first_of(unit, &WorkScope::All)?) })
    }

    /// Until when outsiders wait for its last start: that of its site as well, which may have brought it from another unit.
    pub(super) fn paced_until(&mut self, unit: &UnitState) -> Done<S, i64> {
        let wait = self.wait_of(unit)?;
        let own = if unit.wait == UnitWait::Own { self.shelf.site(&unit.name)? } else { None };
        Ok(unit.last.map_or(0, |last| last.ends(wait)).max(own.map_or(0, |site| site.paced_until())))
    }

    /// When the wait of the first of its ready sites is over, of those of the scope.
    pub(super) fn first_of(&mut self, unit: &UnitState, scope: &WorkScope) -> Done<S, i64> {
        let first = match unit.wait {
            UnitWait::Own => self.shelf.site(&unit.name)?.map(|site| site.waits_until()),
            _ => self.shelf.first_ready(&unit.name, scope)?,
        };
        Ok(first.unwrap_or(0))
    }

    /// What the unit waits between its starts, as in force now.
    pub(super) fn wait_of(&mut self, unit: &UnitState) -> Done<S, i64> {
        let wait = match unit.wait {
            UnitWait::Group(_) | UnitWait::Longest(_) => unit.group_wait(),
            UnitWait::Own => self.shelf.site(&unit.name)?.map_or(0, |site| site.interval()),
        };
        Ok(SlowStart::lengthens(unit.slow, wait))
    }

    /// The unit's timed mutex is that of a start of its own, until then.
    pub(super) fn take_mutex(&mut self, unit: &UnitState, token: u64, until: i64) -> Done<S> {
        self.shelf.save_mutex(&unit.mutex(), &MutexState { token: mutex_token(token), until })
    }

    /// What an outsider holds the unit's timed mutex by.
    pub(super) fn held_outside(&mut self, unit: &UnitState) -> Done<S, Option<MutexState>> {
        let held = self.shelf.mutex(&unit.mutex())?;
        Ok(held.filter(|held| held.until > self.now && !unit.owns(&held.token)))
    }

    /// Gives a start back that wasn't used: the site's and the unit's, each unless a later one of it was granted meanwhile.
    ///
    /// The start before it stays the one to fall back on, even where that one is given back as well: an interval that was
    /// raised meanwhile would else count from nowhere.
    pub(super) fn give_back_start(&mut self, site: &mut SiteState, token: u64) -> Done<S> {
        let is_it = |start: &Start| start.token == token;
        let is_last_of_site = site.last.as_ref().is_some_and(is_it);
        site.wall.iter_mut().for_each(|wall| wall.unprobed(token, self.now));
        if is_last_of_site {
            site.last = site.before;
            site.starts = site.starts.saturating_sub(1);
        }
        self.shelf.save_site(site)?;
        let Some(mut unit) = self.shelf.unit(&site.unit)? else { return Ok(()) };
        unit.wall.iter_mut().for_each(|wall| wall.unprobed(token, self.now));
        if unit.last.as_ref().is_some_and(is_it) {
            let mutex = unit.mutex();
            if self.shelf.mutex(&mutex)?.is_some_and(|held| unit.owns(&held.token)) {
                self.shelf.remove_mutex(&mutex)?;
            }
            unit.last = unit.before;
            return self.retime(&unit);
        }
        self.save_unit(&unit)
    }

    /// Nobody knows how long ago the last start of a site was: it counts as started soon. So does its unit, afterwards.
    pub(in crate::frontier) fn postpone_site(&mut self, name: &str, age: i64) -> Done<S> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(()) };
        site.last = Some(self.started_soon(site.last));
        site.before = site.last;
        site.blocked_until = self.again(site.blocked_until, age);
        self.wait_again_for_probe(&mut site.wall, age);
        self.shelf.save_site(&site)
    }

    /// The unit counts as started soon. What is known of it is so old, in ms: what it waited for then it waits for again.
    pub(in crate::frontier) fn postpone_unit(&mut self, name: &str, age: i64) -> Done<S> {
        let Some(mut unit) = self.shelf.unit(name)? else { return Ok(()) };
        unit.last = Some(self.started_soon(unit.last));
        unit.before = unit.last;
        for until in [&mut unit.blocked_until, &mut unit.not_before] {
            *until = self.again(*until, age);
        }
        self.wait_again_for_probe(&mut unit.wall, age);
        self.retime(&unit)
    }

    fn wait_again_for_probe(&self, wall: &mut Option<Wall>, age: i64) {
        if let Some(wall) = wall {
            wall.probe_at = self.again(wall.probe_at, age);
        }
    }

    /// A time that was to come `age` ms ago is as far away as it was then.
    fn again(&self, until: i64, age: i64) -> i64 {
        if until > self.now - age { until + age } else { until }
    }

    /// A start that may have been granted right before a restart went out by then.
    fn started_soon(&self, last: Option<Start>) -> Start {
        let soon = self.now + millis(MOST_AHEAD);
        last.map_or(Start { at: soon, token: 0, grace: 0, after: None }, |last| Start {
            at: last.at.max(soon),
            ..last
        })
    }

    /// Saves a unit whose last start or interval in force has changed: its due time and its own timed mutex follow.
    pub(super) fn retime(&mut self, unit: &UnitState) -> Done<S> {
        if let Some(start) = &unit.last {
            let until = self.paced_until(unit)?;
            let held = self.shelf.mutex(&unit.mutex())?;
            let own = held.as_ref().is_some_and(|held| unit.owns(&held.token));
            let free = held.is_none_or(|held| held.until <= self.now);
            if own || (free && until > self.now) {
                self.take_mutex(unit, start.token, until)?;
            }
        }
        self.save_unit(unit)
    }
}

fn leave(site: &mut SiteState, task: &Task) {
    site.leaves(task);
    site.errand.take_if(|token| task.running().is_some_and(|running| running.token == *token));
}
