//! What a shop is to be before it opens: what it sells, how slow and how flaky it is, where its pages are. Pure.

use std::time::Duration;

use super::pages::{self, Link};
use super::truth::{Currency, Product};

/// A shop before it opens. Listings at `/` and `/page/N`, products at `/product/N`, one fault or delay as asked for.
#[must_use]
#[derive(Clone, Debug)]
pub struct ShopPlan {
    /// Its name, which decides what it sells; letters and digits, it names the site too.
    pub name: String,
    /// How many products it sells.
    pub products: u32,
    /// How many of them a listing shows.
    pub per_page: u32,
    /// The currency of its prices.
    pub currency: Currency,
    /// The size of a page, in bytes.
    pub page_size: usize,
    /// How long an answer takes.
    pub latency: Latency,
    /// Where the chances of latency begin.
    pub seed: u64,
    /// The text of its `robots.txt`; none is a 404.
    pub robots: Option<String>,
    /// What goes wrong, and how often.
    pub faults: Vec<PlannedFault>,
    /// Which of its links are redirected.
    pub moved: Moved,
    /// It refuses for a while.
    pub wall: Option<PlannedWall>,
    /// The port it listens on; 0 takes any that is free.
    pub port: u16,
}

/// How long an answer takes: the same for each, or drawn evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Latency {
    /// The same for each answer.
    pub const fn fixed(latency: Duration) -> Self {
        Self { least: latency, most: latency }
    }

    /// Drawn evenly between the two.
    pub const fn between(least: Duration, most: Duration) -> Self {
        Self { least, most }
    }

    /// The next answer's latency, to the microsecond.
    pub fn draw(self, chance: &mut fastrand::Rng) -> Duration {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (least, most) = (micros(self.least), micros(self.most));
        Duration::from_micros(chance.u64(least..=most.max(least)))
    }
}

/// Something that goes wrong now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// It befalls each so-manieth request for a page; `robots.txt` is spared.
    pub every: u32,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// 503, with or without `Retry-After` (whole seconds).
    Unavailable {
        /// How long the visitor is asked to stay away.
        retry_after: Option<Duration>,
    },
    /// 429, with or without `Retry-After` (whole seconds).
    TooMany {
        /// How long the visitor is asked to stay away.
        retry_after: Option<Duration>,
    },
    /// The connection is reset without an answer.
    Reset,
    /// The connection ends in the middle of the body.
    Cut,
    /// The body comes in ten pieces, with this pause between them. Nothing fails.
    Slow {
        /// Between two pieces.
        pause: Duration,
    },
}

/// For a while, everything but `robots.txt` is answered as Cloudflare's challenge is: 403, and nothing of when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedWall {
    /// It begins after so many requests.
    pub after: u32,
    /// It lasts so long.
    pub lasts: Duration,
}

/// Which of a shop's links are redirected (301) to where the page now is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moved {
    /// None.
    #[default]
    Nothing,
    /// Products: `/p/N` to `/product/N`.
    Products,
    /// Everything but the front page: `/old/…` to `/new/…`.
    Everything,
}

impl ShopPlan {
    /// Each URL fails so often at most, so that a visitor who tries again gets it in the end.
    pub const FAILURES_PER_URL: u32 = 2;

    /// A shop of so many products, 20 a listing, at once answered, on pages of 8 KB.
    pub fn new(name: &str, products: u32) -> Self {
        Self {
            name: name.to_owned(),
            products,
            per_page: 20,
            currency: Currency::default(),
            page_size: 8_000,
            latency: Latency::default(),
            seed: 1,
            robots: None,
            faults: Vec::new(),
            moved: Moved::Nothing,
            wall: None,
            port: 0,
        }
    }

    /// So many products a listing.
    pub fn per_page(mut self, products: u32) -> Self {
        self.per_page = products.max(1);
        self
    }

    /// On pages of so many bytes.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.page_size = bytes;
        self
    }

    /// Answering so late.
    pub fn latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }

    /// With other chances.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// With this `robots.txt`.
    pub fn robots(mut self, text: &str) -> Self {
        self.robots = Some(text.to_owned());
        self
    }

    /// With a fault on each `every`-th request.
    pub fn fault(mut self, every: u32, kind: FaultKind) -> Self {
        self.faults.push(PlannedFault { kind, every: every.max(1) });
        self
    }

    /// With a wall that stands for a while, after so many requests.
    pub fn wall(mut self, after: u32, lasts: Duration) -> Self {
        self.wall = Some(PlannedWall { after, lasts });
        self
    }

    /// With links that are redirected.
    pub fn moved(mut self, moved: Moved) -> Self {
        self.moved = moved;
        self
    }

    /// The true values of product `number`, 1 to `products`.
    pub fn truth(&self, number: u32) -> Product {
        Product::of(&self.name, number, self.currency)
    }

    /// How many listings there are.
    pub fn listings(&self) -> u32 {
        self.products.div_ceil(self.per_page).max(1)
    }

    /// How many requests a crawl of the whole shop makes if nothing fails: pages, redirects and `robots.txt`.
    pub fn requests(&self) -> u32 {
        let redirects = match self.moved {
            Moved::Nothing => 0,
            Moved::Products => self.products,
            Moved::Everything => self.products + self.listings() - 1,
        };
        1 + self.listings() + self.products + redirects
    }

    /// The path under which the page is found.
    pub fn path(&self, place: ShopPage) -> String {
        let prefix = if self.moved == Moved::Everything { "/new" } else { "" };
        match place {
            ShopPage::Listing(1) => "/".to_owned(),
            ShopPage::Listing(n) => format!("{prefix}/page/{n}"),
            ShopPage::Product(n) => format!("{prefix}/product/{n}"),
        }
    }

    /// The path under which the shop's own links name the page: elsewhere than `path` where it has moved.
    pub fn link(&self, place: ShopPage) -> String {
        match (self.moved, place) {
            (Moved::Products, ShopPage::Product(n)) => format!("/p/{n}"),
            (Moved::Everything, ShopPage::Listing(n)) if n > 1 => format!("/old/page/{n}"),
            (Moved::Everything, ShopPage::Product(n)) => format!("/old/product/{n}"),
            _ => self.path(place),
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = ShopPage> {
        (1..=self.listings()).map(ShopPage::Listing).chain((1..=self.products).map(ShopPage::Product))
    }

    pub(super) fn page(&self, place: ShopPage) -> String {
        match place {
            ShopPage::Listing(n) => self.listing(n),
            ShopPage::Product(n) => pages::product(&self.name, &self.truth(n), self.page_size),
        }
    }

    fn listing(&self, n: u32) -> String {
        let first = (n - 1) * self.per_page + 1;
        let last = self.products.min(n * self.per_page);
        let cards = (first..=last).map(|number| {
            let product = self.truth(number);
            (Link { to: self.link(ShopPage::Product(number)), says: product.title.clone() }, product)
        });
        let next = (n < self.listings()).then(|| self.link(ShopPage::Listing(n + 1)));
        pages::listing(&self.name, &cards.collect::<Vec<_>>(), next.as_deref(), self.page_size)
    }
}

/// A page of a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShopPage {
    /// The listing of that number, from 1.
    Listing(u32),
    /// The product of that number, from 1.
    Product(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_lead_to_each_product_once_and_to_the_next_listing() {
        for (moved, products, per_page, listings) in [
            (Moved::Nothing, 45, 20, 3),
            (Moved::Products, 40, 20, 2),
            (Moved::Everything, 5, 2, 3),
            (Moved::Nothing, 0, 20, 1),
        ] {
            let plan = ShopPlan::new("x", products).per_page(per_page).moved(moved).page_size(0);
            assert_eq!(plan.listings(), listings);
            let text: String = (1..=listings).map(|n| plan.page(ShopPage::Listing(n))).collect();
            for number in 1..=products {
                let link = format!("href=\"{}\"", plan.link(ShopPage::Product(number)));
                assert_eq!(text.matches(&link).count(), 1, "{link} {moved:?}");
            }
            assert_eq!(text.matches("class=\"next\"").count(), listings as usize - 1, "{moved:?}");
        }
    }

    #[test]
    fn a_crawl_of_a_moved_shop_pays_for_its_redirects() {
        let plan = ShopPlan::new("x", 5).per_page(2);
        assert_eq!(plan.requests(), 1 + 3 + 5);
        assert_eq!(plan.clone().moved(Moved::Products).requests(), 1 + 3 + 5 + 5);
        assert_eq!(plan.moved(Moved::Everything).requests(), 1 + 3 + 5 + 7);
    }
}
