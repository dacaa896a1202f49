//! How sites did in the last few seconds, each and together, and which of them stand out: those that the log and the bars tell
//! of where there are many. Pure.

use std::cmp::Reverse;

use super::counts::{Counted, Tally};
use crate::clock::Timestamp;
use crate::forecast::rate_of;

/// The most sites that a pulse tells of.
pub(super) const MOST: usize = 10;

/// A site at a pulse: how it stands, and what came of it in the last few seconds.
#[derive(Clone, Debug)]
pub(super) struct SitePulse {
    /// How it stands, and what was done for it in all.
    pub(super) counted: Counted,
    /// How it stood a few seconds before.
    pub(super) before: Before,
}

/// How a site stood at an earlier look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// When that was, by the frontier's clock.
    pub(super) at: Timestamp,
    /// Starts granted in its run, to whatever process.
    pub(super) starts: u64,
    /// What this process had done for it.
    pub(super) tally: Tally,
}

impl Before {
    pub(super) fn of(Counted { view, tally, .. }: &Counted) -> Self {
        Self { at: view.at, starts: view.starts, tally: *tally }
    }
}

/// What all sites do together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    /// Sites that move.
    pub(super) sites: usize,
    /// Starts a second.
    pub(super) rate: f64,
    /// Requests in flight.
    pub(super) running: u32,
    /// Downloads that wait.
    pub(super) waiting: u64,
}

/// What makes a site stand out, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Attention {
    /// It refuses.
    Walled,
    /// It is left alone for a while.
    Blocked,
    /// Its `robots.txt` can't be had, and nothing was asked for.
    Unreachable,
    /// So many of its tasks died.
    Died(Reverse<u64>),
    /// It has work, and uses so many thousandths of its pace.
    Works(u64),
    /// It has nothing to ask for, or is paused.
    Rests,
    /// Its run is over.
    IsOver,
}

impl SitePulse {
    /// What makes it stand out.
    pub(super) fn attention(&self) -> Attention {
        let view = &self.counted.view;
        let died = self.counted.tally.dead - self.before.tally.dead;
        match () {
            () if self.is_idle() => Attention::IsOver,
            () if view.wall.is_some() => Attention::Walled,
            () if view.blocked_until.is_some() => Attention::Blocked,
            () if self.unreachable().is_some() => Attention::Unreachable,
            () if died > 0 => Attention::Died(Reverse(died)),
            () if !view.is_paused() && (view.download.waiting > 0 || view.in_flight > 0) => {
                Attention::Works(self.used_thousandths())
            }
            () => Attention::Rests,
        }
    }

    /// Its run is over, and nothing was asked for since.
    pub(super) fn is_idle(&self) -> bool {
        self.counted.view.finished && self.starts() == 0
    }

    /// Why nothing of it is asked for, where that isn't its pace.
    pub(super) fn why(&self) -> Option<String> {
        let view = &self.counted.view;
        match (view.pause(), &view.blocked_why) {
            (Some(pause), _) => Some(pause),
            (None, Some(why)) => Some(format!("blocked: {why}")),
            (None, None) if view.wall.is_some() => view.wall.as_ref().map(|wall| wall.told(view.at)),
            (None, None) => self.unreachable().map(|origin| format!("robots unreachable: {origin}")),
        }
    }

    /// Starts a second, of all processes.
    pub(super) fn rate(&self) -> f64 {
        self.rate_of(self.starts())
    }

    /// The share of its pace that was used; all of it where there is no pace.
    pub(super) fn used(&self) -> f64 {
        self.share(self.starts())
    }

    fn share(&self, starts: u64) -> f64 {
        self.counted.view.allowed().map_or(1.0, |allowed| self.rate_of(starts) / allowed)
    }

    fn rate_of(&self, starts: u64) -> f64 {
        let view = &self.counted.view;
        let time = view.at.since(self.before.at);
        let of = |starts| rate_of(starts, time).unwrap_or_default();
        // An even pace may come to one start more than its share of so short a time: that is no faster pace.
        match view.allowed() {
            Some(allowed) if of(starts.saturating_sub(1)) <= allowed => of(starts).min(allowed),
            _ => of(starts),
        }
    }

    /// A host whose pages are kept back. As long as others of the site come, that is no news.
    fn unreachable(&self) -> Option<&str> {
        let pages = self.counted.tally.pages - self.before.tally.pages;
        let is_still = pages == 0 && self.counted.view.in_flight == 0;
        self.counted.unreachable.as_deref().filter(|_| is_still)
    }

    fn starts(&self) -> u64 {
        self.counted.view.starts.saturating_sub(self.before.starts)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no negative share, far below 2^64"
    )]
    fn used_thousandths(&self) -> u64 {
        // In so short a time an even pace may be a start short.
        (self.share(self.starts() + 1).min(1.0) * 1_000.0) as u64
    }
}

impl Total {
    /// What these sites do together.
    pub(super) fn of<'a>(sites: impl IntoIterator<Item = &'a SitePulse>) -> Self {
        sites.into_iter().fold(Self::default(), |sum, site| Self {
            sites: sum.sites + 1,
            rate: sum.rate + site.rate(),
            running: sum.running + site.counted.view.in_flight,
            waiting: sum.waiting + site.counted.view.download.waiting,
        })
    }
}

/// The sites that stand out most, the most urgent first; among equals, by name.
pub(super) fn standing_out(sites: &[SitePulse]) -> Vec<&SitePulse> {
    let mut sites: Vec<&SitePulse> = sites.iter().collect();
    sites.sort_by_cached_key(|site| (site.attention(), site.counted.view.site.clone()));
    sites.truncate(MOST);
    sites
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::frontier::{Freshness, KnownPause, View};

    /// A site of which pages wait, and that uses all of its pace.
    pub(in crate::monitor) fn site(name: &str) -> SitePulse {
        let mut view = View { site: name.to_owned(), ..View::example() };
        view.download.waiting = 40;
        let before = Before { at: view.at, starts: 0, tally: Tally::default() };
        (view.at, view.starts) = (Timestamp::from_millis(view.at.as_millis() + 10_000), 10);
        let tally = Tally { pages: 10, ..Tally::default() };
        let counted = Counted { view, tally, freshness: Freshness::default(), unreachable: None };
        SitePulse { counted, before }
    }

    fn blocked(site: &mut SitePulse) {
        let view = &mut site.counted.view;
        (view.blocked_until, view.blocked_why) = (Some(view.at), Some("Retry-After".to_owned()));
    }

    fn unreachable(site: &mut SitePulse) {
        (site.counted.unreachable, site.counted.tally.pages) = (Some("http://a: 503".to_owned()), 0);
    }

    #[test]
    fn a_site_stands_out_by_what_keeps_it_from_its_pace() {
        type Change = fn(&mut SitePulse);
        let cases: [(&str, Change, Attention); 11] = [
            ("uses all of its pace", |_| (), Attention::Works(1_000)),
            ("a start short", |s| s.counted.view.starts = 9, Attention::Works(1_000)),
            ("uses a fifth", |s| s.counted.view.starts = 1, Attention::Works(200)),
            ("has no pace", |s| s.counted.view.interval = 0, Attention::Works(1_000)),
            ("blocked", blocked, Attention::Blocked),
            ("unreachable", unreachable, Attention::Unreachable),
            (
                "unreachable, yet pages come",
                |s| s.counted.unreachable = Some(String::new()),
                Attention::Works(1_000),
            ),
            ("dead letters", |s| s.counted.tally.dead = 3, Attention::Died(Reverse(3))),
            (
                "dead before",
                |s| (s.counted.tally.dead, s.before.tally.dead) = (3, 3),
                Attention::Works(1_000),
            ),
            ("paused", |s| s.counted.view.pauses = vec![KnownPause::of("sale")], Attention::Rests),
            ("nothing waits", |s| s.counted.view.download.waiting = 0, Attention::Rests),
        ];
        for (what, change, attention) in cases {
            let mut site = site("shop");
            change(&mut site);
            assert_eq!(site.attention(), attention, "{what}");
        }
        let mut over = site("shop");
        over.counted.view.finished = true;
        assert_ne!(over.attention(), Attention::IsOver, "it was asked just now");
        over.before = Before::of(&over.counted);
        blocked(&mut over);
        assert_eq!(over.attention(), Attention::IsOver);
    }

    #[test]
    fn of_500_sites_ten_stand_out_the_most_urgent_first() {
        let mut sites: Vec<SitePulse> = (0..500).map(|n| site(&format!("s{n:03}"))).collect();
        blocked(&mut sites[499]);
        unreachable(&mut sites[400]);
        sites[300].counted.tally.dead = 1;
        sites[301].counted.tally.dead = 9;
        for (at, starts) in [(77, 5), (66, 0), (55, 8)] {
            sites[at].counted.view.starts = starts;
        }
        let names: Vec<&str> = standing_out(&sites).iter().map(|s| s.counted.view.site.as_str()).collect();
        assert_eq!(names, ["s499", "s400", "s301", "s300", "s066", "s077", "s055", "s000", "s001", "s002"]);
        assert_eq!(standing_out(&sites[..3]).len(), 3);
    }
}
