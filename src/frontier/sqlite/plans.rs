//! Every statement behind the steps finds its rows through an index: none reads a table from end to end (I16).

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::Connection;

use super::memory::Memory;
use super::schema;
use super::transaction::{Tables, statements};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::Tuning;
use crate::frontier::campaigns::put_of;
use crate::frontier::state::CampaignTuning;
use crate::frontier::step::{Act, Claim, Grant, Registration};
use crate::frontier::table::{Haste, Reply, Step};
use crate::frontier::url_list::UrlList;
use crate::frontier::{MutexKey, Pause, PausesOfAll, SiteSettings, WorkScope, steps};
use crate::task::{
    BatchNames, CampaignPlan, Event, EventKind, Failure, Lease, Origin, Outcome, Priority, Put, RobotsAccess,
    RobotsRecord, Settlement, Stage, StoredPage,
};

const START: i64 = 1_800_000_000_000;
/// Read by people, who feeds, or at a process's coming and going, of tables with a row a site, a process or a campaign.
const MAY_SCAN: [&str; 2] = ["SELECT name, state FROM owner", "SELECT name, site, number FROM campaign_name"];

struct Shop {
    connection: Connection,
    now: i64,
    token: u64,
}

impl Shop {
    fn new() -> Self {
        let connection = Connection::open_in_memory().expect("in memory");
        connection.set_prepared_statement_cache_capacity(128);
        schema::create(&connection).expect("the tables");
        Self { connection, now: START, token: 0 }
    }

    fn step(&mut self, step: Step) -> Reply {
        let transaction = self.connection.transaction().expect("begun");
        let mut tables = Tables::new(&transaction, Memory::default()).expect("begun");
        let reply = steps::apply(&mut tables, step, self.now).expect("done");
        tables.flush().expect("written");
        drop(tables);
        transaction.commit().expect("kept");
        reply
    }

    fn register(&mut self, name: &str, robots: bool, group: Option<(String, i64)>) {
        self.step(Step::Register {
            new: Registration {
                name: name.to_owned(),
                text: String::new(),
                group,
                hosts: vec![format!("{name}.example")],
                settings: SiteSettings {
                    interval: 1_000,
                    parallel: 4,
                    attempts: 2,
                    robots,
                    budgets: [(String::new(), 100_000)].into(),
                    ..SiteSettings::default()
                },
            },
        });
    }

    fn put(&mut self, site: &str, paths: impl Iterator<Item = usize>, change: impl Fn(&mut Put)) {
        let puts = paths.map(|path| {
            let mut put = Put::request(url(site, path), Priority::SEED);
            change(&mut put);
            put
        });
        self.step(Step::Put {
            site: site.to_owned(),
            puts: puts.collect(),
            elsewhere: 0,
            haste: Haste::Nobody,
        });
    }

    fn claim(&mut self, owner: &str, wanted: u32, only: &[&str]) -> Vec<Lease> {
        let names = only.iter().map(|site| (*site).to_owned());
        let scope = if only.is_empty() { WorkScope::All } else { WorkScope::of(names) };
        self.step(Step::Enlist {
            owner: owner.to_owned(),
            pid: 1,
            scope: Some(scope),
            downloads: true,
            tells: None,
        });
        self.token += 1_000;
        let claim = Claim {
            owner: owner.to_owned(),
            token: self.token,
            download: wanted,
            parse: wanted,
            dice: vec![5, 3, 1],
            lead: 0,
        };
        match self.step(Step::Claim { claim }) {
            Reply::Claim(Grant { leases, .. }) => leases,
            other => panic!("{other:?}"),
        }
    }

    fn settle(&mut self, lease: Lease, outcome: Outcome) {
        self.token += 1_000;
        let block = Some((Duration::from_millis(1), "429".to_owned()));
        let settlement = Settlement { block, ..Settlement::of(lease, outcome) };
        let (owner, settlements) = ("one".to_owned(), vec![settlement]);
        let step = Step::Settle { owner, token: self.token, settlements, haste: Haste::Nobody };
        self.step(step);
    }
}

fn url(site: &str, path: usize) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("https://{site}.example/{path}")).expect("a URL")
}

fn done(lease: &Lease) -> Outcome {
    let stored = StoredPage {
        place: "warc/1".to_owned(),
        fetched_at: lease.granted_at,
        validators: crate::page::Validators::default(),
    };
    Outcome::Done { stored: Some(stored), recrawl: Some(Duration::from_secs(2)) }
}

/// A campaign from its start to its end.
fn campaigns(shop: &mut Shop) {
    let (site, name) = (|| "a".to_owned(), || "c".to_owned());
    let mut urls = UrlList::in_chunks_of(4);
    (20..29).for_each(|path| urls.push(url("a", path)));
    let (list, mark, chunks) = (urls.key(), || urls.key().mark, urls.clone().chunks().to_vec());
    let plan = CampaignPlan::default();
    let puts = vec![put_of(&url("a", 20), "c", &plan)];
    let (stop, number) = (CampaignTuning::Stopped { keep: false }, shop.now);
    shop.step(Step::BookCampaign { name: name(), site: site() });
    shop.step(Step::MakeCampaign { site: site(), name: name(), list, plan });
    for (number, chunk) in (0..).zip(chunks) {
        shop.step(Step::AddChunk { site: site(), name: name(), mark: mark(), number, chunk });
    }
    for step in [
        Step::BeginCampaign { site: site(), name: name(), mark: mark(), act: Act::default() },
        Step::FeedCampaign { site: site(), name: name(), mark: mark(), from: 0, puts, elsewhere: 0 },
        Step::Campaign { site: site(), name: name() },
        Step::CampaignChunk { site: site(), name: name(), number: 0 },
        Step::TuneCampaign { site: site(), name: name(), tunings: vec![stop], act: None },
        Step::DropOfCampaign { site: site(), name: name(), urls: vec![url("a", 20)] },
        Step::ClearCampaign { site: site(), name: name(), wanted: true },
        Step::Campaigns {},
        Step::UnbookCampaign { name: name(), number },
    ] {
        shop.step(step);
    }
}

/// Everything that a frontier is asked for, so that every statement is prepared once.
fn exercise(shop: &mut Shop) {
    for (site, group) in [("a", None), ("b", None), ("c", Some("g")), ("d", Some("g"))] {
        shop.register(site, site == "a", group.map(|name| (name.to_owned(), 100)));
        shop.step(Step::BeginRun { site: site.to_owned(), fresh: None, list: 0, seeds: 0 });
        shop.put(site, 0..6, |_| {});
        shop.put(site, 0..6, |put| put.origin = Origin::Link);
        shop.put(site, 6..8, |put| put.at = Some(Timestamp::from_millis(START + 3_000)));
        shop.put(site, 0..6, |put| put.batches = BatchNames::of("batch"));
        shop.put(site, 8..9, |put| put.expires = Some(Timestamp::from_millis(START + 1)));
    }
    for round in 0..12 {
        shop.now += 1_500;
        for lease in shop.claim("one", 3, if round % 3 == 0 { &["a", "c"] } else { &[] }) {
            let why = Failure::new("no");
            let outcome = match round % 6 {
                _ if lease.robots.is_some() => Outcome::Robots(RobotsRecord {
                    access: if round < 4 {
                        RobotsAccess::Unreachable("503".to_owned())
                    } else {
                        RobotsAccess::Absent
                    },
                    holds_for: Duration::from_secs(3),
                    crawl_delay: None,
                    refuses: None,
                }),
                0 | 1 => done(&lease),
                2 => Outcome::Retry { after: Duration::from_secs(1), why },
                3 => Outcome::Dead { why },
                4 => Outcome::Excluded { why: crate::task::Exclusion::Robots, unused: true },
                _ => {
                    let block = Some((Duration::from_millis(1), "no".to_owned()));
                    for step in [
                        Step::Extend { leases: vec![lease.key()] },
                        Step::Rearm { lease: lease.key(), asked: Some(0), lead: 0 },
                        Step::Landed { lease: lease.key(), block, haste: Haste::Nobody },
                        Step::Back { lease: lease.key(), unused: true },
                    ] {
                        shop.step(step);
                    }
                    continue;
                }
            };
            shop.settle(lease, outcome);
        }
        shop.put("a", 0..6, |_| {});
        shop.claim("zombie", 1, &[]);
        shop.step(Step::Feed { most: 3 });
    }
    campaigns(shop);
    let site = || "a".to_owned();
    let mutex = || (MutexKey::unit("a"), "t".to_owned());
    shop.step(Step::Bury { owner: "zombie".to_owned() });
    shop.now += 40_000;
    shop.claim("one", 3, &[]);
    for step in [
        Step::TryLock { mutex: mutex().0, token: mutex().1, expire: 1, lead: 0 },
        Step::ExtendLock { mutex: mutex().0, token: mutex().1, expire: 9 },
        Step::LockLeft { mutex: mutex().0 },
        Step::Unlock { mutex: mutex().0, token: mutex().1 },
        Step::Tune { site: site(), tunings: vec![Tuning::Interval(Some(5))], act: Some(Act::default()) },
        Step::Acts { site: site() },
        Step::Batch { site: site(), name: "batch".to_owned() },
        Step::PostEvent { event: Event::new(EventKind::Walled, "a", "403") },
        Step::TakeEvent { kinds: vec![EventKind::Walled], token: 1 },
        Step::EndEvent { kind: EventKind::Walled, site: site(), token: 1, failed: None },
        Step::Events {},
        Step::PauseGroup { group: "g".to_owned(), stage: Stage::Download, pause: Some(Pause::of("mail")) },
        Step::PauseAll { stage: Stage::Parse, pause: Some(Pause::of("mail")) },
        Step::TellPaused { of_all: PausesOfAll::default(), after: String::new() },
        Step::PauseAll { stage: Stage::Parse, pause: None },
        Step::TellPaused { of_all: PausesOfAll::default(), after: String::new() },
        Step::Block { site: site(), wait: Duration::from_millis(1), why: "429".to_owned() },
        Step::View { site: site() },
        Step::Text { site: site() },
        Step::SiteOf { host: "a.example".to_owned() },
        Step::Robots { origin: "https://a.example".to_owned() },
        Step::Stored { site: site(), url: url("a", 0) },
        Step::UrlStatus { site: site(), url: url("a", 0) },
        Step::Flow { site: site() },
        Step::Freshness { site: site() },
        Step::Rename { site: site(), to: site() },
        Step::Forget { site: site() },
        Step::DeadLetters { site: site(), after: None, most: 5 },
        Step::DropLetters { site: site(), letters: vec![(Stage::Parse, url("a", 0))] },
        Step::Owners {},
        Step::Sites { from: String::new() },
        Step::GiveUp { site: site(), run: None, goes_on: false },
        Step::BeginRun { site: site(), fresh: Some(1), list: 0, seeds: 0 },
        Step::Sweep { site: site() },
    ] {
        shop.step(step);
    }
    shop.now += 8 * 86_400_000;
    shop.step(Step::Sweep { site: site() });
    shop.register("a", true, None);
}

#[test]
fn i16_no_statement_scans_a_table() {
    let mut shop = Shop::new();
    exercise(&mut shop);
    let statements: BTreeSet<String> = statements();
    assert!(statements.len() >= 50, "{} statements were seen", statements.len());
    let mut bad = Vec::new();
    for sql in &statements {
        let mut explain = shop.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
        let mut rows = explain.raw_query();
        while let Some(row) = rows.next().expect("a row") {
            let detail: String = row.get(3).expect("its text");
            // A partial index holds only what is sought, that of hosts is read in order, `json_each` the sites that were named;
            // the dead hold few leases, and there are few events.
            let partial = [
                "unit_download",
                "unit_parse",
                "away_time",
                "task_leased",
                "task_delayed",
                "owner_dead",
                "event_at",
            ];
            let counted = detail.starts_with("SCAN (subquery") && sql.contains("LIMIT ?2)");
            let scan = detail.starts_with("SCAN")
                && !detail.starts_with("SCAN json_each")
                && !detail.starts_with("SCAN CONSTANT ROW")
                && !counted
                && !partial.iter().any(|index| detail.contains(index));
            let few = sql.contains("json_each") || sql.contains("FROM owner WHERE dead)");
            // A position is given once a site: of one time and position there is one task a site.
            let ties = detail.contains("FOR LAST 2 TERMS")
                && sql.contains("ORDER BY task.until, task.position, site.name");
            let sort = detail.contains("TEMP B-TREE") && !few && !ties;
            if (scan || sort) && !MAY_SCAN.iter().any(|known| sql.starts_with(known)) {
                bad.push(format!("{detail}\n    {sql}"));
            }
        }
    }
    assert!(bad.is_empty(), "{} of {} statements:\n{}", bad.len(), statements.len(), bad.join("\n"));
}
