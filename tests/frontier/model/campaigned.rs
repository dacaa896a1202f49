//! Campaigns, booked: each URL of a list is put once, in order, and no more are open than a portion (C12-C16).

use std::collections::BTreeMap;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::CampaignStatus;
use paced::internals::frontier::campaigns::{CampaignFed, CampaignStarted, CampaignTuned, ListKey, UrlList};
use paced::internals::frontier::state::CampaignTuning;
use paced::internals::task::{BatchNames, CampaignPlan, CampaignPortion, Put, PutReply, Stage};

use super::ledger::{Ledger, Place, differs};
use super::stepped::Ended;

/// What campaigns of a site are called, behind its name: a name is one site's.
pub const CAMPAIGNS: [&str; 2] = ["-x", "-y"];

/// A campaign, as far as it is put.
#[derive(Clone, Debug)]
pub struct Campaign {
    pub urls: Vec<CanonicalUrl>,
    pub plan: CampaignPlan,
    pub next: usize,
    next_tick: i64,
    paused: bool,
    stopped: bool,
    drops: bool,
}

/// A list in small chunks.
pub fn list_of(urls: &[CanonicalUrl]) -> UrlList {
    let mut list = UrlList::in_chunks_of(2);
    for url in urls {
        list.push(url.clone());
    }
    list
}

/// By site and name.
pub type Campaigns = BTreeMap<(String, String), Campaign>;

impl Campaign {
    fn portion(&self) -> u64 {
        match self.plan.portion {
            CampaignPortion::Pages(pages) => pages.into(),
            CampaignPortion::Ticks(_) => panic!("histories know none"),
        }
    }

    fn unfed(&self) -> usize {
        if self.stopped { 0 } else { self.urls.len() - self.next }
    }

    fn room(&self, open: u64, now: i64) -> usize {
        let is_due = now >= self.next_tick || open * 2 < self.portion();
        let room = self.portion().saturating_sub(open);
        let room = usize::try_from(room).unwrap_or(0);
        if is_due && !self.paused { room.min(self.unfed()) } else { 0 }
    }
}

impl Ledger {
    fn campaign(&self, site: &str, name: &str) -> Option<Campaign> {
        self.campaigns.get(&(site.to_owned(), name.to_owned())).cloned()
    }

    /// Tasks that carry its name.
    fn open(&self, site: &str, name: &str) -> u64 {
        self.carriers(site, &BatchNames::of_campaign(name))
    }

    fn is_under_way(&self, site: &str, name: &str) -> bool {
        let campaign = self.campaign(site, name);
        campaign.is_some_and(|campaign| campaign.unfed() > 0 || self.open(site, name) > 0)
    }

    fn noted(&mut self, site: &str, did: String) {
        if let Some(site) = self.sites.get_mut(site) {
            site.acts.insert(0, did);
        }
    }

    pub fn start_campaign(
        &mut self,
        (site, name): (&str, &str),
        plan: &CampaignPlan,
        urls: &[CanonicalUrl],
        answer: &CampaignStarted,
    ) -> Result<(), String> {
        let expected = if self.is_under_way(site, name) {
            CampaignStarted::Running(site.to_owned())
        } else {
            CampaignStarted::Done
        };
        if *answer != expected {
            return differs("C11: start", expected, answer);
        }
        if expected == CampaignStarted::Done {
            let key = (site.to_owned(), name.to_owned());
            self.batches.remove(&(site.to_owned(), BatchNames::of_campaign(name)));
            let (plan, urls) = (plan.clone(), urls.to_vec());
            let next_tick = self.now;
            let (paused, stopped, drops) = (false, false, false);
            self.campaigns.insert(key, Campaign { urls, plan, next: 0, next_tick, paused, stopped, drops });
            self.noted(site, format!("start {name}"));
        }
        Ok(())
    }

    pub fn feed_campaign(
        &mut self,
        (site, name): (&str, &str),
        list: &ListKey,
        from: u32,
        puts: &[Put],
        answer: Option<CampaignFed>,
    ) -> Result<(), String> {
        let known = self.campaign(site, name);
        let Some(mut campaign) = known.filter(|campaign| list_of(&campaign.urls).key() == *list) else {
            return if answer.is_none() { Ok(()) } else { differs("C16: a feed of nothing", "none", answer) };
        };
        let room = campaign.room(self.open(site, name), self.now);
        let mut put = 0;
        if from as usize == campaign.next && room > 0 && !puts.is_empty() {
            if self.mark_met(site, false).is_none() {
                put = room.min(puts.len());
                puts[..put].iter().for_each(|put| self.put_of_campaign(site, name, put));
            }
            campaign.next += put;
            let is_over = put == 0 || self.open(site, name) >= campaign.portion() || campaign.unfed() == 0;
            let now = self.now;
            campaign.next_tick = if is_over { now + campaign.plan.tick } else { campaign.next_tick.min(now) };
        }
        let open = self.open(site, name);
        if open > campaign.portion() && put > 0 {
            return Err(format!("C12: {open} of {name} are open"));
        }
        let expected = (put, campaign.next, campaign.room(open, self.now));
        self.campaigns.insert((site.to_owned(), name.to_owned()), campaign);
        let told = answer.map(|fed| (fed.put as usize, fed.next as usize, fed.room as usize));
        if told == Some(expected) { Ok(()) } else { differs("C16: a feed", expected, told) }
    }

    /// What has no room for one more batch is of the campaign alone.
    fn put_of_campaign(&mut self, site: &str, name: &str, put: &Put) {
        if let PutReply::Refused(_) = self.put(site, Stage::Download, put) {
            let batches = BatchNames::of(BatchNames::of_campaign(name));
            self.put(site, Stage::Download, &Put { batches, ..put.clone() });
        }
    }

    pub fn tune_campaign(
        &mut self,
        (site, name): (&str, &str),
        tuning: &CampaignTuning,
        answer: CampaignTuned,
    ) -> Result<(), String> {
        let under_way = self.is_under_way(site, name);
        let now = self.now;
        let campaign = self.campaigns.get_mut(&(site.to_owned(), name.to_owned()));
        let stops = matches!(tuning, CampaignTuning::Stopped { .. });
        let expected = match &campaign {
            None => CampaignTuned::Unknown,
            Some(campaign) if !under_way || campaign.stopped && !stops => CampaignTuned::Over,
            Some(_) => CampaignTuned::Done,
        };
        if answer != expected {
            return differs("C13: tune", expected, answer);
        }
        let Some(campaign) = campaign.filter(|_| expected == CampaignTuned::Done) else { return Ok(()) };
        match tuning {
            CampaignTuning::Portion(portion) => campaign.plan.portion = *portion,
            CampaignTuning::Tick(tick) => {
                campaign.plan.tick = *tick;
                campaign.next_tick = campaign.next_tick.min(now + tick);
            }
            CampaignTuning::Priority(priority) => campaign.plan.priority = *priority,
            CampaignTuning::Paused(paused) => campaign.paused = *paused,
            CampaignTuning::Stopped { keep } => (campaign.stopped, campaign.drops) = (true, !keep),
        }
        self.noted(site, format!("{tuning:?} {name}"));
        Ok(())
    }

    pub fn drop_of_campaign(
        &mut self,
        (site, name): (&str, &str),
        urls: &[CanonicalUrl],
        answer: Option<u32>,
    ) -> Result<(), String> {
        let Some(campaign) = self.campaigns.get_mut(&(site.to_owned(), name.to_owned())) else {
            return if answer.is_none() { Ok(()) } else { differs("C12: a drop of nothing", "none", answer) };
        };
        campaign.drops &= !urls.is_empty();
        let drops = campaign.drops;
        let dropped = urls.iter().filter(|url| drops && self.drop_page(site, name, url)).count();
        if answer == u32::try_from(dropped).ok() { Ok(()) } else { differs("C12: dropped", dropped, answer) }
    }

    /// Whether the page waited as one of it.
    fn drop_page(&mut self, site: &str, name: &str, url: &CanonicalUrl) -> bool {
        let key = (site.to_owned(), Stage::Download, url.to_string());
        let batch = BatchNames::of_campaign(name);
        let Some(task) = self.tasks.get_mut(&key) else { return false };
        if matches!(task.place, Place::Running(_)) || !task.batches.contains(&batch) {
            return false;
        }
        task.batches.retain(|own| *own != batch);
        let is_others = !task.batches.is_empty() || task.session.is_some() || task.errand;
        self.count(site, &batch, "dropped");
        if !is_others && let Some(name) = self.drop_task(&key) {
            self.step_ended(&key, &name, Ended::Dropped, None, false);
        }
        true
    }

    /// How a campaign is told.
    pub fn check_campaign(
        &self,
        site: &str,
        name: &str,
        told: Option<&CampaignStatus>,
    ) -> Result<(), String> {
        let known = self.campaign(site, name);
        let expected = known.map(|campaign| {
            let open = self.open(site, name);
            let left = campaign.unfed() as u64 + open;
            (campaign.next, open, left, campaign.room(open, self.now), campaign.paused, campaign.stopped)
        });
        let shown = told.map(|status| {
            let (state, open) = (&status.campaign, status.counts.open);
            (state.next as usize, open, status.left(), status.room as usize, state.paused, state.stopped)
        });
        if expected == shown { Ok(()) } else { differs(&format!("C11: {name} of {site}"), expected, shown) }
    }
}
