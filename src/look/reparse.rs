//! Today's rules over the stored pages of a site: what they make of each page, against the item that stands in the files. No
//! request is sent. In small portions, so that memory doesn't grow with the number of pages.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use tracing::warn;
use url::Url;

use super::finding::Finding;
use super::stored::{Kept, StoredWalk};
use crate::archive::{Archive, Location};
use crate::canonical_url::CanonicalUrl;
use crate::content_coding;
use crate::cores::cores;
use crate::extract::{Extract, Fetched, extract};
use crate::frontier::Frontier;
use crate::robots::{RobotsRules, Verdicts};
use crate::run::RunError;
use crate::sink::{ItemSink, LastLines};
use crate::site::Site;
use crate::task::{Put, PutReply, StoredPage};
use crate::work::{LinkBudget, VisitError, portions, put_of};

/// What a reparse works with.
#[derive(Debug)]
pub struct ReparseParts {
    /// Knows which stored body of a page is its latest, and takes new links.
    pub frontier: Frontier,
    /// Where the pages are.
    pub location: Location,
    /// Reads them.
    pub archive: Archive,
    /// Today's rules.
    pub site: Arc<Site>,
    /// The items as they stand.
    pub items: LastLines,
    /// Takes items that are new or changed; without it nothing is written and no link is put.
    pub sink: Option<ItemSink>,
}

/// A site being parsed again.
#[derive(Debug)]
pub struct Reparse {
    materials: ReparseParts,
    walk: StoredWalk,
    verdicts: Verdicts,
}

/// What came of one portion of pages.
#[derive(Debug, Default)]
pub struct Portion {
    /// Each page, and what today's rules make of it.
    pub findings: Vec<(CanonicalUrl, Finding)>,
    /// Links that were put and not known before.
    pub links: u64,
    /// Dead letters of the parse stage that wait for a worker again, as their pages give an item now.
    pub revived: u64,
    /// What could not be walked over, each in words.
    pub damaged: Vec<String>,
}

impl Reparse {
    /// Begins; nothing is read yet.
    pub fn begin(materials: ReparseParts) -> Self {
        let walk = StoredWalk::over(&materials.location, &materials.site);
        let verdicts = Verdicts::new(Some(&materials.frontier));
        Self { materials, walk, verdicts }
    }

    /// The next pages, parsed and, where there is a sink, written; none when all are done. It may be asked again after it
    /// was dropped half way, as what was written twice counts once.
    pub async fn next(&mut self) -> Result<Option<Portion>, RunError> {
        let Some((kept, damaged)) = self.walk.next().await? else { return Ok(None) };
        let mut portion = Portion { damaged, ..Portion::default() };
        let current = self.walk.current(&self.materials.frontier, &self.materials.site.name, kept).await?;
        let (mut links, mut compared) = (Vec::new(), Vec::new());
        for (kept, read) in self.read(current).await? {
            let finding = match read {
                Err(why) => Finding::Failed(why),
                Ok(read) => {
                    let old = self.materials.items.of_page(kept.url.as_str())?;
                    let finding = Finding::of(old, read.extract.as_ref(), &read.why_none);
                    let found = read.extract.map(|extract| extract.links).unwrap_or_default();
                    links.push(PageLinks { depth: kept.depth + 1, found });
                    finding
                }
            };
            compared.push((kept, finding));
        }
        self.write(&mut compared).await?;
        portion.findings = compared.into_iter().map(|(kept, finding)| (kept.url, finding)).collect();
        if self.materials.sink.is_some() {
            portion.revived = self.revive(&portion.findings).await?;
            portion.links = self.put(links).await?;
        }
        Ok(Some(portion))
    }

    /// Reads and parses pages side by side, one a core, in blocking threads; the answers are in the pages' order.
    async fn read(&self, pages: Vec<Kept>) -> Result<Vec<(Kept, Result<Read, String>)>, RunError> {
        let parsing = pages.into_iter().map(|page| {
            let (archive, site) = (self.materials.archive.clone(), Arc::clone(&self.materials.site));
            tokio::task::spawn_blocking(move || {
                let read = read(&archive, &site, &page);
                (page, read)
            })
        });
        let read: Result<_, _> = iter(parsing).buffered(cores()).try_collect().await;
        Ok(read.map_err(|panic| VisitError::Parse(panic.to_string()))?)
    }

    /// Writes what is new or changed, where there is a sink. That its page was not fetched again meanwhile is asked right before, as
    /// the last line counts; what was overtaken overtakes nothing itself.
    async fn write(&self, compared: &mut [(Kept, Finding)]) -> Result<(), RunError> {
        let ReparseParts { items, sink, .. } = &self.materials;
        let mut new: Vec<_> =
            compared.iter_mut().filter(|(_, finding)| finding.to_write().is_some()).collect();
        let current = try_join_all(new.iter().map(|(kept, _)| self.is_current(kept))).await?;
        for ((_, finding), is_current) in new.iter_mut().zip(current) {
            let Some(item) = finding.to_write() else { continue };
            if !is_current || items.is_overtaken(item)? {
                *finding = Finding::Overtaken;
            } else if let Some(sink) = sink {
                items.written(item)?;
                sink.write(std::slice::from_ref(item)).await?;
            }
        }
        if let Some(sink) = sink {
            sink.flush().await?;
        }
        Ok(())
    }

    /// Whether the page was not fetched again meanwhile.
    async fn is_current(&self, kept: &Kept) -> Result<bool, RunError> {
        let stored = self.materials.frontier.stored(&self.materials.site.name, &kept.url).await?;
        Ok(stored.is_some_and(|stored| stored.place == kept.stored.place))
    }

    /// Revives the dead letters of pages that can be parsed now: the next worker settles them.
    async fn revive(&self, findings: &[(CanonicalUrl, Finding)]) -> Result<u64, RunError> {
        let ReparseParts { frontier, site, .. } = &self.materials;
        let view = frontier.view(&site.name).await?;
        if view.is_none_or(|view| view.parse.letters == 0) {
            return Ok(0);
        }
        let mut revived = 0;
        for (url, _) in findings.iter().filter(|(_, finding)| finding.is_parsed()) {
            revived += u64::from(frontier.parse_again(&site.name, url).await?);
        }
        Ok(revived)
    }

    /// Puts the links that a crawl would follow; how many of them were new.
    async fn put(&mut self, mut links: Vec<PageLinks>) -> Result<u64, RunError> {
        let site = Arc::clone(&self.materials.site);
        links.sort_by_key(|links| links.depth); // of the pages that have a link the one that is nearest to a seed counts
        let robots = self.robots(&links).await?;
        let judging = tokio::task::spawn_blocking(move || wanted(&site, &links, &robots));
        let puts = judging.await.map_err(|panic| VisitError::Parse(panic.to_string()))?;
        let (mut created, mut refused, mut full) = (0, 0, None);
        for portion in portions(&puts) {
            let replies = self.materials.frontier.put(&self.materials.site.name, portion.to_vec()).await?;
            for reply in replies {
                match reply {
                    PutReply::Created => created += 1,
                    PutReply::Refused(mark) => (refused, full) = (refused + 1, Some(mark)),
                    _ => {}
                }
            }
        }
        if let Some(mark) = full {
            let fleet = self.materials.frontier.fleet_rules().await?;
            let full = fleet.told_full(&self.materials.site.name, mark);
            warn!(links = refused, "links are left out, reparse again once fewer wait: {full}");
        }
        Ok(created)
    }

    /// By origin, what its robots.txt says of links.
    async fn robots(&self, links: &[PageLinks]) -> Result<RulesByOrigin, RunError> {
        let (site, mut robots) = (&self.materials.site, RulesByOrigin::new());
        for link in links.iter().flat_map(|links| &links.found) {
            let Ok(url) = site.canonical(link.clone()) else { continue };
            if site.scope.owns(&url)
                && let Entry::Vacant(unknown) = robots.entry(url.origin())
            {
                unknown.insert(self.verdicts.for_links(site, &url).await?);
            }
        }
        Ok(robots)
    }
}

/// The links of a page, and how far from a seed they are.
#[derive(Debug)]
struct PageLinks {
    depth: u32,
    found: Vec<Url>,
}

type RulesByOrigin = HashMap<String, Option<Arc<RobotsRules>>>;

/// The links that a crawl would put, each once, those that lead on first; each page's links have a budget of their own.
fn wanted(site: &Site, links: &[PageLinks], robots: &RulesByOrigin) -> Vec<Put> {
    let (mut puts, mut seen) = (Vec::new(), HashSet::new());
    for PageLinks { depth, found } in links {
        let budget = LinkBudget::of(site.fetch.parse_budget);
        for link in found {
            if !budget.pays(site, link) {
                break;
            }
            let Ok(url) = site.canonical(link.clone()) else { continue };
            let robots = robots.get(&url.origin()).and_then(Option::as_deref);
            let put = put_of(site, link, *depth, robots, &budget.robots);
            puts.extend(put.filter(|put| seen.insert(put.url.clone())));
        }
    }
    puts.sort_by_key(|put| !site.leads_on(put));
    puts
}

/// A page taken apart by today's rules.
#[derive(Debug)]
struct Read {
    /// None where no rule takes it.
    extract: Option<Extract>,
    /// Why there may be no item.
    why_none: String,
}

fn read(archive: &Archive, site: &Site, page: &Kept) -> Result<Read, String> {
    let taken = site.takes(&page.url, page.depth);
    let rule = match taken {
        Ok(rule) => rule,
        Err(why) => return Ok(Read { extract: None, why_none: why.to_string() }),
    };
    let place = page.stored.place.parse().map_err(|e: crate::archive::PlaceError| e.to_string())?;
    let stored = archive.read(&place).map_err(|e| e.to_string())?;
    let body = content_coding::decode(&stored.headers, &stored.body, site.fetch.max_body);
    let body = body.map_err(|e| e.to_string())?;
    let StoredPage { fetched_at, .. } = page.stored;
    let fetched = Fetched { url: &page.url, fetched_at, headers: &stored.headers, body: &body };
    let extract = extract(&fetched, rule, site).map_err(|spent| spent.to_string())?;
    Ok(Read { extract: Some(extract), why_none: format!("rule `{}` makes no item", rule.name) })
}
