//! Campaigns: a row each, and a row a chunk of their lists.

use rusqlite::{Result, params};

use super::columns::{json, to_json};
use super::transaction::Tables;
use crate::frontier::shelf::CampaignShelf;
use crate::frontier::state::CampaignState;
use crate::frontier::url_list::UrlChunk;
use crate::frontier::view::CampaignName;

impl CampaignShelf for Tables<'_> {
    fn campaign_names(&mut self) -> Result<Vec<CampaignName>> {
        let sql = "SELECT name, site, number FROM campaign_name ORDER BY name";
        self.file.all(sql, [], |row| {
            Ok(CampaignName { name: row.get(0)?, site: row.get(1)?, number: row.get(2)? })
        })
    }

    fn save_campaign_name(&mut self, name: &CampaignName) -> Result<()> {
        let CampaignName { name, site, number } = name;
        self.file.run("INSERT OR REPLACE INTO campaign_name VALUES (?1, ?2, ?3)", params![name, site, number])
    }

    fn remove_campaign_name(&mut self, name: &str) -> Result<()> {
        self.file.run("DELETE FROM campaign_name WHERE name = ?1", [name])
    }

    fn campaign(&mut self, site: &str, name: &str) -> Result<Option<CampaignState>> {
        let site = self.site_id(site)?;
        self.file.record("SELECT state FROM campaign WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn save_campaign(&mut self, site: &str, name: &str, campaign: &CampaignState) -> Result<()> {
        let row = params![self.site_id(site)?, name, to_json(campaign)?];
        self.file.run("INSERT OR REPLACE INTO campaign VALUES (?1, ?2, ?3)", row)
    }

    fn remove_campaign(&mut self, site: &str, name: &str) -> Result<()> {
        let site = self.site_id(site)?;
        self.file.run("DELETE FROM campaign WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn campaigns_of(&mut self, site: &str) -> Result<Vec<(String, CampaignState)>> {
        let site = self.site_id(site)?;
        let sql = "SELECT name, state FROM campaign WHERE site = ?1 ORDER BY name";
        self.file.all(sql, [site], |row| Ok((row.get(0)?, json(row, 1)?)))
    }

    fn chunk(&mut self, site: &str, name: &str, number: u32) -> Result<Option<UrlChunk>> {
        let site = self.site_id(site)?;
        let sql = "SELECT urls FROM campaign_chunk WHERE site = ?1 AND name = ?2 AND number = ?3";
        self.file.one(sql, params![site, name, number], |row| Ok(UrlChunk::from_packed(row.get(0)?)))
    }

    fn save_chunk(&mut self, site: &str, name: &str, number: u32, chunk: &UrlChunk) -> Result<()> {
        self.remove_chunk(site, name, number)?;
        let site = self.site_id(site)?;
        let sql = "INSERT INTO campaign_chunk (site, name, number, urls) VALUES (?1, ?2, ?3, ?4)";
        self.file.run(sql, params![site, name, number, chunk.packed()])
    }

    fn remove_chunk(&mut self, site: &str, name: &str, number: u32) -> Result<()> {
        let site = self.site_id(site)?;
        let sql = "DELETE FROM campaign_chunk WHERE site = ?1 AND name = ?2 AND number = ?3";
        self.file.run(sql, params![site, name, number])
    }
}
