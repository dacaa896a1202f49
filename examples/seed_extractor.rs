//! A seed extractor of one's own: reads product numbers from stdin and puts their pages into a site's queue.
//!
//! `seq 1 20 | cargo run --example seed_extractor -- paced-data/frontier.db books https://books.toscrape.com/catalogue/page-{}.html`

use std::io::BufRead;
use std::path::Path;

use paced::{CanonicalUrl, Frontier, Priority, Put};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, site, pattern] = &args[..] else {
        return Err("usage: seed_extractor FRONTIER.db SITE URL-WITH-{}".into());
    };
    if !Path::new(file).exists() {
        return Err(format!("{file}: there is no frontier yet; crawl the site once").into());
    }
    let frontier = Frontier::open(&format!("sqlite:{file}"))?;
    let mut puts = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let url = CanonicalUrl::parse(&pattern.replace("{}", line?.trim()))?;
        puts.push(Put::request(url, "user:high".parse::<Priority>()?));
    }
    let urls: Vec<String> = puts.iter().map(|put| put.url.to_string()).collect();
    for (url, reply) in urls.iter().zip(frontier.put(site, puts).await?) {
        println!("{reply:?} {url}");
    }
    Ok(())
}
