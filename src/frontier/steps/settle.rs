//! How a task ends, row by row of the table "state is a place".

use std::mem::take;
use std::time::Duration;

use super::put::Incoming;
use super::wall::after_block;
use super::{Done, Moment, reasons};
use crate::canonical_url::CanonicalUrl;
use crate::clock::millis;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BatchEnd, PageState, Place, RobotsState, Running, SiteState, Task, Turn, UnitState, WorkScope,
};
use crate::manners::MOST_ROBOTS_REDIRECTS;
use crate::task::{
    Departure, Exclusion, Failure, LaneWish, LeaseKey, NOW, Outcome, Priority, Put, RobotsRecord, Settled,
    Settlement, Stage, StoredPage,
};

/// How long a `robots.txt` is left alone that ended in a way it should not.
pub(in crate::frontier) const ODD_ROBOTS: Duration = Duration::from_hours(1);

/// A `robots.txt` that could be read serves the next start of its site, however long that has to wait, and so much later.
pub(in crate::frontier) const ROBOTS_SERVE: Duration = Duration::from_secs(5);

/// Who takes the parse of a download at once: a process, under a token.
type Taker<'a> = Option<(&'a str, u64)>;

impl<S: Shelf> Moment<'_, S> {
    /// Settles tasks, in order. The same call again gets the same answers and changes nothing.
    pub(super) fn settle(
        &mut self,
        owner_name: &str,
        token: u64,
        settlements: Vec<Settlement>,
    ) -> Done<S, Vec<Settled>> {
        let owner = self.shelf.owner(owner_name)?;
        let last = owner.as_ref().and_then(|owner| owner.last.settled.as_ref());
        let parses: Vec<Option<LeaseKey>> = settlements.iter().map(parse_asked_for).collect();
        let replies = match last {
            Some((last, replies)) if *last == token => replies.clone(),
            _ => {
                let living = owner.filter(|owner| !owner.dead);
                let taker = living.is_some().then_some(owner_name);
                let replies = settlements.into_iter().map(|settlement| self.settle_one(settlement, taker));
                let replies = replies.collect::<Result<Vec<_>, _>>()?;
                if let Some(mut owner) = living {
                    owner.last.settled = Some((token, replies.clone()));
                    self.shelf.save_owner(owner_name, &owner)?;
                }
                replies
            }
        };
        parses.into_iter().zip(replies).map(|(parse, reply)| self.with_parse(parse, reply)).collect()
    }

    /// The answer with the lease of the parse, if it runs.
    fn with_parse(&mut self, parse: Option<LeaseKey>, reply: Settled) -> Done<S, Settled> {
        let task = match (&reply, parse) {
            (Settled::Kept, Some(parse)) => self.leased(&parse)?,
            _ => None,
        };
        let lease = task.map(|task| self.lease_of(&task)).transpose()?.flatten();
        Ok(lease.map_or(reply, |lease| Settled::Leased(Box::new(lease))))
    }

    fn settle_one(&mut self, settlement: Settlement, taker: Option<&str>) -> Done<S, Settled> {
        let lease = settlement.lease.key();
        let Some(task) = self.held(&lease)? else { return Ok(Settled::Stale) };
        let Some(mut site) = self.shelf.site(&task.site)? else { return Ok(Settled::Stale) };
        if let Some(response) = settlement.response {
            site.observe(millis(response));
        }
        let unused = matches!(settlement.outcome, Outcome::Excluded { unused: true, .. });
        let stage = task.stage;
        site.counts(stage).add_too_much(settlement.too_much);
        let dead_before = site.counts(stage).dead;
        if stage == Stage::Download {
            self.ends_probe(&mut site, lease.token, &settlement.outcome)?;
        }
        self.conclude(&mut site, task, settlement.outcome, taker.zip(settlement.parse))?;
        let died = site.counts(stage).dead > dead_before;
        self.save(&site)?;
        if unused && stage == Stage::Download {
            self.give_back_start(&mut site, lease.token)?;
        }
        self.hold_back(&mut site, settlement.away)?;
        self.block_for(&site.unit, settlement.block)?;
        Ok(if died { Settled::Died } else { Settled::Kept })
    }

    fn conclude(
        &mut self,
        site: &mut SiteState,
        mut task: Task,
        outcome: Outcome,
        taker: Taker<'_>,
    ) -> Done<S> {
        let outcome = if task.rare.errand.is_some() { as_errand(outcome) } else { outcome };
        match outcome {
            Outcome::Done { stored, recrawl } => {
                if let Some(stored) = stored.filter(|_| task.stage == Stage::Download) {
                    self.keep_page(&task, &stored, recrawl)?;
                    self.put_parse(site, &mut task, stored, taker)?;
                }
            }
            Outcome::Excluded { why, .. } => return self.exclude(site, task, why),
            Outcome::Redirected { to } => {
                site.counts(task.stage).redirected += 1;
                return self.finish_before(site, task, Some(&to));
            }
            Outcome::Retry { after, why } => return self.retry(site, task, millis(after), why),
            Outcome::Dead { why } => {
                task.rare.attempts += 1;
                return self.die(site, task, why);
            }
            Outcome::Refused { .. } => return self.stand_back(site, task),
            Outcome::Postponed { after } => {
                // Behind those whose links may have room.
                task.position = site.next_position(self.now);
                return self.postpone(site, task, millis(after));
            }
            Outcome::Robots(record) => return self.keep_robots(site, task, record),
            Outcome::RobotsMoved { to } => return self.follow_robots(site, task, to),
        }
        self.finish(site, task)
    }

    /// Done by being unwanted, counted by reason.
    pub(super) fn exclude(&mut self, site: &mut SiteState, mut task: Task, why: Exclusion) -> Done<S> {
        self.end_batches(site, take(&mut task.rare.batches), BatchEnd::Excluded)?;
        *site.counts(task.stage).excluded.entry(why).or_default() += 1;
        if matches!(why, Exclusion::NoRule | Exclusion::Scope) {
            self.forget_recrawl(&task)?;
        }
        self.finish(site, task)
    }

    /// Keeps a page, unless a later fetch did so.
    fn keep_page(&mut self, task: &Task, stored: &StoredPage, recrawl: Option<Duration>) -> Done<S> {
        let fence = task.running().map_or(0, |running| running.fence);
        let before = self.shelf.page(task.page())?;
        if before.as_ref().is_some_and(|before| before.fence > fence) {
            return Ok(());
        }
        let (stored, depth) = (stored.clone(), task.depth);
        let (before_in, before_at) =
            before.as_ref().map_or((None, None), |page| (page.recrawl, page.recrawl_at));
        let mut page = PageState { stored, fence, depth, recrawl: before_in, recrawl_at: before_at };
        self.recrawl(&task.site, &mut page, recrawl.map(millis))?;
        self.shelf.save_page(task.page(), before.as_ref(), &page)
    }

    /// The parse of a page. Whoever takes it at once does so as a claim of one parse would, where no other one may go.
    fn put_parse(
        &mut self,
        site: &mut SiteState,
        of: &mut Task,
        stored: StoredPage,
        taker: Taker<'_>,
    ) -> Done<S> {
        let mut taken = None;
        if let Some((owner, token)) = taker
            && self.shelf.due_count(Stage::Parse, Turn::at(self.now), &WorkScope::All, 1)? == 0
            && !self.is_parse_paused(site)?
        {
            let fence = site.next_fence(self.now);
            taken = Some(Running::granted(Stage::Parse, token, owner, fence, Departure::default(), self.now));
        }
        let (depth, hops) = (of.depth, of.rare.hops);
        let urgent = of.rare.lane.as_deref() == Some(NOW);
        let wish = LaneWish { lane: None, urgent, tenant: of.rare.tenant.clone() };
        let put = Put { depth, hops, wish, ..Put::request(of.url.clone(), of.priority) };
        // It is the same page still.
        let carried = take(&mut of.rare.batches);
        self.put_one(site, Incoming { taken, carried, ..Incoming::parse(put, stored) }).map(drop)
    }

    /// A page that the site's file doesn't want any more isn't asked for again.
    fn forget_recrawl(&mut self, task: &Task) -> Done<S> {
        if let Some(before) = self.shelf.page(task.page())?.filter(|page| page.recrawl.is_some()) {
            let mut page = before.clone();
            self.recrawl(&task.site, &mut page, None)?;
            self.shelf.save_page(task.page(), Some(&before), &page)?;
        }
        Ok(())
    }

    /// Tried again in its old position; where a request met it, the retry is that request's run.
    fn retry(&mut self, site: &mut SiteState, mut task: Task, after: i64, why: Failure) -> Done<S> {
        task.rare.attempts += 1;
        if task.rare.attempts >= site.settings.attempts {
            return self.die(site, task, why);
        }
        site.counts(task.stage).retried += 1;
        task.rare.history.push(why);
        self.postpone(site, task, after)
    }

    /// Done again later; where a request met it, that is that request's run.
    fn postpone(&mut self, site: &mut SiteState, mut task: Task, after: i64) -> Done<S> {
        let until = self.now + after;
        self.absorb(site, &mut task, until)?;
        self.delay(site, &mut task, until)
    }

    /// Keeps what a `robots.txt` said: a floor for the pace, or a block.
    pub(super) fn keep_robots(
        &mut self,
        site: &mut SiteState,
        mut task: Task,
        record: RobotsRecord,
    ) -> Done<S> {
        let origin = task.url.origin();
        let before = self.shelf.robots_brief(&origin)?.map_or(0, |robots| robots.failures);
        let unreachable = record.is_unreachable();
        let held_until = self.now + millis(record.holds_for);
        let next = self.now + self.longest_wait(site)? + millis(ROBOTS_SERVE);
        let serves = !unreachable && record.refuses.is_none();
        let until = if serves { held_until.max(next) } else { held_until };
        let delay = record.crawl_delay.map(millis);
        match delay {
            Some(delay) => drop(site.floors.insert(origin.clone(), delay)),
            None if unreachable => {}
            None => drop(site.floors.remove(&origin)),
        }
        let refuses = record.refuses.clone();
        let failures = if unreachable { before + 1 } else { 0 };
        self.shelf.save_robots(&origin, &RobotsState { record, until, failures })?;
        self.found_about(&site.name, &origin, if unreachable { until } else { self.now })?;
        if !unreachable {
            self.found_by_another(&origin)?;
        }
        task.rare.errand = None;
        self.finish(site, task)?;
        self.save(site)?;
        if let Some(why) = refuses {
            self.block_until(&site.unit, held_until, why)?;
        }
        let Some(mut unit) = self.shelf.unit(&site.unit)? else { return Ok(()) };
        if delay.is_some() || !unreachable {
            unit.keep_floor(&site.name, &origin, delay);
        }
        self.retime(&unit)
    }

    /// The longest that a site waits for its pace.
    fn longest_wait(&mut self, site: &SiteState) -> Done<S, i64> {
        let unit = self.unit_or_new(&site.unit)?;
        Ok(site.interval().max(self.wait_of(&unit)?))
    }

    /// A `robots.txt` is asked for where it was redirected to, as often as it may be.
    fn follow_robots(&mut self, site: &mut SiteState, mut task: Task, to: CanonicalUrl) -> Done<S> {
        let hops = task.rare.hops + 1;
        if hops > MOST_ROBOTS_REDIRECTS {
            let why = reasons::robots_moved_on(to.as_str());
            return self.keep_robots(site, task, RobotsRecord::unreachable(why, ODD_ROBOTS));
        }
        self.absorb(site, &mut task, self.now)?;
        task.rare.errand = Some(to);
        task.rare.hops = hops;
        task.priority = Priority::ROBOTS;
        self.shift(site, &mut task, Place::Waiting)
    }

    /// No start of the site for so long, if nobody there answers: others of its unit go on.
    fn hold_back(&mut self, site: &mut SiteState, away: Option<(Duration, String)>) -> Done<S> {
        let Some((wait, why)) = away else { return Ok(()) };
        let until = self.now + millis(wait);
        if until > site.blocked_until {
            site.slow = after_block(site.slow, until, self.now);
            (site.blocked_until, site.blocked_why) = (until, Some(why));
            self.shelf.save_site(site)?;
            let unit = self.unit_or_new(&site.unit)?;
            self.retime(&unit)?;
        }
        Ok(())
    }

    /// No start of the unit for so long, if the site said so.
    pub(super) fn block_for(&mut self, unit: &str, said: Option<(Duration, String)>) -> Done<S> {
        match said {
            Some((wait, why)) => self.block_until(unit, self.now + millis(wait), why),
            None => Ok(()),
        }
    }

    /// A shorter block never shortens a longer one.
    fn block_until(&mut self, unit: &str, until: i64, why: String) -> Done<S> {
        match self.shelf.unit(unit)? {
            Some(unit) if until > unit.blocked_until => {
                let slow = after_block(unit.slow, until, self.now);
                self.save_unit(&UnitState { blocked_until: until, blocked_why: Some(why), slow, ..unit })
            }
            _ => Ok(()),
        }
    }
}

fn parse_asked_for(settlement: &Settlement) -> Option<LeaseKey> {
    settlement.parse.map(|token| LeaseKey { token, stage: Stage::Parse, ..settlement.lease.key() })
}

/// A `robots.txt` is never delayed, dead or excluded: every way in which it ends leaves a record.
fn as_errand(outcome: Outcome) -> Outcome {
    let (why, holds_for) = match outcome {
        Outcome::Robots(_) | Outcome::RobotsMoved { .. } => return outcome,
        Outcome::Retry { after, why } => (why.reason, after),
        Outcome::Postponed { after } => (reasons::NO_RECORD.to_owned(), after),
        Outcome::Dead { why } | Outcome::Refused { why } => (why.reason, ODD_ROBOTS),
        Outcome::Done { .. } | Outcome::Excluded { .. } | Outcome::Redirected { .. } => {
            (reasons::NO_RECORD.to_owned(), ODD_ROBOTS)
        }
    };
    Outcome::Robots(RobotsRecord::unreachable(why, holds_for))
}
