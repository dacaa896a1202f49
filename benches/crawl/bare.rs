//! The barest program that reads the pages: reqwest and scraper, four selectors, nothing kept. It runs in a process of its own.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scraper::{Html, Selector};

use super::in_flight;
use super::measure::{Cost, Measured, must_be};

/// Starts this program once more to walk the URLs; what that took.
pub fn run(role: &str, urls: &[String]) -> Cost {
    let mut list = tempfile::NamedTempFile::new().expect("a temporary file");
    list.write_all(urls.join("\n").as_bytes()).expect("room on the disk");
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.env("ROLE", role).env("URLS", list.path()).stdout(Stdio::null());
    let Measured { status, cost } = Measured::run(&mut command);
    must_be("the end of `bare`", &status.success(), &true);
    cost
}

/// Fetches each of the URLs in the file `URLS`, and reads it where `reads`.
pub fn walk(reads: bool) {
    let list = std::env::var_os("URLS").expect("the bench names it");
    let list = std::fs::read_to_string(list).expect("the list");
    let urls: Arc<Vec<String>> = Arc::new(list.lines().map(str::to_owned).collect());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let read = runtime.block_on(walk_all(Arc::clone(&urls), reads));
    must_be("pages read", &read, &urls.len());
}

async fn walk_all(urls: Arc<Vec<String>>, reads: bool) -> usize {
    paced::internals::fetch::install_tls();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let next = Arc::new(AtomicUsize::new(0));
    let mut walkers = tokio::task::JoinSet::new();
    for _ in 0..in_flight() {
        let (client, urls, next) = (client.clone(), Arc::clone(&urls), Arc::clone(&next));
        walkers.spawn(async move {
            let fields =
                ["h1", ".price", ".stock", ".brand"].map(|css| Selector::parse(css).expect("a selector"));
            let mut good = 0;
            while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                let body = client.get(url).send().await.expect("an answer").bytes().await.expect("a body");
                good += usize::from(if reads { read(&body, &fields) } else { !body.is_empty() });
            }
            good
        });
    }
    walkers.join_all().await.into_iter().sum()
}

/// Whether something was found: a product's title, or a price of a listing.
fn read(body: &[u8], fields: &[Selector; 4]) -> bool {
    let page = Html::parse_document(&String::from_utf8_lossy(body));
    let texts = fields
        .each_ref()
        .map(|field| page.select(field).next().map(|element| element.text().collect::<String>()));
    texts.iter().flatten().any(|text| !text.is_empty())
}
