//! Progress bars on a terminal: one a site, with its rate, what is allowed, and when it will end. A bar never takes more
//! than its line.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::counts::{Monitor, Tally};
use super::words::{duration, rate};
use crate::frontier::View;

/// The most bars shown; further sites are in the log's pulse alone.
const MOST_BARS: usize = 12;
/// A rate is that of so much time.
const SPAN: Duration = Duration::from_secs(5);
/// One line: what is named here is cut where it doesn't fit.
const LINE: &str = "{prefix:>12!} {bar:16} {pos}/{len} {wide_msg}";

/// The bars of a crawl. Dropped, they are taken away.
#[derive(Debug)]
pub struct Progress {
    monitor: Monitor,
    bars: MultiProgress,
    by_site: BTreeMap<String, Bar>,
}

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    /// Requests sent so far, at each look of the last `SPAN`.
    looks: VecDeque<(Instant, u64)>,
}

impl Progress {
    /// Bars of these counters, drawn by `bars`, through which the log must write as well.
    pub fn new(monitor: Monitor, bars: MultiProgress) -> Self {
        Self { monitor, bars, by_site: BTreeMap::new() }
    }

    /// Draws how things stand.
    pub fn draw(&mut self) {
        for (view, tally, _) in self.monitor.sites() {
            if self.by_site.contains_key(&view.site) || self.by_site.len() < MOST_BARS {
                let bars = &self.bars;
                self.by_site
                    .entry(view.site.clone())
                    .or_insert_with(|| Bar::new(bars, &view))
                    .draw(&view, tally);
            }
        }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        // A terminal that is gone needs no clearing.
        let _ = self.bars.clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Bar {
    fn new(bars: &MultiProgress, view: &View) -> Self {
        let style = ProgressStyle::with_template(LINE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = bars.add(ProgressBar::new(0)).with_style(style).with_prefix(view.site.clone());
        Self { bar, looks: VecDeque::new() }
    }

    fn draw(&mut self, view: &View, tally: Tally) {
        let over = view.download.done + view.download.dead + view.download.dropped;
        let left = view.download.waiting + view.download.delayed + view.download.leased;
        self.bar.set_length(over + left);
        self.bar.set_position(over);
        let reached = self.reached(Instant::now(), tally.starts);
        self.bar.set_message(message(view, tally, reached));
    }

    /// Starts a second in the last few seconds.
    fn reached(&mut self, now: Instant, starts: u64) -> f64 {
        self.looks.push_back((now, starts));
        while self.looks.get(1).is_some_and(|(at, _)| now - *at >= SPAN) {
            self.looks.pop_front();
        }
        let (at, before) = self.looks.front().copied().unwrap_or((now, starts));
        super::pulse::as_rate(starts - before, (now - at).as_secs_f64().max(0.001))
    }
}

/// The most important first: what doesn't fit the line is cut from its end.
fn message(view: &View, tally: Tally, reached: f64) -> String {
    let letters = view.download.letters + view.parse.letters;
    let dead = if letters > 0 { format!(", {letters} dead") } else { String::new() };
    let counts = format!("{} items{dead}", tally.items);
    let allowed = view.allowed().map_or("no pace".to_owned(), |most| format!("of {}", rate(most)));
    match (&view.paused, &view.blocked_why) {
        _ if view.finished => format!("done, {counts}"),
        (Some(why), _) => format!("paused: {why}"),
        (None, Some(why)) => format!("blocked: {why}"),
        (None, None) => {
            let eta = view.eta().map_or("-".to_owned(), duration);
            format!("{} {allowed}, eta {eta}, {counts}", rate(reached))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut bar = Bar { bar: ProgressBar::hidden(), looks: VecDeque::new() };
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(bar.reached(at(0), 100) < 0.001);
        assert!((bar.reached(at(2), 110) - 5.0).abs() < 0.001);
        assert!((bar.reached(at(5), 110) - 2.0).abs() < 0.001);
        assert!((bar.reached(at(9), 114) - 4.0 / 7.0).abs() < 0.001);
        assert_eq!(bar.looks.len(), 3);
    }
}
