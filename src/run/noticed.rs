//! What of a run an operator is to be told: too many of its pages are dead, or none came at all. Pure.

use std::collections::HashMap;

use crate::frontier::View;
use crate::settings::SHARE_PARTS;
use crate::task::{Event, EventKind};

/// Of fewer ended pages no share is told.
const LEAST_ENDED: u64 = 20;

/// The runs that this process looks at, counted from its first look at each.
#[derive(Debug)]
pub(super) struct NoticedRuns {
    /// So many may be dead, of [`SHARE_PARTS`].
    dead_share: u64,
    runs: HashMap<String, NoticedRun>,
}

#[derive(Debug)]
struct NoticedRun {
    number: i64,
    /// How many pages had come and died as it was seen first.
    before: EndedPages,
    /// No page had ended yet as it was seen first: of another run it isn't known whether it brought any.
    is_whole: bool,
    /// What was told of it.
    is_told: bool,
}

#[derive(Clone, Copy, Debug)]
struct EndedPages {
    came: u64,
    dead: u64,
}

impl EndedPages {
    fn of(view: &View) -> Self {
        let came = view.pages().saturating_sub(view.parse.dead);
        Self { came, dead: view.download.dead + view.parse.dead }
    }

    fn since(self, before: Self) -> Self {
        Self { came: self.came.saturating_sub(before.came), dead: self.dead.saturating_sub(before.dead) }
    }
}

impl NoticedRuns {
    /// None was looked at.
    pub(super) fn new(dead_share: u64) -> Self {
        Self { dead_share, runs: HashMap::new() }
    }

    /// How a site stands now; what is to be told of its run, once a run.
    pub(super) fn look(&mut self, view: &View) -> Option<Event> {
        let (now, number) = (EndedPages::of(view), view.run);
        let is_whole = view.starts <= u64::from(view.in_flight);
        let fresh = || NoticedRun { number, before: now, is_whole, is_told: false };
        let run = self.runs.entry(view.site.clone()).or_insert_with(fresh);
        if run.number != number {
            *run = fresh();
        }
        let ended = now.since(run.before);
        let event = if run.is_told { None } else { told(view, run.is_whole, ended, self.dead_share) };
        run.is_told |= event.is_some();
        event
    }
}

fn told(
    view: &View,
    is_whole: bool,
    EndedPages { came, dead }: EndedPages,
    dead_share: u64,
) -> Option<Event> {
    let (site, all) = (&view.site, came + dead);
    let (kind, text) = if is_whole && view.finished && came == 0 && dead > 0 {
        let text =
            format!("the run ended without a page, {dead} are dead: `paced dead list {site}` tells why");
        (EventKind::RunFailed, text)
    } else if all >= LEAST_ENDED && dead * SHARE_PARTS >= all * dead_share {
        let percent = dead * 100 / all;
        let text = format!(
            "{dead} of {all} pages of the run are dead, which is {percent}%: `paced dead list {site}` tells why"
        );
        (EventKind::DeadShare, text)
    } else {
        return None;
    };
    let event = Event::new(kind, site, text).with("dead", dead).with("ended", all);
    Some(event.with("run", view.run.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::state::StageCounts;
    use crate::settings::DEAD_SHARE;

    fn view(run: i64, came: u64, dead: u64, finished: bool) -> View {
        let download = StageCounts { dead, ..StageCounts::default() };
        let parse = StageCounts { created: came, ..StageCounts::default() };
        View { run, finished, download, parse, starts: came + dead, in_flight: 0, ..View::example() }
    }

    #[test]
    fn c19_a_share_of_dead_pages_is_told_once_a_run_from_twenty_ended_pages_on() {
        let mut runs = NoticedRuns::new(DEAD_SHARE);
        let mut look = |view: &View| runs.look(view).map(|event| (event.kind, event.figures["dead"]));
        assert_eq!(look(&view(1, 500, 400, false)), None, "of what was before nothing is known");
        assert_eq!(look(&view(1, 500, 419, false)), None, "19 pages");
        assert_eq!(look(&view(1, 519, 401, false)), None, "1 of 20");
        assert_eq!(look(&view(1, 518, 402, false)), Some((EventKind::DeadShare, 2)));
        assert_eq!(look(&view(1, 518, 460, false)), None, "it is told already");
        assert_eq!(look(&view(2, 518, 460, false)), None, "another run begins at nothing");
        assert_eq!(look(&view(2, 518, 480, false)), Some((EventKind::DeadShare, 20)));
    }

    #[test]
    fn c19_the_share_is_the_operator_s() {
        let event = |share, came, dead| {
            let mut runs = NoticedRuns::new(share);
            runs.look(&view(1, 0, 0, false));
            runs.look(&view(1, came, dead, false)).is_some()
        };
        assert!(event(SHARE_PARTS / 2, 10, 10) && !event(SHARE_PARTS / 2, 11, 10));
        assert!(event(SHARE_PARTS, 0, 20) && !event(SHARE_PARTS, 1, 99));
        assert!(!event(1, 30, 0), "none is dead");
    }

    #[test]
    fn c19_a_run_that_ends_without_a_page_has_failed_however_few_there_were() {
        let mut runs = NoticedRuns::new(DEAD_SHARE);
        runs.look(&view(1, 0, 0, false));
        assert_eq!(runs.look(&view(1, 0, 3, false)), None, "it goes on");
        let event = runs.look(&view(1, 0, 3, true)).expect("it ended");
        assert_eq!((event.kind, event.figures["ended"]), (EventKind::RunFailed, 3));
        runs.look(&view(2, 0, 3, false));
        assert_eq!(runs.look(&view(2, 1, 5, true)), None, "a page came");
        assert_eq!(runs.look(&view(3, 1, 5, true)), None, "nothing died");
        let mut late = NoticedRuns::new(DEAD_SHARE);
        late.look(&view(1, 5, 1, false));
        assert_eq!(late.look(&view(1, 5, 3, true)), None, "pages came before it was looked at");
    }
}
