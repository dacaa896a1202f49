//! Progress bars on a terminal: one a site, with its rate, what is allowed, what waits and when it will end.

use std::collections::BTreeMap;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::counts::Monitor;
use super::pulse::eta;
use super::words::duration;

/// The most bars shown; further sites are in the log's pulse alone.
const MOST_BARS: usize = 12;

/// The bars of a crawl.
#[derive(Debug)]
pub struct Progress {
    monitor: Monitor,
    bars: MultiProgress,
    by_site: BTreeMap<String, ProgressBar>,
}

impl Progress {
    /// Bars of these counters, drawn by `bars`, through which the log must write as well.
    pub fn new(monitor: Monitor, bars: MultiProgress) -> Self {
        Self { monitor, bars, by_site: BTreeMap::new() }
    }

    /// Draws how things stand.
    pub fn draw(&mut self) {
        for (view, tally, _) in self.monitor.sites() {
            if !self.by_site.contains_key(&view.site) && self.by_site.len() >= MOST_BARS {
                continue;
            }
            let bars = &self.bars;
            let bar = self.by_site.entry(view.site.clone()).or_insert_with(|| new_bar(bars, &view.site));
            let left = view.download.waiting + view.download.delayed + view.download.leased;
            bar.set_length(view.download.done + view.download.dead + left);
            bar.set_position(view.download.done + view.download.dead);
            let allowed = match view.interval {
                0 => "no pace".to_owned(),
                ms => format!("1 per {}", duration(std::time::Duration::from_millis(ms.unsigned_abs()))),
            };
            let state = match (&view.blocked_why, view.finished) {
                (Some(why), _) => format!("blocked: {why}"),
                (None, true) => "done".to_owned(),
                (None, false) => format!("eta {}", eta(&view).map_or("-".to_owned(), duration)),
            };
            bar.set_message(format!(
                "{allowed}, {} waiting, {} items, {state}",
                view.download.waiting, tally.items
            ));
        }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        // A terminal that is gone needs no clearing.
        let _ = self.bars.clear();
    }
}

fn new_bar(bars: &MultiProgress, site: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:>12} {bar:24} {pos}/{len} {per_sec:>9} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bars.add(ProgressBar::new(0)).with_style(style).with_prefix(site.to_owned())
}
