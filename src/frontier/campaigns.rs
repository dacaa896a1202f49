//! Campaigns: lists of URLs that lie in the frontier, chunk by chunk, and are put portion by portion (C12-C16). What a portion is,
//! and when one is put, is in `state/campaign.rs`.

use futures_util::future::try_join_all;

use super::state::{CAMPAIGNS_KEPT, CampaignTuning};
use super::table::{Reply, Step};
use super::view::{CampaignName, CampaignStatus};
use super::{Act, Frontier, FrontierError, FrontierErrorKind, WorkScope};
use crate::canonical_url::CanonicalUrl;
use crate::task::{BatchNames, CampaignPlan, LaneWish, Put};

pub use super::step::{CampaignBooked, CampaignCleared, CampaignFed, CampaignMade, CampaignTuned};
pub use super::url_list::{ListKey, UrlChunk, UrlList};

/// Pages put in one step: few, as a start that comes up meanwhile waits for it.
const FED_AT_ONCE: usize = 250;
/// URLs dropped in one step.
const DROPPED_AT_ONCE: usize = 250;
/// Chunks sent at once: an answer from far away is waited for once.
const SENT_AT_ONCE: usize = 8;

/// What became of starting a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CampaignStarted {
    /// It runs.
    Done,
    /// One of that name is under way, on this site.
    Running(String),
    /// As many campaigns are kept as may be, and none of them has ended.
    Full,
    /// There is no such site.
    NoSite,
    /// Another list took the place of this one meanwhile.
    Replaced,
}

impl Frontier {
    /// Starts a campaign under a name that no other one runs under. Begun again after a kill it goes on with the list.
    pub async fn start_campaign(
        &self,
        site: &str,
        name: &str,
        plan: &CampaignPlan,
        list: &mut UrlList,
        act: Act,
    ) -> Result<CampaignStarted, FrontierError> {
        if let Some(refused) = self.book(site, name).await? {
            return Ok(refused);
        }
        let key = list.key();
        let first = loop {
            match self.make_campaign(site, name, &key, plan).await? {
                CampaignMade::Next(first) => break first,
                CampaignMade::Partly => {}
                CampaignMade::Running => return Ok(CampaignStarted::Running(site.to_owned())),
                CampaignMade::NoSite => return Ok(CampaignStarted::NoSite),
            }
        };
        let left: Vec<(u32, &UrlChunk)> = (0..).zip(list.chunks()).skip(first as usize).collect();
        for some in left.chunks(SENT_AT_ONCE) {
            let sent = some.iter().map(|(number, chunk)| self.add_chunk(site, name, &key, *number, chunk));
            if try_join_all(sent).await?.contains(&false) {
                return Ok(CampaignStarted::Replaced);
            }
        }
        let begun = self.begin_campaign(site, name, &key, act).await?;
        Ok(if begun { CampaignStarted::Done } else { CampaignStarted::Replaced })
    }

    /// Takes the name; else what stands against it.
    async fn book(&self, site: &str, name: &str) -> Result<Option<CampaignStarted>, FrontierError> {
        self.sweep_campaigns(None).await?;
        let mut booked = self.book_campaign(name, site).await?;
        match &booked {
            CampaignBooked::Full => self.sweep_campaigns(Some(1)).await?,
            CampaignBooked::Taken(other) if !self.runs(other, name).await? => {
                self.remove_campaign(other, name).await?;
            }
            _ => return Ok(refusal(booked)),
        }
        booked = self.book_campaign(name, site).await?;
        Ok(refusal(booked))
    }

    async fn runs(&self, site: &str, name: &str) -> Result<bool, FrontierError> {
        Ok(self.campaign(site, name).await?.is_some_and(|status| status.is_under_way()))
    }

    /// A step of it: takes a name for a campaign of a site.
    pub async fn book_campaign(&self, name: &str, site: &str) -> Result<CampaignBooked, FrontierError> {
        ask!(self, BookCampaign { name: name.to_owned(), site: site.to_owned() })
    }

    /// A step of it: makes the record, or goes on with a list that is half there; which of its chunks is the next.
    pub async fn make_campaign(
        &self,
        site: &str,
        name: &str,
        list: &ListKey,
        plan: &CampaignPlan,
    ) -> Result<CampaignMade, FrontierError> {
        let (site, name, list) = (site.to_owned(), name.to_owned(), list.clone());
        ask!(self, MakeCampaign { site, name, list, plan: plan.clone() })
    }

    /// A step of it: adds the next chunk of its list. One that is there already changes nothing. False: it is another list's now.
    pub async fn add_chunk(
        &self,
        site: &str,
        name: &str,
        list: &ListKey,
        number: u32,
        chunk: &UrlChunk,
    ) -> Result<bool, FrontierError> {
        let (site, name, mark) = (site.to_owned(), name.to_owned(), list.mark.clone());
        ask!(self, AddChunk { site, name, mark, number, chunk: chunk.clone() })
    }

    /// A step of it, the last one. False: chunks are missing, or it is another list's now.
    pub async fn begin_campaign(
        &self,
        site: &str,
        name: &str,
        list: &ListKey,
        act: Act,
    ) -> Result<bool, FrontierError> {
        let (site, name, mark) = (site.to_owned(), name.to_owned(), list.mark.clone());
        ask!(self, BeginCampaign { site, name, mark, act })
    }

    /// The names of all campaigns, in order.
    pub async fn campaign_names(&self) -> Result<Vec<CampaignName>, FrontierError> {
        let mut names: Vec<CampaignName> = ask!(self, Campaigns {})?;
        names.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(names)
    }

    /// How a campaign stands.
    pub async fn campaign(&self, site: &str, name: &str) -> Result<Option<CampaignStatus>, FrontierError> {
        let status = ask!(self, Campaign { site: site.to_owned(), name: name.to_owned() })?;
        Ok(status.map(|status| *status))
    }

    /// How all campaigns stand, by name, each at a moment of its own.
    pub async fn campaigns(&self) -> Result<Vec<(CampaignName, CampaignStatus)>, FrontierError> {
        let names = self.campaign_names().await?;
        let looks = names.iter().map(|name| self.campaign(&name.site, &name.name));
        let statuses = try_join_all(looks).await?;
        Ok(names.into_iter().zip(statuses).filter_map(|(name, status)| Some((name, status?))).collect())
    }

    /// Whether a campaign of one of these sites is under way, or its end isn't noted yet.
    pub async fn has_campaigns(&self, scope: &WorkScope) -> Result<bool, FrontierError> {
        let names = self.campaign_names().await?.into_iter().filter(|name| scope.includes(&name.site));
        for CampaignName { name, site, .. } in names {
            let status = self.campaign(&site, &name).await?;
            if status.is_some_and(|status| status.is_under_way() || status.campaign.is_to_be_ended()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets values of a campaign.
    pub async fn tune_campaign(
        &self,
        act: Act,
        site: &str,
        name: &str,
        tunings: Vec<CampaignTuning>,
    ) -> Result<CampaignTuned, FrontierError> {
        ask!(self, TuneCampaign { site: site.to_owned(), name: name.to_owned(), tunings, act: Some(act) })
    }
}

/// Why a name can't be taken.
fn refusal(booked: CampaignBooked) -> Option<CampaignStarted> {
    match booked {
        CampaignBooked::Number(_) => None,
        CampaignBooked::Taken(other) => Some(CampaignStarted::Running(other)),
        CampaignBooked::Full => Some(CampaignStarted::Full),
    }
}

/// What feeds campaigns.
impl Frontier {
    /// Puts as many pages of a campaign as it has room for, in small steps: how many. Others may do the same at the same time.
    pub async fn top_up(
        &self,
        CampaignName { name, site, .. }: &CampaignName,
        status: &CampaignStatus,
    ) -> Result<u64, FrontierError> {
        let (plan, list) = (&status.campaign.plan, &status.campaign.list);
        let (mut next, mut room, mut all) = (status.campaign.next, status.room, 0);
        let mut chunk: Option<(u32, Vec<CanonicalUrl>)> = None;
        while room > 0 && next < list.total {
            let (number, from) = list.place_of(next);
            if chunk.as_ref().is_none_or(|(held, _)| *held != number) {
                let Some(urls) = self.chunk_urls(site, name, number).await? else { break };
                chunk = Some((number, urls));
            }
            let urls = chunk.iter().flat_map(|(_, urls)| urls).skip(from);
            let puts = urls.take(FED_AT_ONCE.min(room as usize)).map(|url| put_of(url, name, plan)).collect();
            let Some(fed) = self.feed_campaign(site, name, list, next, puts).await? else { break };
            all += u64::from(fed.put);
            if fed.put == 0 && fed.next == next {
                break;
            }
            (next, room) = (fed.next, fed.room);
        }
        Ok(all)
    }

    /// A step of it: puts these pages, those from that URL of its list on, as many as there is room for. Where another one put some
    /// meanwhile, none. Without any it notes the end, if that has come. No answer: it is another list's now.
    pub async fn feed_campaign(
        &self,
        site: &str,
        name: &str,
        list: &ListKey,
        from: u32,
        puts: Vec<Put>,
    ) -> Result<Option<CampaignFed>, FrontierError> {
        let (site, name, mark) = (site.to_owned(), name.to_owned(), list.mark.clone());
        ask!(self, FeedCampaign { site, name, mark, from, puts, elsewhere: 0 })
    }

    /// The URLs of a chunk of its list; none where it is gone.
    async fn chunk_urls(
        &self,
        site: &str,
        name: &str,
        number: u32,
    ) -> Result<Option<Vec<CanonicalUrl>>, FrontierError> {
        let chunk = ask!(self, CampaignChunk { site: site.to_owned(), name: name.to_owned(), number })?;
        let read = chunk.map(|chunk| chunk.urls()).transpose();
        let broken = |why| FrontierError::new(FrontierErrorKind::Broken, self.0.shown()).because(why);
        read.map_err(broken)
    }

    /// Drops what waits of a campaign that was stopped so, in small steps: how many pages. The newest of its list go first, as most of
    /// what waits are among them.
    pub async fn drop_of_campaign(&self, site: &str, name: &str) -> Result<u64, FrontierError> {
        let Some(status) = self.campaign(site, name).await? else { return Ok(0) };
        let (list, fed, mut dropped) = (status.campaign.list, status.campaign.next, 0);
        for number in (0..fed.div_ceil(list.per_chunk.max(1))).rev() {
            if !self.may_wait(site, name).await? {
                break;
            }
            let Some(urls) = self.chunk_urls(site, name, number).await? else { continue };
            for urls in urls.chunks(DROPPED_AT_ONCE) {
                dropped += u64::from(self.drop_urls(site, name, urls.to_vec()).await?.unwrap_or(0));
            }
        }
        // That was all.
        self.drop_urls(site, name, Vec::new()).await?;
        Ok(dropped)
    }

    async fn may_wait(&self, site: &str, name: &str) -> Result<bool, FrontierError> {
        let is_open = self.campaign(site, name).await?.is_some_and(|status| status.counts.open > 0);
        Ok(is_open && self.view(site).await?.is_some_and(|view| view.download.idle() > 0))
    }

    /// A step of it: those of these pages that wait lose its name, and go where no other batch and no session has them. Without any,
    /// all are done.
    pub async fn drop_urls(
        &self,
        site: &str,
        name: &str,
        urls: Vec<CanonicalUrl>,
    ) -> Result<Option<u32>, FrontierError> {
        ask!(self, DropOfCampaign { site: site.to_owned(), name: name.to_owned(), urls })
    }

    /// Forgets campaigns that ended long ago, and lists that never came whole. Where room is `wanted`, so many of those that ended
    /// first go as well.
    pub async fn sweep_campaigns(&self, wanted: Option<usize>) -> Result<(), FrontierError> {
        let all = self.campaigns().await?;
        let ended = |status: &CampaignStatus| status.campaign.ended_at.filter(|_| !status.is_under_way());
        // Nobody may be there who notes the end of one that was stopped.
        let over = |status: &CampaignStatus| {
            let is_over = status.campaign.began_at.is_some() && !status.is_under_way();
            is_over.then(|| status.campaign.ended_at.unwrap_or(status.at))
        };
        let mut early: Vec<(i64, &CampaignName)> =
            all.iter().filter_map(|(name, status)| Some((over(status)?, name))).collect();
        early.sort_by_key(|(at, name)| (*at, name.name.clone()));
        for (_, name) in early.iter().take(wanted.unwrap_or(0)) {
            self.remove_campaign(&name.site, &name.name).await?;
        }
        for (name, status) in &all {
            if ended(status).is_some() || status.campaign.is_over(status.at) {
                self.clear_campaign(name, false).await?;
            }
        }
        let left = self.campaign_names().await?;
        let known: Vec<&str> = all.iter().map(|(name, _)| name.name.as_str()).collect();
        // A name without a record is one whose campaign was never made, unless its site is being renamed: who takes it now gets
        // another number.
        for name in left.iter().filter(|_| left.len() >= CAMPAIGNS_KEPT) {
            if !known.contains(&name.name.as_str()) {
                self.clear_campaign(name, false).await?;
            }
        }
        Ok(())
    }

    /// A campaign and its name go.
    async fn remove_campaign(&self, site: &str, name: &str) -> Result<(), FrontierError> {
        let names = self.campaign_names().await?;
        let booked = names.into_iter().find(|booked| booked.name == name && booked.site == site);
        if let Some(booked) = booked {
            self.clear_campaign(&booked, true).await?;
        }
        Ok(())
    }

    /// Removes the list of a campaign that ended.
    pub async fn clear_list(&self, name: &CampaignName) -> Result<(), FrontierError> {
        self.clear_campaign(name, false).await
    }

    /// Removes the list of a campaign that ended, in small steps, and the campaign where it is `wanted` or that was long ago.
    async fn clear_campaign(&self, name: &CampaignName, wanted: bool) -> Result<(), FrontierError> {
        loop {
            match self.clear_step(&name.site, &name.name, wanted).await? {
                CampaignCleared::Partly => {}
                CampaignCleared::Kept => return Ok(()),
                CampaignCleared::Gone => return self.unbook_campaign(name).await.map(drop),
            }
        }
    }

    /// A step of it.
    pub async fn clear_step(
        &self,
        site: &str,
        name: &str,
        wanted: bool,
    ) -> Result<CampaignCleared, FrontierError> {
        ask!(self, ClearCampaign { site: site.to_owned(), name: name.to_owned(), wanted })
    }

    /// Gives a name back, unless it was taken again since.
    pub async fn unbook_campaign(&self, name: &CampaignName) -> Result<bool, FrontierError> {
        ask!(self, UnbookCampaign { name: name.name.clone(), number: name.number })
    }
}

/// A page of a campaign, as it is asked for.
pub fn put_of(url: &CanonicalUrl, name: &str, plan: &CampaignPlan) -> Put {
    let wish = LaneWish { lane: plan.lane.clone(), urgent: false, tenant: plan.tenant.clone() };
    let batches: BatchNames = [BatchNames::of_campaign(name)].into_iter().chain(plan.batch.clone()).collect();
    Put { wish, batches, ..Put::request(url.clone(), plan.priority) }
}
