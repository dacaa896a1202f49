//! What the tests stand on: a frontier of each backend with a clock of its own, and short words for its steps.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::state::StageCounts;
use paced::internals::frontier::{
    Claim, Feeding, Frontier, Grant, LockReply, MutexKey, Rearm, Registered, Registration, SiteSettings,
    Tuning, View, WorkScope,
};
use paced::internals::task::{
    Failure, Lease, Outcome, Priority, Put, PutReply, RobotsAccess, RobotsRecord, Settled, Settlement, Stage,
    StoredPage,
};
use tempfile::TempDir;

use crate::support::RedisDb;

/// When the fake clocks start.
pub const START: i64 = 1_800_000_000_000;
/// The process that claims, unless a test names another.
pub const OWNER: &str = "one";
/// How long before its due time a unit can be claimed that waits 200 ms or longer.
pub const AHEAD: i64 = 50;
/// How long before it a start is granted at the latest where the wait is 100 ms or longer.
pub const LEAD: i64 = 10;

/// Where a frontier keeps its records.
#[derive(Clone, Copy, Debug)]
pub enum Backend {
    Model,
    Sqlite,
    /// Two that have the same file open, as two processes do, and take turns by chance.
    SharedSqlite,
    Redis,
}

impl Backend {
    /// The model first; without Redis, said loudly, where that isn't installed.
    pub fn all() -> Vec<Self> {
        let redis: &[Self] = if RedisDb::take().is_some() { &[Self::Redis] } else { &[] };
        [&[Self::Model, Self::Sqlite], redis].concat()
    }
}

/// Runs a test on every backend, and looks at the books at its end (I14).
#[expect(clippy::needless_pass_by_value, reason = "tests give it a closure")]
pub fn on_every_backend(test: impl AsyncFn(&World)) {
    for backend in Backend::all() {
        println!("on {backend:?}:");
        wait_for(async {
            let world = World::new(backend);
            test(&world).await;
            world.check_books().await;
        });
    }
}

/// Runs a future to its end.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// What became of asking for a new start, with times from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rearmed {
    StartIn(i64),
    Held(i64),
    WentBack,
    Stale,
}

/// A frontier with a clock that is moved by hand.
pub struct World {
    pub frontier: Frontier,
    pub clock: Clock,
    tokens: Cell<u64>,
    /// Processes that joined with their first claim.
    met: RefCell<BTreeSet<String>>,
    /// The same frontier as another process has it open.
    other: Option<Frontier>,
    dice: RefCell<fastrand::Rng>,
    turn: Cell<bool>,
    folder: Option<TempDir>,
    db: Option<RedisDb>,
}

impl World {
    pub fn new(backend: Backend) -> Self {
        let clock = Clock::fake(Timestamp::from_millis(START));
        let mut other = None;
        let (frontier, folder, db) = match backend {
            Backend::Model => (Frontier::model(clock.clone()), None, None),
            Backend::Sqlite | Backend::SharedSqlite => {
                let folder = tempfile::tempdir().expect("a folder");
                let file = folder.path().join("frontier.sqlite");
                let open = || Frontier::sqlite(&file, Some(clock.clone())).expect("our file");
                let frontier = open();
                other = matches!(backend, Backend::SharedSqlite).then(open);
                (frontier, Some(folder), None)
            }
            Backend::Redis => {
                let db = RedisDb::take().expect("it is installed");
                (Frontier::redis(&db.url(), Some(clock.clone())).expect("a URL of Redis"), None, Some(db))
            }
        };
        Self { other, folder, db, ..Self::of(frontier, clock) }
    }

    /// A frontier that a test opened, and its clock.
    pub fn of(frontier: Frontier, clock: Clock) -> Self {
        let (tokens, turn, dice) =
            (Cell::new(0), Cell::new(false), RefCell::new(fastrand::Rng::with_seed(1)));
        Self {
            frontier,
            clock,
            tokens,
            met: RefCell::default(),
            other: None,
            dice,
            turn,
            folder: None,
            db: None,
        }
    }

    /// Its file, where it is one.
    pub fn file(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.path().join("frontier.sqlite"))
    }

    /// Its Redis, where it is one.
    pub fn redis(&self) -> Option<&RedisDb> {
        self.db.as_ref()
    }

    /// Locks with a name that something is kept of, over or not, where that can be looked at from outside.
    pub fn locks_kept(&self) -> Option<usize> {
        if let Some(db) = &self.db {
            let ends: usize = db.cli(&["HLEN", "{paced:0}:mutex-noted"]).parse().expect("a number");
            let times: usize = db.cli(&["ZCARD", "{paced:0}:mutex-times"]).parse().expect("a number");
            assert_eq!(ends, times);
            return Some(ends);
        }
        let connection = rusqlite::Connection::open(self.file()?).expect("ours");
        let sql = "SELECT count(*) FROM mutex WHERE name NOT GLOB 'site/*'";
        let locks: u32 = connection.query_row(sql, [], |row| row.get(0)).expect("counted");
        usize::try_from(locks).ok()
    }

    /// Timed mutexes of units that are kept in a file, over or not.
    pub fn unit_locks_kept(&self) -> Option<u32> {
        let file = self.folder.as_ref()?.path().join("frontier.sqlite");
        let connection = rusqlite::Connection::open(file).expect("ours");
        let sql =
            "SELECT (SELECT count(*) FROM mutex WHERE name GLOB 'site/*') + (SELECT count(*) FROM idle_unit)";
        connection.query_row(sql, [], |row| row.get(0)).ok()
    }

    /// Pace units that are kept, where that can be looked at from outside.
    pub fn units_kept(&self) -> Option<usize> {
        if let Some(db) = &self.db {
            return Some(db.cli(&["KEYS", "{paced:0}:pace:*"]).lines().count());
        }
        let connection = rusqlite::Connection::open(self.file()?).expect("ours");
        let units: u32 =
            connection.query_row("SELECT count(*) FROM unit", [], |row| row.get(0)).expect("counted");
        usize::try_from(units).ok()
    }

    /// Windows of tenants that are kept, where that can be looked at from outside.
    pub fn windows_kept(&self) -> Option<usize> {
        if let Some(db) = &self.db {
            let kept: usize = db.cli(&["ZCARD", "{paced:0}:windows"]).parse().expect("a number");
            assert_eq!(kept, db.cli(&["KEYS", "{paced:0}:window:*"]).lines().count());
            return Some(kept);
        }
        let connection = rusqlite::Connection::open(self.file()?).expect("ours");
        let sql = "SELECT count(*), (SELECT count(DISTINCT tenant || stage) FROM counted) FROM window";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?));
        let (kept, counted) = connection.query_row(sql, [], read).expect("counted");
        assert_eq!(kept, counted);
        usize::try_from(kept).ok()
    }

    /// Sessions that something is kept of, where that can be looked at from outside.
    pub fn sessions_kept(&self) -> Option<usize> {
        if let Some(db) = &self.db {
            let keys = |pattern: &str| db.cli(&["KEYS", pattern]);
            let sum = |command: &str, pattern: &str| -> usize {
                let keys = keys(pattern);
                keys.lines().map(|key| db.cli(&[command, key]).parse::<usize>().expect("a number")).sum()
            };
            let kept = sum("HLEN", "{paced:0}:sessions:*");
            assert_eq!(kept, sum("ZCARD", "{paced:0}:session-turns:*"));
            return Some(kept);
        }
        let connection = rusqlite::Connection::open(self.file()?).expect("ours");
        let kept: u32 =
            connection.query_row("SELECT count(*) FROM session", [], |row| row.get(0)).expect("counted");
        usize::try_from(kept).ok()
    }

    /// Books of batches that something is kept of, where that can be looked at from outside.
    pub fn batches_kept(&self) -> Option<usize> {
        if let Some(db) = &self.db {
            let keys = db.cli(&["KEYS", "{paced:0}:batch-books:*"]);
            return Some(
                keys.lines().map(|key| db.cli(&["HLEN", key]).parse::<usize>().expect("a number")).sum(),
            );
        }
        let connection = rusqlite::Connection::open(self.file()?).expect("ours");
        let kept: u32 =
            connection.query_row("SELECT count(*) FROM batch_books", [], |row| row.get(0)).expect("counted");
        usize::try_from(kept).ok()
    }

    /// Whether it is the model, whose every index is a scan.
    pub fn is_model(&self) -> bool {
        self.db.is_none() && self.folder.is_none()
    }

    /// Whoever takes the next step: where two have the frontier open, each takes three in a row or so.
    pub fn next(&self) -> &Frontier {
        if self.dice.borrow_mut().u32(..3) == 0 {
            self.turn.set(!self.turn.get());
        }
        self.other.as_ref().filter(|_| self.turn.get()).unwrap_or(&self.frontier)
    }

    /// Whether steps that a start waits for overtake others that are posted with them.
    pub fn others_are_overtaken(&self) -> bool {
        self.frontier.calls().is_none()
    }

    /// Milliseconds since the test began.
    pub fn now(&self) -> i64 {
        self.clock.now().as_millis() - START
    }

    pub fn pass(&self, ms: i64) {
        self.clock.advance(Duration::from_millis(u64::try_from(ms).expect("forward")));
    }

    /// When each process comes for a task of the stage that works on all sites and sleeps, in ms since the test began. `None`
    /// where nobody is told by what others do.
    pub fn asleep(&self, stage: Stage) -> Option<BTreeMap<String, i64>> {
        let key = if stage == Stage::Download { "{paced:0}:asleep:d" } else { "{paced:0}:asleep:p" };
        let told = self.db.as_ref()?.cli(&["ZRANGE", key, "0", "-1", "WITHSCORES"]);
        let lines: Vec<&str> = told.lines().collect();
        let time = |text: &str| text.parse::<i64>().expect("ms") - START;
        Some(lines.chunks_exact(2).map(|row| (row[0].to_owned(), time(row[1]))).collect())
    }

    /// A token that no lease had before.
    pub fn token(&self) -> u64 {
        self.tokens.set(self.tokens.get() + 1_000);
        self.tokens.get()
    }

    /// A site as `shop` describes it.
    pub async fn site(&self, name: &str) {
        self.site_with(name, |_| {}).await;
    }

    pub async fn site_with(&self, name: &str, change: impl FnOnce(&mut Registration)) {
        let answer = self.register(name, change).await;
        assert!(matches!(answer, Registered::Version(_)), "{name}: {answer:?}");
    }

    pub async fn register(&self, name: &str, change: impl FnOnce(&mut Registration)) -> Registered {
        let mut shop = shop(name);
        change(&mut shop);
        self.frontier.register(shop).await.expect("registered or refused")
    }

    pub async fn tune(&self, site: &str, tuning: Tuning) {
        assert!(self.frontier.tune(site, tuning).await.expect("tuned"), "{site} is not there");
    }

    /// A request for `https://SITE.example/PATH`.
    pub async fn put(&self, site: &str, path: &str) -> PutReply {
        self.put_with(site, request(site, path)).await
    }

    /// A link to `https://SITE.example/PATH`.
    pub async fn link(&self, site: &str, path: &str) -> PutReply {
        self.put_with(site, Put::link(url(site, path), 1)).await
    }

    pub async fn put_with(&self, site: &str, put: Put) -> PutReply {
        self.frontier.put(site, vec![put]).await.expect("the site is there")[0]
    }

    pub async fn put_many(&self, site: &str, count: usize) {
        let puts = (0..count).map(|i| request(site, &format!("{i:05}"))).collect();
        self.frontier.put(site, puts).await.expect("the site is there");
    }

    /// A process that was never heard of joins first, to work on all sites.
    pub async fn grant(&self, claim: Claim) -> Grant {
        let grant = self.frontier.claim(claim.clone()).await.expect("a grant");
        let owners =
            if grant.buried { self.frontier.owners().await.expect("answers") } else { return grant };
        let is_known = owners.iter().any(|owner| owner.name == claim.owner);
        if is_known || !self.met.borrow_mut().insert(claim.owner.clone()) {
            return grant;
        }
        self.work_on(&claim.owner, WorkScope::All).await;
        self.frontier.claim(claim).await.expect("a grant")
    }

    /// A claim of a process that works on these sites alone while it makes it.
    pub async fn grant_of(&self, sites: &[&str], claim: Claim) -> Grant {
        let owner = claim.owner.clone();
        self.work_on(&owner, WorkScope::of(sites.iter().map(ToString::to_string))).await;
        let grant = self.grant(claim).await;
        self.work_on(&owner, WorkScope::All).await;
        grant
    }

    pub async fn work_on(&self, owner: &str, scope: WorkScope) {
        self.frontier.work_on(owner, scope).await.expect("said");
    }

    /// A claim for so many downloads and parses, with a new token.
    pub fn want(&self, download: u32, parse: u32) -> Claim {
        Claim { owner: OWNER.to_owned(), token: self.token(), download, parse, dice: vec![0], lead: 0 }
    }

    /// One download, if any can be had.
    pub async fn claim(&self) -> Option<Lease> {
        self.grant(self.want(1, 0)).await.leases.pop()
    }

    /// One download.
    pub async fn take(&self) -> Lease {
        self.claim().await.expect("a download is due")
    }

    /// One download, at the moment when its request starts.
    pub async fn start(&self) -> Lease {
        let lease = self.take().await;
        self.depart(&lease);
        lease
    }

    /// Time passes until the start that was granted.
    pub fn depart(&self, lease: &Lease) {
        self.pass(starts_at(lease) - self.now());
    }

    /// The next start comes in so many ms: it can be claimed `AHEAD` before, and no sooner.
    pub async fn next_start_in(&self, wait: i64) -> Lease {
        let at = self.now() + wait;
        self.pass(wait - AHEAD - 1);
        assert_eq!(self.claim().await, None, "too soon");
        self.pass(1);
        let lease = self.start().await;
        assert_eq!(self.now(), at);
        lease
    }

    /// One download, by another process.
    pub async fn take_as(&self, owner: &str) -> Lease {
        let claim = Claim { owner: owner.to_owned(), ..self.want(1, 0) };
        self.grant(claim).await.leases.pop().expect("a download is due")
    }

    /// One parse, if any can be had.
    pub async fn parse(&self) -> Option<Lease> {
        self.grant(self.want(0, 1)).await.leases.pop()
    }

    /// The paths that are granted one after the other, each settled, `ms` apart.
    pub async fn order(&self, ms: i64) -> Vec<String> {
        let mut paths = Vec::new();
        while let Some(lease) = self.claim().await {
            paths.push(path_of(&lease));
            self.done(&lease).await;
            self.pass(ms);
        }
        paths
    }

    pub async fn settle(&self, lease: &Lease, outcome: Outcome) -> Settled {
        self.settle_with(lease, outcome, None).await
    }

    pub async fn settle_with(
        &self,
        lease: &Lease,
        outcome: Outcome,
        block: Option<(Duration, String)>,
    ) -> Settled {
        let settlement = Settlement { block, ..Settlement::of(lease.clone(), outcome) };
        let settled = self.frontier.settle(OWNER, self.token(), vec![settlement]).await.expect("answers");
        settled[0].clone()
    }

    /// Done without a page.
    pub async fn done(&self, lease: &Lease) -> Settled {
        self.settle(lease, Outcome::Done { stored: None, recrawl: None }).await
    }

    /// Done with a page, which goes on to the parse stage.
    pub async fn fetched(&self, lease: &Lease) -> Settled {
        let stored = Some(page(&format!("warc/{}", lease.fence), lease.granted_at));
        self.settle(lease, Outcome::Done { stored, recrawl: None }).await
    }

    /// Done with a page that is to be fetched again `ms` later.
    pub async fn fetched_for(&self, lease: &Lease, recrawl: i64) -> Settled {
        let stored = Some(page(&format!("warc/{}", lease.fence), lease.granted_at));
        self.settle(lease, Outcome::Done { stored, recrawl: Some(ms(recrawl)) }).await
    }

    pub async fn feed(&self, most: u32) -> Feeding {
        self.frontier.feed(most).await.expect("answers")
    }

    pub async fn retry(&self, lease: &Lease, after: i64) -> Settled {
        self.settle(lease, Outcome::Retry { after: ms(after), why: Failure::status(503, "503") }).await
    }

    pub async fn die(&self, lease: &Lease) -> Settled {
        self.settle(lease, Outcome::Dead { why: Failure::status(410, "gone") }).await
    }

    /// What `robots.txt` said, for so many ms.
    pub async fn robots(&self, lease: &Lease, access: RobotsAccess, holds_for: i64) -> Settled {
        let record = RobotsRecord { access, holds_for: ms(holds_for), crawl_delay: None, refuses: None };
        self.settle(lease, Outcome::Robots(record)).await
    }

    pub async fn back(&self, lease: &Lease) -> bool {
        self.frontier.back(lease.key()).await.expect("answers")
    }

    pub async fn hand_back(&self, lease: &Lease) -> bool {
        self.frontier.hand_back(lease.key()).await.expect("answers")
    }

    pub async fn rearm(&self, lease: &Lease) -> Rearmed {
        match self.frontier.rearm(&lease.key()).await.expect("answers") {
            Rearm::Departs(departure) if lease.stage == Stage::Parse => Rearmed::StartIn(departure.at),
            Rearm::Departs(departure) => Rearmed::StartIn(departure.at - START - self.now()),
            Rearm::Held(wait) => Rearmed::Held(wait),
            Rearm::WentBack => Rearmed::WentBack,
            Rearm::Stale => Rearmed::Stale,
        }
    }

    pub async fn landed(&self, lease: &Lease) -> bool {
        self.frontier.landed(lease.key()).await.expect("answers")
    }

    /// Landed, and the unit is to be left alone for so many ms.
    pub async fn landed_blocked(&self, lease: &Lease, wait: i64, why: &str) -> bool {
        let block = Some((ms(wait), why.to_owned()));
        self.frontier.landed_with(lease.key(), block).await.expect("answers")
    }

    pub async fn view(&self, site: &str) -> View {
        self.frontier.view(site).await.expect("answers").expect("the site is there")
    }

    pub async fn downloads(&self, site: &str) -> StageCounts {
        self.view(site).await.download
    }

    pub async fn parses(&self, site: &str) -> StageCounts {
        self.view(site).await.parse
    }

    /// Another program takes the mutex of a unit for so many ms.
    pub async fn outsider_locks(&self, unit: &str, expire: i64) -> LockReply {
        self.frontier.try_lock(&MutexKey::unit(unit), "outsider", expire).await.expect("answers")
    }

    pub async fn outsider_unlocks(&self, unit: &str) -> bool {
        self.frontier.unlock(&MutexKey::unit(unit), "outsider").await.expect("answers")
    }

    /// How long a unit's mutex is still held.
    pub async fn mutex_left(&self, unit: &str) -> Option<i64> {
        self.frontier.lock_left(&MutexKey::unit(unit)).await.expect("answers")
    }

    /// Where a page of the download stage stands.
    pub async fn place(&self, site: &str, path: &str) -> String {
        self.place_in(site, Stage::Download, path).await
    }

    pub async fn place_in(&self, site: &str, stage: Stage, path: &str) -> String {
        let inside = self.frontier.inspect().await.expect("answers");
        let url = url(site, path).to_string();
        let stands =
            inside.tasks.into_iter().find(|task| (&*task.0, task.1, &*task.2) == (site, stage, &*url));
        let died = inside.dead.iter().any(|dead| (&*dead.0, dead.1, &*dead.2) == (site, stage, &*url));
        match stands {
            Some(_) if died => "in two places".to_owned(),
            Some((_, _, _, place)) => place,
            None if died => "dead".to_owned(),
            None => "absent".to_owned(),
        }
    }

    /// The books of every site balance, and say what a count of the places says (I3, I14).
    pub async fn check_books(&self) {
        let inside = self.frontier.inspect().await.expect("answers");
        let idle = inside.tasks.iter().filter(|task| task.1 == Stage::Download && task.3 != "running");
        assert_eq!(self.frontier.idle_in_all().await.expect("answers"), idle.count() as u64, "M10: in all");
        for site in self.frontier.sites().await.expect("answers") {
            let view = self.view(&site).await;
            for (stage, books) in [(Stage::Download, &view.download), (Stage::Parse, &view.parse)] {
                let (mut counted, mut bytes) = (BTreeMap::<&str, u64>::new(), 0);
                for task in inside.tasks.iter().filter(|task| task.0 == site && task.1 == stage) {
                    *counted.entry(&task.3).or_default() += 1;
                    bytes += if task.3 == "running" { 0 } else { task.2.len() as u64 + 100 };
                }
                assert_eq!(books.bytes, bytes, "M10: {site} {stage}");
                let counted = |place: &str| counted.get(place).copied().unwrap_or(0);
                let dead = inside.dead.iter().filter(|dead| dead.0 == site && dead.1 == stage).count();
                assert_eq!(books.imbalance(), 0, "{site} {stage}: {books:?}");
                assert_eq!(
                    (
                        books.ready(),
                        books.parked,
                        books.delayed,
                        books.scheduled,
                        books.leased,
                        books.letters
                    ),
                    (
                        counted("waiting"),
                        counted("parked"),
                        counted("delayed"),
                        counted("scheduled") + counted("behind"),
                        counted("running"),
                        dead as u64
                    ),
                    "{site} {stage}: the books against the places"
                );
            }
        }
    }
}

/// A site with a pace of one start a second, eight requests at once, five attempts, robots ignored.
pub fn shop(name: &str) -> Registration {
    Registration {
        name: name.to_owned(),
        text: format!("name = \"{name}\""),
        group: None,
        hosts: vec![format!("{name}.example")],
        settings: SiteSettings {
            interval: 1_000,
            parallel: 8,
            attempts: 5,
            robots: false,
            budgets: BTreeMap::new(),
            min_interval: 1,
            max_parallel: 1_000,
            lane: None,
            tenant: None,
        },
    }
}

pub fn url(site: &str, path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("https://{site}.example/{path}")).expect("a URL")
}

/// The path of a lease's page, without its first slash.
pub fn path_of(lease: &Lease) -> String {
    lease.url.url().path().trim_start_matches('/').to_owned()
}

/// When a lease's request starts, in ms since the test began.
pub fn starts_at(lease: &Lease) -> i64 {
    lease.departure.at - START
}

pub fn request(site: &str, path: &str) -> Put {
    Put::request(url(site, path), Priority::from_value(240))
}

/// A request of another priority.
pub fn urgent(site: &str, path: &str, priority: u16) -> Put {
    Put { priority: Priority::from_value(priority), ..request(site, path) }
}

pub fn page(place: &str, fetched_at: Timestamp) -> StoredPage {
    StoredPage {
        place: place.to_owned(),
        fetched_at,
        validators: paced::internals::page::Validators::default(),
    }
}

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START + ms)
}

pub fn ms(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).expect("forward"))
}
