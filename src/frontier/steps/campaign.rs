//! Campaigns: a list of URLs lies beside the queue, and is put into it portion by portion (C12-C16). A portion is put and the list's
//! place moved on in the same step, so that whoever feeds may die at any moment.

use super::{Done, Moment, REMOVED};
use crate::canonical_url::CanonicalUrl;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BatchEnd, CAMPAIGNS_KEPT, CampaignCounts, CampaignState, CampaignTuning, SiteState, Task,
};
use crate::frontier::step::{Act, CampaignBooked, CampaignCleared, CampaignFed, CampaignMade, CampaignTuned};
use crate::frontier::url_list::{ListKey, UrlChunk};
use crate::frontier::view::{CampaignName, CampaignStatus};
use crate::task::{BatchNames, CampaignPlan, Put, PutReply, Stage};

impl<S: Shelf> Moment<'_, S> {
    /// Takes a name for a campaign of a site, under a number of its own each time.
    pub(super) fn book_campaign(&mut self, name: String, site: String) -> Done<S, CampaignBooked> {
        let names = self.shelf.campaign_names()?;
        let known = names.iter().find(|known| known.name == name);
        let number = match known {
            Some(known) if known.site != site => return Ok(CampaignBooked::Taken(known.site.clone())),
            Some(known) => self.now.max(known.number + 1),
            None if names.len() >= CAMPAIGNS_KEPT => return Ok(CampaignBooked::Full),
            None => self.now,
        };
        self.shelf.save_campaign_name(&CampaignName { name, site, number })?;
        Ok(CampaignBooked::Number(number))
    }

    /// Gives a name back, unless it was taken again since.
    pub(super) fn unbook_campaign(&mut self, name: &str, number: i64) -> Done<S, bool> {
        let is_it = |known: &CampaignName| known.name == name && known.number == number;
        let is_there = self.shelf.campaign_names()?.iter().any(is_it);
        if is_there {
            self.shelf.remove_campaign_name(name)?;
        }
        Ok(is_there)
    }

    /// Makes a campaign whose list is still to come, or goes on with one.
    pub(super) fn make_campaign(
        &mut self,
        site: &str,
        name: &str,
        list: ListKey,
        plan: CampaignPlan,
    ) -> Done<S, CampaignMade> {
        if self.shelf.site(site)?.is_none() {
            return Ok(CampaignMade::NoSite);
        }
        let made_at = self.now;
        if let Some(mut before) = self.shelf.campaign(site, name)? {
            let open = self.campaign_counts(site, name)?.open;
            if before.began_at.is_some() && !before.is_done(open) {
                return Ok(CampaignMade::Running);
            }
            if before.began_at.is_none() && before.list == list {
                let next = before.chunks;
                self.shelf.save_campaign(site, name, &CampaignState { plan, made_at, ..before })?;
                return Ok(CampaignMade::Next(next));
            }
            if self.remove_chunks(site, name, &mut before)? {
                return Ok(CampaignMade::Partly);
            }
        }
        self.shelf.remove_batch(site, &BatchNames::of_campaign(name))?;
        let made = CampaignState { plan, list, made_at, ..CampaignState::default() };
        self.shelf.save_campaign(site, name, &made)?;
        Ok(CampaignMade::Next(0))
    }

    /// Adds a chunk to a list that isn't whole; whether it is there.
    pub(super) fn add_chunk(
        &mut self,
        site: &str,
        name: &str,
        mark: &str,
        number: u32,
        chunk: &UrlChunk,
    ) -> Done<S, bool> {
        let Some(mut campaign) = self.shelf.campaign(site, name)? else { return Ok(false) };
        if campaign.list.mark != mark || number > campaign.chunks || number >= campaign.list.chunks() {
            return Ok(false);
        }
        if number == campaign.chunks && campaign.began_at.is_none() {
            self.shelf.save_chunk(site, name, number, chunk)?;
            (campaign.chunks, campaign.made_at) = (number + 1, self.now);
            self.shelf.save_campaign(site, name, &campaign)?;
        }
        Ok(true)
    }

    /// Begins a campaign whose list is whole; whether it has begun.
    pub(super) fn begin_campaign(&mut self, site: &str, name: &str, mark: &str, act: Act) -> Done<S, bool> {
        let Some(mut campaign) = self.shelf.campaign(site, name)? else { return Ok(false) };
        if campaign.list.mark != mark {
            return Ok(false);
        }
        if campaign.began_at.is_some() {
            return Ok(true);
        }
        if campaign.chunks < campaign.list.chunks() {
            return Ok(false);
        }
        (campaign.began_at, campaign.next_tick) = (Some(self.now), self.now);
        campaign.mark(0, self.now);
        self.shelf.save_campaign(site, name, &campaign)?;
        self.keep_act(site, act)?;
        Ok(true)
    }

    /// Puts pages of a campaign, those from that URL of its list on: as many as there is room for, and none where another one put some
    /// meanwhile. Its end is noted, once that has come. None where it is another list's by now.
    pub(super) fn feed_campaign(
        &mut self,
        site: &str,
        (name, mark): (&str, &str),
        from: u32,
        puts: Vec<Put>,
        elsewhere: i64,
    ) -> Done<S, Option<CampaignFed>> {
        let Some(mut site) = self.shelf.site(site)? else { return Ok(None) };
        let known = self.shelf.campaign(&site.name, name)?.filter(|campaign| campaign.list.mark == mark);
        let Some(mut campaign) = known else { return Ok(None) };
        let mut counts = self.campaign_counts(&site.name, name)?;
        let room = self.room_of(&site, &campaign, counts)?;
        let mut put = 0;
        if from == campaign.next && room > 0 && !puts.is_empty() {
            let puts = puts.into_iter().take(room as usize).collect();
            put = self.put_portion(&mut site, name, puts, elsewhere)?;
            campaign.next += put;
            counts = self.campaign_counts(&site.name, name)?;
            let pages = campaign.plan.pages(self.interval_of(&site)?);
            let is_over = put == 0 || counts.open >= pages.into() || campaign.unfed() == 0;
            let tick = campaign.plan.tick;
            campaign.next_tick = if is_over { self.now + tick } else { campaign.next_tick.min(self.now) };
        }
        self.note_end(&mut campaign, counts);
        self.shelf.save_campaign(&site.name, name, &campaign)?;
        let room = self.room_of(&site, &campaign, counts)?;
        Ok(Some(CampaignFed { put, next: campaign.next, room }))
    }

    /// How many were put: none where as much waits as may (M10). What has no room for one more batch is of the
    /// campaign alone.
    fn put_portion(
        &mut self,
        site: &mut SiteState,
        name: &str,
        puts: Vec<Put>,
        elsewhere: i64,
    ) -> Done<S, u32> {
        if self.takes_no_portion(site, elsewhere)? {
            return Ok(0);
        }
        let count = u32::try_from(puts.len()).unwrap_or(u32::MAX);
        for put in puts {
            let batches = BatchNames::of(BatchNames::of_campaign(name));
            let alone = Put { batches, ..put.clone() };
            if let PutReply::Refused(_) = self.put_here(site, put)? {
                self.put_here(site, alone)?;
            }
        }
        self.save(site)?;
        Ok(count)
    }

    fn note_end(&mut self, campaign: &mut CampaignState, counts: CampaignCounts) {
        if campaign.began_at.is_some() {
            campaign.mark(counts.ended(), self.now);
        }
        if campaign.is_done(counts.open) {
            campaign.ended_at = campaign.ended_at.or(Some(self.now));
        }
    }

    /// Sets values of a campaign: they are in force at its next tick.
    pub(super) fn tune_campaign(
        &mut self,
        site: &str,
        name: &str,
        tunings: Vec<CampaignTuning>,
        act: Option<Act>,
    ) -> Done<S, CampaignTuned> {
        let known = self.shelf.campaign(site, name)?.filter(|campaign| campaign.began_at.is_some());
        let Some(mut campaign) = known else { return Ok(CampaignTuned::Unknown) };
        let counts = self.campaign_counts(site, name)?;
        let stops = |tuning: &CampaignTuning| matches!(tuning, CampaignTuning::Stopped { .. });
        if campaign.is_done(counts.open) || campaign.stopped && !tunings.iter().all(stops) {
            return Ok(CampaignTuned::Over);
        }
        for tuning in tunings {
            match tuning {
                CampaignTuning::Portion(portion) => campaign.plan.portion = portion,
                CampaignTuning::Tick(tick) => {
                    campaign.plan.tick = tick;
                    campaign.next_tick = campaign.next_tick.min(self.now + tick);
                }
                CampaignTuning::Priority(priority) => campaign.plan.priority = priority,
                CampaignTuning::Paused(paused) => campaign.paused = paused,
                CampaignTuning::Stopped { keep } => (campaign.stopped, campaign.drops) = (true, !keep),
            }
        }
        // Its end is noted by who feeds, and told then.
        campaign.mark(counts.ended(), self.now);
        self.shelf.save_campaign(site, name, &campaign)?;
        if let Some(act) = act {
            self.keep_act(site, act)?;
        }
        Ok(CampaignTuned::Done)
    }

    /// Those of these pages that wait are no longer the campaign's, and go where no other batch and no session has them: how many.
    /// Without any, all were dropped.
    pub(super) fn drop_of_campaign(
        &mut self,
        site: &str,
        name: &str,
        urls: &[CanonicalUrl],
    ) -> Done<S, Option<u32>> {
        let Some(mut site) = self.shelf.site(site)? else { return Ok(None) };
        let Some(mut campaign) = self.shelf.campaign(&site.name, name)? else { return Ok(None) };
        if urls.is_empty() {
            campaign.drops = false;
        }
        let (batch, mut dropped) = (BatchNames::of_campaign(name), 0);
        for url in urls.iter().filter(|_| campaign.drops) {
            dropped += u32::from(self.leave_campaign(&mut site, &batch, url)?);
        }
        self.save(&site)?;
        let counts = self.campaign_counts(&site.name, name)?;
        campaign.mark(counts.ended(), self.now);
        self.shelf.save_campaign(&site.name, name, &campaign)?;
        Ok(Some(dropped))
    }

    /// Whether the page waited.
    fn leave_campaign(&mut self, site: &mut SiteState, batch: &str, url: &CanonicalUrl) -> Done<S, bool> {
        let task = self.shelf.task(site.page(url), Stage::Download)?;
        let is_its = |task: &Task| task.running().is_none() && task.rare.batches.contains(batch);
        let Some(mut task) = task.filter(is_its) else { return Ok(false) };
        let others: BatchNames = task.rare.batches.into_iter().filter(|name| name != batch).collect();
        let is_others = !others.is_empty() || task.rare.session.is_some() || task.rare.errand.is_some();
        task.rare.batches = others;
        self.end_batch(site, batch, BatchEnd::Dropped)?;
        if is_others {
            self.shelf.save_task(&task)?;
        } else {
            self.drop_task(site, &task)?;
        }
        Ok(true)
    }

    /// Removes what nobody needs of a campaign: the list of one that ended, in small steps, then the campaign where it is wanted so or
    /// that was long ago.
    pub(super) fn clear_campaign(
        &mut self,
        site: &str,
        name: &str,
        wanted: bool,
    ) -> Done<S, CampaignCleared> {
        let Some(mut campaign) = self.shelf.campaign(site, name)? else { return Ok(CampaignCleared::Gone) };
        let counts = self.campaign_counts(site, name)?;
        let goes = wanted || campaign.is_over(self.now);
        let has_ended = campaign.is_done(counts.open);
        if !has_ended && (campaign.began_at.is_some() || !goes) {
            return Ok(CampaignCleared::Kept);
        }
        self.note_end(&mut campaign, counts);
        if self.remove_chunks(site, name, &mut campaign)? {
            return Ok(CampaignCleared::Partly);
        }
        if !goes {
            return Ok(CampaignCleared::Kept);
        }
        self.shelf.remove_campaign(site, name)?;
        self.shelf.remove_batch(site, &BatchNames::of_campaign(name))?;
        Ok(CampaignCleared::Gone)
    }

    /// Removes the last chunks of a list, a bounded number, and saves that; whether some are left.
    fn remove_chunks(&mut self, site: &str, name: &str, campaign: &mut CampaignState) -> Done<S, bool> {
        let left = campaign.chunks.saturating_sub(REMOVED);
        for number in left..campaign.chunks {
            self.shelf.remove_chunk(site, name, number)?;
        }
        campaign.chunks = left;
        self.shelf.save_campaign(site, name, campaign)?;
        Ok(left > 0)
    }

    /// Forgets the campaigns of a site, a bounded number of chunks; whether some are left.
    pub(super) fn forget_campaigns(&mut self, site: &str) -> Done<S, bool> {
        for (name, mut campaign) in self.shelf.campaigns_of(site)? {
            if self.remove_chunks(site, &name, &mut campaign)? {
                return Ok(true);
            }
            self.shelf.remove_campaign(site, &name)?;
        }
        let names = self.shelf.campaign_names()?;
        names
            .iter()
            .filter(|known| known.site == site)
            .try_for_each(|known| self.shelf.remove_campaign_name(&known.name))?;
        Ok(false)
    }

    /// How a campaign stands.
    pub(super) fn campaign_status(&mut self, site: &str, name: &str) -> Done<S, Option<CampaignStatus>> {
        let Some(site) = self.shelf.site(site)? else { return Ok(None) };
        let Some(campaign) = self.shelf.campaign(&site.name, name)? else { return Ok(None) };
        let counts = self.campaign_counts(&site.name, name)?;
        let room = self.room_of(&site, &campaign, counts)?;
        let (interval, at) = (self.interval_of(&site)?, self.now);
        Ok(Some(CampaignStatus { campaign, counts, interval, room, at }))
    }

    /// Where its pages are: they are a batch of its site.
    fn campaign_counts(&mut self, site: &str, name: &str) -> Done<S, CampaignCounts> {
        let batch = self.batch(site, &BatchNames::of_campaign(name))?;
        Ok(batch.map(CampaignCounts::from).unwrap_or_default())
    }

    /// What a run that is given up takes in would go at once.
    fn room_of(
        &mut self,
        site: &SiteState,
        campaign: &CampaignState,
        counts: CampaignCounts,
    ) -> Done<S, u32> {
        if site.given_up {
            return Ok(0);
        }
        Ok(campaign.room(counts.open, self.interval_of(site)?, self.now))
    }

    fn interval_of(&mut self, site: &SiteState) -> Done<S, i64> {
        let unit = self.unit_or_new(&site.unit)?;
        Ok(site.interval().max(unit.group_wait()))
    }
}
