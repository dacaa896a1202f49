//! What people and other modules look at; nothing here changes anything.

use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    EPOCH, OwnerState, Pause, Pauses, Place, SiteState, SlowStart, Task, UnitState, UnitWait, Wall,
};
use crate::frontier::view::{
    KnownPause, KnownRobots, KnownWall, LatestPage, Owner, Says, SiteNames, UnitStatus, UrlStatus, View,
    Whose,
};
use crate::task::{PageKey, Stage};

impl<S: Shelf> Moment<'_, S> {
    /// How a site stands.
    pub(super) fn view(&mut self, name: &str) -> Done<S, Option<View>> {
        let now = self.now;
        let Some(site) = self.shelf.site(name)? else { return Ok(None) };
        let unit = self.unit_or_new(&site.unit)?;
        let wait = self.wait_of(&unit)?;
        let due = unit.ends(wait).max(site.waits_until());
        let blocked = Some(blocked(&site, &unit)).filter(|(until, _)| *until > now);
        let says = says(&site, &unit);
        let wall = unit.wall.as_ref().or(site.wall.as_ref()).map(known_wall);
        let left = |slow: Option<SlowStart>| slow.map_or(0, |slow| slow.left);
        let slow_starts = left(unit.slow).max(left(site.slow));
        let pauses = pauses(&site, &unit, now);
        let held = if site.held > 0 { self.sessions_held(name)? } else { Vec::new() };
        Ok(Some(View {
            says,
            interval: wait.max(site.interval()),
            parallel: site.parallel(),
            finished: site.run > 0 && site.is_finished() && !site.given_up,
            oldest: self.oldest(&site)?.map(|put| Timestamp::from_millis(now.min(EPOCH + put))),
            site: site.name,
            unit: unit.name,
            at: Timestamp::from_millis(now),
            run: site.run,
            run_began: Timestamp::from_millis(site.run_began),
            in_flight: site.running,
            download: site.download,
            parse: site.parse,
            starts: site.starts,
            response: site.response,
            last_start: unit.last.max(site.last).map(|start| Timestamp::from_millis(start.at)),
            due: Timestamp::from_millis(due),
            blocked_until: blocked.as_ref().map(|(until, _)| Timestamp::from_millis(*until)),
            blocked_why: blocked.and_then(|(_, why)| why),
            pauses,
            version: site.version,
            seeds: site.seeding.filter(|seeding| !seeding.is_done()).map(|seeding| (seeding.put, seeding.of)),
            is_given_up: site.given_up,
            order: site.order,
            wall,
            slow_starts,
            held,
            held_in_all: site.held,
        }))
    }

    /// The least position among its waiting downloads, of any lane.
    fn oldest(&mut self, site: &SiteState) -> Done<S, Option<i64>> {
        let mut oldest: Option<i64> = None;
        for lane in site.download.ready_lanes() {
            let first = self.shelf.first_positions(&site.name, Stage::Download, lane)?;
            oldest = oldest.into_iter().chain(first.into_iter().map(|(_, position)| position)).min();
        }
        Ok(oldest)
    }

    /// The names of the sites behind that one, up to a number.
    pub(super) fn sites(&mut self, after: &str) -> Done<S, SiteNames> {
        let names = self.shelf.site_names(after, SiteNames::MOST)?;
        let is_full = names.len() == SiteNames::MOST as usize;
        Ok(SiteNames { next: names.last().filter(|_| is_full).cloned(), names })
    }

    /// Where a URL stands.
    pub(super) fn url_status(&mut self, name: &str, url: &CanonicalUrl) -> Done<S, UrlStatus> {
        let Some(site) = self.shelf.site(name)? else { return Ok(UrlStatus::default()) };
        let page = site.page(url);
        let mut found = UrlStatus { is_known: self.shelf.is_known(page, site.run)?, ..UrlStatus::default() };
        for stage in Stage::ALL {
            found.tasks.extend(self.shelf.task(page, stage)?.as_ref().map(standing));
            found.letters.extend(self.shelf.dead(page, stage)?.map(|dead| dead.letter(page, stage)));
        }
        found.recrawl_at =
            self.shelf.page(page)?.and_then(|kept| kept.recrawl_at).map(Timestamp::from_millis);
        found.latest = self.latest(page)?;
        Ok(found)
    }

    /// A page as it was last kept.
    pub(super) fn latest(&mut self, page: PageKey<'_>) -> Done<S, Option<LatestPage>> {
        Ok(self.shelf.page(page)?.map(|page| LatestPage { stored: page.stored, depth: page.depth }))
    }

    /// What is known of an origin's `robots.txt`.
    pub(super) fn robots(&mut self, origin: &str) -> Done<S, Option<KnownRobots>> {
        Ok(self.shelf.robots(origin)?.map(|robots| KnownRobots {
            record: robots.record,
            until: Timestamp::from_millis(robots.until),
            failures: robots.failures,
        }))
    }

    /// The processes that claim, or did.
    pub(super) fn owners(&mut self) -> Done<S, Vec<Owner>> {
        let owners = self.shelf.owners()?.into_iter().map(|(name, owner)| {
            let OwnerState { pid, scope, dead, drained, .. } = owner;
            Ok(Owner { beat: self.shelf.last_beat(&name)?, name, pid, scope, dead, drained })
        });
        owners.collect()
    }
}

/// Those in force, stage by stage: the site's own, its group's, that of all.
fn pauses(site: &SiteState, unit: &UnitState, now: i64) -> Vec<KnownPause> {
    let marks = [
        (Whose::Site, &site.tuned.pauses()),
        (Whose::Group, &unit.paused.group),
        (Whose::All, &unit.paused.all),
    ];
    let of_stage = |stage| {
        let in_force = move |(whose, pauses): (Whose, &Pauses)| {
            let Pause { why, until } = pauses.in_force(stage, now)?.clone();
            Some(KnownPause { whose, stage, why, until: until.map(Timestamp::from_millis) })
        };
        marks.into_iter().filter_map(in_force)
    };
    Stage::ALL.into_iter().flat_map(of_stage).collect()
}

fn known_wall(wall: &Wall) -> KnownWall {
    let Wall { why, since, url, probe_at, refused, looks, .. } = wall.clone();
    let (since, probe_at) = (Timestamp::from_millis(since), Timestamp::from_millis(probe_at));
    KnownWall { why, since, url, probe_at, refused, looks }
}

/// Until when a site is left alone, in ms, and why: its unit asked for that, or nobody there answers.
fn blocked(site: &SiteState, unit: &UnitState) -> (i64, Option<String>) {
    if site.blocked_until > unit.blocked_until {
        return (site.blocked_until, site.blocked_why.clone());
    }
    (unit.blocked_until, unit.blocked_why.clone())
}

fn says(site: &SiteState, unit: &UnitState) -> Says {
    let floors = site.floors.iter().filter(|_| site.settings.robots);
    Says {
        interval: site.settings.interval,
        tuned_interval: site.tuned.interval,
        robots: floors.map(|(origin, floor)| (*floor, origin.clone())).max(),
        group: match unit.wait {
            UnitWait::Group(wait) | UnitWait::Longest(wait) => Some(wait),
            UnitWait::Own => None,
        },
        parallel: site.settings.parallel,
        tuned_parallel: site.tuned.parallel,
        least_interval: site.settings.least_interval(),
        most_parallel: site.settings.most_parallel(),
        max_pages: site.settings.budgets.get("").copied(),
        tuned_max_pages: site.tuned.max_pages,
        tuned_lane: site.tuned.lane.clone(),
        tuned_group: unit.tuned_interval,
    }
}

fn standing(task: &Task) -> UnitStatus {
    let (until, owner) = match &task.place {
        Place::Waiting | Place::Parked | Place::Behind => (None, None),
        Place::Delayed { until, .. } => (Some(*until), None),
        Place::Running(running) => (Some(running.ends_at), Some(running.owner.clone())),
    };
    UnitStatus {
        stage: task.stage,
        place: task.place.name().to_owned(),
        until: until.map(Timestamp::from_millis),
        owner,
        priority: task.priority,
        put_at: Timestamp::from_millis(EPOCH + task.position),
        depth: task.depth,
        attempts: task.rare.attempts,
        losses: task.rare.losses,
        failure: task.rare.history.last().cloned(),
        lane: task.rare.lane.clone(),
        tenant: task.rare.tenant.clone(),
        session: task.rare.session.clone(),
        batches: task.batches().cloned().collect(),
    }
}
