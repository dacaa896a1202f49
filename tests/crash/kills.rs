//! `kill -9`: at random moments, at the start, in the middle of a line and of a record.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paced::internals::clock::since_boot;
use paced::internals::manners::grace;
use serde_json::Value;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(50);
/// More requests than are needed at a time: latency / interval and some to spare.
const WORKERS: &str = "12";

/// Pages that wait at a kill, at least.
const QUEUE: u64 = 20;
/// A page that was lost in three kills is kept back for a minute, in four for ten: longer than other tests have patience.
const KEPT_BACK: Duration = Duration::from_mins(12);

/// A shop of about 400 requests that is slow now and then, flaky, and redirects its products.
fn shop_plan() -> ShopPlan {
    ShopPlan::new("crash", 200)
        .latency(Latency::between(Duration::ZERO, Duration::from_millis(300)))
        .moved(Moved::Products)
        .fault(29, FaultKind::Unavailable { retry_after: None })
        .fault(37, FaultKind::Reset)
}

fn open(plan: ShopPlan, data: &TempData) -> (Shops, PathBuf) {
    let shops = serve([plan]).expect("a shop");
    let site = data.write("crash.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

/// The seed of this run's chances: `PACED_TEST_SEED`, or another one each time.
fn seed() -> u64 {
    let given = std::env::var("PACED_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| fastrand::u64(..1_000_000))
}

#[test]
fn l4_a_crawl_killed_twenty_times_ends_like_an_undisturbed_one() {
    let seed = seed();
    in_three_tries(|| killed_twenty_times(seed));
}

fn killed_twenty_times(seed: u64) -> Result<(), String> {
    let (calm_data, data) = (TempData::new(), TempData::new());
    let (calm_shops, calm_site) = open(shop_plan(), &calm_data);
    let (shops, site) = open(shop_plan(), &data);
    let (calm, shop) = (&calm_shops.all()[0], &shops.all()[0]);
    let undisturbed = crawl(&calm_data, &calm_site).start();
    let killed = kill_again_and_again(shop, &data, &site, &mut fastrand::Rng::with_seed(seed), 20);
    let last = to_the_end(crawl(&data, &site).start());
    undisturbed.finish().expect_code(0);
    tell(&format!("PACED_TEST_SEED={seed}: {killed}"));

    assert_all_items(&data, shop);
    assert_eq!(items(&data, shop), items(&calm_data, calm), "seed {seed}\n{}", last.stderr);
    let (answers, calm_answers) = (answered(&shop.arrivals()), answered(&calm.arrivals()));
    let paths = |answers: &std::collections::BTreeMap<String, usize>| -> Vec<String> {
        answers.keys().cloned().collect()
    };
    assert_eq!(paths(&answers), paths(&calm_answers));
    assert_same_books(&status(&data), &status(&calm_data));
    let repeats = repeats(&shop.arrivals());
    tell(&format!("  {repeats} answers asked for again, {} in flight at the kills", killed.in_flight));
    assert!(repeats <= killed.in_flight, "{repeats} repeats, {killed}");
    assert_pace(&data, shop, INTERVAL);
    let records = assert_pages_readable(&data);
    tell(&format!("  {records} records of {} requests", shop.arrivals().len()));
    killed.goes_on()
}

/// However long the pages that are left are kept back.
fn to_the_end(mut last: Running) -> Run {
    within(KEPT_BACK, "its end", || last.ended().then_some(()));
    last.finish().expect_code(0)
}

/// What kills saw.
struct Killed {
    /// Download leases held at the kills, in all.
    in_flight: usize,
    /// From each start to its first request, as the server saw it; sorted.
    restarts: Vec<Duration>,
}

impl std::fmt::Display for Killed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |at: usize| self.restarts[at].as_millis();
        let count = self.restarts.len();
        write!(
            f,
            "{count} kills, {} in flight; first request after a start: p50 {} ms, max {} ms",
            self.in_flight,
            ms(count / 2),
            ms(count - 1)
        )
    }
}

impl Killed {
    /// Half of the restarts went on within 2 s: one that met a back-off of all that is left may take longer.
    fn goes_on(&self) -> Result<(), String> {
        let median = self.restarts[self.restarts.len() / 2];
        bound(median < Duration::from_secs(2), self)
    }
}

fn kill_again_and_again(
    shop: &Shop,
    data: &TempData,
    site: &Path,
    chance: &mut fastrand::Rng,
    times: usize,
) -> Killed {
    let mut killed = Killed { in_flight: 0, restarts: Vec::new() };
    let mut left = 0;
    for _ in 0..times {
        let started = since_boot();
        let mut running = crawl(data, site).arg("--workers").arg(WORKERS).start();
        let waited = within(KEPT_BACK, "a request after the start", || {
            assert!(!running.ended(), "it ended before it was killed:\n{}", running.stderr());
            let arrivals = shop.arrivals();
            let first = arrivals.iter().find(|arrival| arrival.at > started)?;
            Some(first.at.saturating_sub(started))
        });
        killed.restarts.push(waited);
        assert_late_enough(&shop.arrivals(), started + waited);
        // A page that leads to the others must not be in flight at each kill: it would be kept back, for longer each time.
        within(KEPT_BACK, "a queue", || {
            assert!(!running.ended(), "no queue is left:\n{}", running.stderr());
            (waiting(&status(data)) >= Some(QUEUE)).then_some(())
        });
        std::thread::sleep(Duration::from_millis(chance.u64(0..=400)));
        running.kill();
        let run = running.finish();
        assert_eq!(lost_downloads(&run), left, "what the last kill left is told of:\n{}", run.stderr);
        if waited > Duration::from_secs(2) {
            tell(&format!("  {:?} to the first request:\n{}", waited, run.stderr));
        }
        assert_eq!(run.code, None, "it ended before it was killed:\n{}", run.stderr);
        left = in_flight(&status(data));
        killed.in_flight += left;
    }
    killed.restarts.sort();
    killed
}

/// The first request of a start keeps its distance to the last one of the process that was killed.
#[track_caller]
fn assert_late_enough(arrivals: &[Arrival], first: Duration) {
    let before = arrivals.iter().map(|arrival| arrival.at).filter(|at| *at < first).max();
    if let Some(before) = before {
        let gap = first.saturating_sub(before);
        assert!(
            gap + grace(INTERVAL) >= INTERVAL,
            "{gap:?} between the last request before a kill and the first after"
        );
    }
}

/// Downloads that wait; none where the site isn't there yet.
fn waiting(status: &Value) -> Option<u64> {
    status["download"]["waiting"].as_u64()
}

/// Lines of the log on downloads whose worker is gone.
fn lost_downloads(run: &Run) -> usize {
    run.stderr.lines().filter(|line| line.contains("lease lost") && line.contains("stage=download")).count()
}

/// Downloads under a lease: what was asked for, or answered and not yet settled.
fn in_flight(status: &Value) -> usize {
    status["download"]["leased"].as_u64().and_then(|leased| usize::try_from(leased).ok()).expect("a number")
}

/// As `in_flight`, where there may be no frontier yet, or no site in it.
fn leases_so_far(data: &TempData) -> usize {
    let run = Paced::new(["status", "--json"]).data(data).run();
    if run.code == Some(1) {
        assert!(run.stderr.contains("there is no frontier yet"), "{run:?}");
        return 0;
    }
    json_lines_of(&run.expect_code(0).stdout).first().map_or(0, in_flight)
}

#[track_caller]
fn assert_same_books(one: &Value, other: &Value) {
    for stage in ["download", "parse"] {
        for count in ["created", "done", "dead", "dropped", "redirected", "waiting", "delayed", "leased"] {
            assert_eq!(one[stage][count], other[stage][count], "{count} of {stage}: {one}\n{other}");
        }
    }
    assert_eq!((&one["state"], &one["run"]), (&"finished".into(), &1.into()), "{one}");
}

#[test]
fn l4_a_crawl_killed_while_it_starts_loses_nothing() {
    let data = TempData::new();
    let plan = ShopPlan::new("crash", 15).latency(Latency::fixed(Duration::from_millis(40)));
    let (shops, site) = open(plan, &data);
    let shop = &shops.all()[0];
    let chance = &mut fastrand::Rng::with_seed(seed());
    // From nothing at all to a frontier, a run and its first request. The first page alone is there to be lost: lost more
    // often, it is kept back for minutes, as a page is that may have killed its process.
    let mut caught = 0;
    for round in 0..30 {
        let running = crawl(&data, &site).start();
        std::thread::sleep(Duration::from_millis(chance.u64(0..=4 * round)));
        running.kill();
        running.finish();
        caught += usize::from(leases_so_far(&data) > 0);
        if caught == 2 {
            break;
        }
    }
    crawl(&data, &site).run().expect_code(0);
    assert_all_items(&data, shop);
    assert_pages_readable(&data);
    assert_eq!(status(&data)["state"], "finished");
}

#[test]
fn l4_torn_ends_of_pages_and_items_are_cut_at_the_next_start() {
    let data = TempData::new();
    let plan = ShopPlan::new("crash", 30).latency(Latency::fixed(Duration::from_millis(40)));
    let (shops, site) = open(plan, &data);
    let shop = &shops.all()[0];
    let running = crawl(&data, &site).start();
    let items_file = data.file("items/crash.jsonl");
    eventually("items", || {
        let text = std::fs::read_to_string(&items_file).unwrap_or_default();
        (text.lines().count() > 3).then_some(())
    });
    running.kill();
    running.finish();
    let left_open: Vec<PathBuf> = segments(&data, ".warc.gz.open");
    assert_eq!(left_open.len(), 1, "the segment of the killed process");
    let segment = left_open[0].with_extension("");
    append(&segment, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    append(&items_file, b"{\"site\":\"crash\",\"pa");

    let log = crawl(&data, &site).run().expect_code(0).stderr;
    for cut in ["warc.gz: its writer was stopped", "crash.jsonl: its writer was stopped"] {
        assert!(log.contains(cut), "no `{cut}` in\n{log}");
    }
    assert_all_items(&data, shop);
    assert_pages_readable(&data);
}

fn segments(data: &TempData, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data.file("pages")).expect("the folder of pages");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

fn append(file: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(file).expect("a file that is there");
    file.write_all(bytes).expect("room on the disk");
}
