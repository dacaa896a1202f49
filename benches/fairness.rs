//! How evenly tenants wait that put very different numbers of pages into one site: the standard deviation, over tenants, of the
//! mean time from a put to the request of each one's first ten pages.
//!
//! `cargo bench --bench fairness`, with `SEEDS` (5) and `SECONDS` (60, of the steady flood) in the environment. Six tenants put
//! 300, 20, 500, 200, 1000 and 120 pages at once, in an order of chance, through `paced put --tenant`; one `paced work --workers 16`
//! fetches them without a pace, from a shop that takes 10 ms. Without rules, then with 50 pages a minute before a tenant goes to
//! a lane of a sixth of the weight. Then five tenants put 20 pages a second each, and one puts 400.

#[path = "../tests/crawl/ground.rs"]
#[allow(clippy::wildcard_imports, reason = "a file of the tests, where clippy lets it pass")]
mod ground;
#[path = "measure/mod.rs"]
mod measure;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ground::{Ground, Shared, SiteFile};
use measure::{number, table};
use support::{Latency, Reply, TestSite, within};

const TENANTS: [u32; 6] = [300, 20, 500, 200, 1_000, 120];
/// So many of a tenant's pages are looked at.
const FIRST: usize = 10;
const RULES: &str = "[lanes]\ngeneral = 6\nslow = 1\n\
    [[fairness]]\nlane = \"slow\"\nthreshold = 50\nper = \"1m\"\n";

fn main() {
    let frontiers: Vec<(&str, Shared)> = [("SQLite", Some(Shared::default())), ("Redis", Shared::redis())]
        .into_iter()
        .filter_map(|(name, shared)| Some((name, shared?)))
        .collect();
    let mut rows = Vec::new();
    for (name, _) in &frontiers {
        let once = |rules| {
            let seeds = 0..number("SEEDS", 5);
            let spreads = seeds.map(|seed| spread(&at_once(&shared(name), rules, seed))).collect();
            middle(spreads)
        };
        rows.push(compared(name, "at once", once(false), once(true)));
        let seconds = number("SECONDS", 60);
        let steady = |rules| spread(&steadily(&shared(name), rules, seconds));
        rows.push(compared(name, "steadily", steady(false), steady(true)));
    }
    table(&["frontier", "put", "without rules, s", "with rules, s", "share"], rows);
}

/// A frontier of its own for each run.
fn shared(name: &str) -> Shared {
    if name == "SQLite" { Shared::default() } else { Shared::redis().expect("it was there") }
}

fn row(cells: [&str; 5]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn compared(name: &str, how: &str, without: f64, with: f64) -> Vec<String> {
    row([name, how, &format!("{without:.3}"), &format!("{with:.3}"), &format!("{:.2}", with / without)])
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "a few")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of the tenants' mean waits.
fn spread(waits: &[f64]) -> f64 {
    let mean = mean(waits);
    let squares: Vec<f64> = waits.iter().map(|wait| (wait - mean).powi(2)).collect();
    self::mean(&squares).sqrt()
}

/// A site without a pace whose pages a worker of sixteen slots fetches, as long as it lives.
struct Yard {
    site: TestSite,
    ground: Ground,
    rules: Option<String>,
    began: Instant,
}

impl Yard {
    fn open(shared: &Shared, rules: bool) -> Self {
        let page = |_: &support::Request| Some(Reply::html("<h1>page</h1>"));
        let site =
            TestSite::builder().latency(Latency::fixed(Duration::from_millis(10))).faults(page).serve();
        let began = Instant::now();
        let file = SiteFile::of("shop", &site).pace("parallel = 16\nrobots = \"ignore\"");
        let ground = Ground::on(shared, [file]);
        let rules = rules.then(|| ground.data.write("paced.toml", RULES).display().to_string());
        let yard = Self { site, ground, rules, began };
        yard.configured(yard.ground.verb_on_all("seed")).run().expect_code(0);
        yard
    }

    fn configured(&self, verb: support::Paced) -> support::Paced {
        self.rules.iter().fold(verb, |verb, file| verb.args(["--config", file]))
    }

    fn worker(&self) -> support::Running {
        self.configured(self.ground.verb("work")).args(["--workers", "16"]).start()
    }

    fn put(&self, tenant: usize, pages: std::ops::Range<u32>) {
        let urls: String = pages.map(|page| self.site.url(&format!("/t{tenant}/{page}")) + "\n").collect();
        self.ground
            .verb("put")
            .args(["shop", "-", "--priority", "user", "--tenant"])
            .arg(format!("t{tenant}"))
            .stdin(&urls)
            .run()
            .expect_code(0);
    }

    fn came(&self, pages: usize) {
        within(Duration::from_mins(10), "all pages", || {
            (self.site.arrivals().iter().filter(|arrival| arrival.path.starts_with("/t")).count() >= pages)
                .then_some(())
        });
    }

    /// Of each tenant, the mean wait of its first pages, in seconds. `put` tells when a page was put.
    fn waits(&self, put: impl Fn(usize, u32) -> Duration) -> Vec<f64> {
        let mut waits: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for arrival in self.site.arrivals() {
            let Some((tenant, page)) = arrival.path.strip_prefix("/t").and_then(|rest| rest.split_once('/'))
            else {
                continue;
            };
            let (tenant, page) = (tenant.parse().expect("a number"), page.parse().expect("a number"));
            let wait = arrival.at.saturating_sub(put(tenant, page)).as_secs_f64();
            waits.entry(tenant).or_default().push(wait);
        }
        waits.values().map(|waits| mean(&waits[..waits.len().min(FIRST)])).collect()
    }
}

/// All pages of a tenant are put at once, one tenant after the other; then the worker begins.
fn at_once(shared: &Shared, rules: bool, seed: u64) -> Vec<f64> {
    let yard = Yard::open(shared, rules);
    let mut order: Vec<usize> = (0..TENANTS.len()).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let mut puts = BTreeMap::new();
    for tenant in order {
        yard.put(tenant, 0..TENANTS[tenant]);
        puts.insert(tenant, yard.began.elapsed());
    }
    let worker = yard.worker();
    yard.came(TENANTS.iter().sum::<u32>() as usize);
    worker.terminate();
    worker.finish().expect_code(0);
    yard.waits(|tenant, _| puts[&tenant])
}

/// For so many seconds five tenants put 20 pages each second, and one puts 400.
fn steadily(shared: &Shared, rules: bool, seconds: u64) -> Vec<f64> {
    let yard = Yard::open(shared, rules);
    let worker = yard.worker();
    let (mut puts, mut all) = (BTreeMap::new(), 0);
    for second in 0..u32::try_from(seconds).expect("minutes") {
        let due = Instant::now() + Duration::from_secs(1);
        for tenant in 0..6 {
            let many = if tenant == 0 { 400 } else { 20 };
            puts.insert((tenant, second), (yard.began.elapsed(), many));
            yard.put(tenant, second * many..(second + 1) * many);
            all += many as usize;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    yard.came(all);
    worker.terminate();
    worker.finish().expect_code(0);
    yard.waits(|tenant, page| {
        let many = if tenant == 0 { 400 } else { 20 };
        puts[&(tenant, page / many)].0
    })
}
