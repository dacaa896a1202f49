//! Twenty shops, slow and fast, at once: no start is early, and hardly one is wasted.

use std::time::Duration;

use crate::alone;
use crate::ground::*;
use crate::machine::{Lateness, Machine};
use crate::support::*;

const INTERVAL: Duration = ms(200);
const PRODUCTS: u32 = 60;

/// Shops with 50 to 1500 ms of response time, with and without `robots.txt`, some of them moved.
fn plans() -> Vec<ShopPlan> {
    let plan = |number: u64| {
        let moved = number.is_multiple_of(5);
        let products = if moved { PRODUCTS / 2 } else { PRODUCTS };
        let plan = ShopPlan::new(&format!("s{number:02}"), products)
            .per_page(products)
            .seed(number)
            .page_size(4_000);
        let plan = plan.latency(Latency::between(ms(50), ms(1_500)));
        let plan =
            if number.is_multiple_of(2) { plan.robots("User-agent: *\nDisallow: /cart\n") } else { plan };
        if moved { plan.moved(Moved::Products) } else { plan }
    };
    (1..=20).map(plan).collect()
}

fn site_toml(shop: &Shop) -> String {
    let text = shop.site_toml(INTERVAL);
    let (before, rest) = text.split_once("parallel = ").expect("it says how many in flight");
    let (_, after) = rest.split_once('\n').expect("a line");
    format!("{before}parallel = 16\n{after}")
}

/// The starts while the shop's queue was full: from the first product's up to as many as its listing linked to.
fn full_queue(shop: &Shop) -> Vec<Duration> {
    let arrivals = shop.arrivals();
    let products = arrivals.iter().skip_while(|arrival| !arrival.path.starts_with("/p"));
    products.take(shop.plan.products as usize).map(|arrival| arrival.at).collect()
}

#[test]
fn l5_l7_twenty_slow_sites_use_their_starts_and_none_is_early() {
    let _turn = alone();
    let shops = serve(plans()).expect("shops");
    let ground = Ground::of_texts(shops.all().iter().map(|shop| (shop.plan.name.clone(), site_toml(shop))));
    let machine = Machine::watch();
    ground.crawled();
    let machine = machine.lateness();
    let audit = ground.audit();
    let (mut starts, mut permitted, mut gaps, mut aside) = (0, 0.0, 0, 0);
    for shop in shops.all() {
        let seen = paced_gaps(shop, &machine);
        assert!(seen.early.is_empty(), "{}: {seen}", shop.plan.name);
        (gaps, aside) = (gaps + seen.count, aside + seen.set_aside.len());
        let full = full_queue(shop);
        starts += full.len() - 1;
        permitted += (full[full.len() - 1] - full[0]).as_secs_f64() / INTERVAL.as_secs_f64();
        assert_same(&audit[&shop.plan.name], shop, &seen);
    }
    println!("{aside} of {gaps} gaps set aside");
    assert!(aside * 200 <= gaps.max(200), "{aside} of {gaps} gaps were set aside");
    assert_used(starts, permitted, &machine);
}

/// The gaps of a shop; those that a stall of the machine explains are set aside and printed.
fn paced_gaps(shop: &Shop, machine: &Lateness) -> GapReport {
    let arrivals: Vec<Duration> = shop.arrivals().iter().map(|arrival| arrival.at).collect();
    let stalls = [shop.stalls(), machine.stalls.clone()].concat();
    let gaps = GapReport::new(&arrivals, &stalls, INTERVAL);
    println!("{} {gaps}", shop.plan.name);
    gaps
}

/// The audit, by the send stamps of the archive, tells the same story as the shop.
fn assert_same(audit: &serde_json::Value, shop: &Shop, seen: &GapReport) {
    assert_eq!(audit["starts"], shop.arrivals().len(), "{audit}");
    assert_eq!(audit["early"], 0, "{audit}");
    let median = audit["gap_ms"]["p50"].as_u64().map(ms).expect("a median");
    assert!(median.abs_diff(seen.p50) <= ms(5), "{audit} and {seen}");
}

/// At least 97 % of the permitted starts were used, less what the machine's own lateness takes: a start takes about four
/// wakings from its due time to the wire, of the claimer, of the frontier's thread, of the claimer again, of the request.
fn assert_used(starts: usize, permitted: f64, machine: &Lateness) {
    let lateness = (machine.mean * 4).as_secs_f64() / INTERVAL.as_secs_f64();
    let floor = 0.97 / (1.0 + lateness);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand starts")]
    let share = starts as f64 / permitted;
    println!("{share:.3} of the starts used, {floor:.3} wanted; a thread was woken {:?} late", machine.mean);
    assert!(share >= floor, "{share:.3} of the starts were used, {floor:.3} were wanted");
}
