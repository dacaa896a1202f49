//! Another program asks the same site, and shares its pace with the crawl: it takes the mutex that each download takes, so
//! that both together start no more than one request an interval. Begin `paced crawl` in another terminal, then take the
//! pace of the site `books` ten times:
//!
//!     cargo run --example share_a_pace -- sqlite:paced-data/frontier.db books 10

use std::process::ExitCode;

use paced::{FrontierError, TimedMutex};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [frontier, site, times] = &words[..] else { return usage() };
    let Ok(times) = times.parse() else { return usage() };
    match take(frontier, site, times).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("share_a_pace: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts something so many times, each when the site's pace allows.
async fn take(frontier: &str, site: &str, times: u32) -> Result<(), FrontierError> {
    let pace = TimedMutex::of_site(frontier, site).await?;
    let mut last = None;
    for turn in 1..=times {
        let start = pace.lock().await?.taken_at();
        // Here a program would send its own request to the site, at once.
        match last.replace(start) {
            None => println!("{turn:>3}  {start}"),
            Some(last) => println!("{turn:>3}  {start}  {} ms after my last", start.since(last).as_millis()),
        }
    }
    Ok(())
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: share_a_pace FRONTIER SITE TIMES, as in: share_a_pace sqlite:paced-data/frontier.db books 10"
    );
    ExitCode::from(2)
}
