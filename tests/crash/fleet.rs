//! A fleet on one Redis whose processes are killed and started again all the time, and Redis itself twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use paced::clock::since_boot;
use paced::frontier::Frontier;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(200);
const SITES: usize = 10;
const WORKERS: usize = 4;
/// Within this time work goes on after any kill.
const RESUMED: Duration = Duration::from_secs(12);

/// How long it is killed about: `CHAOS_SECONDS`, or half a minute.
fn time_to_kill() -> Duration {
    let given = std::env::var("CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(30))
}

fn plans(pages: u32) -> Vec<ShopPlan> {
    let plan = |number| {
        let plan = ShopPlan::new(&format!("s{number}"), pages).per_page(100).page_size(4_000);
        plan.seed(number).latency(Latency::between(Duration::ZERO, Duration::from_millis(800)))
    };
    (1..=SITES as u64).map(plan).collect()
}

struct Fleet {
    data: TempData,
    url: String,
    workers: Vec<Running>,
}

impl Fleet {
    fn verb(&self, verb: &str) -> Paced {
        Paced::new([verb]).data(&self.data).env("PACED_FRONTIER", &self.url)
    }

    fn start(&self, number: usize) -> Running {
        self.verb("work").arg("--name").arg(format!("w{number}")).arg("--workers").arg("40").start()
    }

    fn kill(&mut self, number: usize, dice: &mut fastrand::Rng) {
        self.workers[number].kill();
        std::thread::sleep(Duration::from_millis(dice.u64(0..1_000)));
        let born_again = self.start(number);
        std::mem::replace(&mut self.workers[number], born_again).finish();
    }

    /// Paths of all items of a shop, by whichever worker.
    fn items(&self, shop: &Shop) -> BTreeSet<String> {
        let file = |number| self.data.file(&format!("items/{}-w{number}.jsonl", shop.plan.name));
        let files: Vec<PathBuf> = (0..WORKERS).map(file).filter(|file| file.exists()).collect();
        let lines = files.iter().flat_map(|file| json_lines(file));
        lines.filter_map(|item| item["url"].as_str().map(str::to_owned)).collect()
    }
}

/// Conservation at every look (I14); whether every site is finished.
fn look(runtime: &tokio::runtime::Runtime, frontier: &Frontier, shops: &Shops) -> bool {
    let mut finished = true;
    for shop in shops.all() {
        let Ok(Some(view)) = runtime.block_on(frontier.view(&shop.plan.name)) else { return false };
        assert_eq!(view.download.imbalance(), 0, "{view:?}");
        assert_eq!(view.parse.imbalance(), 0, "{view:?}");
        finished &= view.finished;
    }
    finished
}

#[test]
fn l4_l7_a_fleet_killed_at_random_and_its_redis_twice_loses_nothing_and_starts_nothing_early() {
    let settings = RedisServer::builder().set("appendonly", "yes").set("appendfsync", "everysec");
    let Some(mut redis) = settings.start() else { return };
    let seed = std::env::var("PACED_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let (mut dice, time) = (fastrand::Rng::with_seed(seed), time_to_kill());
    // Enough pages for the whole time, and some that are left for a quiet end.
    let pages = u32::try_from(time.as_millis() / INTERVAL.as_millis()).expect("hours at most");
    let shops = serve(plans(pages)).expect("shops");
    let mut fleet = Fleet { data: TempData::new(), url: redis.url(0), workers: Vec::new() };
    for shop in shops.all() {
        let site = fleet.data.write(&format!("{}.toml", shop.plan.name), &shop.site_toml(INTERVAL));
        fleet.verb("seed").arg(&site).run().expect_code(0);
    }
    fleet.workers = (0..WORKERS).map(|number| fleet.start(number)).collect();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let frontier = Frontier::open(&redis.url(0)).expect("a frontier");
    let (began, mut kills) = (Instant::now(), Vec::new());
    let mut redis_kills = [time / 3, time * 2 / 3].into_iter().peekable();
    while began.elapsed() < time {
        if redis_kills.next_if(|at| began.elapsed() >= *at).is_some() {
            kills.push(since_boot());
            redis.kill9();
            std::thread::sleep(Duration::from_millis(dice.u64(200..2_000)));
            redis.restart();
        }
        kills.push(since_boot());
        fleet.kill(dice.usize(..WORKERS), &mut dice);
        look(&runtime, &frontier, &shops);
        std::thread::sleep(Duration::from_millis(dice.u64(500..4_000)));
    }
    eventually("the end of all sites", || look(&runtime, &frontier, &shops).then_some(()));
    for worker in std::mem::take(&mut fleet.workers) {
        worker.terminate();
        worker.finish().expect_code(0);
    }

    let mut repeated = 0;
    for shop in shops.all() {
        assert_eq!(fleet.items(shop).len(), shop.plan.products as usize, "seed {seed}: {}", shop.plan.name);
        assert_pace(&fleet.data, shop, INTERVAL);
        repeated += repeats(&shop.arrivals());
        let view = runtime.block_on(frontier.view(&shop.plan.name)).expect("an answer").expect("a site");
        assert_eq!(view.download.dead + view.parse.dead, 0, "seed {seed}: {view:?}");
    }
    let mut arrivals: Vec<Duration> =
        shops.all().iter().flat_map(|shop| shop.arrivals()).map(|arrival| arrival.at).collect();
    arrivals.sort();
    let resumed = |kill: &Duration| arrivals.iter().find(|at| *at > kill).map(|at| *at - *kill);
    let waits: Vec<Duration> = kills.iter().filter_map(resumed).collect();
    let slowest = waits.iter().max().copied().unwrap_or_default();
    tell(&format!(
        "PACED_TEST_SEED={seed}: {} kills in {time:?}, {} requests, {repeated} repeated, work resumed within {slowest:?}",
        kills.len(),
        arrivals.len(),
    ));
    assert!(slowest < RESUMED, "seed {seed}: work stood still for {slowest:?}");
}
