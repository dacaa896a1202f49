//! Twenty shops, slow and fast, at once: no start is early, and hardly one is wasted.

use std::time::Duration;

use crate::alone;
use crate::ground::*;
use crate::support::*;

const INTERVAL: Duration = ms(200);
const PRODUCTS: u32 = 80;

/// Shops with 50 to 1500 ms of response time, with and without `robots.txt`, some of them moved.
fn plans() -> Vec<ShopPlan> {
    let plan = |number: u64| {
        let name = format!("s{number:02}");
        let plan = ShopPlan::new(&name, PRODUCTS).per_page(PRODUCTS).seed(number).page_size(4_000);
        let plan = plan.latency(Latency::between(ms(50), ms(1_500)));
        let plan =
            if number.is_multiple_of(2) { plan.robots("User-agent: *\nDisallow: /cart\n") } else { plan };
        if number.is_multiple_of(5) { plan.moved(Moved::Products) } else { plan }
    };
    (1..=20).map(plan).collect()
}

fn site_toml(shop: &Shop) -> String {
    let text = shop.site_toml(INTERVAL);
    let (before, rest) = text.split_once("parallel = ").expect("it says how many in flight");
    let (_, after) = rest.split_once('\n').expect("a line");
    format!("{before}parallel = 16\n{after}")
}

/// From the first product's arrival to the last one's that was not waited for: while the queue is full.
fn window(shop: &Shop) -> (Duration, Duration) {
    let arrivals = shop.arrivals();
    let products: Vec<Duration> = arrivals
        .iter()
        .filter(|a| a.path.starts_with("/p/") || a.path.starts_with("/product/"))
        .map(|a| a.at)
        .collect();
    (products[0], products[PRODUCTS as usize - 1])
}

#[test]
fn l5_l7_twenty_slow_sites_use_their_starts_and_none_is_early() {
    let _turn = alone();
    let shops = serve(plans()).expect("shops");
    let ground = Ground::of_texts(shops.all().iter().map(|shop| (shop.plan.name.clone(), site_toml(shop))));
    let run = ground.crawl().run().expect_code(0);
    println!("{}", run.stderr);
    let audit = ground.audit();
    for shop in shops.all() {
        let gaps = shop.gaps(INTERVAL);
        let (from, to) = window(shop);
        let arrivals: Vec<Duration> = shop.arrivals().iter().map(|a| a.at).collect();
        let share = used_share(&arrivals, from, to, INTERVAL);
        println!("{} {share:.3} {gaps}\n {}", shop.plan.name, audit[&shop.plan.name]);
    }
    let stalls = shops.all()[0].stalls();
    println!("{} stalls, {:?} in all", stalls.len(), stalls.iter().map(|s| s.length()).sum::<Duration>());
}
