//! The links of a page: which of them are put, into whose queue, and in which portions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::budget::Budget;
use crate::canonical_url::CanonicalUrl;
use crate::robots::RobotsRules;
use crate::site::Site;
use crate::task::{LaneWish, Lease, Put};

/// Links put in one step: few, as a start that comes up meanwhile waits for the step.
const PUTS: usize = 50;
/// What the verdicts of robots.txt on one page's links may cost, in steps.
const VERDICT_STEPS: u64 = 50_000_000;
/// Bytes of the links of one step: usual ones have fewer.
const PUT_BYTES: usize = 64 << 10;

/// By origin, the site that has its host, and what its robots.txt says; none where nobody has it.
pub(super) type LinkGrounds = HashMap<String, Option<(Arc<Site>, Option<Arc<RobotsRules>>)>>;

/// What the links of one page may cost.
#[derive(Debug)]
pub(crate) struct LinkBudget {
    /// For all that is done with them: where it is spent, those that are left are dropped.
    all: Budget,
    /// For robots.txt: where it is spent, links are allowed for now, to be asked again before the fetch.
    pub(crate) robots: Budget,
}

impl LinkBudget {
    /// For a page that may take so long.
    pub(crate) fn of(parse_budget: Duration) -> Self {
        Self { all: Budget::of_time(parse_budget), robots: Budget::of_both(parse_budget / 2, VERDICT_STEPS) }
    }

    /// Pays for the patterns of a site on one link; whether something is left.
    pub(crate) fn pays(&self, site: &Site, link: &Url) -> bool {
        self.all.reads(link.as_str().len().saturating_mul(site.patterns() + 2))
    }
}

/// Links as puts, by the sites that have their hosts.
#[derive(Debug, Default)]
pub(super) struct WantedLinks {
    /// Those that lead on come first.
    pub(super) queues: BTreeMap<String, Vec<Put>>,
    /// So many weren't looked at, as the others took too long.
    pub(super) dropped: usize,
}

impl WantedLinks {
    /// Those of the links of one page that are wanted, for whom the page was.
    pub(super) fn of(
        grounds: &LinkGrounds,
        links: &[Url],
        depth: u32,
        tenant: Option<&str>,
        budget: &LinkBudget,
    ) -> Self {
        let (mut queues, mut dropped) = (BTreeMap::<String, (&Site, Vec<Put>)>::new(), 0);
        for link in links {
            let Ok(url) = CanonicalUrl::from_url(link.clone()) else { continue };
            let Some(Some((owner, robots))) = grounds.get(&url.origin()) else { continue };
            if !budget.pays(owner, link) {
                dropped += 1;
            } else if let Some(put) = put_of(owner, link, depth, robots.as_deref(), &budget.robots) {
                let put = Put { wish: wish_for(tenant, owner), ..put };
                queues.entry(owner.name.clone()).or_insert_with(|| (owner, Vec::new())).1.push(put);
            }
        }
        let ordered = |(owner, mut puts): (&Site, Vec<Put>)| {
            puts.sort_by_key(|put| !owner.leads_on(put));
            puts
        };
        Self { queues: queues.into_iter().map(|(name, queue)| (name, ordered(queue))).collect(), dropped }
    }
}

/// Whom a task is for, and with it all that it leads to.
pub(super) fn tenant_of<'a>(lease: &'a Lease, site: &'a Site) -> Option<&'a str> {
    lease.tenant.as_deref().or(site.tenant.as_deref())
}

/// The lane of a page that another one led to follows from its tenant (F14), which is named where it isn't that of the page's site.
pub(super) fn wish_for(tenant: Option<&str>, owner: &Site) -> LaneWish {
    let tenant = tenant.filter(|tenant| owner.tenant.as_deref() != Some(*tenant));
    LaneWish { tenant: tenant.map(str::to_owned), ..LaneWish::default() }
}

/// Links in steps that are short to take, for the one who sends them and for the one who stores them.
pub(crate) fn portions(puts: &[Put]) -> Vec<&[Put]> {
    let (mut portions, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, put) in puts.iter().enumerate() {
        if at - start == PUTS || bytes > PUT_BYTES {
            portions.push(&puts[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += put.url.as_str().len();
    }
    portions.extend((start < puts.len()).then(|| &puts[start..]));
    portions
}

/// A link of a site as a put: in scope, within depth, taken by a rule, allowed by `robots.txt`. Where the budget is spent the
/// last isn't asked: it is asked again before the fetch.
pub(crate) fn put_of(
    site: &Site,
    link: &Url,
    depth: u32,
    robots: Option<&RobotsRules>,
    budget: &Budget,
) -> Option<Put> {
    let url = site.canonical(link.clone()).ok()?;
    let rule = Some(site.takes(&url, depth).ok()?.name.clone());
    let allowed = robots.is_none_or(|robots| robots.allows_within(url.url(), budget));
    allowed.then(|| Put { rule, ..Put::link(url, depth) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tens_of_thousands_of_rules_on_as_many_links_as_a_page_may_have_end_in_time_and_no_link_is_lost() {
        let text = "seeds = [\"https://shop.example/\"]\n[pace]\ncontact = \"a@b.example\"\n\
             [[page]]\nname = \"p\"\nmatch = \"/**\"\n";
        let site = Arc::new(crate::site::parse(text, "shop.toml").expect("a good site"));
        let rules = (0..32_000).map(|n| format!("Disallow:*~{n:x}\n")).collect::<Vec<_>>().concat();
        let rules = Arc::new(RobotsRules::parse(format!("User-agent: *\n{rules}").as_bytes()));
        assert_eq!(rules.len(), 32_000);
        let link = |n| Url::parse(&format!("https://shop.example/{n:0400}")).expect("a URL");
        let links: Vec<Url> = (0..10_000).map(link).collect();
        let grounds = LinkGrounds::from([("https://shop.example".to_owned(), Some((site, Some(rules))))]);
        let budget = LinkBudget::of(Duration::from_secs(2));
        let WantedLinks { queues, dropped } = WantedLinks::of(&grounds, &links, 1, None, &budget);
        assert_eq!(
            (queues["shop"].len(), dropped),
            (10_000, 0),
            "they are asked about again before the fetch"
        );
        assert!(budget.robots.is_spent() && budget.robots.steps() < VERDICT_STEPS + 1_000_000);
        assert!(budget.robots.most_at_once() < 1_000_000, "{}", budget.robots.most_at_once());
        let none = LinkBudget::of(Duration::ZERO);
        assert_eq!(
            WantedLinks::of(&grounds, &links, 1, None, &none).dropped,
            10_000,
            "without time none is looked at"
        );
    }

    #[test]
    fn f14_links_are_for_the_tenant_of_their_page_on_whichever_site_they_are() {
        let site = |name: &str, more: &str| {
            let text = format!(
                "seeds = [\"https://{name}.example/\"]\n{more}[[page]]\nname = \"p\"\nmatch = \"/**\"\n"
            );
            Arc::new(crate::site::parse(&text, &format!("{name}.toml")).expect("a good site"))
        };
        let (acme, other) = (site("a", "tenant = \"acme\"\n"), site("b", ""));
        let grounds = [("https://a.example", acme), ("https://b.example", other)];
        let grounds = grounds.map(|(origin, site)| (origin.to_owned(), Some((site, None))));
        let grounds = LinkGrounds::from(grounds);
        let links = ["https://a.example/1", "https://b.example/2"].map(|url| Url::parse(url).expect("a URL"));
        let budget = LinkBudget::of(Duration::from_secs(2));
        for (tenant, on_a, on_b) in
            [(None, None, None), (Some("acme"), None, Some("acme")), (Some("big"), Some("big"), Some("big"))]
        {
            let queues = WantedLinks::of(&grounds, &links, 1, tenant, &budget).queues;
            let of = |name: &str| queues[name][0].wish.tenant.as_deref();
            assert_eq!((of("a"), of("b")), (on_a, on_b), "{tenant:?}");
        }
    }

    #[test]
    fn links_are_put_in_portions_by_number_and_by_bytes() {
        let puts = |count: usize, length: usize| -> Vec<Put> {
            let url = |n| CanonicalUrl::parse(&format!("https://shop.example/{n:0length$}")).expect("a URL");
            (0..count).map(|n| Put::link(url(n), 1)).collect()
        };
        let sizes = |puts: &[Put]| portions(puts).iter().map(|portion| portion.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&puts(0, 10)), [0_usize; 0]);
        assert_eq!(sizes(&puts(50, 10)), [50]);
        assert_eq!(sizes(&puts(120, 10)), [50, 50, 20]);
        assert_eq!(sizes(&puts(20, 8_000)), [9, 9, 2]);
    }
}
