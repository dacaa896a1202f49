//! What a person's verbs do to a site: register it, begin a run, give one up, tune it.

use std::time::Duration;

use super::lock::SWEPT;
use super::{Done, Moment, REMOVED, reasons};
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{BatchEnd, Seeding, SiteState, TuneReply, Tuning, UnitState, UnitWait};
use crate::frontier::step::{Act, Begun, Registered, Registration, Run, SeedReply};
use crate::task::Put;

/// How long a unit without sites is kept beyond what it waits for, in ms.
pub(in crate::frontier) const IDLE_MS: i64 = 86_400_000;

impl<S: Shelf> Moment<'_, S> {
    /// Puts a site's rules in force, or says what stands against it and leaves the old ones.
    pub(super) fn register(&mut self, new: &Registration) -> Done<S, Registered> {
        if let Some(refusal) = self.foreign_host(new)? {
            return Ok(Registered::Refused(refusal));
        }
        let unit = new.group.as_ref().map_or(&new.name, |(group, _)| group);
        let known = self.shelf.site(&new.name)?;
        let version = known.as_ref().map(|site| site.version);
        let mut site = match known {
            None => {
                let mut site = SiteState::new(&new.name, unit, new.settings.clone());
                let fleet = self.shelf.fleet()?;
                site.first_version(fleet.freed_version, self.now);
                site.by_lane = fleet.by_lane;
                site
            }
            Some(mut site) => {
                if site.unit != *unit {
                    if site.download.leased > 0 || site.running > 0 {
                        return Ok(Registered::Refused(reasons::requests_in_flight(&new.name)));
                    }
                    self.move_unit(&mut site, unit)?;
                }
                if site.settings != new.settings
                    || self.shelf.site_text(&new.name)?.as_ref() != Some(&new.text)
                {
                    site.renew_version(self.now);
                }
                site.settings = new.settings.clone();
                site
            }
        };
        if site.fence == 0 {
            site.fence = self.now;
        }
        if site.run == 0 {
            site.order = self.shelf.fleet()?.rules.order;
        }
        let dropped = self.save_hosts(new)?;
        let host_of = |origin: &str| origin.split_once("://").map(|(_, host)| host.to_owned());
        site.floors.retain(|origin, _| host_of(origin).is_some_and(|host| new.hosts.contains(&host)));
        if version != Some(site.version) {
            self.ask_robots_again(new)?;
            self.look_at_all_hosts(&new.name, Some(self.now))?;
        }
        self.shelf.save_site(&site)?;
        let mut unit = self.unit_or_new(unit)?;
        self.copy_fleet(&mut unit)?;
        unit.forget_floors(&dropped);
        if version != Some(site.version) {
            unit.forget_floors(&new.hosts);
        }
        if new.group.is_none() {
            unit.tuned_interval = None;
        }
        unit.wait = match &new.group {
            None => UnitWait::Own,
            Some((_, 0)) => UnitWait::Longest(self.shelf.longest_interval(&unit.name)?),
            Some((_, interval)) => UnitWait::Group(*interval),
        };
        self.retime(&unit)?;
        self.shelf.save_site_text(&site.name, &new.text)?;
        Ok(Registered::Version(site.version))
    }

    /// Under new rules each `robots.txt` is read anew: what it asks of the pace is kept with the site that read it, and its
    /// hosts may have been another site's, or those of one that was forgotten.
    fn ask_robots_again(&mut self, new: &Registration) -> Done<S> {
        new.hosts.iter().try_for_each(|host| self.forget_robots(host))
    }

    pub(super) fn forget_robots(&mut self, host: &str) -> Done<S> {
        for scheme in ["https", "http"] {
            self.shelf.remove_robots(&format!("{scheme}://{host}"))?;
        }
        Ok(())
    }

    /// A host belongs to one site, unless both are of one group: else two files would double a shop's load.
    fn foreign_host(&mut self, new: &Registration) -> Done<S, Option<String>> {
        for host in &new.hosts {
            // Those that have a host are all of one group: two of them tell.
            for owner in self.shelf.sites_of(host, 2)?.into_iter().filter(|owner| *owner != new.name) {
                let unit = self.shelf.site(&owner)?.map(|site| site.unit);
                if unit.is_none() || unit.as_ref() != new.group.as_ref().map(|(name, _)| name) {
                    return Ok(Some(reasons::foreign_host(host, &owner)));
                }
            }
        }
        Ok(None)
    }

    /// The hosts that it has no more.
    fn save_hosts(&mut self, new: &Registration) -> Done<S, Vec<String>> {
        let mut dropped = self.shelf.hosts_of(&new.name)?;
        dropped.retain(|host| !new.hosts.contains(host));
        for host in &dropped {
            self.shelf.remove_host(host, &new.name)?;
            self.forget_robots(host)?;
        }
        new.hosts.iter().try_for_each(|host| self.shelf.save_host(host, &new.name))?;
        Ok(dropped)
    }

    /// The site brings its own last start. The new unit keeps its own, takes over the later block, and waits for what the old
    /// one waits for, be it somebody else's hold on its mutex.
    pub(super) fn move_unit(&mut self, site: &mut SiteState, to: &str) -> Done<S> {
        let mut old = self.unit_or_new(&site.unit)?;
        let mut unit = self.unit_or_new(to)?;
        let held = self.held_outside(&old)?.map_or(0, |held| held.until);
        let wait = self.wait_of(&old)?;
        let paced = old.last.map_or(0, |last| last.ends(wait));
        unit.not_before = unit.not_before.max(old.not_before).max(paced).max(held);
        if old.blocked_until > unit.blocked_until {
            unit.blocked_until = old.blocked_until;
            unit.blocked_why.clone_from(&old.blocked_why);
        }
        if unit.wall.is_none() {
            unit.wall.clone_from(&old.wall);
        }
        unit.slow = unit.slow.or(old.slow);
        if old.name == site.name {
            // Left with a unit of its own, it would come back with that one after it has ended.
            (old.wall, old.slow) = (None, None);
        }
        self.copy_fleet(&mut unit)?;
        to.clone_into(&mut site.unit);
        self.shelf.save_site(site)?;
        old.forget_floors(&self.shelf.hosts_of(&site.name)?);
        self.leave_unit(old)?;
        self.save_unit(&unit)
    }

    /// A unit that lost a site: the interval that it waits may have been that site's. One that has none left is kept for a day
    /// beyond what it waits for, as it may get one again that waits longer.
    pub(super) fn leave_unit(&mut self, mut unit: UnitState) -> Done<S> {
        if let UnitWait::Longest(wait) = &mut unit.wait {
            *wait = self.shelf.longest_interval(&unit.name)?;
        }
        let has_sites = self.shelf.has_sites(&unit.name)?;
        unit.tuned_interval = unit.tuned_interval.filter(|_| has_sites);
        self.retime(&unit)?;
        if !has_sites {
            let wait = self.wait_of(&unit)?;
            self.shelf.set_idle(&unit.name, Some(unit.ends_unpaused(wait).max(self.now) + IDLE_MS))?;
        }
        self.sweep_units()
    }

    /// Forgets units that had no sites for long enough, at most so many; not a group that somebody paused.
    pub(super) fn sweep_units(&mut self) -> Done<S> {
        for name in self.shelf.idle_units(self.now, SWEPT)? {
            let mutex = MutexKey::unit(&name);
            let is_held = self.shelf.mutex(&mutex)?.is_some_and(|held| held.until > self.now);
            let is_idle = !self.shelf.has_sites(&name)?;
            let is_paused =
                self.shelf.unit(&name)?.is_some_and(|unit| unit.paused.group.are_in_force(self.now));
            let is_kept = is_held || is_paused;
            self.shelf.set_idle(&name, (is_idle && is_kept).then_some(self.now + IDLE_MS))?;
            if is_idle && !is_kept {
                self.shelf.remove_mutex(&mutex)?;
                self.shelf.remove_unit(&name)?;
            }
        }
        Ok(())
    }

    /// Goes on with an unfinished run; when the last one is finished, or is the one that a fresh one is to follow, begins a new
    /// one whose seeds are put next. Tasks that run are adopted by the new one. Where not all seeds of an unfinished run were
    /// put, those that are left are next, and all of them where the list is another one now.
    pub(super) fn begin_run(
        &mut self,
        name: &str,
        fresh: Option<i64>,
        list: u64,
        seeds: u32,
    ) -> Done<S, Begun> {
        let Some(mut site) = self.shelf.site(name)? else {
            let run = Run::of(0, false);
            return Ok(Begun { run, next: None, is_given_up: false });
        };
        let begun = site.run == 0 || site.is_finished() || fresh == Some(site.run);
        let is_given_up = site.given_up;
        if !is_given_up {
            let is_another =
                seeds > 0 && site.seeding.is_some_and(|seeding| seeding.list != list && !seeding.is_done());
            if begun {
                site.run += 1;
                site.run_began = self.now;
                site.order = self.shelf.fleet()?.rules.order;
                site.spent.clear();
                site.starts = 0;
                self.run_begins(&site)?;
            }
            if begun || is_another {
                site.seeding = (seeds > 0).then_some(Seeding { list, put: 0, of: seeds });
            }
            self.save(&site)?;
        }
        let run = Run::of(site.run, begun);
        let own = site.seeding.filter(|seeding| seeding.list == list && !seeding.is_done());
        Ok(Begun { run, next: own.map(|seeding| seeding.put), is_given_up })
    }

    /// Puts seeds of a run, those from that one on; which is next. Those that another process has put meanwhile aren't put
    /// again, nor pages that the run has fetched or fetches now.
    pub(super) fn seed(&mut self, name: &str, list: u64, from: u32, puts: Vec<Put>) -> Done<S, SeedReply> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(SeedReply::Another) };
        let Some(mut seeding) = site.seeding.filter(|seeding| seeding.list == list) else {
            return Ok(SeedReply::Another);
        };
        if from == seeding.put && !seeding.is_done() {
            seeding.put += u32::try_from(puts.len()).unwrap_or(u32::MAX);
            self.put_all(&mut site, puts, true)?;
            site.seeding = Some(seeding);
            self.save(&site)?;
        }
        Ok(if seeding.is_done() { SeedReply::Done } else { SeedReply::Next(seeding.put) })
    }

    /// Gives up an unfinished run, a bounded number of tasks a step; whether some are left. Nothing of it is granted meanwhile.
    /// It may be for a certain run alone, or only where that goes on.
    ///
    /// Running tasks are adopted by the next run, what met them is dropped.
    pub(super) fn give_up(&mut self, name: &str, run: Option<i64>, goes_on: bool) -> Done<S, bool> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(false) };
        if run.is_some_and(|run| run != site.run) || goes_on && !site.given_up {
            return Ok(false);
        }
        site.given_up = true;
        let tasks = self.shelf.idle_tasks(name, REMOVED)?;
        let more = !tasks.is_empty();
        tasks.iter().try_for_each(|task| self.drop_task(&mut site, task))?;
        if more {
            self.look_at_all_hosts(name, Some(self.now))?;
        } else {
            for letter in self.shelf.letters(name, None, REMOVED)? {
                self.remove_letter(&mut site, letter.stage, &letter.url)?;
                self.drop_batches(&site, &letter.batches, letter.died_at.as_millis())?;
                self.release(&mut site, letter.session.as_deref(), false)?;
            }
            self.look_at_all_hosts(name, None)?;
            for mut task in self.shelf.running_tasks(name)? {
                if let Some(deferral) = task.rare.deferral.take() {
                    self.end_batches(&site, deferral.batches, BatchEnd::Dropped)?;
                    self.shelf.save_task(&task)?;
                }
            }
        }
        site.given_up = more || !self.shelf.letters(name, None, 1)?.is_empty();
        site.seeding = None;
        self.save(&site)?;
        Ok(site.given_up)
    }

    /// Forgets pages known in earlier runs, a bounded number a step; whether some are left.
    pub(super) fn sweep(&mut self, name: &str) -> Done<S, bool> {
        match self.shelf.site(name)? {
            Some(site) => {
                self.sweep_sessions(&site, REMOVED)?;
                self.sweep_batches(&site, REMOVED)?;
                self.shelf.sweep_known(name, site.run, REMOVED)
            }
            None => Ok(false),
        }
    }

    /// No start of the site's unit for so long: it asked for that. A shorter block never shortens a longer one.
    pub(super) fn block(&mut self, name: &str, wait: Duration, why: String) -> Done<S, bool> {
        let Some(site) = self.shelf.site(name)? else { return Ok(false) };
        self.block_for(&site.unit, Some((wait, why)))?;
        Ok(true)
    }

    /// Sets values that are in force for the very next claim (L6): all of them or, where one can't be, none.
    pub(super) fn tune(&mut self, name: &str, tunings: Vec<Tuning>, act: Option<Act>) -> Done<S, TuneReply> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(TuneReply::Unknown) };
        let unit = self.unit_or_new(&site.unit)?;
        let group = unit.group_wait();
        if let Some(refused) = tunings.iter().find_map(|tuning| site.refuses(tuning, group)) {
            return Ok(refused);
        }
        for tuning in tunings {
            match tuning {
                Tuning::Interval(interval) => site.tuned.interval = interval,
                Tuning::Parallel(parallel) => site.tuned.parallel = parallel,
                Tuning::MaxPages(most) => site.tuned.max_pages = most,
                Tuning::Lane(lane) => site.tuned.lane = lane,
                Tuning::Paused(pause) => site.tuned.pause(pause),
                Tuning::ParsePaused(pause) => {
                    site.tuned.parse_paused = pause;
                    self.await_parse_pause(&site)?;
                }
            }
        }
        self.shelf.save_site(&site)?;
        self.retime(&unit)?;
        if let Some(act) = act {
            self.keep_act(name, act)?;
        }
        Ok(TuneReply::Done)
    }
}
