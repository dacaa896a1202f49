//! Pages that were fetched before, and when they are asked for again.

use rusqlite::{Result, params};

use super::columns::{to_json, url};
use super::session::Tables;
use crate::clock::Timestamp;
use crate::frontier::shelf::PageShelf;
use crate::frontier::state::{PageState, Recrawl};
use crate::frontier::view::Freshness;
use crate::task::PageKey;

impl PageShelf for Tables<'_> {
    fn page(&mut self, page: PageKey<'_>) -> Result<Option<PageState>> {
        let site = self.site_id(page.site)?;
        self.file.record(
            "SELECT state FROM page WHERE site = ?1 AND fp = ?2 AND url = ?3",
            params![site, page.url.fingerprint(), page.url.as_str()],
        )
    }

    fn save_page(&mut self, page: PageKey<'_>, before: Option<&PageState>, now: &PageState) -> Result<()> {
        let site = self.site_id(page.site)?;
        let fetched_at = now.stored.fetched_at.as_millis();
        let values = params![
            site,
            page.url.fingerprint(),
            page.url.as_str(),
            to_json(now)?,
            fetched_at,
            now.recrawl,
            now.recrawl_at
        ];
        let update = "UPDATE page SET state = ?4, fetched_at = ?5, recrawl = ?6, recrawl_at = ?7
             WHERE site = ?1 AND fp = ?2 AND url = ?3";
        let insert = "INSERT INTO page (site, fp, url, state, fetched_at, recrawl, recrawl_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.file.run(if before.is_some() { update } else { insert }, values)?;
        if now.recrawl_at.is_none() && before.is_none_or(|before| before.recrawl_at.is_none()) {
            return Ok(());
        }
        self.keep_next_recrawl(site)
    }

    fn remove_pages(&mut self, site: &str, most: u32) -> Result<bool> {
        let site = self.site_id(site)?;
        let sql = "DELETE FROM page WHERE id IN (SELECT id FROM page WHERE site = ?1 LIMIT ?2)";
        let removed = self.file.changed(sql, params![site, most])?;
        self.keep_next_recrawl(site)?;
        Ok(removed == most as usize)
    }

    fn first_recrawl(&mut self) -> Result<Option<Recrawl>> {
        self.flush()?;
        let site = "SELECT id, name FROM site WHERE has_room AND recrawl_at IS NOT NULL
             ORDER BY recrawl_at, name LIMIT 1";
        let first = self.file.one(site, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let Some((id, site)) = first else { return Ok(None) };
        let page = "SELECT recrawl_at, url FROM page WHERE site = ?1 AND recrawl_at IS NOT NULL
             ORDER BY recrawl_at, url LIMIT 1";
        self.file.one(page, [id], |row| Ok(Recrawl { at: row.get(0)?, site, url: url(row, 1)? }))
    }

    fn freshness(&mut self, site: &str, now: i64) -> Result<Freshness> {
        let site = self.site_id(site)?;
        let sql =
            "SELECT count(*) FILTER (WHERE fetched_at + recrawl > ?2), count(*), min(fetched_at) FROM page
             WHERE site = ?1 AND recrawl IS NOT NULL";
        let counts = self.file.one(sql, params![site, now], |row| {
            let (fresh, all): (i64, i64) = (row.get(0)?, row.get(1)?);
            let oldest = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis);
            Ok(Freshness { fresh: fresh.unsigned_abs(), all: all.unsigned_abs(), oldest })
        })?;
        Ok(counts.unwrap_or_default())
    }
}

impl Tables<'_> {
    /// Keeps true when a site's first page is asked for again.
    fn keep_next_recrawl(&self, site: Option<i64>) -> Result<()> {
        let first = "(SELECT min(recrawl_at) FROM page WHERE page.site = site.id AND recrawl_at IS NOT NULL)";
        self.file.run(
            &format!("UPDATE site SET recrawl_at = {first} WHERE id = ?1 AND recrawl_at IS NOT {first}"),
            [site],
        )
    }
}
