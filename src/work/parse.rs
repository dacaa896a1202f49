//! The parse line: from a stored page to items and links. It never holds a download up (V12). One step a line, in `visit`.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tracing::warn;
use url::Url;

use super::error::VisitError;
use super::fresh_pages::FreshPage;
use super::links::{LinkBudget, LinkGrounds, WantedLinks, portions, tenant_of};
use super::parts::VisitParts;
use super::slots::Slot;
use super::walls::has_found;
use crate::archive::{Archive, ArchiveError, RecordPlace, StoredResponse};
use crate::budget::Spent;
use crate::canonical_url::{CanonicalUrl, MOST_BYTES};
use crate::clock::since_boot;
use crate::content_coding;
use crate::extract::{self, Extract, Fetched, MOST_LINKS};
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::item::Item;
use crate::sink::SinkError;
use crate::site::{PageRule, Site};
use crate::task::{Exclusion, Failure, Lease, Outcome, Put, PutReply, TooMuch};

/// A page whose links have no room in their site's queue waits for so long (M10).
const NO_ROOM: Duration = Duration::from_secs(30);
/// For each time so many pages of a site that wait so, as much longer.
const PAGES_WITHOUT_ROOM: u64 = 500;

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
    let body = page.body.clone();
    let mut extract = match task.take_apart(rule, page).await? {
        Ok(extract) => extract,
        Err(spent) => {
            let (why, too_much) =
                (too_dear(&site, rule, spent), TooMuch { too_dear: true, ..TooMuch::default() });
            return Ok(parts.settle_parse(lease, Outcome::Dead { why }, too_much).await?);
        }
    };
    let rule = &site.pages[rule];
    let has_found = has_found(rule, &extract, &site, lease.depth);
    // Only where a rule found nothing is the body looked at again: the others let go of it before they wait.
    let body = if has_found { Bytes::new() } else { body };
    let _end = parts.slots.free_for_the_end(slot).await;
    // Before the item, as a page whose links are refused goes back: it would be written each time.
    let dropped = match task.put_links(take(&mut extract.links)).await? {
        Ok(dropped) => dropped,
        Err(postponed) => return Ok(parts.settle(lease, postponed).await?),
    };
    extract.dropped += dropped;
    let too_much = task.say_what_is_too_much(&extract);
    if let Some(item) = &extract.item
        && task.write(item).await?
    {
        parts.monitor.item(&lease.site);
    }
    let outcome = ending(rule, &extract);
    parts.learn(&lease, rule, has_found, matches!(outcome, Outcome::Done { .. }), &body);
    Ok(parts.settle_parse(lease, outcome, too_much).await?)
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
    async fn take_apart(self, rule: usize, page: FreshPage) -> Result<Result<Extract, Spent>, VisitError> {
        let Self { parts, site, lease } = self;
        let (site, url) = (Arc::clone(site), lease.url.clone());
        let fetched_at = lease.stored.as_ref().map_or(lease.granted_at, |stored| stored.fetched_at);
        let parse = move || {
            let fetched = Fetched { url: &url, fetched_at, headers: &page.headers, body: &page.body };
            extract::extract(&fetched, &site.pages[rule], &site)
        };
        parts.parse_pool.run(&lease.site, parse).await
    }

    /// Puts the links in scope into the queues of the sites that own them, those that lead on before the leaves: the next
    /// listing is fetched while this one's products still wait. How many were dropped, as there was no time to look at them; or
    /// how the page is put off, where a site has no room for all of the others or can't be judged for.
    async fn put_links(self, links: Vec<Url>) -> Result<Result<usize, Outcome>, VisitError> {
        if links.is_empty() {
            return Ok(Ok(0));
        }
        let frontier = &self.parts.outages.frontier;
        let grounds = match frontier.patiently(|| self.grounds(&links)).await {
            Ok(grounds) => grounds,
            Err(error) => return self.parts.awaits_rules(self.lease, &error).map(Err).ok_or(error.into()),
        };
        let (depth, parse_budget) = (self.lease.depth + 1, self.site.fetch.parse_budget);
        let tenant = tenant_of(self.lease, self.site).map(str::to_owned);
        let judging = move || {
            WantedLinks::of(&grounds, &links, depth, tenant.as_deref(), &LinkBudget::of(parse_budget))
        };
        let WantedLinks { queues, dropped } =
            self.parts.parse_pool.run_next(&self.lease.site, judging).await?;
        let (is_one_site, mut full) = (queues.len() == 1, BTreeSet::new());
        for (name, puts) in queues {
            let portions = portions(&puts);
            // Several steps would wait one after the other.
            let is_one = is_one_site && portions.len() == 1;
            let may_wait = is_one && self.parts.under_way.is_supplied(&name, since_boot());
            for portion in portions {
                let replies = frontier.patiently(|| self.put(&name, portion, may_wait)).await??;
                if replies.iter().any(|reply| matches!(reply, PutReply::Refused(_))) {
                    full.insert(name.clone());
                }
            }
        }
        for name in &full {
            self.say_it_is_full(name);
        }
        if full.is_empty() {
            return Ok(Ok(dropped));
        }
        Ok(Err(Outcome::Postponed { after: self.wait_for_room().await? }))
    }

    fn say_it_is_full(self, owner: &str) {
        let (site, url) = (&self.lease.site, self.lease.url.as_str());
        if self.parts.refusals.is_said_again(site, owner) {
            warn!(site, url, "links wait with their pages and items: as much of `{owner}` waits as may");
        }
    }

    /// For how long a page without room for its links is left alone: longer where many are, as each is taken apart anew.
    async fn wait_for_room(self) -> Result<Duration, FrontierError> {
        let view =
            self.parts.outages.frontier.patiently(|| self.parts.frontier.view(&self.lease.site)).await?;
        let delayed = view.map_or(0, |view| view.parse.delayed);
        Ok(NO_ROOM * u32::try_from(1 + delayed / PAGES_WITHOUT_ROOM).unwrap_or(u32::MAX))
    }

    /// What links are judged by, for each origin.
    async fn grounds(self, links: &[Url]) -> Result<LinkGrounds, FrontierError> {
        let Self { parts, site, .. } = self;
        parts.learn_owners(site, links).await?;
        let mut grounds = LinkGrounds::new();
        for link in links {
            let Ok(url) = CanonicalUrl::from_url(link.clone()) else { continue };
            if let Entry::Vacant(unknown) = grounds.entry(url.origin()) {
                let owner = parts.owner_of(site, link).await?;
                unknown.insert(match owner {
                    Some(owner) => Some((Arc::clone(&owner), parts.verdicts.for_links(&owner, &url).await?)),
                    None => None,
                });
            }
        }
        Ok(grounds)
    }

    /// Puts links of one site. A full memory isn't waited for: what is done meanwhile may make room.
    async fn put(
        self,
        owner: &str,
        links: &[Put],
        may_wait: bool,
    ) -> Result<Result<Vec<PutReply>, FrontierError>, FrontierError> {
        match self.parts.frontier.put_waiting(owner, links.to_vec(), may_wait).await {
            Err(error) if error.kind == FrontierErrorKind::MemoryFull => {
                self.parts.outages.memory.begin(&error);
                Ok(Err(error))
            }
            put => {
                let replies = put?;
                self.parts.outages.memory.end();
                Ok(Ok(replies))
            }
        }
    }

    /// Says what of the page was too much, once a page.
    fn say_what_is_too_much(self, extract: &Extract) -> TooMuch {
        let (site, url) = (&self.lease.site, self.lease.url.as_str());
        let dropped = extract.dropped;
        if dropped > 0 {
            warn!(
                site,
                url,
                dropped,
                "links dropped: a page has {MOST_LINKS} at most, a URL {MOST_BYTES} bytes, a look at them `parse_budget`"
            );
        }
        if !extract.left_out.is_empty() {
            warn!(site, url, "left out, as it is too much: {}", extract.left_out.join(", "));
        }
        TooMuch {
            links: u32::try_from(dropped).unwrap_or(u32::MAX),
            left_out: !extract.left_out.is_empty(),
            too_dear: false,
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

/// A page that costs more than the site's file allows is a dead letter, revived after rule or budget are mended.
fn too_dear(site: &Site, rule: usize, spent: Spent) -> Failure {
    Failure::new(format!("rule `{}`: {spent}; mend the rule or raise `parse_budget`", site.pages[rule].name))
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

    use tempfile::TempDir;

    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::clock::{Clock, Timestamp, since_boot};
    use crate::fetch::{Ceiling, Fetcher, FetcherOptions};
    use crate::frontier::{Claim, Frontier, Registration, SiteSettings, WorkScope};
    use crate::notify::EventPoster;
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
                ..SiteSettings::default()
            };
            let (name, hosts) = ("shop".to_owned(), vec!["shop.example".to_owned()]);
            let shop = Registration { name, text: SITE.to_owned(), group: None, hosts, settings };
            frontier.register(shop).await.expect("registered");
            let options = PartsOptions {
                member: frontier.join(WorkScope::All).await.expect("joined"),
                fetcher: Fetcher::new(FetcherOptions::default()).expect("TLS"),
                ceiling: Ceiling::per_second(None),
                archive: Archive::open(&folder.path().join("pages"), "w", clock.clone()).expect("a folder"),
                sink: ItemSink::file(&folder.path().join("items.jsonl")).expect("a file"),
                role: Role::Both,
                rules: SiteRules::of_all(),
                most_pages: None,
                first_probe: Duration::from_mins(1),
                events: EventPoster::new(&frontier),
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
