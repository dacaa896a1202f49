//! The state that the fixtures hold: something of everything that a crawl leaves in a frontier, at a time told by a fake clock.

use std::collections::BTreeSet;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Frontier, MutexKey, Tuning, WorkScope};
use paced::internals::page::Validators;
use paced::internals::task::{
    Lease, Outcome, Put, RobotsAccess, RobotsRecord, Settlement, Stage, StoredPage,
};

use crate::world::{OWNER, START, World, at, ms, path_of, request, url};

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;
/// Pages of `big` that were fetched and parsed.
pub const FETCHED: u32 = 40;
/// Pages of `big` that wait behind them.
pub const BEHIND: u32 = 12;

/// The name of a page of `big`: every third one is long.
pub fn path(page: u32) -> String {
    let long = if page.is_multiple_of(3) { "a-name-that-makes-the-url-longer-than-64-bytes/" } else { "" };
    format!("products/{long}{page:04}")
}

/// What is kept of a page of `big`: every second one has validators, every fifth is fetched again.
pub fn stored(page: u32, lease: &Lease) -> (StoredPage, Option<i64>) {
    let place = format!("20270115T080000Z-host-1-abcdef-0000{}.warc.gz:{}:4321", page % 2, 1000 * page);
    let etag = (page.is_multiple_of(2)).then(|| format!("\"tag-{page}\""));
    let last_modified = etag.as_ref().map(|_| "Fri, 15 Jan 2027 08:00:00 GMT".to_owned());
    let validators = Validators { etag, last_modified };
    let again = (page.is_multiple_of(5)).then(|| HOUR + i64::from(page));
    (StoredPage { place, fetched_at: lease.granted_at, validators }, again)
}

/// Fills an empty frontier, as a process does that is still at work.
pub async fn fill(w: &World) {
    w.work_on(OWNER, WorkScope::All).await;
    sites(w).await;
    fetch(w).await;
    robots(w).await;
    tasks(w).await;
    mutexes(w).await;
}

async fn sites(w: &World) {
    w.site_with("big", |site| site.settings.interval = 0).await;
    for (name, robots) in [("slow", false), ("obeying", true), ("paused", false), ("blocked", false)] {
        w.site_with(name, |site| site.settings.robots = robots).await;
    }
    for name in ["one", "two"] {
        w.site_with(name, |site| site.group = Some(("pair".to_owned(), 3_000))).await;
    }
    w.site_with("thrifty", |site| {
        site.settings.budgets.insert("product".to_owned(), 3);
    })
    .await;
    w.frontier.begin_run("big", vec![request("big", "")]).await.expect("answers");
    w.tune("slow", Tuning::Interval(Some(20_000))).await;
    w.tune("slow", Tuning::Parallel(Some(2))).await;
    w.tune("paused", Tuning::pause("the owner asked")).await;
}

/// Pages that were fetched and parsed.
async fn fetch(w: &World) {
    let seed = w.take().await;
    w.done(&seed).await;
    let puts = (0..FETCHED + BEHIND).map(|page| Put::link(url("big", &path(page)), 1 + page % 2));
    w.frontier.put("big", puts.collect()).await.expect("answers");
    for page in 0..FETCHED {
        let lease = w.take().await;
        assert_eq!(lease.url, url("big", &path(page)));
        let (stored, recrawl) = stored(page, &lease);
        let outcome = Outcome::Done { stored: Some(stored), recrawl: recrawl.map(ms) };
        let response = Some(ms(80));
        let settlement = Settlement { response, ..Settlement::of(lease, outcome) };
        w.frontier.settle(OWNER, w.token(), vec![settlement]).await.expect("answers");
        let parse = w.parse().await.expect("it follows");
        w.done(&parse).await;
        w.pass(1_000);
    }
    w.tune("big", Tuning::Interval(Some(1_000))).await;
}

async fn robots(w: &World) {
    w.put("obeying", "a").await;
    w.put("obeying", "b").await;
    let errand = w.grant_of(&["obeying"], w.want(1, 0)).await.leases.remove(0);
    let access = RobotsAccess::Rules("User-agent: *\nDisallow: /private\nCrawl-delay: 5\n".to_owned());
    let record =
        RobotsRecord { access, holds_for: ms(24 * HOUR), crawl_delay: Some(ms(5_000)), refuses: None };
    w.settle(&errand, Outcome::Robots(record)).await;
}

async fn take_of(w: &World, site: &str) -> Lease {
    w.grant_of(&[site], w.want(1, 0)).await.leases.pop().expect("it is due")
}

/// One task or more in every place.
async fn tasks(w: &World) {
    for path in ["waiting", "later", "soon"] {
        w.put("paused", path).await;
    }
    w.put_with("paused", Put { at: Some(at(5 * HOUR)), ..request("paused", "scheduled") }).await;
    w.put_with("paused", Put { expires: Some(at(9 * HOUR)), ..request("paused", "expiring") }).await;
    w.put("blocked", "a").await;
    w.frontier.block("blocked", ms(2 * HOUR), "HTTP 429").await.expect("answers");
    for path in ["dead", "retried", "running", "waiting", "last"] {
        w.put("slow", path).await;
    }
    for path in ["dead", "retried", "running"] {
        let lease = take_of(w, "slow").await;
        match path {
            "dead" => drop(w.die(&lease).await),
            "retried" => drop(w.retry(&lease, 10 * MINUTE).await),
            _ => drop(w.put("slow", path).await), // one more run after this one
        }
        w.pass(20_000);
    }
    for (site, pages) in [("one", 3), ("two", 2)] {
        for page in 0..pages {
            w.put(site, &format!("{page}")).await;
        }
    }
    let lease = take_of(w, "one").await;
    w.fetched(&lease).await;
    for path in ["a", "b"] {
        let link = Put { rule: Some("product".to_owned()), ..Put::link(url("thrifty", path), 3) };
        w.put_with("thrifty", link).await;
    }
}

async fn mutexes(w: &World) {
    let report = MutexKey::Named { namespace: "reports".to_owned(), name: "daily".to_owned() };
    w.frontier.try_lock(&report, "reporter", HOUR).await.expect("answers");
    w.frontier.try_lock(&MutexKey::named("mail"), "mailer", 2 * HOUR).await.expect("answers");
    w.outsider_locks("thrifty", 10 * MINUTE).await;
}

/// As a frontier has it that was filled by this build.
pub async fn is_the_same(w: &World) {
    let same_clock = Clock::fake(Timestamp::from_millis(START));
    let model = World::of(Frontier::model(same_clock.clone()), same_clock);
    fill(&model).await;
    let [mut told, mut expected] = [w, &model].map(|world| world.frontier.clone());
    let [there, here] = [&mut told, &mut expected];
    let [inside, by_model] =
        [there.inspect().await.expect("answers"), here.inspect().await.expect("answers")];
    assert_eq!((inside.tasks, inside.dead, inside.known), (by_model.tasks, by_model.dead, by_model.known));
    let in_all = [there.idle_in_all().await.expect("answers"), here.idle_in_all().await.expect("answers")];
    assert!(in_all[0] == in_all[1] && in_all[0] > 12, "{in_all:?}");
    let weights = [w.view("big").await, model.view("big").await].map(|view| view.download.bytes);
    // A Redis weighs some of a long queue.
    assert!(weights[0].abs_diff(weights[1]) * 10 < weights[1], "{weights:?}");
    for page in 0..FETCHED {
        let url = url("big", &path(page));
        let latest = there.latest("big", &url).await.expect("answers").expect("it is kept");
        assert_eq!(Some(&latest), here.latest("big", &url).await.expect("answers").as_ref(), "{url}");
    }
    let paused = w.view("paused").await.paused();
    assert_eq!(paused.as_deref(), Some("the owner asked"));
    assert!(w.view("blocked").await.blocked_until.is_some());
    assert!(there.robots("https://obeying.example").await.expect("answers").is_some());
    assert!(there.lock_left(&MutexKey::named("mail")).await.expect("answers").is_some());
}

/// Each page that waits in `big` is granted once, at its pace.
pub async fn crawls_on(w: &World) {
    let (mut seen, mut last) = (BTreeSet::new(), None);
    for _ in 0..500 {
        for lease in w.grant_of(&["big"], w.want(1, 1)).await.leases {
            if lease.stage == Stage::Download {
                assert!(last.is_none_or(|last| lease.departure.at - last >= 1_000), "paced");
                last = Some(lease.departure.at);
                assert!(seen.insert(path_of(&lease)), "{} came twice", lease.url);
            }
            w.done(&lease).await;
        }
        w.pass(250);
    }
    assert_eq!(seen, (FETCHED..FETCHED + BEHIND).map(path).collect());
    assert_eq!(w.view("big").await.download.imbalance(), 0);
}
