//! Thirty days of a fleet on the fake clock: what is kept, and what a claim takes, is the same on the last day as on the
//! fourteenth (I17). `MONTH_SITES` and `MONTH_PAGES`, a day, make it as large as a real one: 300 and 10,000.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Claim, Forgotten, Frontier, MutexKey, Renamed};
use paced::internals::task::{
    Exclusion, Failure, Lease, Outcome, RobotsAccess, RobotsRecord, Settlement, Stage,
};

use crate::support::{RedisServer, redis_or_skip};
use crate::world::{OWNER, START, World, ms, page, path_of, request, wait_for};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// So many tasks a claim asks for.
const SLOTS: u32 = 50;

fn size(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// What is left of a day: rows or entries by kind, and steps of the store a granted start.
#[derive(Clone, Debug, PartialEq)]
struct Evening {
    kept: BTreeMap<String, f64>,
    /// Statements, or commands.
    work: f64,
}

struct Month<'a> {
    w: &'a World,
    sites: usize,
    pages: usize,
    /// The next new page.
    next: usize,
    /// Pages that were fetched at least once.
    fetched: BTreeSet<(String, String)>,
    /// Those that ended otherwise as well.
    known: BTreeSet<(String, String)>,
    granted: u64,
}

impl Month<'_> {
    fn of_page(&self, number: usize) -> (String, String) {
        (format!("s{:03}", number % self.sites), format!("{number:07}"))
    }

    /// The oldest pages are gone, as many as there are new ones, and one of the others dies.
    async fn settle_all(&mut self, day: usize, leases: Vec<Lease>) {
        let (w, gone) = (self.w, day * (self.pages / 100));
        let number = |lease: &Lease| path_of(lease).parse::<usize>().ok().filter(|_| lease.stored.is_some());
        let outcome = |lease: &Lease| match lease.stage {
            Stage::Parse => Outcome::Done { stored: None, recrawl: None },
            Stage::Download if lease.robots.is_some() => Outcome::Robots(RobotsRecord {
                access: RobotsAccess::Absent,
                holds_for: ms(20 * HOUR),
                crawl_delay: None,
                refuses: None,
            }),
            Stage::Download if number(lease).is_some_and(|number| number < gone) => {
                Outcome::Excluded { why: Exclusion::NoRule, unused: false }
            }
            Stage::Download if number(lease) == Some(gone + self.pages / 2) => {
                Outcome::Dead { why: Failure::status(500, "500") }
            }
            Stage::Download => {
                let stored = Some(page(&format!("warc:{}:1", lease.fence % 4_000_000_000), lease.granted_at));
                Outcome::Done { stored, recrawl: Some(ms(20 * HOUR)) }
            }
        };
        let settlements: Vec<Settlement> = leases
            .into_iter()
            .map(|lease| {
                let outcome = outcome(&lease);
                let of = || (lease.site.clone(), path_of(&lease));
                if matches!(&outcome, Outcome::Done { stored: Some(_), .. }) {
                    self.fetched.insert(of());
                }
                if lease.stage == Stage::Download && !matches!(&outcome, Outcome::Dead { .. }) {
                    self.known.insert(of());
                }
                Settlement::of(lease, outcome)
            })
            .collect();
        self.granted += settlements.len() as u64;
        w.frontier.settle(OWNER, w.token(), settlements).await.expect("answers");
    }

    async fn crawl(&mut self, day: usize) {
        loop {
            let grant = self.w.grant(self.w.want(SLOTS, SLOTS)).await;
            let wait = grant.next_in.unwrap_or(DAY);
            if grant.leases.is_empty() {
                if wait > HOUR {
                    return;
                }
                self.w.pass(wait.max(1));
                continue;
            }
            self.settle_all(day, grant.leases).await;
        }
    }

    /// A site that is there for a day, under two names.
    async fn guest(&self, day: usize) -> String {
        let name = format!("guest-{day}");
        self.w.site_with(&name, |site| site.settings.robots = true).await;
        self.w.put_many(&name, 3).await;
        name
    }

    async fn farewell(&mut self, guest: &str) {
        let (w, other) = (self.w, format!("{guest}-renamed"));
        assert_eq!(w.frontier.rename(guest, &other).await.expect("answers"), Renamed::Done);
        w.pass(2_000);
        while w.frontier.give_up(&other).await.expect("answers") {}
        while w.frontier.forget(&other).await.expect("answers") == Forgotten::Partly {}
        assert_eq!(w.frontier.view(&other).await.expect("answers"), None);
        self.fetched.retain(|(site, _)| site != guest);
        self.known.retain(|(site, _)| site != guest);
    }

    async fn day(&mut self, day: usize) {
        let w = self.w;
        w.pass(i64::try_from(day).expect("few") * DAY - w.now());
        while w.feed(1_000).await.put > 0 {}
        let new = if day == 0 { self.pages } else { self.pages / 100 };
        for number in self.next..self.next + new {
            let (site, path) = self.of_page(number);
            w.put_with(&site, request(&site, &path)).await;
        }
        self.next += new;
        for (name, letters) in self.letters().await {
            let letters = letters.into_iter().map(|letter| (letter.stage, letter.url)).collect();
            w.frontier.drop_letters(&name, letters).await.expect("answers");
        }
        let guest = self.guest(day).await;
        let lock = MutexKey::named(&format!("lock-{day}"));
        w.frontier.try_lock(&lock, "token", 1_000).await.expect("answers");
        let dying = format!("owner-{day}");
        let held = w.grant(Claim { owner: dying.clone(), ..w.want(3, 0) }).await.leases;
        assert!(!held.is_empty());
        w.frontier.bury(&dying).await.expect("answers");
        self.crawl(day).await;
        self.farewell(&guest).await;
        // A site that is of another group each day.
        w.site_with("s000", |site| {
            site.settings.robots = true;
            site.group = Some((format!("group:{day}"), 1_000));
        })
        .await;
    }

    async fn letters(&self) -> Vec<(String, Vec<paced::internals::task::DeadLetter>)> {
        let mut all = Vec::new();
        for number in 0..self.sites {
            let name = format!("s{number:03}");
            let letters = self.w.frontier.dead_letters(&name, 100).await.expect("answers");
            all.extend((!letters.is_empty()).then_some((name, letters)));
        }
        all
    }
}

/// Thirty days; the evening of each.
#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
async fn month(w: &World, kept: impl Fn() -> BTreeMap<String, f64>, work: impl Fn() -> u64) -> Vec<Evening> {
    let (sites, pages) = (size("MONTH_SITES", 6), size("MONTH_PAGES", 100));
    for number in 0..sites {
        w.site_with(&format!("s{number:03}"), |site| site.settings.robots = true).await;
    }
    let (fetched, known) = (BTreeSet::new(), BTreeSet::new());
    let mut month = Month { w, sites, pages, next: 0, fetched, known, granted: 0 };
    let mut evenings = Vec::new();
    for day in 0..=30 {
        let (before, granted) = (work(), month.granted);
        month.day(day).await;
        let (after, mut kept) = (work(), kept());
        // What is kept of each page for good.
        for (kind, of) in [("page", &month.fetched), ("bucket", &month.fetched), ("known", &month.known)] {
            if let Some(rows) = kept.get_mut(kind) {
                *rows /= of.len() as f64;
            }
        }
        if let Some(rows) = kept.get_mut("seen") {
            *rows /= month.fetched.union(&month.known).count() as f64;
        }
        // An entry of a list that its page has left goes once it comes first: some are there, and never many.
        if let Some(entries) = kept.get_mut("again") {
            assert!(*entries <= 1.3 * pages as f64, "{entries} entries of {pages} pages on day {day}");
            *entries = entries.min(pages as f64);
        }
        let work = (after - before) as f64 / (month.granted - granted) as f64;
        evenings.push(Evening { kept, work });
    }
    evenings
}

fn assert_nothing_grows(evenings: &[Evening]) {
    let (fourteenth, last) = (&evenings[14], &evenings[30]);
    println!("day 14: {fourteenth:?}\nday 30: {last:?}");
    let is_same = |one: f64, other: f64| (one - other).abs() <= one.max(other) * 0.01;
    let kinds: BTreeSet<&String> = fourteenth.kept.keys().chain(last.kept.keys()).collect();
    let rows = |evening: &Evening, kind: &String| evening.kept.get(kind).copied().unwrap_or(0.0);
    let grown: Vec<String> = kinds
        .into_iter()
        .filter(|kind| !is_same(rows(fourteenth, kind), rows(last, kind)))
        .map(|kind| format!("{kind}: {} and {}", rows(fourteenth, kind), rows(last, kind)))
        .collect();
    assert_eq!(grown, Vec::<String>::new(), "rows or entries on day 14 and on day 30");
    assert!(is_same(fourteenth.work, last.work), "{} and {} a start", fourteenth.work, last.work);
}

fn rows_of(file: &Path) -> BTreeMap<String, f64> {
    let connection = rusqlite::Connection::open(file).expect("ours");
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let mut tables = connection.prepare(sql).expect("a statement");
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).expect("rows").map(|name| name.expect("a name")).collect();
    let count = |table: &String| -> u32 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("counted")
    };
    tables.iter().map(|table| (table.clone(), f64::from(count(table)))).collect()
}

/// Entries by the first word of their key.
fn entries_of(server: &RedisServer) -> BTreeMap<String, f64> {
    let count = "local found, sizes = {}, { hash = 'HLEN', zset = 'ZCARD', set = 'SCARD', list = 'LLEN' }
        for _, key in ipairs(redis.call('KEYS', '*')) do
          local kind = string.match(key, '^{[^}]*}:([^:/]*)') or key
          local size = sizes[redis.call('TYPE', key).ok]
          found[kind] = (found[kind] or 0) + (size and redis.call(size, key) or 1)
        end
        local lines = {}
        for kind, size in pairs(found) do lines[#lines + 1] = kind .. ' ' .. size end
        return lines";
    let told = server.cli(&["EVAL", count, "0"]);
    let row = |line: &str| {
        let (kind, size) = line.split_once(' ').expect("two words");
        (kind.to_owned(), size.parse().expect("a number"))
    };
    told.lines().map(row).collect()
}

#[test]
fn i17_after_thirty_days_a_file_holds_no_more_than_after_fourteen() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let clock = Clock::fake(Timestamp::from_millis(START));
    let w = World::of(Frontier::sqlite(&file, Some(clock.clone())).expect("ours"), clock);
    let statements = || w.frontier.statements().expect("it counts them");
    assert_nothing_grows(&wait_for(month(&w, || rows_of(&file), statements)));
}

#[test]
fn i17_after_thirty_days_a_redis_holds_no_more_than_after_fourteen() {
    let Some(server) = redis_or_skip() else { return };
    let clock = Clock::fake(Timestamp::from_millis(START));
    let w = World::of(Frontier::redis(&server.url(0), Some(clock.clone())).expect("a URL"), clock);
    let commands = || server.calls().values().sum();
    assert_nothing_grows(&wait_for(month(&w, || entries_of(&server), commands)));
}
