//! The site file of a demo shop, as text: what a user of the crawler would write for it.

use std::net::SocketAddr;
use std::time::Duration;

use super::plan::{Moved, ShopPlan};

/// The text of a site file that crawls the whole of the planned shop, served at `addr`, at this interval.
///
/// `parallel` is as large as the shop's slowness asks for: latency ÷ interval, and some to spare.
pub fn site_toml(plan: &ShopPlan, addr: SocketAddr, interval: Duration) -> String {
    let (listing, product) = patterns(plan.moved);
    format!(
        r#"# A demo shop on this machine.
name  = "{name}"
seeds = ["http://{addr}/"]

[pace]
interval = "{interval}ms"
parallel = {parallel}
contact  = "demo@example.com"

[scope]
hosts = ["{addr}"]

[fetch]
allow_private = true

[[page]]
name   = "listing"
match  = {listing}
follow = ["article a", "a.next"]

[[page]]
name    = "product"
match   = {product}
item    = true
product = true
  [page.fields]
  title = "h1"
  price = {{ css = ".price", as = "price" }}
  stock = {{ css = ".stock", regex = '(\d+) available', as = "integer", default = 0 }}
"#,
        name = plan.name,
        interval = interval.as_millis(),
        parallel = parallel(plan, interval),
    )
}

fn patterns(moved: Moved) -> (&'static str, &'static str) {
    match moved {
        Moved::Nothing => (r#"["/", "/page/*"]"#, r#""/product/*""#),
        Moved::Products => (r#"["/", "/page/*"]"#, r#"["/product/*", "/p/*"]"#),
        Moved::Everything => {
            (r#"["/", "/new/page/*", "/old/page/*"]"#, r#"["/new/product/*", "/old/product/*"]"#)
        }
    }
}

fn parallel(plan: &ShopPlan, interval: Duration) -> u128 {
    let needed = plan.latency.most.as_millis() / interval.as_millis().max(1);
    (needed * 3 / 2 + 2).max(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::demo::plan::{Latency, ShopPage};
    use crate::site::UrlPattern;

    fn read(plan: &ShopPlan, interval: u64) -> toml::Table {
        let addr = SocketAddr::from(([127, 0, 0, 1], 8080));
        let text = site_toml(plan, addr, Duration::from_millis(interval));
        text.parse().unwrap_or_else(|why| panic!("{why}\n{text}"))
    }

    fn takes(rule: &toml::Value, path: &str) -> bool {
        let url = CanonicalUrl::parse(&format!("http://127.0.0.1:8080{path}")).expect("a URL");
        let patterns = match &rule["match"] {
            toml::Value::Array(many) => many.clone(),
            one => vec![one.clone()],
        };
        patterns
            .iter()
            .filter_map(toml::Value::as_str)
            .any(|pattern| UrlPattern::whole(pattern).expect("a pattern").matches(&url))
    }

    #[test]
    fn a_site_file_names_its_host_and_allows_a_private_address() {
        let site = read(&ShopPlan::new("fast", 10), 100);
        assert_eq!(site["name"].as_str(), Some("fast"));
        assert_eq!(site["seeds"][0].as_str(), Some("http://127.0.0.1:8080/"));
        assert_eq!(site["scope"]["hosts"][0].as_str(), Some("127.0.0.1:8080"));
        assert_eq!(site["fetch"]["allow_private"].as_bool(), Some(true));
        assert_eq!(site["pace"]["interval"].as_str(), Some("100ms"));
    }

    #[test]
    fn each_page_and_each_link_is_taken_by_its_rule_alone() {
        for moved in [Moved::Nothing, Moved::Products, Moved::Everything] {
            let plan = ShopPlan::new("x", 50).moved(moved);
            let site = read(&plan, 100);
            let rules = site["page"].as_array().expect("page rules");
            for (place, taker) in
                [(ShopPage::Listing(1), 0), (ShopPage::Listing(2), 0), (ShopPage::Product(7), 1)]
            {
                for path in [plan.path(place), plan.link(place)] {
                    assert!(takes(&rules[taker], &path), "{path} {moved:?}");
                    assert!(!takes(&rules[1 - taker], &path), "{path} {moved:?}");
                }
            }
        }
    }

    #[test]
    fn a_slow_shop_gets_as_many_requests_in_flight_as_its_pace_needs() {
        for (latency, interval, least) in [(20, 100, 8), (1_500, 200, 9), (20_000, 1_000, 23)] {
            let latency = Latency::fixed(Duration::from_millis(latency));
            let site = read(&ShopPlan::new("x", 1).latency(latency), interval);
            let parallel = site["pace"]["parallel"].as_integer().unwrap_or_default();
            assert!(parallel >= least, "{parallel} for {latency:?} at {interval} ms");
        }
    }
}
