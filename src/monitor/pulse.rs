//! The pulse: one line a site that moves, and one for the process, every few seconds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tracing::info;

use super::counts::{Monitor, Tally};
use super::limits::Limits;
use super::words::{duration, rate};
use crate::frontier::{Freshness, View};

/// What the last pulse saw, so that the next tells the rate since then.
#[derive(Debug)]
pub struct Pulse {
    monitor: Monitor,
    beat_at: Instant,
    before: BTreeMap<String, Tally>,
    limits: Limits,
}

impl Pulse {
    /// The time between two pulses.
    pub const EVERY: Duration = Duration::from_secs(5);

    /// A pulse of these counters.
    pub fn new(monitor: Monitor) -> Self {
        Self { monitor, beat_at: Instant::now(), before: BTreeMap::new(), limits: Limits::default() }
    }

    /// Says how every site that moves stands, and the process as a whole.
    pub fn beat(&mut self) {
        let elapsed = self.beat_at.elapsed().as_secs_f64().max(0.001);
        self.beat_at = Instant::now();
        let workers = self.monitor.worker_count();
        let (mut rates, mut running, mut waiting, mut moving) = (0.0, 0, 0, 0);
        for (view, tally, freshness) in self.monitor.sites() {
            let before = self.before.insert(view.site.clone(), tally).unwrap_or_default();
            let starts = tally.starts - before.starts;
            let idle = view.finished && starts == 0;
            if idle {
                continue;
            }
            let reached = as_rate(starts, elapsed);
            (rates, running, waiting) =
                (rates + reached, running + view.in_flight, waiting + view.download.waiting);
            moving += 1;
            self.limits.look(&view);
            line(&view, tally, freshness, reached, workers);
        }
        if moving > 0 {
            info!(sites = moving, rate = %rate(rates), running, workers, waiting, "pulse");
        }
    }
}

fn line(view: &View, tally: Tally, freshness: Freshness, reached: f64, workers: usize) {
    let allowed = view.allowed();
    let shown = allowed.map_or("unlimited".to_owned(), rate);
    let used = allowed.map_or(100.0, |allowed| 100.0 * reached / allowed);
    let oldest = view.oldest.map_or("-".to_owned(), |put| duration(view.at.since(put)));
    let response = view.response.map_or("-".to_owned(), |ms| ms.to_string());
    let eta = view.eta().map_or("-".to_owned(), duration);
    let fresh = freshness.percent().map_or("-".to_owned(), |percent| format!("{percent}%"));
    info!(
        site = %view.site,
        rate = %rate(reached),
        allowed = %shown,
        used = %format_args!("{used:.0}%"),
        waiting = view.download.waiting,
        oldest = %oldest,
        running = view.in_flight,
        workers,
        response_ms = %response,
        eta = %eta,
        fresh = %fresh,
        items = tally.items,
        delayed = view.download.delayed,
        dead = view.download.letters + view.parse.letters,
        early = tally.early,
        "pulse"
    );
}

/// So many in so many seconds.
pub(super) fn as_rate(count: u64, seconds: f64) -> f64 {
    as_f64(count) / seconds
}

#[expect(clippy::cast_precision_loss, reason = "counts for people, far below 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
