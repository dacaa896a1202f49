//! Hosts whose `robots.txt` can't be had: each is kept back as a whole, its tasks parked beside the queue, until it is looked at
//! again. Parked tasks keep position and attempts, count as waiting, and hold up no other host.

use super::session::Left;
use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{AwayHost, BACK_MS, Place, Rare, SiteState, Task};
use crate::task::{BatchNames, Exclusion, Origin, Priority, Stage};

/// Tasks promoted, returned, and tidied away, in one step.
pub(in crate::frontier) const TIDIED: u32 = 100;

/// The `robots.txt` of a host.
pub(super) enum Errand {
    /// It is to be asked for.
    Task(Box<Task>),
    /// It is under way: when the host is looked at again.
    LookAt(i64),
}

impl<S: Shelf> Moment<'_, S> {
    /// Hosts whose time has come: a bounded number of tasks returns, or `robots.txt` is asked for again.
    pub(super) fn look_at_hosts(&mut self) -> Done<S> {
        let mut left = TIDIED;
        while left > 0 {
            let Some(host) = self.shelf.first_away()?.filter(|host| host.at <= self.now) else {
                return Ok(());
            };
            let returned = self.look_at_host(&host, left)?;
            left = left.saturating_sub(returned.max(1));
        }
        Ok(())
    }

    /// How many tasks returned. Where some are left, the host stands behind others that are due.
    fn look_at_host(&mut self, host: &AwayHost, most: u32) -> Done<S, u32> {
        let AwayHost { site: name, origin, .. } = host;
        if origin == AwayHost::PARSE_PAUSE {
            self.look_at_parse_pause(name)?;
            return Ok(0);
        }
        let record = self.shelf.robots_brief(origin)?.filter(|robots| robots.until > self.now);
        let answers = record.as_ref().is_some_and(|robots| robots.unreachable.is_none());
        if answers {
            self.found_by_another(origin)?;
        }
        let Some(mut site) = self.shelf.site(name)? else {
            self.shelf.set_away(name, origin, None)?;
            return Ok(0);
        };
        let is_dropped = !self.is_of(name, origin)?;
        let is_over = is_dropped || answers || !site.settings.robots;
        // While it is away, one task tells that there are any.
        let parked = self.shelf.parked(name, origin, if is_over { most } else { 1 })?;
        if parked.is_empty() {
            self.shelf.set_away(name, origin, None)?;
            return Ok(0);
        }
        if is_over {
            let returned = u32::try_from(parked.len()).unwrap_or(most);
            for mut task in parked {
                if is_dropped {
                    self.exclude(&mut site, task, Exclusion::Scope)?;
                } else {
                    self.shift(&mut site, &mut task, Place::Waiting)?;
                }
            }
            self.save(&site)?;
            self.shelf.set_away(name, origin, Some(self.now))?;
            return Ok(returned);
        }
        let at = match record {
            Some(robots) => robots.until,
            None => match self.errand(&mut site, parked[0].url.robots_txt())? {
                Errand::Task(_) => AwayHost::NEVER,
                Errand::LookAt(at) => at,
            },
        };
        self.save(&site)?;
        self.shelf.set_away(name, origin, Some(at))?;
        Ok(0)
    }

    /// The host of a task can't be reached: it stands beside the queue until that is looked at again.
    pub(super) fn park(&mut self, site: &mut SiteState, mut task: Task, at: i64) -> Done<S> {
        self.shift(site, &mut task, Place::Parked)?;
        self.shelf.set_away(&site.name, &task.url.origin(), Some(at))
    }

    /// What was found about a host that is kept back: it is looked at again then.
    pub(super) fn found_about(&mut self, site: &str, origin: &str, at: i64) -> Done<S> {
        match self.shelf.away(site, origin)? {
            Some(_) => self.shelf.set_away(site, origin, Some(at)),
            None => Ok(()),
        }
    }

    /// A host answers that other sites of its group wait for too: one of them is looked at now, and that one finds the next.
    pub(super) fn found_by_another(&mut self, origin: &str) -> Done<S> {
        match self.shelf.waits_longest(origin, self.now)? {
            Some(site) => self.shelf.set_away(&site, origin, Some(self.now)),
            None => Ok(()),
        }
    }

    /// Whether the site's file still names the host of an origin.
    pub(super) fn is_of(&mut self, site: &str, origin: &str) -> Done<S, bool> {
        self.shelf.has_host(site, origin.split_once("://").map_or(origin, |(_, host)| host))
    }

    /// All hosts of a site that are kept back are looked at then; without a time none is kept back any more.
    pub(super) fn look_at_all_hosts(&mut self, site: &str, at: Option<i64>) -> Done<S> {
        let hosts = self.shelf.hosts_away(site)?.into_iter();
        for origin in hosts.filter(|origin| origin != AwayHost::PARSE_PAUSE) {
            self.shelf.set_away(site, &origin, at)?;
        }
        Ok(())
    }

    /// The `robots.txt` of a host, made or raised to go before everything else.
    pub(super) fn errand(&mut self, site: &mut SiteState, url: CanonicalUrl) -> Done<S, Errand> {
        let Some(mut task) = self.shelf.task(site.page(&url), Stage::Download)? else {
            return self.new_errand(site, url).map(|task| Errand::Task(Box::new(task)));
        };
        let is_errand = task.rare.errand.is_some();
        match task.place {
            // Its record tells when.
            Place::Running(_) if is_errand => return Ok(Errand::LookAt(AwayHost::NEVER)),
            Place::Delayed { until, .. } if is_errand && until > self.now => {
                return Ok(Errand::LookAt(AwayHost::NEVER));
            }
            // Asked for as an ordinary page before the record ended.
            Place::Running(_) => return Ok(Errand::LookAt(self.now + BACK_MS)),
            _ => {}
        }
        task.priority = Priority::ROBOTS;
        task.rare.errand = Some(url);
        let session = task.rare.session.take();
        self.shift(site, &mut task, Place::Waiting)?;
        if let Some(name) = session {
            self.left(site, (&name, &task.url), Left::Dropped.alone())?;
        }
        Ok(Errand::Task(Box::new(task)))
    }

    fn new_errand(&mut self, site: &mut SiteState, url: CanonicalUrl) -> Done<S, Task> {
        self.books_change(site)?;
        let mut batches = BatchNames::default();
        if let Some(letter) = self.shelf.dead(site.page(&url), Stage::Download)? {
            batches = self.revive_batches(site, &letter)?;
            self.remove_letter(site, Stage::Download, &url)?;
            self.release(site, letter.session.as_deref(), false)?;
            site.download.revived += 1;
        } else {
            site.download.created += 1;
        }
        let task = Task {
            site: site.name.clone(),
            stage: Stage::Download,
            url: url.clone(),
            place: Place::Waiting,
            priority: Priority::ROBOTS,
            position: site.next_position(self.now),
            depth: 0,
            origin: Origin::Link,
            rare: Rare { errand: Some(url), batches, ..Rare::default() },
        };
        self.enter(site, &task)?;
        Ok(task)
    }
}
