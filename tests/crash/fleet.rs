//! A fleet on one Redis whose processes are killed, stopped and out of space all the time, and Redis itself killed twice,
//! with a clock that jumps.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use paced::internals::clock::since_boot;
use paced::internals::frontier::Frontier;

use rustix::process::Signal;

use crate::books::*;
use crate::chaos::{Deck, Trouble, seed_of_chaos, some_time, time_of_chaos};
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(200);
const HOUR: i64 = 3_600_000;
const SITES: usize = 10;
const WORKERS: usize = 4;
/// Within this time work goes on after any kill.
const RESUMED: Duration = Duration::from_secs(12);

fn plans(pages: u32) -> Vec<ShopPlan> {
    let plan = |number| {
        // No deeper than a site is crawled.
        let plan = ShopPlan::new(&format!("s{number}"), pages)
            .per_page(pages.div_ceil(40).max(100))
            .page_size(4_000);
        plan.seed(number).latency(Latency::between(Duration::ZERO, Duration::from_millis(800)))
    };
    (1..=SITES as u64).map(plan).collect()
}

struct Fleet {
    /// Where there can be one.
    disk: Option<SmallDisk>,
    data: TempData,
    redis: RedisServer,
    workers: Vec<Running>,
    dice: fastrand::Rng,
    done: Done,
}

/// What was done to it.
#[derive(Debug, Default)]
struct Done {
    /// When something was killed.
    kills: Vec<Duration>,
    stops: usize,
    full: usize,
    /// Jumps of the server's clock, those forward counted apart.
    jumps: usize,
    forward: usize,
    shift: i64,
}

impl Fleet {
    fn data(&self) -> &TempData {
        self.disk.as_ref().map_or(&self.data, SmallDisk::data)
    }

    fn verb(&self, verb: &str) -> Paced {
        Paced::new([verb]).data(self.data()).env("PACED_FRONTIER", self.redis.url(0))
    }

    fn start(&self, number: usize) -> Running {
        self.verb("work").arg("--name").arg(format!("w{number}")).arg("--workers").arg("40").start()
    }

    fn wait(&mut self, ms: std::ops::Range<u64>) {
        std::thread::sleep(Duration::from_millis(self.dice.u64(ms)));
    }

    fn kill(&mut self) {
        let number = self.dice.usize(..WORKERS);
        self.done.kills.push(since_boot());
        self.workers[number].kill();
        self.wait(0..1_000);
        let born_again = self.start(number);
        std::mem::replace(&mut self.workers[number], born_again).finish();
    }

    fn kill_redis(&mut self) {
        self.done.kills.push(since_boot());
        self.redis.kill9();
        self.wait(200..2_000);
        self.redis.restart();
    }

    fn stop(&mut self) {
        self.done.stops += 1;
        let number = self.dice.usize(..WORKERS);
        self.workers[number].signal(Signal::STOP);
        std::thread::sleep(some_time(&mut self.dice));
        self.workers[number].signal(Signal::CONT);
    }

    fn fill(&mut self) {
        let Some(disk) = &self.disk else { return };
        self.done.full += 1;
        disk.fill(self.dice.u64(0..200));
        std::thread::sleep(some_time(&mut self.dice));
        disk.free();
    }

    fn jump(&mut self) {
        let shift = if self.dice.u32(0..3) == 0 { 0 } else { self.dice.i64(-HOUR..=HOUR) };
        self.done.jumps += 1;
        self.done.forward += usize::from(shift > self.done.shift);
        self.done.shift = shift;
        self.redis.shift_clock(shift);
    }

    /// Paths of all items of a shop, by whichever worker.
    fn items(&self, shop: &Shop) -> BTreeSet<String> {
        let file = |number| self.data().file(&format!("items/{}-w{number}.jsonl", shop.plan.name));
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
fn l4_l7_i14_a_fleet_killed_stopped_out_of_space_and_in_a_jumping_time_loses_nothing() {
    if !may_mount() {
        return in_three_tries(|| unleash(None));
    }
    with_mounts(
        "fleet::l4_l7_i14_a_fleet_killed_stopped_out_of_space_and_in_a_jumping_time_loses_nothing",
        || {
            in_three_tries(|| unleash(Some(SmallDisk::new(2 << 20))));
        },
    );
}

fn unleash(disk: Option<SmallDisk>) -> Result<(), String> {
    let settings =
        RedisServer::builder().movable_clock().set("appendonly", "yes").set("appendfsync", "everysec");
    let Some(redis) = settings.start() else { return Ok(()) };
    let (seed, time) = (seed_of_chaos(), time_of_chaos());
    tell(&format!("PACED_TEST_SEED={seed}"));
    let dice = fastrand::Rng::with_seed(seed);
    // Enough pages for the whole time, with the stops, and some that are left for a quiet end.
    let pages = u32::try_from(time.as_millis() / INTERVAL.as_millis()).expect("hours at most");
    let shops = serve(plans(pages)).expect("shops");
    let (data, done) = (TempData::new(), Done::default());
    let mut fleet = Fleet { disk, data, redis, workers: Vec::new(), dice, done };
    for shop in shops.all() {
        let site = fleet.data.write(&format!("{}.toml", shop.plan.name), &shop.site_toml(INTERVAL));
        fleet.verb("seed").arg(&site).run().expect_code(0);
    }
    fleet.workers = (0..WORKERS).map(|number| fleet.start(number)).collect();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let frontier = Frontier::open(&fleet.redis.url(0)).expect("a frontier");
    let (began, mut deck) = (Instant::now(), Deck::default());
    let mut redis_kills = [time / 3, time * 2 / 3].into_iter().peekable();
    while began.elapsed() < time {
        if redis_kills.next_if(|at| began.elapsed() >= *at).is_some() {
            fleet.kill_redis();
        }
        match deck.deal(&mut fleet.dice) {
            Trouble::Kill => fleet.kill(),
            Trouble::Stop => fleet.stop(),
            Trouble::Fill => fleet.fill(),
            Trouble::Jump => fleet.jump(),
        }
        look(&runtime, &frontier, &shops);
        fleet.wait(500..4_000);
    }
    within(time + Duration::from_mins(15), &format!("the end, seed {seed}"), || {
        std::thread::sleep(Duration::from_millis(200));
        look(&runtime, &frontier, &shops).then_some(())
    });
    for worker in std::mem::take(&mut fleet.workers) {
        worker.terminate();
        let run = worker.finish().expect_code(0);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
    assert_nothing_lost(&fleet, &shops, &runtime, &frontier, seed);
    resumed(&fleet.done, &shops, seed)
}

fn assert_nothing_lost(
    fleet: &Fleet,
    shops: &Shops,
    runtime: &tokio::runtime::Runtime,
    frontier: &Frontier,
    seed: u64,
) {
    let mut repeated = 0;
    for shop in shops.all() {
        assert_eq!(fleet.items(shop).len(), shop.plan.products as usize, "seed {seed}: {}", shop.plan.name);
        // A jump forward may bring one start a site too early.
        assert_pace_at_the_server(shop, INTERVAL, fleet.done.forward);
        // While the server's clock runs slower after a jump back, those who stamp by it don't agree to the millisecond.
        let by_stamps = early_by_stamps(fleet.data(), shop);
        assert!(by_stamps == 0 || fleet.done.jumps > 0, "seed {seed}: {}: {by_stamps}", shop.plan.name);
        repeated += repeats(&shop.arrivals());
        let view = runtime.block_on(frontier.view(&shop.plan.name)).expect("an answer").expect("a site");
        assert_eq!(view.download.dead + view.parse.dead, 0, "seed {seed}: {view:?}");
    }
    let Done { kills, stops, full, jumps, .. } = &fleet.done;
    let kills = kills.len();
    tell(&format!("{kills} kills, {stops} stops, {full} times no space, {jumps} jumps, {repeated} repeated"));
}

fn resumed(done: &Done, shops: &Shops, seed: u64) -> Result<(), String> {
    let mut arrivals: Vec<Duration> =
        shops.all().iter().flat_map(|shop| shop.arrivals()).map(|arrival| arrival.at).collect();
    arrivals.sort();
    let pause = |kill: &Duration| arrivals.iter().find(|at| *at > kill).map(|at| at.saturating_sub(*kill));
    let slowest = done.kills.iter().filter_map(pause).max().unwrap_or_default();
    tell(&format!("{} requests, work resumed within {slowest:?}", arrivals.len()));
    bound(slowest < RESUMED, format_args!("seed {seed}: work stood still for {slowest:?}"))
}
