//! Many processes on one Redis: together they keep one pace, however many there are, also after an outage.

use std::time::{Duration, Instant};

use paced::internals::task::{Priority, Put};

use crate::alone;
use crate::ground::*;
use crate::machine::Machine;
use crate::many_sites::{full_queue, site_toml};
use crate::proof::*;
use crate::support::*;

const INTERVAL: Duration = ms(200);

/// Shops that answer within 3 s.
fn shops(count: u64, products: u32) -> Shops {
    let plan = |number| {
        let plan = ShopPlan::new(&format!("s{number:02}"), products).per_page(products).page_size(4_000);
        plan.seed(number).latency(Latency::between(ms(0), ms(3_000)))
    };
    serve((1..=count).map(plan).collect::<Vec<_>>()).expect("shops")
}

fn worker(ground: &Ground, name: &str) -> Paced {
    ground.verb("work").arg("--name").arg(name).arg("--until-empty")
}

fn workers(ground: &Ground, count: usize) -> Vec<Running> {
    (1..=count).map(|number| worker(ground, &format!("w{number}")).start()).collect()
}

/// Batches of steps that the server counted.
fn calls(shared: &Shared) -> u64 {
    shared.server().batches()
}

fn a_fleet_of(processes: usize, sites: u64, products: u32, most_calls: f64) -> Result<(), String> {
    let Some(shared) = Shared::redis() else { return Ok(()) };
    let shops = shops(sites, products);
    let ground = Ground::of_texts_on(&shared, shops.all().iter().map(|shop| site_toml(shop, INTERVAL)));
    ground.verb_on_all("seed").run().expect_code(0);
    let (machine, before) = (Machine::watch(), calls(&shared));
    for worker in workers(&ground, processes) {
        worker.finish().expect_code(0);
    }
    let (stalls, calls) = (machine.stalls(), calls(&shared) - before);
    let pages: u32 = shops.all().iter().map(|shop| shop.plan.requests()).sum();
    assert_all_audited(&ground, &shops);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let a_page = calls as f64 / f64::from(pages);
    bound(a_page <= most_calls, format_args!("{processes} processes: {a_page:.2} calls a page"))?;
    kept(&measure_shops(&shops, &stalls, INTERVAL))?;
    used(0.97, &shops.all().iter().map(full_queue).collect::<Vec<_>>(), INTERVAL)
}

#[test]
fn l5_l7_four_processes_on_one_redis_use_the_starts_of_fifty_sites_and_none_is_early() {
    let _turn = alone();
    in_three_tries(|| a_fleet_of(4, 50, 60, 1.0));
}

#[test]
fn l5_v18_twice_as_many_processes_change_neither() {
    let _turn = alone();
    in_three_tries(|| a_fleet_of(8, 50, 40, 1.6));
}

/// One busy process: what it asks of Redis for a page.
fn calls_of_one_process(role: &str) -> Option<f64> {
    let shared = Shared::redis()?;
    let shops = shops(60, 60);
    let ground = Ground::of_texts_on(&shared, shops.all().iter().map(|shop| site_toml(shop, INTERVAL)));
    ground.verb_on_all("seed").run().expect_code(0);
    if role == "download" {
        // The links are put before, as nobody parses.
        for shop in shops.all() {
            let put = |n| {
                Put::request(shop.url(&format!("/product/{n}")).parse().expect("a URL"), Priority::OPERATOR)
            };
            let puts = (1..=60).map(put).collect();
            wait(ground.frontier().put(&shop.plan.name, puts)).expect("put");
        }
    }
    let mut worker = ground.verb("work").arg("--role").arg(role).start();
    let arrived = || shops.all().iter().map(|shop| shop.arrivals().len()).sum::<usize>();
    eventually("a process in full swing", || (arrived() > 1_000).then_some(()));
    let (pages, before, began) = (arrived(), calls(&shared), Instant::now());
    std::thread::sleep(Duration::from_secs(4));
    let (pages, calls) = (arrived() - pages, calls(&shared) - before);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let (a_page, a_second) = (calls as f64 / pages as f64, pages as f64 / began.elapsed().as_secs_f64());
    println!("{role}: {a_page:.2} calls a page at {a_second:.0} pages a second");
    assert!(!worker.ended());
    worker.terminate();
    worker.finish().expect_code(0);
    Some(a_page)
}

#[test]
fn a_busy_process_asks_redis_once_for_two_pages() {
    let _turn = alone();
    for role in ["download", "both"] {
        in_three_tries(|| {
            let Some(a_page) = calls_of_one_process(role) else { return Ok(()) };
            bound(a_page <= 0.5, format_args!("{role}: {a_page:.2} calls a page"))
        });
    }
}

#[test]
fn v17_a_hundred_thousand_tasks_and_four_processes_at_once_are_one_start_an_interval() {
    let _turn = alone();
    in_three_tries(four_processes_on_a_hundred_thousand_tasks);
}

fn four_processes_on_a_hundred_thousand_tasks() -> Result<(), String> {
    let Some(shared) = Shared::redis() else { return Ok(()) };
    let (sites, each) = (20, 5_000);
    let served: Vec<TestSite> = (0..sites).map(|_| star(each).serve()).collect();
    let names: Vec<String> = (0..sites).map(|number| format!("s{number:02}")).collect();
    let file = |(name, site): (&String, _)| SiteFile::of(name, site).interval(INTERVAL).pace("parallel = 16");
    let ground = Ground::on(&shared, names.iter().zip(&served).map(file));
    ground.verb_on_all("seed").run().expect_code(0);
    for (name, site) in names.iter().zip(&served) {
        let put = |path: String| Put::request(site.url(&path).parse().expect("a URL"), Priority::OPERATOR);
        let puts: Vec<Put> = paths(each).map(put).collect();
        for portion in puts.chunks(1_000) {
            wait(ground.frontier().put(name, portion.to_vec())).expect("put");
        }
    }
    let machine = Machine::watch();
    let fleet = workers(&ground, 4);
    eventually("the first start", || served.iter().any(|site| !site.arrivals().is_empty()).then_some(()));
    std::thread::sleep(Duration::from_secs(8));
    let ends = fleet.into_iter().map(|worker| {
        worker.terminate();
        worker.finish()
    });
    assert!(ends.map(|end| end.code).all(|code| code == Some(0)), "they drain");
    let stalls = machine.stalls();
    let audit = ground.audit();
    let measured = names.iter().zip(&served).map(|(name, site)| {
        assert_audited(&audit[name], site.arrivals().len());
        measure(name, &site.arrivals(), &site.stalls(), &stalls, INTERVAL)
    });
    kept(&measured.collect::<Vec<_>>())?;
    // From the third second on, hardly a start is left unused.
    let first = served.iter().flat_map(TestSite::arrivals).map(|arrival| arrival.at).min().expect("arrivals");
    let (from, to) = (first + Duration::from_secs(3), first + Duration::from_secs(7));
    let starts = |site: &TestSite| -> Vec<Duration> {
        site.arrivals().iter().map(|arrival| arrival.at).filter(|at| (from..to).contains(at)).collect()
    };
    let starts: Vec<Vec<Duration>> = served.iter().map(starts).collect();
    bound(starts.iter().all(|starts| starts.len() > 1), "a site had no starts for four seconds")?;
    used(0.95, &starts, INTERVAL)
}
