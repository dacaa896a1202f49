//! Campaigns of the model.

use super::{Model, Sure};
use crate::frontier::shelf::CampaignShelf;
use crate::frontier::state::CampaignState;
use crate::frontier::url_list::UrlChunk;
use crate::frontier::view::CampaignName;

fn key(site: &str, name: &str) -> (String, String) {
    (site.to_owned(), name.to_owned())
}

impl CampaignShelf for Model {
    fn campaign_names(&mut self) -> Sure<Vec<CampaignName>> {
        Ok(self.campaign_names.values().cloned().collect())
    }

    fn save_campaign_name(&mut self, name: &CampaignName) -> Sure<()> {
        self.campaign_names.insert(name.name.clone(), name.clone());
        Ok(())
    }

    fn remove_campaign_name(&mut self, name: &str) -> Sure<()> {
        self.campaign_names.remove(name);
        Ok(())
    }

    fn campaign(&mut self, site: &str, name: &str) -> Sure<Option<CampaignState>> {
        Ok(self.campaigns.get(&key(site, name)).cloned())
    }

    fn save_campaign(&mut self, site: &str, name: &str, campaign: &CampaignState) -> Sure<()> {
        self.campaigns.insert(key(site, name), campaign.clone());
        Ok(())
    }

    fn remove_campaign(&mut self, site: &str, name: &str) -> Sure<()> {
        self.campaigns.remove(&key(site, name));
        Ok(())
    }

    fn campaigns_of(&mut self, site: &str) -> Sure<Vec<(String, CampaignState)>> {
        let of_site = self.campaigns.iter().filter(|((of, _), _)| of == site);
        Ok(of_site.map(|((_, name), campaign)| (name.clone(), campaign.clone())).collect())
    }

    fn chunk(&mut self, site: &str, name: &str, number: u32) -> Sure<Option<UrlChunk>> {
        Ok(self.chunks.get(&(key(site, name), number)).cloned())
    }

    fn save_chunk(&mut self, site: &str, name: &str, number: u32, chunk: &UrlChunk) -> Sure<()> {
        self.chunks.insert((key(site, name), number), chunk.clone());
        Ok(())
    }

    fn remove_chunk(&mut self, site: &str, name: &str, number: u32) -> Sure<()> {
        self.chunks.remove(&(key(site, name), number));
        Ok(())
    }
}

impl Model {
    /// What is kept of a site's campaigns is kept under another name.
    pub(super) fn rename_campaigns(&mut self, renamed: impl Fn(&str) -> String) {
        self.campaign_names.values_mut().for_each(|name| name.site = renamed(&name.site));
        let campaigns = std::mem::take(&mut self.campaigns).into_iter();
        self.campaigns = campaigns.map(|((site, of), campaign)| ((renamed(&site), of), campaign)).collect();
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        self.chunks =
            chunks.map(|(((site, of), number), chunk)| (((renamed(&site), of), number), chunk)).collect();
    }
}
