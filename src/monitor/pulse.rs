//! The pulse: how the process stands, and the sites that stand out, every few seconds: as lines of the log, or as bars.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use indicatif::MultiProgress;
use tracing::info;

use super::bars::Bars;
use super::counts::{Counted, Monitor};
use super::limits::Limits;
use super::standing_out::{Before, SitePulse, Total, standing_out};
use crate::forecast::rate_of;
use crate::frontier::View;
use crate::quantity::{compact, compact_rate};

/// How the pulse is shown.
#[derive(Clone, Debug, Default)]
pub enum Shown {
    /// A line for the process, and one for each site that stands out.
    #[default]
    Lines,
    /// A line for the process, and one for each site that moves.
    AllLines,
    /// Bars on a terminal, for the process and the sites that stand out. The log must write through them as well.
    Bars(MultiProgress),
}

/// Tells how the process and its sites stand. Dropped, it takes the bars away.
#[derive(Debug)]
pub struct Pulse {
    monitor: Monitor,
    looks: Looks,
    limits: Limits,
    bars: Option<Bars>,
    /// Lines tell of every site that moves.
    all: bool,
    /// When the last pulse was, and how many requests this process had sent by then.
    sent: (Instant, u64),
}

impl Pulse {
    /// The time between two pulses.
    pub const EVERY: Duration = Duration::from_secs(5);

    /// A pulse of these counters.
    pub fn new(monitor: Monitor, shown: Shown) -> Self {
        let all = matches!(shown, Shown::AllLines);
        let bars = if let Shown::Bars(drawn) = shown { Some(Bars::new(drawn)) } else { None };
        let sent = (Instant::now(), monitor.total().starts);
        Self { monitor, looks: Looks::default(), limits: Limits::default(), bars, all, sent }
    }

    /// Tells how everything stands, and chooses anew which sites the bars show. `views` are of the sites that are looked at, in
    /// the order of their names.
    pub fn beat(&mut self, views: &[View]) {
        let (sites, workers) = (self.look(views), self.monitor.worker_count());
        sites.iter().filter(|site| !site.is_idle()).for_each(|site| self.limits.look(&site.counted.view));
        let (since, before) =
            std::mem::replace(&mut self.sent, (Instant::now(), self.monitor.total().starts));
        let sent = rate_of(self.sent.1 - before, self.sent.0 - since).unwrap_or_default();
        match &mut self.bars {
            None => lines(&sites, self.all, workers, sent),
            Some(bars) => {
                bars.choose(&sites);
                bars.draw(&sites, workers);
            }
        }
    }

    /// Looks at everything, and draws the bars, if there are any.
    pub fn draw(&mut self, views: &[View]) {
        let (sites, workers) = (self.look(views), self.monitor.worker_count());
        if let Some(bars) = &mut self.bars {
            bars.draw(&sites, workers);
        }
    }

    fn look(&mut self, views: &[View]) -> Vec<SitePulse> {
        self.looks.take(Instant::now(), self.monitor.counted(views))
    }
}

/// The sites that were looked at, at each look of the last few seconds and at the last one before them.
#[derive(Debug, Default)]
struct Looks(VecDeque<(Instant, BTreeMap<String, Before>)>);

impl Looks {
    /// How sites that are looked at now have done since the oldest look. One that wasn't looked at then is new: nothing is
    /// known of how it did.
    fn take(&mut self, now: Instant, sites: Vec<Counted>) -> Vec<SitePulse> {
        let standing = sites.iter().map(|site| (site.view.site.clone(), Before::of(site))).collect();
        self.0.push_back((now, standing));
        while self.0.get(1).is_some_and(|(at, _)| now - *at >= Pulse::EVERY) {
            self.0.pop_front();
        }
        let pulse = |counted: Counted| {
            let earlier = self.0.iter().find_map(|(_, sites)| sites.get(&counted.view.site));
            SitePulse { before: earlier.copied().unwrap_or_else(|| Before::of(&counted)), counted }
        };
        sites.into_iter().map(pulse).collect()
    }
}

/// `sent` is how many requests a second this process sent; rates of sites are of all processes.
fn lines(sites: &[SitePulse], all: bool, workers: usize, sent: f64) {
    let told = if all { sites.iter().collect() } else { standing_out(sites) };
    told.iter().filter(|site| !site.is_idle()).for_each(|site| line(site, workers));
    let Total { sites, rate: reached, running, waiting } =
        Total::of(sites.iter().filter(|site| !site.is_idle()));
    if sites > 0 || sent > 0.0 {
        let (rate, sent) = (compact_rate(reached), compact_rate(sent));
        info!(sites, rate = %rate, sent = %sent, running, workers, waiting, "pulse");
    }
}

fn line(site: &SitePulse, workers: usize) {
    let Counted { view, tally, freshness, .. } = &site.counted;
    let shown = view.allowed().map_or("unlimited".to_owned(), compact_rate);
    let oldest = view.oldest.map_or("-".to_owned(), |put| compact(view.at.since(put)));
    let response = view.response.map_or("-".to_owned(), |ms| ms.to_string());
    let eta = view.eta().map_or("-".to_owned(), compact);
    let fresh = freshness.percent().map_or("-".to_owned(), |percent| format!("{percent}%"));
    info!(
        site = %view.site,
        rate = %compact_rate(site.rate()),
        allowed = %shown,
        used = %format_args!("{:.0}%", 100.0 * site.used()),
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
        why = site.why(),
        "pulse"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::monitor::standing_out::Attention;
    use crate::monitor::standing_out::tests::site;

    const SECOND: Duration = Duration::from_secs(1);

    /// A site of which so many starts were granted, looked at so many seconds after the first time.
    fn seen(seconds: u32, starts: u64) -> Counted {
        let mut counted = site("shop").counted;
        counted.view.starts = starts;
        counted.view.at = Timestamp::from_millis(counted.view.at.as_millis() + i64::from(seconds) * 1_000);
        counted
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        let mut rate = |seconds: u32, starts: u64| {
            looks.take(start + SECOND * seconds, vec![seen(seconds, starts)])[0].rate()
        };
        let looked = [(0, 500, 0.0), (2, 501, 0.5), (5, 503, 0.6), (9, 505, 4.0 / 7.0), (20, 505, 0.0)];
        for (seconds, starts, expected) in looked {
            let rate = rate(seconds, starts);
            assert!((rate - expected).abs() < 0.001, "{rate} at {seconds} s");
        }
        assert_eq!(looks.0.len(), 2);
    }

    #[test]
    fn a_start_more_than_its_share_is_no_faster_pace() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        looks.take(start, vec![seen(0, 0)]);
        let site = &looks.take(start + SECOND, vec![seen(1, 2)])[0];
        assert!((site.rate() - 1.0).abs() < 0.001 && (site.used() - 1.0).abs() < 0.001, "{}", site.rate());
        let site = &looks.take(start + 2 * SECOND, vec![seen(2, 8)])[0];
        assert!((site.rate() - 4.0).abs() < 0.001, "what is too fast shows: {}", site.rate());
    }

    #[test]
    fn a_site_that_is_looked_at_again_after_a_while_is_as_new() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        let mut counted = seen(5, 1_000);
        counted.tally.dead = 7;
        looks.take(start + 5 * SECOND, vec![counted.clone()]);
        for seconds in (10..=70).step_by(5) {
            looks.take(start + SECOND * seconds, Vec::new());
        }
        let mut back = Counted { view: seen(75, 1_001).view, ..counted };
        back.tally.dead = 9;
        let back = &looks.take(start + 75 * SECOND, vec![back])[0];
        assert!(back.rate().abs() < 0.001, "{} starts a second", back.rate());
        assert!(matches!(back.attention(), Attention::Works(_)), "{:?}", back.attention());
    }
}
