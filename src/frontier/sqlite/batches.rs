//! Books of batches: a row each a site.

use rusqlite::{Result, params};

use super::columns::to_json;
use super::transaction::Tables;
use crate::frontier::shelf::BatchShelf;
use crate::frontier::state::BatchCounts;

impl BatchShelf for Tables<'_> {
    fn batch(&mut self, site: &str, name: &str) -> Result<Option<BatchCounts>> {
        let site = self.site_id(site)?;
        self.file.record("SELECT state FROM batch_books WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn save_batch(&mut self, site: &str, name: &str, batch: &BatchCounts) -> Result<()> {
        let site = self.site_id(site)?;
        self.file.run(
            "INSERT OR REPLACE INTO batch_books VALUES (?1, ?2, ?3, ?4)",
            params![site, name, batch.ended_at, to_json(batch)?],
        )
    }

    fn remove_batch(&mut self, site: &str, name: &str) -> Result<()> {
        let site = self.site_id(site)?;
        self.file.run("DELETE FROM batch_books WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn count_ended_batches(&mut self, site: &str) -> Result<u64> {
        let site = self.site_id(site)?;
        let sql = "SELECT count(*) FROM batch_books WHERE site = ?1 AND ended IS NOT NULL";
        Ok(self.file.one(sql, [site], |row| row.get::<_, u32>(0))?.unwrap_or(0).into())
    }

    fn ended_batches(&mut self, site: &str, most: u32) -> Result<Vec<(i64, String)>> {
        let site = self.site_id(site)?;
        let sql = "SELECT ended, name FROM batch_books WHERE site = ?1 AND ended IS NOT NULL ORDER BY ended, name LIMIT ?2";
        self.file.all(sql, params![site, most], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
