//! The parse line: from a stored page to items and links. It never holds a download up (V12). One step a line, in `visit`.

use std::collections::BTreeMap;
use std::sync::Arc;

use url::Url;

use super::error::VisitError;
use super::fresh_pages::FreshPage;
use super::parts::VisitParts;
use super::slots::Slot;
use crate::archive::{Archive, ArchiveError, RecordPlace, StoredResponse};
use crate::clock::since_boot;
use crate::content_coding;
use crate::extract::{self, Extract, Fetched};
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::item::Item;
use crate::robots::Verdicts;
use crate::sink::SinkError;
use crate::site::{PageRule, Site};
use crate::task::{Exclusion, Failure, Lease, Outcome, Put};

/// Links put in one step: few, as a start that comes up meanwhile waits for the step.
pub(crate) const PUTS: usize = 50;

/// Parses one task's page.
pub(super) async fn visit(parts: &VisitParts, lease: Lease, slot: Slot) -> Result<(), VisitError> {
    let site = parts.site(&lease).await?;
    let task = Parse { parts, site: &site, lease: &lease };
    let Some(rule) = site.pages.iter().position(|rule| rule.takes(&lease.url)) else {
        let why = Exclusion::NoRule;
        return Ok(parts.settle(lease, Outcome::Excluded { why, unused: true }).await?);
    };
    let page = match task.read().await? {
        Ok(page) => page,
        Err(why) => return Ok(parts.settle(lease, Outcome::Dead { why }).await?),
    };
    let extract = task.take_apart(rule, page).await?;
    let _end = parts.slots.free_for_the_end(slot).await;
    // Before the item, as a page whose links are refused goes back: it would be written each time.
    task.put_links(&extract.links).await?;
    if let Some(item) = &extract.item
        && task.write(item).await?
    {
        parts.monitor.item(&lease.site);
    }
    let outcome = ending(&site.pages[rule], &extract);
    Ok(parts.settle(lease, outcome).await?)
}

/// A task whose page is parsed, by the rules of its site.
#[derive(Clone, Copy)]
struct Parse<'a> {
    parts: &'a VisitParts,
    site: &'a Arc<Site>,
    lease: &'a Lease,
}

impl Parse<'_> {
    /// The page as handed over fresh, or read back from the archive.
    async fn read(self) -> Result<Result<FreshPage, Failure>, VisitError> {
        let Self { parts, site, lease } = self;
        let Some(stored) = &lease.stored else { return Ok(Err(Failure::new("no page is kept for it"))) };
        if let Some(fresh) = parts.fresh_pages.take(&stored.place) {
            return Ok(Ok(fresh));
        }
        let Ok(place) = stored.place.parse::<RecordPlace>() else {
            return Ok(Err(Failure::new(format!("`{}` is no place in the archive", stored.place))));
        };
        let most = site.fetch.max_body;
        match parts.outages.pages.patiently(|| from_archive(&parts.archive, &place, most)).await {
            Err(ArchiveError::Missing { place }) => {
                let why = format!("its page is gone from the archive ({place}); put it again");
                Ok(Err(Failure::new(why)))
            }
            Err(error @ ArchiveError::Damaged { .. }) => Ok(Err(Failure::new(error.to_string()))),
            read => read?,
        }
    }

    /// Extracts items and links by the site's rule, off the threads that keep the pace.
    async fn take_apart(self, rule: usize, page: FreshPage) -> Result<Extract, VisitError> {
        let Self { parts, site, lease } = self;
        let (site, url) = (Arc::clone(site), lease.url.clone());
        let fetched_at = lease.stored.as_ref().map_or(lease.granted_at, |stored| stored.fetched_at);
        let parse = move || {
            let fetched = Fetched { url: &url, fetched_at, headers: &page.headers, body: &page.body };
            extract::extract(&fetched, &site.pages[rule], &site)
        };
        parts.parse_pool.run(parse).await
    }

    /// Puts the links in scope into the queues of the sites that own them, those that lead on before the leaves: the next
    /// listing is fetched while this one's products still wait.
    async fn put_links(self, links: &[Url]) -> Result<(), FrontierError> {
        let frontier = &self.parts.outages.frontier;
        frontier.patiently(|| self.parts.learn_owners(self.site, links)).await?;
        let mut queues: BTreeMap<String, (Arc<Site>, Vec<Put>)> = BTreeMap::new();
        for link in links {
            if let Some((owner, put)) = frontier.patiently(|| self.wanted(link)).await? {
                queues.entry(owner.name.clone()).or_insert_with(|| (owner, Vec::new())).1.push(put);
            }
        }
        let is_one_site = queues.len() == 1;
        for (name, (owner, mut puts)) in queues {
            puts.sort_by_key(|put| !owner.leads_on(put));
            // Several steps would wait one after the other.
            let is_one = is_one_site && puts.len() <= PUTS;
            let may_wait = is_one && self.parts.under_way.is_supplied(&name, since_boot());
            for portion in puts.chunks(PUTS) {
                frontier.patiently(|| self.put(&name, portion, may_wait)).await??;
            }
        }
        Ok(())
    }

    /// Puts links of one site. A full memory isn't waited for: what is done meanwhile may make room.
    async fn put(
        self,
        owner: &str,
        links: &[Put],
        may_wait: bool,
    ) -> Result<Result<(), FrontierError>, FrontierError> {
        match self.parts.frontier.put_waiting(owner, links.to_vec(), may_wait).await {
            Err(error) if error.kind == FrontierErrorKind::MemoryFull => {
                self.parts.outages.memory.begin(&error);
                Ok(Err(error))
            }
            put => {
                put?;
                self.parts.outages.memory.end();
                Ok(Ok(()))
            }
        }
    }

    /// The item, on the disk, unless the lease is lost: it would stand behind that of whoever has the page now, and the last line
    /// wins (R5). A line that reaches the disk too late for its lease is dropped there, and the lease is asked about anew.
    async fn write(self, item: &Item) -> Result<bool, VisitError> {
        let Self { parts, lease, .. } = self;
        let items = &parts.outages.items;
        let if_it_holds = || async {
            match parts.holds_until(lease).await {
                Ok(Some(until)) => Ok(Ok(Some(parts.sink.write_until(item, until).await?))),
                answer => Ok::<_, SinkError>(answer.map(|_| None)),
            }
        };
        loop {
            let Some(line) = items.patiently(if_it_holds).await?? else { return Ok(false) };
            items.patiently(|| parts.sink.flush()).await?;
            if line.is_written() {
                return Ok(true);
            }
        }
    }

    /// The link as a put into the queue of the site that owns its host.
    async fn wanted(self, link: &Url) -> Result<Option<(Arc<Site>, Put)>, FrontierError> {
        let Some(owner) = self.parts.owner_of(self.site, link).await? else { return Ok(None) };
        let put = put_of(&owner, link, self.lease.depth + 1, &self.parts.verdicts).await?;
        Ok(put.map(|put| (owner, put)))
    }
}

/// Reads and decompresses a page off the threads that keep the pace.
async fn from_archive(
    archive: &Archive,
    place: &RecordPlace,
    most: u64,
) -> Result<Result<Result<FreshPage, Failure>, VisitError>, ArchiveError> {
    let (archive, place) = (archive.clone(), place.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let StoredResponse { headers, body, .. } = archive.read(&place)?;
        let body = content_coding::decode(&headers, &body, most);
        let fresh = body.map(|body| FreshPage { headers, body });
        Ok(fresh.map_err(|error| Failure::new(error.to_string())))
    });
    match reading.await {
        Ok(read) => read.map(Ok),
        Err(panic) => Ok(Err(VisitError::Parse(panic.to_string()))),
    }
}

/// A link of a site as a put: in scope, within depth, taken by a rule, allowed by `robots.txt`.
pub(crate) async fn put_of(
    site: &Site,
    link: &Url,
    depth: u32,
    verdicts: &Verdicts,
) -> Result<Option<Put>, FrontierError> {
    let Ok(url) = site.canonical(link.clone()) else { return Ok(None) };
    let Ok(rule) = site.takes(&url, depth) else { return Ok(None) };
    let rule = Some(rule.name.clone());
    let allowed = verdicts.allows(site, &url, None).await?;
    Ok(allowed.then(|| Put { rule, ..Put::link(url, depth) }))
}

/// An item without a required field is none: the page is a dead letter, revived after the rule is mended.
fn ending(rule: &PageRule, extract: &Extract) -> Outcome {
    if extract.missing.is_empty() {
        return Outcome::Done { stored: None, recrawl: None };
    }
    let fields = extract.missing.join(", ");
    let reason = format!("rule `{}`: required field not found: {fields}", rule.name);
    Outcome::Dead { why: Failure::new(reason) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::clock::{Clock, Timestamp, since_boot};
    use crate::fetch::{Ceiling, Fetcher, FetcherOptions};
    use crate::frontier::{Claim, Frontier, Registration, SiteSettings, WorkScope};
    use crate::sink::ItemSink;
    use crate::task::StoredPage;
    use crate::work::{PartsOptions, Role, SiteRules};

    const PAGE: &str = "https://shop.example/p";
    const SITE: &str = "seeds = [\"https://shop.example/\"]\n[pace]\ncontact = \"a@b.example\"\n\
                        [[page]]\nname = \"p\"\nmatch = \"/**\"\n";

    /// A frontier with a page to be parsed, and a process that may parse it.
    struct Ground {
        parts: VisitParts,
        clock: Clock,
        folder: TempDir,
    }

    impl Ground {
        async fn new() -> Self {
            let clock = Clock::fake(Timestamp::from_millis(1_800_000_000_000));
            let (frontier, folder) = (Frontier::model(clock.clone()), tempfile::tempdir().expect("a folder"));
            let settings = SiteSettings {
                interval: 0,
                parallel: 1,
                attempts: 5,
                robots: false,
                budgets: BTreeMap::new(),
            };
            let (name, hosts) = ("shop".to_owned(), vec!["shop.example".to_owned()]);
            let shop = Registration { name, text: SITE.to_owned(), group: None, hosts, settings };
            frontier.register(shop).await.expect("registered");
            let options = PartsOptions {
                member: frontier.join(WorkScope::All).await.expect("joined"),
                fetcher: Fetcher::new(FetcherOptions { connect_to: Vec::new(), cacert: None }).expect("TLS"),
                ceiling: Ceiling::per_second(None),
                archive: Archive::open(&folder.path().join("pages"), "w", clock.clone()).expect("a folder"),
                sink: ItemSink::file(&folder.path().join("items.jsonl")).expect("a file"),
                role: Role::Both,
                rules: SiteRules::of_all(),
                most_pages: None,
                frontier,
            };
            Self { parts: VisitParts::new(options).expect("threads"), clock, folder }
        }

        async fn claim(&self, download: u32, parse: u32) -> Lease {
            let (owner, token) = (self.parts.member().name.clone(), fastrand::u64(1..1 << 40));
            let claim = Claim { owner, token, download, parse, dice: vec![0], lead: 0 };
            self.parts.frontier.claim(claim).await.expect("answers").leases.pop().expect("it is due")
        }

        async fn settle(&self, lease: Lease, stored: Option<StoredPage>) {
            self.parts.settle(lease, Outcome::Done { stored, recrawl: None }).await.expect("settled");
        }

        /// The page is fetched, and its parse is granted.
        async fn fetched(&self) -> Lease {
            let url = CanonicalUrl::parse(PAGE).expect("a URL");
            self.parts.frontier.put("shop", vec![Put::seed(url)]).await.expect("put");
            let lease = self.claim(1, 0).await;
            let stored = StoredPage {
                place: format!("pages:{}", lease.fence),
                fetched_at: self.clock.now(),
                validators: crate::page::Validators::default(),
            };
            self.settle(lease, Some(stored)).await;
            self.claim(0, 1).await
        }

        /// Writes the item that the parse brought; whether it was written.
        async fn write(&self, lease: &Lease) -> bool {
            let site = self.parts.site(lease).await.expect("its rules");
            let fetched_at = lease.stored.as_ref().expect("a page").fetched_at;
            let item = Item {
                site: "shop".to_owned(),
                page: "p".to_owned(),
                url: PAGE.to_owned(),
                key: None,
                fetched_at,
                noindex: false,
                noarchive: false,
                fields: serde_json::Map::new(),
                from: BTreeMap::new(),
            };
            Parse { parts: &self.parts, site: &site, lease }.write(&item).await.expect("a disk")
        }

        /// When the page of each line was fetched.
        fn lines(&self) -> Vec<Timestamp> {
            let text = std::fs::read_to_string(self.folder.path().join("items.jsonl")).expect("a file");
            let items = text.lines().map(|line| serde_json::from_str::<Item>(line).expect("an item"));
            items.map(|item| item.fetched_at).collect()
        }
    }

    #[tokio::test]
    async fn r5_the_item_of_a_lost_lease_is_not_written_behind_a_newer_one() {
        let ground = Ground::new().await;
        let lost = ground.fetched().await;
        let noted = since_boot();
        let _running = ground.parts.under_way.begin(&lost, noted.saturating_sub(Duration::from_secs(31)));
        // This process stands still between the parse and the write; another one parses the page, and its next version.
        ground.clock.advance(Duration::from_secs(31));
        let again = ground.claim(0, 1).await;
        let _again = ground.parts.under_way.begin(&again, noted);
        assert!(ground.write(&again).await);
        ground.settle(again, None).await;
        let newer = ground.fetched().await;
        let _newer = ground.parts.under_way.begin(&newer, noted);
        assert!(ground.write(&newer).await);
        let lines = ground.lines();
        assert!(!ground.write(&lost).await);
        assert_eq!(ground.lines(), lines);
        assert_eq!(lines.len(), 2);
    }

    #[tokio::test]
    async fn r5_an_item_that_waits_for_the_disk_until_its_lease_is_lost_is_not_written_behind_a_newer_one() {
        let ground = Ground::new().await;
        let (lost, kept) = (ground.fetched().await, ground.folder.path().join("items.jsonl"));
        // The lease lasts for as long as an item may need, and a bit.
        let noted = since_boot().saturating_sub(Duration::from_millis(28_700));
        let _running = ground.parts.under_way.begin(&lost, noted);
        let file = std::fs::File::open(&kept).expect("a file");
        file.lock().expect("a lock");
        let meanwhile = async {
            // Another process has the file for longer than the lease lasts, and one that has the page now writes first.
            crate::clock::wait(Duration::from_millis(1_500)).await;
            ground.clock.advance(Duration::from_secs(31));
            let again = ground.claim(0, 1).await;
            assert_eq!(again.url, lost.url);
            std::fs::write(&kept, "{\"newer\": 1}\n").expect("written");
            file.unlock().expect("unlocked");
        };
        let (is_written, ()) = tokio::join!(ground.write(&lost), meanwhile);
        assert!(!is_written);
        assert_eq!(std::fs::read_to_string(&kept).expect("a file"), "{\"newer\": 1}\n");
    }

    #[tokio::test]
    async fn r5_an_item_that_waited_too_long_for_the_disk_is_written_where_its_lease_still_holds() {
        let ground = Ground::new().await;
        let (lease, kept) = (ground.fetched().await, ground.folder.path().join("items.jsonl"));
        let noted = since_boot().saturating_sub(Duration::from_millis(28_700));
        let _running = ground.parts.under_way.begin(&lease, noted);
        let file = std::fs::File::open(&kept).expect("a file");
        file.lock().expect("a lock");
        let meanwhile = async {
            crate::clock::wait(Duration::from_millis(1_500)).await;
            file.unlock().expect("unlocked");
        };
        let (is_written, ()) = tokio::join!(ground.write(&lease), meanwhile);
        assert!(
            is_written && ground.parts.under_way.ends(lease.token) > Some(since_boot()),
            "it was renewed"
        );
        assert_eq!(ground.lines().len(), 1);
    }

    #[tokio::test]
    async fn r5_where_a_lease_may_be_over_the_frontier_is_asked_and_one_that_holds_is_renewed() {
        let ground = Ground::new().await;
        let lease = ground.fetched().await;
        let noted = since_boot().saturating_sub(Duration::from_secs(31));
        let _running = ground.parts.under_way.begin(&lease, noted);
        ground.clock.advance(Duration::from_secs(20));
        assert!(ground.write(&lease).await);
        assert!(ground.parts.under_way.ends(lease.token) > Some(since_boot()));
        ground.clock.advance(Duration::from_secs(20));
        assert!(ground.write(&lease).await, "it was renewed");
        assert_eq!(ground.lines().len(), 2);
    }
}
