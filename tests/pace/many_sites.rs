//! Many shops, slow and fast, at once: no start is early, and hardly one is wasted.

use std::collections::BTreeSet;
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

#[test]
fn l5_l7_twenty_slow_sites_use_their_starts_and_none_is_early() {
    let _turn = alone();
    let shops = serve(plans(20, PRODUCTS)).expect("shops");
    let ground = Ground::of_texts(shops.all().iter().map(|shop| site_toml(shop, INTERVAL)));
    let machine = Machine::watch();
    ground.crawled();
    let seen = machine.seen();
    let audit = ground.audit();
    let measured: Vec<Measured> =
        shops.all().iter().map(|shop| measure_shop(shop, &seen, INTERVAL)).collect();
    for (shop, measured) in shops.all().iter().zip(&measured) {
        assert_same(&audit[&shop.plan.name], shop.arrivals().len(), measured, &seen);
        assert_eq!(shop.arrivals().len(), shop.plan.requests() as usize);
    }
    assert_kept(&measured, &seen);
    let starts: Vec<_> = shops.all().iter().map(full_queue).collect();
    assert_used(0.97, &starts, INTERVAL, &seen);
}

#[test]
fn l7_v17_two_processes_on_the_same_sites_keep_one_pace_and_fetch_nothing_twice() {
    let _turn = alone();
    let shops = serve(plans(10, 30)).expect("shops");
    let ground = Ground::of_texts(shops.all().iter().map(|shop| site_toml(shop, INTERVAL)));
    let machine = Machine::watch();
    let pair = [ground.crawl().start(), ground.crawl().start()];
    let ends = pair.map(|crawl| crawl.finish().expect_code(0));
    let seen = machine.seen();
    let measured: Vec<Measured> =
        shops.all().iter().map(|shop| measure_shop(shop, &seen, INTERVAL)).collect();
    for shop in shops.all() {
        let arrivals = shop.arrivals();
        let paths: BTreeSet<&String> = arrivals.iter().map(|arrival| &arrival.path).collect();
        assert_eq!(
            (paths.len(), arrivals.len()),
            (shop.plan.requests() as usize, shop.plan.requests() as usize)
        );
        assert_eq!(ground.items(&shop.plan.name).len(), shop.plan.products as usize);
    }
    assert_kept(&measured, &seen);
    for unit in ground.audit().values() {
        assert_eq!(unit["early"], 0, "{unit}");
    }
    assert!(ends.iter().all(|end| end.stderr.contains("pulse site=s01")), "both took part");
}

#[test]
fn v19_a_slow_site_and_a_fast_one_do_not_disturb_each_other() {
    let _turn = alone();
    let plan = |name, latency| {
        ShopPlan::new(name, 40).per_page(40).page_size(4_000).latency(Latency::fixed(latency))
    };
    let shops = serve([plan("slow", ms(2_500)), plan("fast", ms(5))]).expect("shops");
    let ground = Ground::of_texts(shops.all().iter().map(|shop| site_toml(shop, INTERVAL)));
    let machine = Machine::watch();
    ground.crawled();
    let seen = machine.seen();
    let measured: Vec<Measured> =
        shops.all().iter().map(|shop| measure_shop(shop, &seen, INTERVAL)).collect();
    assert_kept(&measured, &seen);
    for shop in shops.all() {
        assert_used(0.95, &[full_queue(shop)], INTERVAL, &seen);
    }
    let end = |shop: &Shop| shop.arrivals().iter().map(|arrival| arrival.at).max();
    assert!(end(&shops.all()[1]) < end(&shops.all()[0]), "the fast one waited for the slow one");
}

#[test]
fn v18_more_workers_do_not_raise_the_load_on_a_site() {
    let _turn = alone();
    let plan = ShopPlan::new("shop", 30).per_page(30).page_size(4_000).latency(Latency::fixed(ms(700)));
    for workers in ["4", "60"] {
        let shops = serve([plan.clone()]).expect("a shop");
        let shop = &shops.all()[0];
        let ground = Ground::of_texts([site_toml(shop, ms(150))]);
        let machine = Machine::watch();
        ground.crawl().arg("--workers").arg(workers).run().expect_code(0);
        let seen = machine.seen();
        assert_kept([&measure_shop(shop, &seen, ms(150))], &seen);
        assert!(most_in_flight(&shop.arrivals()) <= workers.parse().unwrap_or(16).min(16));
        assert_eq!(shop.arrivals().len(), shop.plan.requests() as usize);
    }
}

#[test]
fn v15_a_site_that_takes_three_seconds_is_asked_each_second_and_a_narrow_one_is_told_of() {
    let _turn = alone();
    let plan = |name, products| {
        ShopPlan::new(name, products).per_page(products).page_size(4_000).latency(Latency::fixed(ms(3_000)))
    };
    let shops = serve([plan("slow", 24), plan("narrow", 16)]).expect("shops");
    let interval = ms(1_000);
    let [slow, narrow] = [0, 1].map(|n| site_toml(&shops.all()[n], interval));
    let narrow = (narrow.0, narrow.1.replace("parallel = 16", "parallel = 2"));
    let ground = Ground::of_texts([slow, narrow]);
    let machine = Machine::watch();
    let run = ground.crawl().run().expect_code(0);
    let seen = machine.seen();
    let measured = shops.all().iter().map(|shop| measure_shop(shop, &seen, interval));
    assert_kept(&measured.collect::<Vec<_>>(), &seen);
    let [slow, narrow] = [0, 1].map(|n| full_queue(&shops.all()[n]));
    assert_used(0.97, &[slow], interval, &seen);
    let span = narrow[narrow.len() - 1].saturating_sub(narrow[0]);
    let gaps = u32::try_from(narrow.len() - 1).expect("a few");
    assert!(span >= ms(1_450) * gaps, "two at once, for 3 s each: {span:?}");
    assert_eq!(run.stderr.matches("parallel keeps the site at").count(), 1, "{}", run.stderr);
    for said in ["site=narrow parallel=2 enough=4", "workers scaled", "workers=7 response_ms=30"] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
}
