//! The sites of a process by their rules: those it was given and no others, or all that the frontier knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

use crate::canonical_url::Host;
use crate::frontier::unit_news::UnitNews;
use crate::frontier::{Frontier, FrontierError, WorkScope};
use crate::recent::Recent;
use crate::site::{RobotsPolicy, Site};

/// The most sites of which one that works on all keeps the rules; those not used for longest are read again when needed.
const MOST_SITES: usize = 4_096;
/// The most sites of which it is known that something of them was said.
const MOST_TOLD: usize = 32_768;
/// For how long a site is left to others for which this process lacks something: then it is tried again, by newer rules maybe.
pub(super) const A_WHILE: Duration = Duration::from_mins(1);

/// The sites of a process. Shared; newer rules replace older ones.
#[derive(Clone, Debug, Default)]
pub struct SiteRules {
    of: WorksOn,
    sites: Arc<Mutex<Sites>>,
    /// What was learnt of pace units whose granted starts may not be sent yet: newer rules may slow one down.
    news: Arc<UnitNews>,
}

#[derive(Clone, Debug, Default)]
enum WorksOn {
    /// The sites that were taken in.
    #[default]
    Given,
    /// Every site of the frontier, also those that nobody has named here.
    All,
    /// These of them (N7).
    Only(Arc<[String]>),
    /// What waits in these lanes, of every site (N7).
    Lanes(Arc<[String]>),
}

#[derive(Debug, Default)]
struct Sites {
    by_name: Recent<String, KnownSite, { usize::MAX }>,
    by_host: HashMap<Host, String>,
    /// Those left to others: for good, or until then and for this reason.
    left: HashMap<String, Option<(Instant, String)>>,
    /// How often what is left to others changed.
    changes: usize,
    /// Those by whose rules robots.txt is ignored, also where the rules themselves are forgotten: it is said once of each.
    ignoring: Recent<String, (), MOST_TOLD>,
    /// Those for which this process lacks something: that is said once too.
    lacking: Recent<String, (), MOST_TOLD>,
}

#[derive(Debug)]
struct KnownSite {
    version: i64,
    site: Arc<Site>,
}

impl SiteRules {
    /// All sites of the frontier, whoever registers them and whenever.
    pub fn of_all() -> Self {
        Self { of: WorksOn::All, ..Self::default() }
    }

    /// These sites of the frontier, whoever registers them and whenever (N7). Their links into others are put all the same.
    pub fn of_only(names: &[String]) -> Self {
        Self { of: WorksOn::Only(names.into()), ..Self::default() }
    }

    /// All sites of the frontier, and of these what waits in some lanes (N7).
    pub fn of_lanes(lanes: &[String]) -> Self {
        Self { of: WorksOn::Lanes(lanes.into()), ..Self::default() }
    }

    /// Whether some lanes alone are served. Then no site can be left to others.
    pub(crate) fn is_of_lanes(&self) -> bool {
        matches!(self.of, WorksOn::Lanes(_))
    }

    /// What is worked on, by what this process knows itself.
    pub fn scope(&self) -> WorkScope {
        match &self.of {
            WorksOn::Given => WorkScope::of(self.names()),
            WorksOn::All => WorkScope::All,
            WorksOn::Only(only) => self.without_left(only.to_vec()),
            WorksOn::Lanes(lanes) => WorkScope::of_lanes(lanes.iter().cloned()),
        }
    }

    /// What is worked on. One that works on all sites asks the frontier which these are, to name them but for those left.
    pub(super) async fn scope_on(&self, frontier: &Frontier) -> Result<WorkScope, FrontierError> {
        if matches!(self.of, WorksOn::All) && !self.lock().left.is_empty() {
            return Ok(self.without_left(frontier.sites().await?));
        }
        Ok(self.scope())
    }

    /// The sites of the frontier on which one works that isn't given their files.
    pub async fn all_on(&self, frontier: &Frontier) -> Result<Vec<String>, FrontierError> {
        match &self.of {
            WorksOn::Only(only) => Ok(only.to_vec()),
            _ => frontier.sites().await,
        }
    }

    fn without_left(&self, names: Vec<String>) -> WorkScope {
        let sites = self.lock();
        WorkScope::of(names.into_iter().filter(|name| !sites.left.contains_key(name)))
    }

    /// How often it has changed by `now` what is left to others. Those that were left for a while are tried again.
    pub(super) fn changes(&self, now: Instant) -> usize {
        let mut sites = self.lock();
        let before = sites.left.len();
        sites.left.retain(|_, left| left.as_ref().is_none_or(|(until, _)| now < *until));
        sites.changes += before - sites.left.len();
        sites.changes
    }

    /// Whether sites are worked on that weren't taken in.
    pub(super) fn is_of_all(&self) -> bool {
        !matches!(self.of, WorksOn::Given)
    }

    /// Takes a site in, by the version under which it is registered; that it ignores robots.txt is said once.
    pub fn put(&self, site: Site, version: i64) -> Arc<Site> {
        let (site, ignores_now) = self.take_in(site, version);
        if ignores_now {
            warn!(site = site.name, "robots.txt is ignored, as the site's file says");
        }
        site
    }

    /// Whether this process lacks something for a site that it worked on.
    pub fn lacks_something(&self) -> bool {
        self.lock().lacking.len() > 0
    }

    /// The site, and whether it ignores robots.txt from now on.
    fn take_in(&self, site: Site, version: i64) -> (Arc<Site>, bool) {
        let site = Arc::new(site);
        let mut sites = self.lock();
        if sites.by_name.peek(&site.name).is_some_and(|known| known.version < version) {
            self.news.doubt(&site.unit());
        }
        let is_newest = sites.by_name.peek(&site.name).is_none_or(|known| known.version <= version);
        let ignores_now = is_newest && sites.replace(&site, version);
        if self.is_of_all() && sites.by_name.len() > MOST_SITES {
            sites.forget_half();
        }
        (site, ignores_now)
    }

    /// What this process learns of its pace units.
    pub(crate) fn news(&self) -> &Arc<UnitNews> {
        &self.news
    }

    /// The names of the sites that were taken in and are worked on, in order.
    pub fn names(&self) -> Vec<String> {
        let sites = self.lock();
        let mut names: Vec<String> = sites
            .by_name
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !sites.left.contains_key(*name))
            .cloned()
            .collect();
        names.sort();
        names
    }

    /// Leaves a site to others.
    pub fn leave(&self, name: &str) {
        let mut sites = self.lock();
        sites.left.insert(name.to_owned(), None);
        sites.changes += 1;
    }

    /// Why a site is left to others for a while.
    pub(crate) fn why_left(&self, name: &str) -> Option<String> {
        self.lock().left.get(name)?.as_ref().map(|(_, why)| why.clone())
    }

    /// Leaves a site to others for a while, as this process lacks something for it; whether that is the first time.
    pub(super) fn leave_for_a_while(&self, name: &str, why: &str, now: Instant) -> bool {
        let mut sites = self.lock();
        if !sites.left.contains_key(name) {
            sites.left.insert(name.to_owned(), Some((now + A_WHILE, why.to_owned())));
            sites.changes += 1;
        }
        sites.lacking.put(name.to_owned(), ()).is_none()
    }

    /// Notes that this process lacks something for a site.
    pub(super) fn lacks(&self, name: &str) {
        self.lock().lacking.put(name.to_owned(), ());
    }

    /// A site by its rules of that version or newer.
    pub(super) fn get(&self, name: &str, version: i64) -> Option<Arc<Site>> {
        let mut sites = self.lock();
        let known = sites.by_name.get(name).filter(|known| known.version >= version)?;
        Some(Arc::clone(&known.site))
    }

    /// The site that owns a host, among those taken in.
    pub(super) fn owner(&self, host: &Host) -> Option<Arc<Site>> {
        let sites = self.lock();
        let name = sites.by_host.get(host)?;
        sites.by_name.peek(name).map(|known| Arc::clone(&known.site))
    }

    fn lock(&self) -> MutexGuard<'_, Sites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sites {
    /// Puts a site's rules in the place of older ones; whether they ignore robots.txt and the older ones did not.
    fn replace(&mut self, site: &Arc<Site>, version: i64) -> bool {
        self.by_host.retain(|_, owner| *owner != site.name);
        for host in &site.scope.hosts {
            self.by_host.entry(host.clone()).or_insert_with(|| site.name.clone());
        }
        self.by_name.put(site.name.clone(), KnownSite { version, site: Arc::clone(site) });
        if site.pace.robots == RobotsPolicy::Ignore {
            return self.ignoring.put(site.name.clone(), ()).is_none();
        }
        self.ignoring.remove(&site.name);
        false
    }

    fn forget_half(&mut self) {
        self.by_name.forget_half();
        let Self { by_name, by_host, .. } = self;
        by_host.retain(|_, owner| by_name.peek(owner).is_some());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::site;

    fn site(name: &str) -> Site {
        let text = format!(
            "seeds = [\"https://{name}.example/\"]\n[pace]\ncontact = \"a@b.example\"\n\
             [[page]]\nname = \"p\"\nmatch = \"/**\"\n"
        );
        site::parse(&text, &format!("{name}.toml")).expect("a good site")
    }

    #[test]
    fn newer_rules_put_the_granted_starts_of_their_unit_in_doubt() {
        let (rules, began) = (SiteRules::default(), Duration::ZERO);
        for (version, is_in_doubt) in [(2, false), (2, false), (1, false), (3, true)] {
            rules.put(site("a"), version);
            assert_eq!(rules.news().is_in_doubt(&site("a").unit(), began), is_in_doubt, "version {version}");
        }
    }

    #[test]
    fn newer_rules_replace_older_ones_and_never_the_other_way_round() {
        let rules = SiteRules::default();
        rules.put(site("a"), 2);
        assert!(rules.get("a", 3).is_none(), "they are to be read");
        rules.put(site("a"), 1);
        assert!(rules.get("a", 2).is_some());
        rules.put(site("a"), 3);
        assert!(rules.get("a", 3).is_some());
    }

    #[test]
    fn a_host_that_newer_rules_no_longer_name_is_nobodys() {
        let rules = SiteRules::default();
        rules.put(site("a"), 1);
        let host = Host::parse("a.example").expect("a host");
        assert!(rules.owner(&host).is_some());
        rules.put(Site { name: "a".to_owned(), ..site("b") }, 2);
        assert!(rules.owner(&host).is_none());
    }

    #[test]
    fn that_a_site_ignores_robots_txt_is_news_once_for_as_long_as_it_does() {
        let rules = SiteRules::of_all();
        let ignoring = || {
            let mut site = site("a");
            site.pace.robots = RobotsPolicy::Ignore;
            site
        };
        let is_news = |site: Site, version| rules.take_in(site, version).1;
        assert!(!is_news(site("a"), 1));
        assert!(is_news(ignoring(), 2));
        assert!(!is_news(ignoring(), 2) && !is_news(ignoring(), 3), "it was said");
        assert!(!is_news(site("a"), 2) && !is_news(ignoring(), 3), "older rules change nothing");
        assert!(!is_news(site("a"), 4));
        assert!(is_news(ignoring(), 5), "again");
    }

    #[test]
    fn i17_of_many_sites_that_ignore_robots_txt_or_that_this_process_lacks_something_for_few_are_kept() {
        let (rules, now) = (SiteRules::of_all(), Instant::now());
        let mut site = site("a");
        site.pace.robots = RobotsPolicy::Ignore;
        for n in 0..MOST_TOLD + 10 {
            site.name = n.to_string();
            rules.lock().replace(&Arc::new(site.clone()), 1);
            rules.lock().by_name.remove(&site.name);
            assert!(
                rules.leave_for_a_while(&site.name, "why", now)
                    && !rules.leave_for_a_while(&site.name, "why", now)
            );
        }
        rules.changes(now + A_WHILE);
        let sites = rules.lock();
        assert!(
            sites.left.is_empty() && sites.ignoring.len() <= MOST_TOLD && sites.lacking.len() <= MOST_TOLD
        );
    }

    #[test]
    fn a_site_for_which_something_is_lacking_is_left_to_others_for_a_minute_and_one_given_up_for_good() {
        let (rules, now) = (SiteRules::default(), Instant::now());
        for name in ["a", "b", "c"] {
            rules.put(site(name), 1);
        }
        assert_eq!(rules.changes(now), 0);
        assert!(
            rules.leave_for_a_while("a", "no key", now)
                && !rules.leave_for_a_while("a", "no key", now + A_WHILE / 2),
            "it is said once"
        );
        rules.leave("b");
        assert_eq!(["a", "b", "c"].map(|name| rules.why_left(name)), [Some("no key".to_owned()), None, None]);
        assert_eq!((rules.changes(now), rules.names()), (2, vec!["c".to_owned()]));
        assert_eq!(rules.changes(now + A_WHILE), 3, "counted from the first time");
        assert_eq!(rules.names(), ["a", "c"]);
    }

    #[tokio::test]
    async fn n7_one_that_works_on_some_sites_names_them_but_for_those_left_to_others() {
        let frontier = Frontier::model(crate::clock::Clock::wall());
        let rules = SiteRules::of_only(&["a", "b"].map(str::to_owned));
        let scope = |names: &[&str]| WorkScope::of(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(rules.scope(), scope(&["a", "b"]));
        rules.put(site("c"), 1);
        rules.leave("b");
        assert_eq!(rules.scope(), scope(&["a"]));
        assert_eq!(rules.scope_on(&frontier).await.expect("a model"), scope(&["a"]));
    }

    #[test]
    fn one_that_works_on_all_sites_forgets_those_not_used_for_longest() {
        let rules = SiteRules::of_all();
        let one = site("a");
        for n in 0..=MOST_SITES {
            rules.put(Site { name: n.to_string(), ..one.clone() }, 1);
            rules.get("0", 1);
        }
        assert!(rules.names().len() <= MOST_SITES / 2 + 2);
        assert!(rules.get("0", 1).is_some() && rules.get("1", 1).is_none());
        assert!(rules.get(&MOST_SITES.to_string(), 1).is_some());
        let sites = rules.lock();
        assert!(sites.by_host.len() <= sites.by_name.len());
    }
}
