//! Pages that were fetched before, packed, and when they are asked for again.

use rusqlite::{Result, params};

use super::columns::url;
use super::page_row::PageRow;
use super::transaction::Tables;
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::shelf::PageShelf;
use crate::frontier::state::{PageState, Recrawl};
use crate::frontier::view::Freshness;
use crate::task::PageKey;

/// A page's row and the name of the segment that it lies in.
const ROW: &str = "page.row, segment.name FROM page LEFT JOIN segment ON segment.id = page.segment";

impl PageShelf for Tables<'_> {
    fn page(&mut self, page: PageKey<'_>) -> Result<Option<PageState>> {
        let Some(site) = self.site_id(page.site)? else { return Ok(None) };
        let Some(id) = self.page_id(site, page.url)? else { return Ok(None) };
        let sql = format!("SELECT {ROW} WHERE page.id = ?1");
        self.file.one(&sql, [id], |row| PageRow::read(row, 0))
    }

    fn save_page(&mut self, page: PageKey<'_>, before: Option<&PageState>, now: &PageState) -> Result<()> {
        let Some(site) = self.site_id(page.site)? else { return Ok(()) };
        self.keep_page(site, page.url, before, now)?;
        if now.recrawl_at.is_none() && before.is_none_or(|before| before.recrawl_at.is_none()) {
            return Ok(());
        }
        self.keep_next_recrawl(site)
    }

    fn remove_pages(&mut self, site: &str, most: u32) -> Result<bool> {
        let Some(site) = self.site_id(site)? else { return Ok(false) };
        let sql = "SELECT fp, page FROM seen WHERE site = ?1 AND page > 0 LIMIT ?2";
        let pages: Vec<(i64, i64)> =
            self.file.all(sql, params![site, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (fingerprint, id) in &pages {
            let sql = format!("SELECT {ROW} WHERE page.id = ?1");
            if let Some(page) = self.file.one(&sql, [id], |row| PageRow::read(row, 0))? {
                self.leave_segment(&page)?;
                self.leave_time(site, *id, &page)?;
                self.leave_recrawl(site, &page)?;
            }
            self.file.run("DELETE FROM page WHERE id = ?1", [id])?;
            let seen = "DELETE FROM seen WHERE site = ?1 AND fp = ?2 AND page = ?3";
            self.file.run(seen, [site, *fingerprint, *id])?;
        }
        self.keep_next_recrawl(site)?;
        Ok(pages.len() == most as usize)
    }

    fn last_recrawl(&mut self, site: &str, period: i64) -> Result<Option<i64>> {
        let site = self.site_id(site)?;
        let sql = "SELECT last FROM recrawl WHERE site = ?1 AND period = ?2";
        self.file.one(sql, params![site, period], |row| row.get(0))
    }

    fn first_recrawl(&mut self) -> Result<Option<Recrawl>> {
        self.flush()?;
        let site = "SELECT id, name FROM site WHERE has_room AND recrawl_at IS NOT NULL
             ORDER BY recrawl_at, name LIMIT 1";
        let first = self.file.one(site, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let Some((id, site)) = first else { return Ok(None) };
        // One of each period at most is asked for at the same time.
        let sql = format!(
            "SELECT {ROW} JOIN again ON again.page = page.id
             WHERE again.site = ?1 AND again.at = (SELECT min(at) FROM again WHERE site = ?1)"
        );
        let sql = sql.replacen("SELECT ", "SELECT again.at, page.url, ", 1);
        let first = self.file.all(&sql, [id], |row| {
            let (at, url) = (row.get(0)?, url(row, 1)?);
            Ok((PageRow::read(row, 2)?.recrawl, at, url))
        })?;
        let first = first.into_iter().min_by_key(|(period, ..)| *period);
        Ok(first.map(|(_, at, url)| Recrawl { at, site, url }))
    }

    fn freshness(&mut self, site: &str, now: i64) -> Result<Freshness> {
        let site = self.site_id(site)?;
        let sql = "SELECT sum(pages) FILTER (WHERE slot + period > ?2), sum(pages), min(slot) FROM fetched
             WHERE site = ?1";
        let counts = self.file.one(sql, params![site, now], |row| {
            let count = |column| row.get::<_, Option<i64>>(column).map(|sum| sum.unwrap_or(0).unsigned_abs());
            let oldest = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis);
            Ok(Freshness { fresh: count(0)?, all: count(1)?, oldest })
        })?;
        Ok(counts.unwrap_or_default())
    }
}

impl Tables<'_> {
    /// A page was seen in a run of the site with that number.
    pub(super) fn see(&self, site: i64, fingerprint: i64, run: i64) -> Result<()> {
        let sql = "UPDATE seen SET run = ?3 WHERE site = ?1 AND fp = ?2";
        if self.file.changed(sql, [site, fingerprint, run])? == 0 {
            self.file.run("INSERT INTO seen VALUES (?1, ?2, 0, ?3)", [site, fingerprint, run])?;
        }
        Ok(())
    }

    fn page_id(&self, site: i64, url: &CanonicalUrl) -> Result<Option<i64>> {
        let sql = "SELECT page.id FROM seen JOIN page ON page.id = seen.page
             WHERE seen.site = ?1 AND seen.fp = ?2 AND seen.page > 0 AND page.url = ?3";
        self.file.one(sql, params![site, url.fingerprint(), url.as_str()], |row| row.get(0))
    }

    /// Keeps a page of the site with that number, in place of what was kept of it before.
    pub(super) fn keep_page(
        &self,
        site: i64,
        url: &CanonicalUrl,
        before: Option<&PageState>,
        now: &PageState,
    ) -> Result<()> {
        let row = PageRow::of(now);
        let segment = match row.segment {
            Some(name) => self.file.one(
                "INSERT INTO segment (name, pages) VALUES (?1, 1)
                 ON CONFLICT (name) DO UPDATE SET pages = pages + 1 RETURNING id",
                [name],
                |row| row.get::<_, i64>(0),
            )?,
            None => None,
        };
        let id = match before {
            Some(_) => self.page_id(site, url)?,
            None => None,
        };
        let id = if let Some(id) = id {
            let sql = "UPDATE page SET segment = ?2, row = ?3 WHERE id = ?1";
            self.file.run(sql, params![id, segment, row.packed])?;
            id
        } else {
            let sql = "INSERT INTO page (url, segment, row) VALUES (?1, ?2, ?3) RETURNING id";
            let id = self.file.one(sql, params![url.as_str(), segment, row.packed], |row| row.get(0))?;
            let id = id.unwrap_or_default();
            let seen = "UPDATE seen SET page = ?3 WHERE site = ?1 AND fp = ?2 AND page = 0";
            if self.file.changed(seen, [site, url.fingerprint(), id])? == 0 {
                self.file.run("INSERT INTO seen VALUES (?1, ?2, ?3, -1)", [site, url.fingerprint(), id])?;
            }
            id
        };
        if let Some(before) = before {
            self.leave_time(site, id, before)?;
        }
        self.enter_recrawl(site, id, now)?;
        if let Some(before) = before {
            self.leave_segment(before)?;
            self.leave_recrawl(site, before)?;
        }
        Ok(())
    }

    /// A segment that no page lies in any more goes.
    fn leave_segment(&self, page: &PageState) -> Result<()> {
        let Some(name) = PageRow::of(page).segment else { return Ok(()) };
        self.file.run("UPDATE segment SET pages = pages - 1 WHERE name = ?1", [name])?;
        self.file.run("DELETE FROM segment WHERE name = ?1 AND pages = 0", [name])
    }

    fn enter_recrawl(&self, site: i64, id: i64, page: &PageState) -> Result<()> {
        let (Some(period), Some(at)) = (page.recrawl, page.recrawl_at) else { return Ok(()) };
        self.file.run("INSERT INTO again VALUES (?1, ?2, ?3)", [site, at, id])?;
        self.file.run(
            "INSERT INTO recrawl VALUES (?1, ?2, 1, ?3)
             ON CONFLICT (site, period) DO UPDATE SET pages = pages + 1, last = max(last, ?3)",
            [site, period, at],
        )?;
        self.file.run(
            "INSERT INTO fetched VALUES (?1, ?2, ?3, 1)
             ON CONFLICT (site, period, slot) DO UPDATE SET pages = pages + 1",
            params![site, period, page.fetched_slot()],
        )
    }

    fn leave_time(&self, site: i64, id: i64, page: &PageState) -> Result<()> {
        let Some(at) = page.recrawl_at else { return Ok(()) };
        self.file.run("DELETE FROM again WHERE site = ?1 AND at = ?2 AND page = ?3", [site, at, id])
    }

    /// The books of a period go with its last page.
    fn leave_recrawl(&self, site: i64, page: &PageState) -> Result<()> {
        let Some(period) = page.recrawl else { return Ok(()) };
        let recrawl = "site = ?1 AND period = ?2";
        self.file.run(&format!("UPDATE recrawl SET pages = pages - 1 WHERE {recrawl}"), [site, period])?;
        self.file.run(&format!("DELETE FROM recrawl WHERE {recrawl} AND pages = 0"), [site, period])?;
        let slot = params![site, period, page.fetched_slot()];
        let fetched = "site = ?1 AND period = ?2 AND slot = ?3";
        self.file.run(&format!("UPDATE fetched SET pages = pages - 1 WHERE {fetched}"), slot)?;
        self.file.run(&format!("DELETE FROM fetched WHERE {fetched} AND pages = 0"), slot)
    }

    /// Keeps true when a site's first page is asked for again.
    fn keep_next_recrawl(&self, site: i64) -> Result<()> {
        let first = "(SELECT min(at) FROM again WHERE again.site = site.id)";
        self.file.run(
            &format!("UPDATE site SET recrawl_at = {first} WHERE id = ?1 AND recrawl_at IS NOT {first}"),
            [site],
        )
    }
}
