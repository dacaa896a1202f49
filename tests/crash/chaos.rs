//! One crawl, at random killed, stopped, without space on its disk, and with a wall clock that jumps, for as long as
//! `CHAOS_SECONDS` says. On a Redis whose packets are dropped: `tests/redis/dropped.rs`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::books::*;
use crate::support::*;

/// The shortest of which each gap is judged.
const INTERVAL: Duration = Duration::from_millis(100);
const HOUR: i64 = 3_600_000;
/// A stop that is longer may outlast a lease that was about to be renewed.
const SHORT_STOP: Duration = Duration::from_secs(12);

/// How long: `CHAOS_SECONDS`, or half a minute.
pub fn time_of_chaos() -> Duration {
    let given = std::env::var("CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(30))
}

/// The seed of this run's chances: `PACED_TEST_SEED`, or another one each time.
pub fn seed_of_chaos() -> u64 {
    let given = std::env::var("PACED_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| fastrand::u64(..1_000_000))
}

/// From a tenth of a second to twenty, short ones as likely as long ones; in a short test none takes up all of it.
pub fn some_time(dice: &mut fastrand::Rng) -> Duration {
    let most = (time_of_chaos().as_secs_f64() / 6.0).clamp(1.0, 20.0);
    Duration::from_secs_f64(0.1 * (most / 0.1).powf(dice.f64()))
}

/// What is done to those who work.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Kill,
    Stop,
    Fill,
    Jump,
}

/// Troubles in an order of chance, so that each comes up also in a short test.
#[derive(Debug, Default)]
pub struct Deck(Vec<Trouble>);

impl Deck {
    pub fn deal(&mut self, dice: &mut fastrand::Rng) -> Trouble {
        use Trouble::{Fill, Jump, Kill, Stop};
        if self.0.is_empty() {
            self.0.extend([Kill, Kill, Kill, Stop, Fill, Jump]);
            dice.shuffle(&mut self.0);
        }
        self.0.pop().expect("it was filled")
    }
}

/// What was done to it.
#[derive(Debug, Default)]
struct Done {
    kills: usize,
    stops: usize,
    full: usize,
    jumps: usize,
    looks: usize,
    /// Download leases that may have been lost.
    in_flight: usize,
}

struct Chaos<'a> {
    disk: &'a SmallDisk,
    site: PathBuf,
    clock: PathBuf,
    shop: &'a Shop,
    dice: fastrand::Rng,
    running: Running,
    done: Done,
}

fn start(disk: &SmallDisk, site: &Path, clock: &Path) -> Running {
    crawl(disk.data(), site).movable_clock(clock).start()
}

impl Chaos<'_> {
    /// Conservation (I14); how many downloads are under a lease.
    fn look(&mut self) -> usize {
        self.done.looks += 1;
        let leased = status(self.disk.data())["download"]["leased"].as_u64();
        leased.and_then(|leased| usize::try_from(leased).ok()).expect("a number")
    }

    fn kill(&mut self) {
        self.running.kill();
        self.done.kills += 1;
    }

    /// Once it is dead, what it had in flight is known.
    fn count_lost(&mut self) {
        eventually("its end", || self.running.ended().then_some(()));
        self.done.in_flight += self.look();
    }

    /// The next one; the one before was killed, or found no space at its start.
    fn start_over(&mut self) {
        let next = start(self.disk, &self.site, &self.clock);
        let run = std::mem::replace(&mut self.running, next).finish();
        let found_no_space = run.code == Some(1) && run.stderr.contains("no space left");
        assert!(run.code.is_none() || found_no_space, "{:?}\n{}", run.code, run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }

    fn kill_and_restart(&mut self) {
        self.kill();
        self.count_lost();
        self.start_over();
        self.wait_for_a_request();
    }

    fn stop(&mut self) {
        let time = some_time(&mut self.dice);
        if time > SHORT_STOP {
            self.done.in_flight += self.look();
        }
        self.done.stops += 1;
        self.running.signal(Signal::STOP);
        std::thread::sleep(time);
        self.running.signal(Signal::CONT);
    }

    fn fill(&mut self) {
        self.done.full += 1;
        self.disk.fill(self.dice.u64(0..200));
        std::thread::sleep(some_time(&mut self.dice));
        if self.dice.u32(0..3) == 0 {
            // Nobody can look while there is no space at all.
            self.kill();
            self.disk.free();
            self.count_lost();
            self.disk.fill(0);
            self.start_over();
            std::thread::sleep(Duration::from_millis(500));
            if !self.running.ended() {
                self.kill();
            }
            self.disk.free();
            self.count_lost();
            self.start_over();
        }
        self.disk.free();
        self.wait_for_a_request();
    }

    fn jump(&mut self) {
        self.done.jumps += 1;
        let shift = if self.dice.u32(0..3) == 0 { 0 } else { self.dice.i64(-HOUR..=HOUR) };
        moved_clock::shift(&self.clock, shift);
    }

    /// Killed again and again before its first request, the first page would be kept back as one that kills.
    fn wait_for_a_request(&mut self) {
        let asked = self.shop.arrivals().len();
        let (shop, running) = (self.shop, &mut self.running);
        eventually("a request", || (shop.arrivals().len() > asked || running.ended()).then_some(()));
    }
}

/// Does all of it, in turn, until the time is over or nothing is left to crawl.
fn unleash(chaos: &mut Chaos<'_>) {
    let (began, time, mut deck) = (Instant::now(), time_of_chaos(), Deck::default());
    while began.elapsed() < time && !chaos.running.ended() {
        match deck.deal(&mut chaos.dice) {
            Trouble::Kill => chaos.kill_and_restart(),
            Trouble::Stop => chaos.stop(),
            Trouble::Fill => chaos.fill(),
            Trouble::Jump => chaos.jump(),
        }
        chaos.look();
        std::thread::sleep(Duration::from_millis(chaos.dice.u64(300..3_000)));
    }
}

/// A page that was lost often is kept back, in the worst case for minutes.
fn to_the_end(running: &mut Running) {
    within(time_of_chaos() + Duration::from_mins(15), "its end", || running.ended().then_some(()));
}

#[test]
fn l4_l7_i14_a_crawl_killed_stopped_out_of_space_and_in_a_jumping_time_loses_nothing() {
    with_mounts(
        "chaos::l4_l7_i14_a_crawl_killed_stopped_out_of_space_and_in_a_jumping_time_loses_nothing",
        || {
            let seed = seed_of_chaos();
            tell(&format!("PACED_TEST_SEED={seed}"));
            // It can't come to its end before the chaos does.
            let pages = time_of_chaos().as_millis() / INTERVAL.as_millis();
            let pages = u32::try_from(pages).expect("hours at most");
            // Fewer listings in a row than a crawl goes deep.
            let plan = ShopPlan::new("chaos", pages).per_page((pages / 40).max(100));
            let plan =
                plan.page_size(4_000).latency(Latency::between(Duration::ZERO, Duration::from_millis(300)));
            let (folder, disk, shops) =
                (TempData::new(), SmallDisk::new(2 << 20), serve([plan]).expect("a shop"));
            let shop = &shops.all()[0];
            let site = folder.write("chaos.toml", &shop.site_toml(INTERVAL));
            let clock = folder.file("clock");
            let running = start(&disk, &site, &clock);
            let (dice, done) = (fastrand::Rng::with_seed(seed), Done::default());
            let mut chaos = Chaos { disk: &disk, site, clock, shop, dice, running, done };
            eventually("a queue", || (shop.arrivals().len() > 25).then_some(()));
            unleash(&mut chaos);
            to_the_end(&mut chaos.running);
            let (done, run) = (chaos.done, chaos.running.finish().expect_code(0));
            let repeats = repeats(&shop.arrivals());
            tell(&format!("{done:?}, {} requests, {repeats} repeated", shop.arrivals().len()));

            let data = disk.data();
            let status = status(data);
            assert_eq!(
                (&status["state"], &status["run"], &status["dead"]),
                (&"finished".into(), &1.into(), &0.into())
            );
            assert!(repeats <= done.in_flight, "seed {seed}: {repeats} repeated, {done:?}\n{}", run.stderr);
            assert_all_items(data, shop);
            assert_pages_readable(data);
            assert_pace(data, shop, INTERVAL);
        },
    );
}
