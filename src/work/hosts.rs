//! Which site of the frontier owns a host, remembered for a few seconds: sites come, and their hosts change, while a
//! process runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::canonical_url::Host;
use crate::frontier::{Frontier, FrontierError};
use crate::site::{self, Site};

/// How long an answer is remembered, none as well.
const HOLDS: Duration = Duration::from_secs(3);
/// The most hosts remembered.
const MOST_HOSTS: usize = 10_000;

/// The owners of hosts that were asked for lately.
#[derive(Debug, Default)]
pub(super) struct Hosts(Mutex<HashMap<Host, HostOwner>>);

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
        let known = self.lock().get(host).cloned();
        if let Some(answer) = known.as_ref().filter(|answer| answer.at.elapsed() < HOLDS) {
            return Ok(answer.owner.clone());
        }
        let owner = match frontier.site_of(host).await? {
            Some(name) => rules(frontier, &name, known.and_then(|answer| answer.owner)).await?,
            None => None,
        };
        let mut hosts = self.lock();
        if hosts.len() >= MOST_HOSTS {
            hosts.clear();
        }
        hosts.insert(host.clone(), HostOwner { owner: owner.clone(), at: Instant::now() });
        Ok(owner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Host, HostOwner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A site's rules as they stand in the frontier; those known before where the text is the same.
async fn rules(
    frontier: &Frontier,
    name: &str,
    known: Option<Arc<Site>>,
) -> Result<Option<Arc<Site>>, FrontierError> {
    let Some(text) = frontier.text(name).await? else { return Ok(None) };
    if let Some(site) = known.filter(|site| site.name == name && site.text == text) {
        return Ok(Some(site));
    }
    site_of_text(name, &text).map(|site| Some(Arc::new(site)))
}

/// A site of the text that is registered for it.
pub(super) fn site_of_text(name: &str, text: &str) -> Result<Site, FrontierError> {
    site::parse(text, &format!("{name}.toml")).map_err(|errors| FrontierError::unreadable_rules(name, errors))
}
