//! Progress bars on a terminal: one for each site that stands out, and one for the process. A bar takes one line.

use std::collections::BTreeSet;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::standing_out::{MOST, SitePulse, Total, standing_out};
use crate::frontier::View;
use crate::plain_text::plain;
use crate::quantity::{compact, compact_rate};

/// One line: what is named here is cut where it doesn't fit.
const LINE: &str = "{prefix:>12!} {bar:16} {pos}/{len} {wide_msg}";

/// The bars of a process. Dropped, they are taken away.
#[derive(Debug)]
pub(super) struct Bars {
    drawn: MultiProgress,
    /// As many as are needed; the last one is the process's.
    rows: Vec<ProgressBar>,
    chosen: BTreeSet<String>,
}

impl Bars {
    pub(super) fn new(drawn: MultiProgress) -> Self {
        Self { drawn, rows: Vec::new(), chosen: BTreeSet::new() }
    }

    /// From now on the sites are shown that stand out now.
    pub(super) fn choose(&mut self, sites: &[SitePulse]) {
        let names = standing_out(sites).into_iter().map(|site| site.counted.view.site.clone());
        self.chosen = names.collect();
    }

    /// Draws how things stand. The sites that were chosen stay where they are until the next choice.
    pub(super) fn draw(&mut self, sites: &[SitePulse], workers: usize) {
        if self.chosen.len() < sites.len().min(MOST) {
            self.choose(sites);
        }
        let shown: Vec<&SitePulse> =
            sites.iter().filter(|site| self.chosen.contains(&site.counted.view.site)).collect();
        self.make(shown.len() + 1);
        for (row, site) in self.rows.iter().zip(&shown) {
            let view = &site.counted.view;
            fill(row, &view.site, progress_of(view), &message(site));
        }
        if let Some(row) = self.rows.last() {
            let progress = sites.iter().map(|site| progress_of(&site.counted.view));
            let progress = progress.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let name = if sites.len() == 1 { "1 site".to_owned() } else { format!("{} sites", sites.len()) };
            fill(row, &name, progress, &message_of_all(sites, workers));
        }
    }

    /// Has so many rows.
    fn make(&mut self, count: usize) {
        while self.rows.len() < count {
            let style = ProgressStyle::with_template(LINE).unwrap_or_else(|_| ProgressStyle::default_bar());
            self.rows.push(self.drawn.add(ProgressBar::new(0)).with_style(style));
        }
        for row in self.rows.drain(count..) {
            self.drawn.remove(&row);
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // A terminal that is gone needs no clearing.
        let _ = self.drawn.clear();
    }
}

fn fill(row: &ProgressBar, name: &str, (over, all): (u64, u64), message: &str) {
    row.set_prefix(plain(name));
    row.set_length(all);
    row.set_position(over);
    row.set_message(plain(message));
}

/// Downloads that came to an end, and all.
fn progress_of(view: &View) -> (u64, u64) {
    let counts = &view.download;
    let over = counts.done + counts.dead + counts.dropped;
    (over, over + counts.waiting + counts.delayed + counts.leased)
}

/// The most important first: what doesn't fit the line is cut from its end.
fn message(site: &SitePulse) -> String {
    let (view, tally) = (&site.counted.view, &site.counted.tally);
    let counts = counts(tally.items, view.download.letters + view.parse.letters);
    if view.finished {
        return format!("done, {counts}");
    }
    site.why().unwrap_or_else(|| {
        let allowed =
            view.allowed().map_or("no pace".to_owned(), |most| format!("of {}", compact_rate(most)));
        let eta = view.eta().map_or("-".to_owned(), compact);
        format!("{} {allowed}, eta {eta}, {counts}", compact_rate(site.rate()))
    })
}

fn message_of_all(sites: &[SitePulse], workers: usize) -> String {
    let total = Total::of(sites);
    let items = sites.iter().map(|site| site.counted.tally.items).sum();
    let letters =
        sites.iter().map(|site| site.counted.view.download.letters + site.counted.view.parse.letters);
    let counts = counts(items, letters.sum());
    format!("{}, {} running, {workers} workers, {counts}", compact_rate(total.rate), total.running)
}

fn counts(items: u64, letters: u64) -> String {
    let dead = if letters > 0 { format!(", {letters} dead") } else { String::new() };
    format!("{items} items{dead}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::standing_out::tests::site;

    fn prefixes(bars: &Bars) -> Vec<String> {
        bars.rows.iter().map(ProgressBar::prefix).collect()
    }

    #[test]
    fn sites_500_have_11_bars_and_keep_them_until_the_next_pulse() {
        let mut sites: Vec<SitePulse> = (0..500).map(|n| site(&format!("s{n:03}"))).collect();
        let mut bars = Bars::new(MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::hidden()));
        bars.draw(&sites, 7);
        let mut first: Vec<String> = (0..10).map(|n| format!("s{n:03}")).collect();
        first.push("500 sites".to_owned());
        assert_eq!(prefixes(&bars), first);
        assert_eq!(bars.rows[10].message(), "500.00/s, 0 running, 7 workers, 0 items");
        sites[321].counted.view.starts = 1;
        bars.draw(&sites, 7);
        assert_eq!(prefixes(&bars), first, "they don't jump about");
        bars.choose(&sites);
        bars.draw(&sites, 7);
        assert_eq!((bars.rows.len(), bars.rows[9].prefix().as_str()), (11, "s321"));
        bars.draw(&sites[..2], 7);
        assert_eq!(prefixes(&bars)[1..], ["s001", "2 sites"], "what is no longer seen has no bar");
    }
}
