//! What a worker brings may wait for a claim to travel with, for 100 ms: who is kept waiting, the worker knows.

use super::table::{Haste, Reply, Step};
use super::{Frontier, FrontierError};
use crate::task::{LeaseKey, Put, PutReply, Settled, Settlement};

impl Frontier {
    /// Puts links, which may wait for a claim to travel with, for 100 ms.
    pub async fn put_waiting(
        &self,
        site: &str,
        puts: Vec<Put>,
        may_wait: bool,
    ) -> Result<Vec<PutReply>, FrontierError> {
        let haste = Haste::of(may_wait);
        let replies = ask!(self, Put { site: site.to_owned(), puts, elsewhere: 0, haste })?;
        replies.ok_or_else(|| self.no_site(site))
    }

    /// Says that a body ended where nobody waits for it: it travels with a claim, or after 100 ms.
    pub async fn landed_waiting(&self, lease: LeaseKey) -> Result<bool, FrontierError> {
        ask!(self, Landed { lease, block: None, haste: Haste::Claim })
    }

    /// Settles tasks; it may wait for a claim to travel with, for 100 ms.
    pub async fn settle_waiting(
        &self,
        owner: &str,
        token: u64,
        settlements: Vec<Settlement>,
        may_wait: bool,
    ) -> Result<Vec<Settled>, FrontierError> {
        ask!(self, Settle { owner: owner.to_owned(), token, settlements, haste: Haste::of(may_wait) })
    }

    /// Nothing waits for a claim to travel with any more: this process leaves.
    pub fn hurry(&self) {
        self.0.hurry();
    }
}
