//! `paced demo`: shops of different manner on loopback, crawled before one's eyes, and the pace as the shops saw it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::cli::parts::print_crawl::tell;
use crate::cli::parts::results::Results;
use crate::cli::parts::signals::await_signals;
use crate::cli::parts::{Exit, Globals, Trouble};
use crate::demo::gaps::GapReport;
use crate::demo::shop::{Shop, Shops, serve};
use crate::demo::table::{ShopRow, table};
use crate::demo::{DemoShop, FIRST_PROBE, plans};
use crate::item::Item;
use crate::owner_only;
use crate::run::{CrawlOptions, Ending, Outputs, crawl};
use crate::sink;
use crate::site::{self, Site};

/// Items shown of each shop.
const SHOWN: usize = 2;

/// Options of `paced demo`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  paced demo --keep demo-data    # and look at pages, items and frontier afterwards"
)]
pub(in crate::cli) struct DemoArgs {
    /// Keep frontier, pages, items and site files in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Serves the shops, crawls them and shows what came of it.
pub(super) async fn run(options: DemoArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let shown = globals.start_log(true);
    let stop = await_signals()?.token;
    let folder = DemoFolder::new(options.keep)?;
    let plans = plans();
    let shops = serve(plans.iter().map(|demo| demo.plan.clone()))?;
    let sites = sites(&shops, &plans, &folder.path)?;
    let mut options = CrawlOptions::new(Outputs::below(&folder.path));
    options.equipment.first_probe = FIRST_PROBE;
    let report = crawl(options, sites, shown, stop).await?;
    tell(&report);
    let rows: Vec<ShopRow> =
        shops.all().iter().zip(&plans).map(|(shop, demo)| row(shop, demo, &folder.path)).collect();
    let mut results = Results::default();
    results.line("The first items:")?;
    for shop in shops.all() {
        let file = items_file(shop, &folder.path);
        let items = sink::read(&file).into_iter().flatten().flatten();
        items.take(SHOWN).try_for_each(|item| results.line(format_args!("  {}", told(&item))))?;
    }
    results.lines(["", "The pace, as each shop measured it (gaps between arrivals in ms):"])?;
    results.lines(table(&rows).lines())?;
    for row in rows.iter().filter(|row| row.is_early()) {
        results.line("")?;
        results.lines(format!("Too early at the shop {}: {}", row.shop, row.gaps).lines())?;
    }
    if folder.keep {
        let kept = folder.path.display();
        results.lines([String::new(), format!("Kept in {kept}. Look closer:")])?;
        results.line(format_args!("  head -1 {kept}/items/fast.jsonl"))?;
        results.lines(["status", "audit"].map(|verb| format!("  paced --data {kept} {verb}")))?;
    }
    Ok(exit(report.ending, &rows))
}

/// A demo that was not disturbed fails where an item is missing or a start came early.
fn exit(ending: Ending, rows: &[ShopRow]) -> Exit {
    match ending {
        Ending::Stopped => Exit::Interrupted,
        Ending::Finished if rows.iter().all(ShopRow::is_good) => Exit::Done,
        _ => Exit::Failed,
    }
}

fn sites(shops: &Shops, plans: &[DemoShop], folder: &Path) -> Result<Vec<Site>, Trouble> {
    let mut sites = Vec::new();
    for (shop, demo) in shops.all().iter().zip(plans) {
        let text = shop.site_toml(demo.interval);
        let file = folder.join(format!("{}.toml", shop.plan.name));
        std::fs::write(&file, &text)?;
        sites.push(site::parse(&text, &file.display().to_string()).map_err(Trouble::failed)?);
    }
    Ok(sites)
}

fn row(shop: &Shop, demo: &DemoShop, folder: &Path) -> ShopRow {
    let arrivals = shop.arrivals();
    let span =
        arrivals.first().zip(arrivals.last()).map_or(Duration::ZERO, |(a, z)| z.at.saturating_sub(a.at));
    let gaps: GapReport = shop.gaps(demo.interval);
    let items = sink::latest(&items_file(shop, folder)).map_or(0, |items| items.len());
    ShopRow {
        shop: shop.plan.name.clone(),
        items,
        products: shop.plan.products as usize,
        requests: arrivals.len(),
        span,
        gaps,
    }
}

fn items_file(shop: &Shop, folder: &Path) -> PathBuf {
    folder.join("items").join(format!("{}.jsonl", shop.plan.name))
}

/// An item on one line: `fast: Blue basket No. 1, 51.77 GBP, 3 in stock`.
fn told(item: &Item) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = |name: &str| item.fields.get(name).map(word).unwrap_or_default();
    let price =
        |part: &str| item.fields.get("price").and_then(|price| price.get(part)).map(word).unwrap_or_default();
    let (amount, currency) = (price("amount"), price("currency"));
    format!("{}: {}, {amount} {currency}, {} in stock", item.site, field("title"), field("stock"))
}

/// The folder of a demo: a temporary one, unless it is to be kept.
struct DemoFolder {
    path: PathBuf,
    keep: bool,
}

impl DemoFolder {
    fn new(keep: Option<PathBuf>) -> Result<Self, Trouble> {
        let temporary = || std::env::temp_dir().join(format!("paced-demo-{:016x}", fastrand::u64(..)));
        let (path, keep) = keep.map_or_else(|| (temporary(), false), |path| (path, true));
        if path.exists() {
            return Err(Trouble::usage(format!("{}: it exists already; name a new folder", path.display())));
        }
        owner_only::make_folder(&path)?;
        Ok(Self { path, keep })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.keep {
            // What can't be removed is left to the system's own sweep of its temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shop saw whose interval is 200 ms.
    fn row(items: usize, arrivals: [u64; 3]) -> ShopRow {
        let arrivals = arrivals.map(Duration::from_millis);
        let gaps = GapReport::new(&arrivals, &[], Duration::from_millis(200));
        ShopRow { shop: "x".to_owned(), items, products: 2, requests: 3, span: arrivals[2], gaps }
    }

    #[test]
    fn l7_an_early_start_or_a_missing_item_fails_the_demo() {
        let (good, early, missing) = (row(2, [0, 200, 400]), row(2, [0, 200, 300]), row(1, [0, 200, 400]));
        for (ending, rows, code) in [
            (Ending::Finished, vec![good.clone()], Exit::Done),
            (Ending::Finished, vec![good.clone(), early.clone()], Exit::Failed),
            (Ending::Finished, vec![good.clone(), missing], Exit::Failed),
            (Ending::Stopped, vec![early], Exit::Interrupted),
            (Ending::GivenUp, vec![good], Exit::Failed),
        ] {
            assert_eq!(exit(ending, &rows), code, "{ending:?}: {rows:?}");
        }
    }
}
