//! Crawls one site from a program of one's own: `cargo run --example crawl_one_site -- sites/books.toml DATA-FOLDER`.

use std::path::Path;

use paced::{CrawlOptions, Outputs, Shown, Site, crawl};
use tokio_util::sync::CancellationToken;

/// The most pages of one start; the next one goes on.
const PAGES: u64 = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(data)) = (args.next(), args.next()) else {
        return Err("usage: crawl_one_site SITE.toml DATA-FOLDER".into());
    };
    let site = Site::load(Path::new(&file))?;
    let options =
        CrawlOptions { max_pages: Some(PAGES), ..CrawlOptions::new(Outputs::below(Path::new(&data))) };
    let report = crawl(options, vec![site], Shown::default(), CancellationToken::new()).await?;
    for site in report.sites {
        let did = site.tally;
        println!("{}: {} pages and {} items in this crawl", site.view.site, did.pages, did.items);
    }
    Ok(())
}
