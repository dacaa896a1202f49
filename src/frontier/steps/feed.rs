//! Pages whose `recrawl` is over are asked for again.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{PageState, Recrawl};
use crate::frontier::step::Feeding;
use crate::task::{Priority, Put, Stage};

/// Pages looked at in one step.
pub(in crate::frontier) const FED: u32 = 1_000;

impl<S: Shelf> Moment<'_, S> {
    /// Puts pages whose time has come as requests, the longest due first. Each is due again a period later, whatever becomes
    /// of the request. A page that is being fetched just now isn't asked for once more: that fetch is its re-crawl. A site
    /// with enough waiting downloads is passed over until it has room. So many pages are looked at, put or not.
    pub(super) fn feed(&mut self, most: u32) -> Done<S, Feeding> {
        let mut put = 0;
        for _ in 0..most.min(FED) {
            let Some(due) = self.shelf.first_recrawl()?.filter(|due| due.at <= self.now) else { break };
            put += u64::from(self.ask_again(due)?);
        }
        let next = self.shelf.first_recrawl()?;
        Ok(Feeding { put, next_in: next.map(|next| (next.at - self.now).max(0)) })
    }

    /// A page is asked for again a `recrawl` from now.
    pub(super) fn recrawl(&mut self, site: &str, page: &mut PageState, recrawl: Option<i64>) -> Done<S> {
        let last = match recrawl {
            Some(period) => self.shelf.last_recrawl(site, period)?,
            None => None,
        };
        page.recrawl_from(self.now, recrawl, last);
        Ok(())
    }

    /// Whether the page was put.
    fn ask_again(&mut self, due: Recrawl) -> Done<S, bool> {
        let mut depth = 0;
        if let Some(before) = self.shelf.page(due.page())? {
            depth = before.depth;
            let mut page = before.clone();
            self.recrawl(&due.site, &mut page, before.recrawl)?;
            self.shelf.save_page(due.page(), Some(&before), &page)?;
        }
        let Some(mut site) = self.shelf.site(&due.site)? else { return Ok(false) };
        let task = self.shelf.task(due.page(), Stage::Download)?;
        if task.is_some_and(|task| task.running().is_some()) || self.holds_a_session(&site, &due.url)? {
            return Ok(false);
        }
        // As far from a seed as it was: what `max_depth` holds off its links stays off.
        let put = Put { depth, ..Put::request(due.url, Priority::RECRAWL) };
        self.put_all(&mut site, vec![put], false)?;
        self.save(&site)?;
        Ok(true)
    }
}
