//! `paced demo`: shops of different manner on loopback, crawled before one's eyes, and the pace as the shops saw it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::signals::stop_on_signals;
use super::{Exit, Globals, Trouble, crawl::tell};
use crate::crawl::{CrawlOptions, Ending, Places, crawl};
use crate::demo::gaps::GapReport;
use crate::demo::shop::{Shop, Shops, serve};
use crate::demo::table::{Row, table};
use crate::demo::{DemoShop, plans};
use crate::monitor::{Monitor, Progress};
use crate::sink;
use crate::site::{self, Site};

/// Items shown of each shop.
const SHOWN: usize = 2;

/// Options of `paced demo`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example:\n  paced demo --keep demo-data    # and look at pages, items and frontier afterwards"
)]
pub(super) struct Options {
    /// Keep frontier, pages, items and site files in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Serves the shops, crawls them and shows what came of it.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let bars = globals.start_log();
    let stop = stop_on_signals()?;
    let folder = Folder::new(options.keep)?;
    let plans = plans();
    let shops = serve(plans.iter().map(|demo| demo.plan.clone()))?;
    let sites = sites(&shops, &plans, &folder.path)?;
    let monitor = Monitor::default();
    let progress = globals.draws().then(|| Progress::new(monitor.clone(), bars));
    let report =
        crawl(CrawlOptions::new(Places::below(&folder.path)), sites, monitor, progress, stop).await?;
    tell(&report);
    let rows = rows(&shops, &plans, &folder.path);
    show_items(&shops, &folder.path);
    println!("\nThe pace, as each shop measured it (gaps between arrivals in ms):\n{}", table(&rows));
    if let Some(kept) = folder.kept() {
        println!(
            "\nKept in {kept}. Look closer:\n  paced --data {kept} status\n  paced --data {kept} audit",
            kept = kept.display()
        );
    }
    Ok(match report.ending {
        Ending::Stopped => Exit::Interrupted,
        Ending::Finished if rows.iter().all(|row| row.items == row.products) => Exit::Done,
        _ => Exit::Failed,
    })
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

fn rows(shops: &Shops, plans: &[DemoShop], folder: &Path) -> Vec<Row> {
    shops.all().iter().zip(plans).map(|(shop, demo)| row(shop, demo, folder)).collect()
}

fn row(shop: &Shop, demo: &DemoShop, folder: &Path) -> Row {
    let arrivals = shop.arrivals();
    let span =
        arrivals.first().zip(arrivals.last()).map_or(Duration::ZERO, |(a, z)| z.at.saturating_sub(a.at));
    let gaps: GapReport = shop.gaps(demo.interval);
    let items = sink::latest(&items_file(shop, folder)).map_or(0, |items| items.len());
    Row {
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

fn show_items(shops: &Shops, folder: &Path) {
    println!("The first items:");
    for shop in shops.all() {
        let text = std::fs::read_to_string(items_file(shop, folder)).unwrap_or_default();
        for line in text.lines().take(SHOWN) {
            println!("  {line}");
        }
    }
}

/// The folder of a demo: a temporary one, unless it is to be kept.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn new(keep: Option<PathBuf>) -> Result<Self, Trouble> {
        let temporary = || std::env::temp_dir().join(format!("paced-demo-{:016x}", fastrand::u64(..)));
        let (path, keep) = keep.map_or_else(|| (temporary(), false), |path| (path, true));
        if path.exists() {
            return Err(Trouble::usage(format!("{}: it exists already; name a new folder", path.display())));
        }
        std::fs::create_dir_all(&path)?;
        Ok(Self { path, keep })
    }

    fn kept(&self) -> Option<&Path> {
        self.keep.then_some(&self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What can't be removed is left to the system's own sweep of its temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
