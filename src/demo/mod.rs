//! Small shops served on loopback, for `paced demo`, for tests and for benches: slow, flaky or moved as planned, with their
//! true values known and each arrival stamped. No product code is here.

pub mod arrivals;
pub mod gaps;
mod pages;
pub mod plan;
pub mod reply;
pub mod server;
pub mod shop;
pub mod site;
pub mod table;
pub mod truth;

use std::time::Duration;

use plan::{FaultKind, Latency, Moved, ShopPlan};
use truth::Currency;

/// A demo shop and the pace at which it is crawled.
#[derive(Clone, Debug)]
pub struct DemoShop {
    /// The shop.
    pub plan: ShopPlan,
    /// The interval that its site file asks for.
    pub interval: Duration,
}

/// A wall of a demo shop is probed for the first time after so long.
pub const FIRST_PROBE: Duration = Duration::from_secs(2);

/// The shops of `paced demo`. Together they are crawled in about 25 s: the pace decides, however slow a shop is.
pub fn plans() -> Vec<DemoShop> {
    let slow = ShopPlan { currency: Currency::Eur, ..ShopPlan::new("slow", 100) };
    let moved = ShopPlan { currency: Currency::Jpy, ..ShopPlan::new("moved", 45) };
    vec![
        shop(100, ShopPlan::new("fast", 200).page_size(20_000).latency(fixed(20))),
        shop(200, slow.page_size(12_000).latency(fixed(1_500))),
        shop(250, flaky()),
        shop(250, moved.moved(Moved::Products).latency(fixed(60))),
        shop(100, ShopPlan::new("walled", 60).wall(25, Duration::from_secs(3)).latency(fixed(40))),
    ]
}

fn flaky() -> ShopPlan {
    let latency = Latency::between(Duration::from_millis(50), Duration::from_millis(400));
    let busy = FaultKind::Unavailable { retry_after: Some(Duration::from_secs(1)) };
    ShopPlan::new("flaky", 50).per_page(10).latency(latency).fault(12, busy).fault(17, FaultKind::Reset)
}

fn shop(interval_ms: u64, plan: ShopPlan) -> DemoShop {
    DemoShop { plan, interval: Duration::from_millis(interval_ms) }
}

const fn fixed(millis: u64) -> Latency {
    Latency::fixed(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shop_keeps_a_demo_busy_for_15_to_35_seconds() {
        for DemoShop { plan, interval } in plans() {
            let faults: u32 = plan.faults.iter().map(|fault| plan.requests() / fault.every).sum();
            // A fault costs its repeat, and a second or so in which the shop is left alone.
            let time =
                interval * plan.requests() + (interval + Duration::from_secs(1)) * faults + plan.latency.most;
            // The second probe comes through; then 20 starts take four times as long, and 20 twice.
            let walled = plan.wall.map(|_| 3 * FIRST_PROBE + interval * (20 * 3 + 17));
            let time = time + walled.unwrap_or_default();
            assert!((15..=35).contains(&time.as_secs()), "{}: {time:?}", plan.name);
        }
    }
}
