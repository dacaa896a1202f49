//! The model: the steps over plain maps, every index a scan. It is what other backends are compared with.

mod batches;
mod campaigns;
mod events;
mod flow;
mod sessions;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem::take;
use std::sync::Arc;

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::MutexKey;
use crate::frontier::shelf::{Fallible, LaneShelf, PageShelf, Shelf, Window};
use crate::frontier::state::{
    BatchCounts, CampaignState, DeadState, EventState, FleetState, LastBeat, MutexState, OwnerState,
    PageState, QueueBooks, Recrawl, RobotsState, SessionState, SiteState, Task, UnitDue, UnitState, WaitKey,
    WorkScope,
};
use crate::frontier::steps;
use crate::frontier::steps::acts::MOST_ACTS;
use crate::frontier::table::{Reply, Step};
use crate::frontier::url_list::UrlChunk;
use crate::frontier::view::{CampaignName, DatedAct, Freshness, Inspection, LetterPlace};
use crate::task::{DeadLetter, PageKey, Stage};

type ModelKey = (String, Stage, CanonicalUrl);

/// A frontier in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    sites: BTreeMap<String, SiteState>,
    texts: BTreeMap<String, String>,
    units: BTreeMap<String, (UnitState, UnitDue)>,
    /// Units without sites, and until when they are kept.
    idle: BTreeMap<String, i64>,
    tasks: BTreeMap<ModelKey, Task>,
    known: BTreeSet<(String, i64, CanonicalUrl)>,
    dead: BTreeMap<ModelKey, DeadState>,
    pages: BTreeMap<(String, CanonicalUrl), PageState>,
    /// The latest time at which a page is asked for again, by site and `recrawl`.
    recrawls: BTreeMap<(String, i64), i64>,
    robots: BTreeMap<String, RobotsState>,
    hosts: BTreeMap<String, Vec<String>>,
    mutexes: BTreeMap<MutexKey, MutexState>,
    owners: BTreeMap<String, OwnerState>,
    beats: BTreeMap<String, LastBeat>,
    /// By site and origin.
    away: BTreeMap<(String, String), i64>,
    /// What people did, by site, the latest first.
    acts: BTreeMap<String, Vec<DatedAct>>,
    /// By site and name.
    sessions: BTreeMap<(String, String), SessionState>,
    /// Books of batches, by site and name.
    batches: BTreeMap<(String, String), BatchCounts>,
    campaign_names: BTreeMap<String, CampaignName>,
    /// By site and name.
    campaigns: BTreeMap<(String, String), CampaignState>,
    chunks: BTreeMap<((String, String), u32), UrlChunk>,
    fleet: Arc<FleetState>,
    /// What operators are to be told.
    events: Vec<EventState>,
    /// Books of sites, by site and slot.
    books: BTreeMap<(String, i64), QueueBooks>,
    /// Waits by site, and the slot by which they were halved.
    waits: BTreeMap<String, (i64, BTreeMap<WaitKey, u64>)>,
    /// By stage and tenant: when the newest tasks were counted, the newest first; and until when that is kept.
    windows: BTreeMap<(Stage, String), (Vec<i64>, i64)>,
}

impl Model {
    /// Does one step at `now`.
    pub(crate) fn apply(&mut self, step: Step, now: Timestamp) -> Reply {
        match steps::apply(self, step, now.as_millis()) {
            Ok(reply) => reply,
            Err(never) => match never {},
        }
    }
}

fn key(page: PageKey<'_>, stage: Stage) -> ModelKey {
    (page.site.to_owned(), stage, page.url.clone())
}

fn owned(page: PageKey<'_>) -> (String, CanonicalUrl) {
    (page.site.to_owned(), page.url.clone())
}

/// The model never fails.
type Sure<T> = Result<T, Infallible>;

impl Fallible for Model {
    type Error = Infallible;
}

impl Shelf for Model {
    fn site(&mut self, name: &str) -> Sure<Option<SiteState>> {
        Ok(self.sites.get(name).cloned())
    }

    fn save_site(&mut self, site: &SiteState) -> Sure<()> {
        self.sites.insert(site.name.clone(), site.clone());
        Ok(())
    }

    fn idle_in_all(&mut self) -> Sure<u64> {
        Ok(self.sites.values().map(|site| site.download.idle()).sum())
    }

    fn remove_site(&mut self, name: &str) -> Sure<()> {
        self.sites.remove(name);
        self.texts.remove(name);
        self.acts.remove(name);
        self.sessions.retain(|(site, _), _| site != name);
        self.batches.retain(|(site, _), _| site != name);
        self.books.retain(|(site, _), _| site != name);
        self.waits.remove(name);
        Ok(())
    }

    fn rename_site(&mut self, name: &str, to: &str) -> Sure<()> {
        let renamed = |site: &str| if site == name { to.to_owned() } else { site.to_owned() };
        self.sites.remove(name);
        self.texts = take(&mut self.texts).into_iter().map(|(site, text)| (renamed(&site), text)).collect();
        self.acts = take(&mut self.acts).into_iter().map(|(site, acts)| (renamed(&site), acts)).collect();
        let sessions = take(&mut self.sessions).into_iter();
        self.sessions = sessions.map(|((site, of), session)| ((renamed(&site), of), session)).collect();
        let batches = take(&mut self.batches).into_iter();
        self.batches = batches.map(|((site, of), batch)| ((renamed(&site), of), batch)).collect();
        self.books = take(&mut self.books)
            .into_iter()
            .map(|((site, slot), books)| ((renamed(&site), slot), books))
            .collect();
        self.waits = take(&mut self.waits).into_iter().map(|(site, waits)| (renamed(&site), waits)).collect();
        self.rename_campaigns(renamed);
        let tasks = take(&mut self.tasks).into_values();
        let tasks = tasks.map(|task| Task { site: renamed(&task.site), ..task });
        self.tasks = tasks.map(|task| (key(task.page(), task.stage), task)).collect();
        let known = take(&mut self.known).into_iter();
        self.known = known.map(|(site, run, url)| (renamed(&site), run, url)).collect();
        let dead = take(&mut self.dead).into_iter();
        self.dead = dead.map(|((site, stage, url), letter)| ((renamed(&site), stage, url), letter)).collect();
        let pages = take(&mut self.pages).into_iter();
        self.pages = pages.map(|((site, url), page)| ((renamed(&site), url), page)).collect();
        let recrawls = take(&mut self.recrawls).into_iter();
        self.recrawls = recrawls.map(|((site, period), last)| ((renamed(&site), period), last)).collect();
        let away = take(&mut self.away).into_iter();
        self.away = away.map(|((site, origin), at)| ((renamed(&site), origin), at)).collect();
        self.hosts.values_mut().flatten().filter(|site| *site == name).for_each(|site| to.clone_into(site));
        Ok(())
    }

    fn site_names(&mut self, after: &str, most: u32) -> Sure<Vec<String>> {
        Ok(self.sites.keys().filter(|name| *name.as_str() > *after).take(most as usize).cloned().collect())
    }

    fn site_text(&mut self, name: &str) -> Sure<Option<String>> {
        Ok(self.texts.get(name).cloned())
    }

    fn save_site_text(&mut self, name: &str, text: &str) -> Sure<()> {
        self.texts.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    fn unit(&mut self, name: &str) -> Sure<Option<UnitState>> {
        Ok(self.units.get(name).map(|(unit, _)| unit.clone()))
    }

    fn save_unit(&mut self, unit: &UnitState, due: UnitDue) -> Sure<()> {
        self.units.insert(unit.name.clone(), (unit.clone(), due));
        Ok(())
    }

    fn longest_interval(&mut self, unit: &str) -> Sure<i64> {
        let members = self.sites.values().filter(|site| site.unit == unit);
        Ok(members.map(|site| site.settings.interval).max().unwrap_or(0))
    }

    fn has_sites(&mut self, unit: &str) -> Sure<bool> {
        Ok(self.sites.values().any(|site| site.unit == unit))
    }

    fn set_idle(&mut self, unit: &str, until: Option<i64>) -> Sure<()> {
        match until {
            Some(until) => drop(self.idle.insert(unit.to_owned(), until)),
            None => drop(self.idle.remove(unit)),
        }
        Ok(())
    }

    fn idle_units(&mut self, now: i64, most: u32) -> Sure<Vec<String>> {
        let over = self.idle.iter().filter(|(_, until)| **until <= now).map(|(name, until)| (until, name));
        let over: BTreeSet<(&i64, &String)> = over.collect();
        Ok(over.into_iter().take(most as usize).map(|(_, name)| name.clone()).collect())
    }

    fn remove_unit(&mut self, unit: &str) -> Sure<()> {
        self.units.remove(unit);
        Ok(())
    }

    fn is_known(&mut self, page: PageKey<'_>, run: i64) -> Sure<bool> {
        Ok(self.known.contains(&(page.site.to_owned(), run, page.url.clone())))
    }

    fn add_known(&mut self, page: PageKey<'_>, run: i64) -> Sure<()> {
        self.known.insert((page.site.to_owned(), run, page.url.clone()));
        Ok(())
    }

    fn sweep_known(&mut self, site: &str, run: i64, most: u32) -> Sure<bool> {
        let swept = self.known.extract_if(.., |(s, r, _)| s == site && *r < run);
        Ok(swept.take(most as usize).count() == most as usize)
    }

    fn dead(&mut self, page: PageKey<'_>, stage: Stage) -> Sure<Option<DeadState>> {
        Ok(self.dead.get(&key(page, stage)).cloned())
    }

    fn save_dead(&mut self, page: PageKey<'_>, stage: Stage, dead: &DeadState) -> Sure<()> {
        self.dead.insert(key(page, stage), dead.clone());
        Ok(())
    }

    fn remove_dead(&mut self, page: PageKey<'_>, stage: Stage) -> Sure<()> {
        self.dead.remove(&key(page, stage));
        Ok(())
    }

    fn letters(&mut self, site: &str, after: Option<&LetterPlace>, most: u32) -> Sure<Vec<DeadLetter>> {
        let mut letters: Vec<DeadLetter> = self
            .dead
            .iter()
            .filter(|((s, _, _), _)| s == site)
            .map(|((site, stage, url), dead)| dead.letter(PageKey { site, url }, *stage))
            .filter(|letter| after.is_none_or(|after| LetterPlace::of(letter) > *after))
            .collect();
        letters.sort_by_key(LetterPlace::of);
        letters.truncate(most as usize);
        Ok(letters)
    }

    fn robots(&mut self, origin: &str) -> Sure<Option<RobotsState>> {
        Ok(self.robots.get(origin).cloned())
    }

    fn remove_robots(&mut self, origin: &str) -> Sure<()> {
        self.robots.remove(origin);
        Ok(())
    }

    fn save_robots(&mut self, origin: &str, robots: &RobotsState) -> Sure<()> {
        self.robots.insert(origin.to_owned(), robots.clone());
        Ok(())
    }

    fn sites_of(&mut self, host: &str, most: u32) -> Sure<Vec<String>> {
        Ok(self.hosts.get(host).into_iter().flatten().take(most as usize).cloned().collect())
    }

    fn save_host(&mut self, host: &str, site: &str) -> Sure<()> {
        let sites = self.hosts.entry(host.to_owned()).or_default();
        if !sites.iter().any(|other| other == site) {
            sites.push(site.to_owned());
        }
        Ok(())
    }

    fn remove_host(&mut self, host: &str, site: &str) -> Sure<()> {
        if let Some(sites) = self.hosts.get_mut(host) {
            sites.retain(|other| other != site);
        }
        Ok(())
    }

    fn hosts_of(&mut self, site: &str) -> Sure<Vec<String>> {
        let named = self.hosts.iter().filter(|(_, sites)| sites.iter().any(|name| name == site));
        Ok(named.map(|(host, _)| host.clone()).collect())
    }

    fn has_host(&mut self, site: &str, host: &str) -> Sure<bool> {
        Ok(self.hosts.get(host).is_some_and(|sites| sites.iter().any(|name| name == site)))
    }

    fn mutex(&mut self, key: &MutexKey) -> Sure<Option<MutexState>> {
        Ok(self.mutexes.get(key).cloned())
    }

    fn save_mutex(&mut self, key: &MutexKey, mutex: &MutexState) -> Sure<()> {
        self.mutexes.insert(key.clone(), mutex.clone());
        Ok(())
    }

    fn remove_mutex(&mut self, key: &MutexKey) -> Sure<()> {
        self.mutexes.remove(key);
        Ok(())
    }

    fn sweep_mutexes(&mut self, now: i64, most: u32) -> Sure<()> {
        let is_over = |key: &MutexKey, mutex: &mut MutexState| {
            matches!(key, MutexKey::Named { .. }) && mutex.until <= now
        };
        self.mutexes.extract_if(.., is_over).take(most as usize).for_each(drop);
        Ok(())
    }

    fn owner(&mut self, name: &str) -> Sure<Option<OwnerState>> {
        Ok(self.owners.get(name).cloned())
    }

    fn save_owner(&mut self, name: &str, owner: &OwnerState) -> Sure<()> {
        self.owners.insert(name.to_owned(), owner.clone());
        Ok(())
    }

    fn owners(&mut self) -> Sure<Vec<(String, OwnerState)>> {
        Ok(self.owners.iter().map(|(name, owner)| (name.clone(), owner.clone())).collect())
    }

    fn last_beat(&mut self, owner: &str) -> Sure<Option<LastBeat>> {
        Ok(self.beats.get(owner).cloned())
    }

    fn save_beat(&mut self, owner: &str, beat: &LastBeat) -> Sure<()> {
        self.beats.insert(owner.to_owned(), beat.clone());
        Ok(())
    }

    fn sweep_owners(&mut self) -> Sure<()> {
        let holders: BTreeSet<String> = self.running().map(|(_, r)| r.owner.clone()).collect();
        self.owners.retain(|name, owner| !owner.dead || holders.contains(name));
        self.beats.retain(|name, _| self.owners.contains_key(name));
        Ok(())
    }

    fn add_act(&mut self, site: &str, act: &DatedAct, since: i64) -> Sure<()> {
        let acts = self.acts.entry(site.to_owned()).or_default();
        acts.insert(0, act.clone());
        acts.retain(|act| act.at.as_millis() >= since);
        acts.truncate(MOST_ACTS as usize);
        Ok(())
    }

    fn acts(&mut self, site: &str) -> Sure<Vec<DatedAct>> {
        Ok(self.acts.get(site).cloned().unwrap_or_default())
    }

    fn inspect(&mut self) -> Sure<Inspection> {
        let ready = |stage| self.ready_units(stage, &WorkScope::All).into_iter();
        let due = Stage::ALL.map(|stage| ready(stage).map(move |(unit, turn)| (stage, unit, turn.0)));
        Ok(Inspection {
            tasks: self
                .tasks
                .values()
                .map(|t| (t.site.clone(), t.stage, t.url.to_string(), t.place.name().to_owned()))
                .collect(),
            due: due.into_iter().flatten().collect(),
            dead: self.dead.keys().map(|(s, stage, url)| (s.clone(), *stage, url.to_string())).collect(),
            known: self.known.len() as u64,
        })
    }
}

impl LaneShelf for Model {
    fn fleet(&mut self) -> Sure<Arc<FleetState>> {
        Ok(Arc::clone(&self.fleet))
    }

    fn save_fleet(&mut self, fleet: &FleetState) -> Sure<()> {
        self.fleet = Arc::new(fleet.clone());
        Ok(())
    }

    fn count_in(&mut self, window: Window<'_>, at: i64, keep: u32, until: i64) -> Sure<()> {
        let (times, end) = self.windows.entry((window.stage, window.tenant.to_owned())).or_default();
        times.insert(0, at);
        times.truncate(keep as usize);
        *end = until;
        Ok(())
    }

    fn nth_newest(&mut self, window: Window<'_>, n: u32) -> Sure<Option<i64>> {
        let times = self.windows.get(&(window.stage, window.tenant.to_owned()));
        Ok(times.and_then(|(times, _)| times.get(n as usize).copied()))
    }

    fn sweep_windows(&mut self, now: i64, most: u32) -> Sure<()> {
        let over = self.windows.iter().filter(|(_, (_, end))| *end <= now);
        let over: BTreeSet<_> = over.map(|(window, (_, end))| (*end, window.clone())).collect();
        for (_, window) in over.into_iter().take(most as usize) {
            self.windows.remove(&window);
        }
        Ok(())
    }
}

impl Model {
    /// Of periods that no page has any more nothing is known.
    fn forget_periods(&mut self) {
        let pages = self.pages.iter();
        let periods: BTreeSet<(&str, i64)> =
            pages.filter_map(|((site, _), page)| Some((site.as_str(), page.recrawl?))).collect();
        self.recrawls.retain(|(site, period), _| periods.contains(&(site, *period)));
    }
}

impl PageShelf for Model {
    fn page(&mut self, page: PageKey<'_>) -> Sure<Option<PageState>> {
        Ok(self.pages.get(&owned(page)).cloned())
    }

    fn remove_pages(&mut self, site: &str, most: u32) -> Sure<bool> {
        let removed = self.pages.extract_if(.., |(s, _), _| s == site).take(most as usize).count();
        self.forget_periods();
        Ok(removed == most as usize)
    }

    fn save_page(&mut self, page: PageKey<'_>, before: Option<&PageState>, now: &PageState) -> Sure<()> {
        debug_assert_eq!(self.pages.get(&owned(page)), before);
        self.pages.insert(owned(page), now.clone());
        if let (Some(period), Some(at)) = (now.recrawl, now.recrawl_at) {
            self.recrawls.insert((page.site.to_owned(), period), at);
        }
        self.forget_periods();
        Ok(())
    }

    fn last_recrawl(&mut self, site: &str, period: i64) -> Sure<Option<i64>> {
        Ok(self.recrawls.get(&(site.to_owned(), period)).copied())
    }

    fn freshness(&mut self, site: &str, now: i64) -> Sure<Freshness> {
        let pages = self.pages.iter().filter(|((owner, _), _)| owner == site);
        let pages: Vec<(&PageState, i64)> =
            pages.filter_map(|(_, page)| Some((page, page.fresh_until()?))).collect();
        let fresh = pages.iter().filter(|(_, end)| *end > now).count();
        let oldest = pages.iter().map(|(page, _)| Timestamp::from_millis(page.fetched_slot())).min();
        Ok(Freshness { fresh: fresh as u64, all: pages.len() as u64, oldest })
    }

    fn first_recrawl(&mut self) -> Sure<Option<Recrawl>> {
        let has_room = |site: &str| self.sites.get(site).is_some_and(SiteState::has_room);
        let pages = self.pages.iter().filter(|((site, _), _)| has_room(site));
        let times =
            pages.filter_map(|((site, url), page)| Some((page.recrawl_at?, site, page.recrawl?, url)));
        Ok(times.min().map(|(at, site, _, url)| Recrawl { at, site: site.clone(), url: url.clone() }))
    }
}
