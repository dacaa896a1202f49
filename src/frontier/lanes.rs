//! Lanes and sessions: what a fleet agreed on, and what waits in them.

use super::state::TunedTenants;
use super::table::{Reply, Step};
use super::{Agreed, Frontier, FrontierError, QueueChange, QueueFlow, QueuePlace, Queued, SessionStatus};
use crate::canonical_url::CanonicalUrl;
use crate::task::{FleetRules, LaneRule};

impl Frontier {
    /// Downloads that wait in a lane of a site, in the order in which they go: those behind `after`, 1,000 at most; none where there
    /// is no such site (N5).
    pub async fn queued(
        &self,
        site: &str,
        lane: &str,
        after: Option<QueuePlace>,
        most: u32,
    ) -> Result<Option<Vec<Queued>>, FrontierError> {
        ask!(self, Queue { site: site.to_owned(), lane: lane.to_owned(), after, most })
    }

    /// Changes those of the pages that still wait as they were seen to; how many those are, or none where there is no such site.
    pub async fn requeue(
        &self,
        site: &str,
        urls: Vec<CanonicalUrl>,
        change: QueueChange,
    ) -> Result<Option<u32>, FrontierError> {
        ask!(self, Requeue { site: site.to_owned(), urls, change })
    }

    /// Puts rules in force for all machines, unless newer ones took the place of the text that `mark` tells (N8).
    pub async fn agree(&self, rules: FleetRules, mark: u64) -> Result<Agreed, FrontierError> {
        ask!(self, Agree { rules, mark, by_directory: false })
    }

    /// The rules in force for all machines.
    pub async fn fleet_rules(&self) -> Result<FleetRules, FrontierError> {
        let rules: Result<Box<FleetRules>, FrontierError> = ask!(self, Fleet {});
        rules.map(|rules| *rules)
    }

    /// Gives a tenant rules of its own while it runs, in place of those of the files, for the very next task that is made (F17); none
    /// gives it back to them. False: too many tenants have some.
    pub async fn tune_tenant(
        &self,
        tenant: &str,
        rules: Option<Vec<LaneRule>>,
    ) -> Result<bool, FrontierError> {
        let tuned: Option<TunedTenants> = ask!(self, TuneTenant { tenant: tenant.to_owned(), rules })?;
        let Some(tuned) = tuned else { return Ok(false) };
        let told: Result<(), FrontierError> = ask!(self, TellTuned { tuned });
        told.map(|()| true)
    }

    /// The rules that tenants were given while it runs.
    pub async fn tuned_tenants(&self) -> Result<TunedTenants, FrontierError> {
        ask!(self, TunedTenants {})
    }

    /// Downloads of all sites that nobody works on: what the frontier's mark is for (M10).
    pub async fn idle_in_all(&self) -> Result<u64, FrontierError> {
        ask!(self, IdleInAll {})
    }

    /// Drops steps of a session that nobody works on, those behind its head first; how many. A dead letter that holds it stays.
    pub async fn drop_steps(&self, site: &str, session: &str) -> Result<u32, FrontierError> {
        ask!(self, DropSteps { site: site.to_owned(), session: session.to_owned() })
    }

    /// How a session of a site stands; none where there is no such one, or it ended a day ago or earlier (C11).
    pub async fn session(&self, site: &str, name: &str) -> Result<Option<SessionStatus>, FrontierError> {
        let status = ask!(self, Session { site: site.to_owned(), name: name.to_owned() })?;
        Ok(status.map(|status| *status))
    }

    /// What flows through a site's queue, and how long its pages waited; none if there is no such site.
    pub async fn flow(&self, site: &str) -> Result<Option<QueueFlow>, FrontierError> {
        let flow: Result<Option<Box<QueueFlow>>, FrontierError> = ask!(self, Flow { site: site.to_owned() });
        Ok(flow?.map(|mut flow| {
            flow.waits.sort();
            flow.oldest.sort();
            *flow
        }))
    }
}
