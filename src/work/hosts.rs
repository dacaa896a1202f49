//! Which site of the frontier owns a host, remembered for a few seconds: sites come, and their hosts change, while a
//! process runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use crate::canonical_url::Host;
use crate::frontier::{Frontier, FrontierError};
use crate::site::{self, Site};

/// How long an answer is remembered, none as well.
const HOLDS: Duration = Duration::from_secs(3);
/// The most hosts remembered.
const MOST_HOSTS: usize = 10_000;
/// Hosts asked about at once: few, as a start that comes up meanwhile waits for them.
const PORTION: usize = 32;

/// The owners of hosts that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct Hosts(Mutex<KnownHosts>);

#[derive(Debug, Default)]
struct KnownHosts {
    owners: HashMap<Host, HostOwner>,
    /// Those of them by name.
    sites: HashMap<String, Arc<Site>>,
}

#[derive(Clone, Debug)]
struct HostOwner {
    owner: Option<Arc<Site>>,
    at: Instant,
}

impl Hosts {
    /// The site that owns a host, by the rules that are in force.
    pub(super) async fn owner(
        &self,
        frontier: &Frontier,
        host: &Host,
    ) -> Result<Option<Arc<Site>>, FrontierError> {
        if let Some(answer) = self.known(host) {
            return Ok(answer.owner);
        }
        self.ask(frontier, &[host]).await?;
        Ok(self.lock().owners.get(host).and_then(|answer| answer.owner.clone()))
    }

    /// Learns who owns these hosts, as far as that isn't known: in portions that travel together, one after the other.
    pub(super) async fn learn(
        &self,
        frontier: &Frontier,
        hosts: impl IntoIterator<Item = Host>,
    ) -> Result<(), FrontierError> {
        let hosts: BTreeSet<Host> = hosts.into_iter().collect();
        let unknown: Vec<&Host> =
            hosts.iter().filter(|host| self.known(host).is_none()).take(MOST_HOSTS).collect();
        for portion in unknown.chunks(PORTION) {
            self.ask(frontier, portion).await?;
        }
        Ok(())
    }

    async fn ask(&self, frontier: &Frontier, hosts: &[&Host]) -> Result<(), FrontierError> {
        let names = try_join_all(hosts.iter().map(|host| frontier.site_of(host))).await?;
        let distinct: BTreeSet<&String> = names.iter().flatten().collect();
        let rules = try_join_all(distinct.iter().map(|name| self.rules(frontier, name))).await?;
        let owners: HashMap<&String, Option<Arc<Site>>> = distinct.into_iter().zip(rules).collect();
        let (mut known, at) = (self.lock(), Instant::now());
        if known.owners.len() + hosts.len() > MOST_HOSTS {
            *known = KnownHosts::default();
        }
        for (host, name) in hosts.iter().zip(&names) {
            let owner = name.as_ref().and_then(|name| owners.get(name)?.clone());
            if let Some(site) = &owner {
                known.sites.insert(site.name.clone(), Arc::clone(site));
            }
            known.owners.insert((*host).clone(), HostOwner { owner, at });
        }
        Ok(())
    }

    /// A site's rules as they stand in the frontier; those known before where the text is the same.
    async fn rules(&self, frontier: &Frontier, name: &str) -> Result<Option<Arc<Site>>, FrontierError> {
        let Some(text) = frontier.text(name).await? else { return Ok(None) };
        let known = self.lock().sites.get(name).cloned();
        if let Some(site) = known.filter(|site| site.text == text) {
            return Ok(Some(site));
        }
        site_of_text(name, &text).map(|site| Some(Arc::new(site)))
    }

    /// An answer that holds still.
    fn known(&self, host: &Host) -> Option<HostOwner> {
        self.lock().owners.get(host).filter(|answer| answer.at.elapsed() < HOLDS).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, KnownHosts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A site of the text that is registered for it.
pub(super) fn site_of_text(name: &str, text: &str) -> Result<Site, FrontierError> {
    site::parse(text, &format!("{name}.toml")).map_err(|errors| FrontierError::unreadable_rules(name, errors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Timestamp};

    #[tokio::test]
    async fn i17_of_many_hosts_those_asked_for_last_are_remembered() {
        let frontier = Frontier::model(Clock::fake(Timestamp::from_millis(1_800_000_000_000)));
        let (hosts, mut most) = (Hosts::default(), 0);
        for n in 0..2 * MOST_HOSTS {
            let host = Host::parse(&format!("h{n}.example")).expect("a host");
            assert!(hosts.owner(&frontier, &host).await.expect("answers").is_none());
            most = most.max(hosts.lock().owners.len());
        }
        assert_eq!((most, hosts.lock().sites.len()), (MOST_HOSTS, 0));
    }
}
