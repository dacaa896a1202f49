//! Many shops, slow and fast, at once: no start is early, and hardly one is wasted.

use std::time::Duration;

use crate::alone;
use crate::ground::*;
use crate::machine::Machine;
use crate::proof::*;
use crate::support::*;

const INTERVAL: Duration = ms(200);
const PRODUCTS: u32 = 80;

/// Shops with 50 to 1500 ms of response time, with and without `robots.txt`, some of them moved.
fn plans(shops: u64, products: u32) -> Vec<ShopPlan> {
    let plan = |number: u64| {
        let moved = number.is_multiple_of(5);
        let products = if moved { products / 2 } else { products };
        let plan = ShopPlan::new(&format!("s{number:02}"), products)
            .per_page(products)
            .seed(number)
            .page_size(4_000);
        let plan = plan.latency(Latency::between(ms(50), ms(1_500)));
        let plan =
            if number.is_multiple_of(2) { plan.robots("User-agent: *\nDisallow: /cart\n") } else { plan };
        if moved { plan.moved(Moved::Products) } else { plan }
    };
    (1..=shops).map(plan).collect()
}

/// The shop's site file with more requests in flight than its slowness asks for.
pub fn site_toml(shop: &Shop, interval: Duration) -> (String, String) {
    let text = shop.site_toml(interval);
    let (before, rest) = text.split_once("parallel = ").expect("it says how many in flight");
    let (_, after) = rest.split_once('\n').expect("a line");
    (shop.plan.name.clone(), format!("{before}parallel = 16\n{after}"))
}

/// The starts while a shop's queue was full: from the first product's on, as many as its listing links to.
pub fn full_queue(shop: &Shop) -> Vec<Duration> {
    let arrivals = shop.arrivals();
    let products = arrivals.iter().skip_while(|arrival| !arrival.path.starts_with("/p"));
    products.take(shop.plan.products as usize).map(|arrival| arrival.at).collect()
}

/// Crawls the shops, with `parallel` raised, in one process or side by side in several.
fn crawl_shops(shops: &Shops, interval: Duration, processes: usize) -> (Ground, Vec<Stall>, Vec<Run>) {
    let ground = Ground::of_texts(shops.all().iter().map(|shop| site_toml(shop, interval)));
    let machine = Machine::watch();
    let crawls: Vec<Running> = (0..processes).map(|_| ground.crawl().start()).collect();
    let runs = crawls.into_iter().map(|crawl| crawl.finish().expect_code(0)).collect();
    (ground, machine.stalls(), runs)
}

#[test]
fn l5_l7_twenty_slow_sites_use_their_starts_and_none_is_early() {
    let _turn = alone();
    in_three_tries(|| {
        let shops = serve(plans(20, PRODUCTS)).expect("shops");
        let (ground, stalls, _) = crawl_shops(&shops, INTERVAL, 1);
        assert_all_audited(&ground, &shops);
        let (audit, measured) = (ground.audit(), measure_shops(&shops, &stalls, INTERVAL));
        measured.iter().try_for_each(|measured| same(&audit[&measured.name], measured))?;
        kept(&measured)?;
        used(0.97, &shops.all().iter().map(full_queue).collect::<Vec<_>>(), INTERVAL)
    });
}

#[test]
fn l7_v17_two_processes_on_the_same_sites_keep_one_pace_and_fetch_nothing_twice() {
    let _turn = alone();
    in_three_tries(|| {
        let shops = serve(plans(10, 30)).expect("shops");
        let (ground, stalls, ends) = crawl_shops(&shops, INTERVAL, 2);
        assert_all_audited(&ground, &shops);
        for shop in shops.all() {
            assert_eq!(ground.items(&shop.plan.name).len(), shop.plan.products as usize);
        }
        assert!(ends.iter().all(|end| end.stderr.contains("pulse site=s01")), "both took part");
        kept(&measure_shops(&shops, &stalls, INTERVAL))
    });
}

#[test]
fn v19_a_slow_site_and_a_fast_one_do_not_disturb_each_other() {
    let _turn = alone();
    let plan = |name, latency| {
        ShopPlan::new(name, 40).per_page(40).page_size(4_000).latency(Latency::fixed(latency))
    };
    in_three_tries(|| {
        let shops = serve([plan("slow", ms(2_500)), plan("fast", ms(5))]).expect("shops");
        let (ground, stalls, _) = crawl_shops(&shops, INTERVAL, 1);
        assert_all_audited(&ground, &shops);
        kept(&measure_shops(&shops, &stalls, INTERVAL))?;
        shops.all().iter().try_for_each(|shop| used(0.95, &[full_queue(shop)], INTERVAL))?;
        let end = |shop: &Shop| shop.arrivals().iter().map(|arrival| arrival.at).max();
        let [slow, fast] = [0, 1].map(|n| end(&shops.all()[n]));
        bound(fast < slow, "the fast one waited for the slow one")
    });
}

#[test]
fn l5_v19_nineteen_small_sites_end_on_time_beside_one_of_twenty_thousand_pages() {
    let _turn = alone();
    let plan = |name: &str, products| {
        ShopPlan::new(name, products).per_page(5_000).page_size(4_000).latency(Latency::fixed(ms(50)))
    };
    in_three_tries(|| {
        let small = (1..20).map(|number| plan(&format!("s{number:02}"), 50));
        let shops = serve([plan("huge", 20_000)].into_iter().chain(small)).expect("shops");
        let (huge, small) = shops.all().split_first().expect("twenty shops");
        let ground = Ground::of_texts(shops.all().iter().map(|shop| site_toml(shop, ms(50))));
        let crawl = ground.crawl().start();
        eventually("the small ones' last pages", || {
            let is_done = |shop: &Shop| shop.arrivals().len() >= shop.plan.requests() as usize;
            small.iter().all(is_done).then_some(())
        });
        crawl.kill();
        crawl.finish();
        let starts: Vec<_> = small.iter().map(full_queue).collect();
        used(0.97, &starts, ms(50))?;
        used(0.97, &[full_queue(huge)], ms(50))
    });
}

#[test]
fn v18_more_workers_do_not_raise_the_load_on_a_site() {
    let _turn = alone();
    let plan = ShopPlan::new("shop", 30).per_page(30).page_size(4_000).latency(Latency::fixed(ms(700)));
    for workers in [4, 60] {
        in_three_tries(|| {
            let shops = serve([plan.clone()]).expect("a shop");
            let shop = &shops.all()[0];
            let ground = Ground::of_texts([site_toml(shop, ms(150))]);
            let machine = Machine::watch();
            ground.crawl().arg("--workers").arg(workers.to_string()).run().expect_code(0);
            let stalls = machine.stalls();
            assert_all_audited(&ground, &shops);
            assert!(most_in_flight(&shop.arrivals()) <= workers.min(16));
            kept([&measure_shop(shop, &stalls, ms(150))])
        });
    }
}

#[test]
fn v15_a_site_that_takes_three_seconds_is_asked_each_second_and_a_narrow_one_is_told_of() {
    let _turn = alone();
    let plan = |name, products| {
        ShopPlan::new(name, products).per_page(products).page_size(4_000).latency(Latency::fixed(ms(3_000)))
    };
    let interval = ms(1_000);
    in_three_tries(|| {
        let shops = serve([plan("slow", 24), plan("narrow", 16)]).expect("shops");
        let [slow, narrow] = [0, 1].map(|n| site_toml(&shops.all()[n], interval));
        let narrow = (narrow.0, narrow.1.replace("parallel = 16", "parallel = 2"));
        let ground = Ground::of_texts([slow, narrow]);
        let machine = Machine::watch();
        let run = ground.crawl().run().expect_code(0);
        let stalls = machine.stalls();
        assert_all_audited(&ground, &shops);
        let [slow, narrow] = [0, 1].map(|n| full_queue(&shops.all()[n]));
        let span = narrow[narrow.len() - 1].saturating_sub(narrow[0]);
        let gaps = u32::try_from(narrow.len() - 1).expect("a few");
        assert!(span >= ms(1_450) * gaps, "two at once, for 3 s each: {span:?}");
        assert_eq!(run.stderr.matches("parallel keeps the site at").count(), 1, "{}", run.stderr);
        kept(&measure_shops(&shops, &stalls, interval))?;
        used(0.97, &[slow], interval)?;
        ["site=narrow parallel=2 enough=4", "workers scaled", "workers=7 response_ms=30"]
            .into_iter()
            .try_for_each(|said| bound(run.stderr.contains(said), format_args!("{said}: {}", run.stderr)))
    });
}
