//! What flowed through the queues of sites lately.

use rusqlite::{Result, params};

use super::columns::lane_column;
use super::memory::Cached;
use super::transaction::Tables;
use crate::frontier::shelf::FlowShelf;
use crate::frontier::state::{HOUR_SLOTS, QueueBooks, RUN_SLOT, WAIT_ONE, WAITS_KEPT, WaitKey};
use crate::task::{LANE, Priority};

/// Sites without starts whose waits are forgotten with each that has one.
const SWEPT: u32 = 2;

impl FlowShelf for Tables<'_> {
    fn open_slot(&mut self, site: &str, slot: i64, books: QueueBooks) -> Result<()> {
        if self.memory.slots_open.get(site) == Some(&slot) {
            return Ok(());
        }
        self.memory.slots_open.stands(site, slot);
        let Some(id) = self.site_id(site)? else { return Ok(()) };
        if self.file.changed(&keep("IGNORE"), row(id, slot, books))? > 0 {
            let over = "DELETE FROM books WHERE site = ?1 AND slot > ?2 AND slot < ?3";
            self.file
                .run(over, params![id, RUN_SLOT, slot - i64::try_from(HOUR_SLOTS).unwrap_or_default()])?;
        }
        Ok(())
    }

    fn open_run(&mut self, site: &str, books: QueueBooks) -> Result<()> {
        let Some(id) = self.site_id(site)? else { return Ok(()) };
        self.file.run(&keep("REPLACE"), row(id, RUN_SLOT, books))
    }

    fn books(&mut self, site: &str) -> Result<Vec<(i64, QueueBooks)>> {
        let id = self.site_id(site)?;
        let sql = "SELECT slot, entered, gone, puts, coalesced FROM books WHERE site = ?1";
        self.file.all(sql, [id], |row| {
            let count = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let [entered, gone, puts, coalesced] = [count(1)?, count(2)?, count(3)?, count(4)?];
            Ok((row.get(0)?, QueueBooks { entered, gone, puts, coalesced }))
        })
    }

    fn waits_slot(&mut self, site: &str) -> Result<Option<i64>> {
        let id = self.site_id(site)?;
        let read = || self.file.one("SELECT slot FROM waits WHERE site = ?1", [id], |row| row.get(0));
        self.memory.waits_slots.get_or_read(site, read)
    }

    fn halve_waits(&mut self, site: &str, halvings: i64, slot: i64) -> Result<()> {
        self.forget_quiet_waits(slot)?;
        let Some(id) = self.site_id(site)? else { return Ok(()) };
        self.memory.waits_slots.stands(site, slot);
        self.file.run("INSERT OR REPLACE INTO waits VALUES (?1, ?2)", [id, slot])?;
        self.file.run("DELETE FROM wait WHERE site = ?1 AND count >> ?2 = 0", [id, halvings])?;
        self.file.run("UPDATE wait SET count = count >> ?2 WHERE site = ?1", [id, halvings])
    }

    fn add_wait(&mut self, site: &str, wait: &WaitKey, most: u32) -> Result<()> {
        let Some(id) = self.site_id(site)? else { return Ok(()) };
        let WaitKey { lane, level, tenant, bucket } = wait;
        let mut tenant = tenant.as_deref().unwrap_or_default();
        if !tenant.is_empty() && self.is_full_of_waits(id, wait, most)? {
            tenant = "";
        }
        self.file.run(
            "INSERT INTO wait VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (site, lane, level, tenant, bucket) DO UPDATE SET count = count + ?6",
            params![id, lane_column(lane), level.value(), tenant, bucket, WAIT_ONE.cast_signed()],
        )
    }

    fn waits(&mut self, site: &str) -> Result<Vec<(WaitKey, u64)>> {
        let id = self.site_id(site)?;
        let sql = "SELECT lane, level, tenant, bucket, count FROM wait WHERE site = ?1";
        self.file.all(sql, [id], |row| {
            let name =
                |column| row.get::<_, String>(column).map(|name| Some(name).filter(|name| !name.is_empty()));
            let wait = WaitKey {
                lane: name(0)?.unwrap_or_else(|| LANE.to_owned()),
                level: Priority::from_value(row.get(1)?),
                tenant: name(2)?,
                bucket: row.get(3)?,
            };
            Ok((wait, row.get::<_, i64>(4)?.cast_unsigned()))
        })
    }
}

impl Tables<'_> {
    /// Whether a wait would be one counter more where there are as many as may be.
    fn is_full_of_waits(&self, site: i64, wait: &WaitKey, most: u32) -> Result<bool> {
        let WaitKey { lane, level, tenant, bucket } = wait;
        let known =
            "SELECT 1 FROM wait WHERE site = ?1 AND lane = ?2 AND level = ?3 AND tenant = ?4 AND bucket = ?5";
        let known =
            self.file
                .one(known, params![site, lane_column(lane), level.value(), tenant, bucket], |_| Ok(()))?;
        let count = "SELECT count(*) FROM wait WHERE site = ?1";
        Ok(known.is_none() && self.file.one(count, [site], |row| row.get(0))? >= Some(most))
    }

    /// What was counted of sites that had no start for long.
    fn forget_quiet_waits(&mut self, slot: i64) -> Result<()> {
        let quiet = "SELECT site FROM waits WHERE slot <= ?1 ORDER BY slot LIMIT ?2";
        let quiet: Vec<i64> = self.file.all(quiet, params![slot - WAITS_KEPT, SWEPT], |row| row.get(0))?;
        quiet.into_iter().try_for_each(|site| self.forget_waits(site))
    }

    fn forget_waits(&mut self, site: i64) -> Result<()> {
        self.memory.waits_slots = Cached::default();
        self.file.run("DELETE FROM wait WHERE site = ?1", [site])?;
        self.file.run("DELETE FROM waits WHERE site = ?1", [site])
    }

    /// The site is being removed: what flowed through its queue is forgotten.
    pub(super) fn forget_flow(&mut self, site: &str) -> Result<()> {
        let Some(id) = self.site_id(site)? else { return Ok(()) };
        self.file.run("DELETE FROM books WHERE site = ?1", [id])?;
        self.forget_waits(id)
    }
}

/// The statement that keeps books in a slot, or does so where those of it are kept already.
fn keep(or: &str) -> String {
    format!("INSERT OR {or} INTO books VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
}

fn row(site: i64, slot: i64, books: QueueBooks) -> [i64; 6] {
    let QueueBooks { entered, gone, puts, coalesced } = books;
    let [entered, gone, puts, coalesced] = [entered, gone, puts, coalesced].map(u64::cast_signed);
    [site, slot, entered, gone, puts, coalesced]
}
