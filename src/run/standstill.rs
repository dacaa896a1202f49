//! Sites of a crawl that stand still: nothing of them can be asked for, and nobody knows until when. Pure.

use std::time::{Duration, Instant};

use crate::frontier::View;

/// How long a site stands still already.
#[derive(Clone, Debug)]
pub(super) struct Standstill {
    progress: u64,
    looked: Instant,
    stood: Duration,
}

impl Standstill {
    /// A site that is looked at for the first time.
    pub(super) fn new(view: &View, now: Instant) -> Self {
        Self { progress: progress_of(view), looked: now, stood: Duration::ZERO }
    }

    /// How long it has stood still by now, with the reason if it does at this moment; a site that merely waits for its turn
    /// doesn't, nor one that is paused until a time. `away` tells that nobody there answered lately, `lacking` why this process
    /// leaves it to others, `held_up` that it isn't the site that is waited for.
    pub(super) fn look(
        &mut self,
        view: &View,
        away: bool,
        lacking: Option<String>,
        held_up: bool,
        now: Instant,
    ) -> Option<(Duration, String)> {
        let (progress, since) = (progress_of(view), now.duration_since(self.looked));
        let moves = self.progress != progress && !away;
        (self.progress, self.looked) = (progress, now);
        if moves || held_up || view.goes_on_by_itself() {
            self.stood = Duration::ZERO;
            return None;
        }
        let why = view.left_alone().or(lacking).or_else(|| reason(view, away))?;
        self.stood += since;
        (view.in_flight == 0).then_some((self.stood, why))
    }
}

/// Rises with every page that came to something; asking for `robots.txt` in vain is no progress.
fn progress_of(view: &View) -> u64 {
    let download = &view.download;
    let pages = view.pages() + view.parse.done;
    pages + download.dead + download.retried + download.redirected + download.excluded.values().sum::<u64>()
}

/// Why nothing of the site can be asked for.
fn reason(view: &View, away: bool) -> Option<String> {
    if away {
        return Some("nobody there answers".to_owned());
    }
    let (download, parse) = (&view.download, &view.parse);
    let is_paced = view
        .last_start
        .is_some_and(|last| last.as_millis().saturating_add(view.interval) >= view.due.as_millis());
    match (download.ready(), download.parked + download.delayed) {
        (0, 0) if view.parse_pause().is_some() => view.parse_pause(),
        (0, 0) => {
            Some(format!("{} stored pages are to be parsed", parse.waiting + parse.delayed + parse.leased))
        }
        // Kept back, but its pace would hold it back as well.
        (0, _) if view.due > view.at => None,
        (0, delayed) => {
            Some(format!("{delayed} pages wait for their next attempt, or for robots.txt to be reachable"))
        }
        _ if view.due > view.at && !is_paced => {
            Some(format!("nothing may start there before {}; does another program hold its pace?", view.due))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::frontier::KnownPause;
    use crate::frontier::state::StageCounts;

    const MINUTE: Duration = Duration::from_mins(1);

    fn view(waiting: u64, delayed: u64) -> View {
        View { download: StageCounts { waiting, delayed, ..StageCounts::default() }, ..View::example() }
    }

    fn blocked(view: View) -> View {
        let until = view.at;
        View { blocked_until: Some(until), blocked_why: Some("Retry-After".to_owned()), ..view }
    }

    fn due_later(view: View) -> View {
        let due = Timestamp::from_millis(view.at.as_millis() + 900_000);
        View { due, interval: 900_000, last_start: Some(view.at), ..view }
    }

    /// For how long it stands still after it was looked at each minute, as this each time.
    fn stood(views: &[View]) -> Option<Duration> {
        let began = Instant::now();
        let mut still = Standstill::new(&views[0], began);
        let mut told = None;
        for (minute, view) in (1..).zip(views) {
            told = still.look(view, false, None, false, began + MINUTE * minute);
        }
        told.map(|(stood, _)| stood)
    }

    #[test]
    fn who_waits_for_its_turn_does_not_stand_still_however_long_that_takes() {
        assert_eq!(stood(&vec![view(5, 0); 100]), None, "others of its group, or of the process, come first");
        assert_eq!(stood(&vec![due_later(view(5, 0)); 100]), None, "a long interval");
        assert_eq!(stood(&vec![due_later(view(0, 1)); 100]), None, "a back-off shorter than the interval");
    }

    #[test]
    fn who_is_blocked_or_unreachable_stands_still_and_a_page_ends_that() {
        assert_eq!(stood(&vec![blocked(view(5, 0)); 10]), Some(MINUTE * 10));
        assert_eq!(stood(&vec![view(0, 5); 10]), Some(MINUTE * 10));
        let mut parked = view(5, 0);
        parked.download.parked = 5;
        assert_eq!(stood(&vec![parked; 10]), Some(MINUTE * 10), "their host can't be reached");
        let held = View { interval: 1_000, ..due_later(view(5, 0)) };
        assert_eq!(stood(&vec![held; 10]), Some(MINUTE * 10), "by another program");
        // What was kept back waits for a moment before each try in vain: that counts neither way.
        let tries: Vec<View> = (0..10).map(|n| if n % 2 == 0 { view(5, 0) } else { view(0, 5) }).collect();
        assert_eq!(stood(&tries), Some(MINUTE * 5));
        let mut moved = view(0, 5);
        moved.download.retried = 1;
        assert_eq!(stood(&[view(0, 5), view(0, 5), moved.clone()]), None);
        assert_eq!(stood(&[view(0, 5), moved.clone(), moved]), Some(MINUTE));
        // A block that a busy group meets now is no reason to leave a site that waited for its turn until then.
        let long: Vec<View> = std::iter::repeat_n(view(5, 0), 99).chain([blocked(view(5, 0))]).collect();
        assert_eq!(stood(&long), Some(MINUTE));
    }

    #[test]
    fn where_nobody_answers_tries_in_vain_are_no_progress_and_our_own_troubles_count_for_nobody() {
        let began = Instant::now();
        let mut still = Standstill::new(&view(5, 0), began);
        let mut tried = view(5, 0);
        tried.download.retried = 3;
        let told = still.look(&tried, true, None, false, began + MINUTE);
        assert_eq!(told, Some((MINUTE, "nobody there answers".to_owned())));
        assert_eq!(
            still.look(&View { in_flight: 1, ..tried.clone() }, true, None, false, began + MINUTE * 2),
            None
        );
        assert_eq!(still.look(&tried, true, None, true, began + MINUTE * 3), None);
        let told = still.look(&tried, true, None, false, began + MINUTE * 4);
        assert_eq!(told.map(|(stood, _)| stood), Some(MINUTE));
    }

    #[test]
    fn who_is_left_to_others_stands_still_though_its_pages_are_ready() {
        let began = Instant::now();
        let mut still = Standstill::new(&view(5, 0), began);
        let mut look = |view: &View, lacking: Option<&str>, minute: u32| {
            still.look(view, false, lacking.map(str::to_owned), false, began + MINUTE * minute)
        };
        assert_eq!(look(&view(5, 0), Some("no key"), 1), Some((MINUTE, "no key".to_owned())));
        assert_eq!(look(&view(5, 0), None, 2), None, "it is tried again: that counts neither way");
        assert_eq!(look(&view(5, 0), Some("no key"), 3).map(|(stood, _)| stood), Some(2 * MINUTE));
        let mut moved = view(4, 0);
        moved.parse.done = 1;
        assert_eq!(look(&moved, Some("no key"), 4), None, "others have what it takes");
    }

    #[test]
    fn a_pause_without_an_end_is_a_standstill_and_one_with_an_end_is_none() {
        let paused = View { pauses: vec![KnownPause::of("lunch")], ..view(3, 0) };
        assert_eq!(stood(&[paused.clone(), paused.clone()]), Some(2 * MINUTE));
        let until = Some(Timestamp::from_millis(paused.at.as_millis() + 7_200_000));
        let ends = View { pauses: vec![KnownPause { until, ..KnownPause::of("lunch") }], ..paused };
        assert_eq!(stood(&[ends.clone(), ends.clone(), ends]), None);
    }
}
