//! Why a site isn't moving, or that it is, in one line. Pure.

use std::time::Duration;

use crate::frontier::View;
use crate::quantity::spoken;

/// Why nothing is claimed where no living process works on a site.
pub const NO_WORKER: &str = "no process works on it: start `paced crawl` or `paced work`";

/// One line on what a site waits for. `nobody` tells why no process claims what can be claimed of it, `unreachable` which
/// of its hosts' robots.txt can't be had for now: that keeps the host's own pages back, and no others.
pub fn why(view: &View, nobody: Option<&str>, unreachable: Option<&str>) -> String {
    let told = reason(view, nobody, unreachable);
    let told = match view.parse_pause() {
        Some(pause) => format!("{told}; {pause}"),
        None => told,
    };
    match view.seeds {
        Some((put, of)) if !view.is_given_up => {
            format!("{told}; {put} of {of} seeds are put: if nobody puts the others, `paced seed FILE` does")
        }
        _ => told,
    }
}

fn reason(view: &View, nobody: Option<&str>, unreachable: Option<&str>) -> String {
    let counts = &view.download;
    if view.run == 0 {
        return "never run: `paced crawl` or `paced seed` begins its first run".to_owned();
    }
    if let Some(pause) = view.pause() {
        return pause;
    }
    if view.is_given_up {
        return "its run is being given up: if nobody does that any more, `paced seed FILE` does, and begins again".to_owned();
    }
    if let Some(until) = view.blocked_until {
        let why = view.blocked_why.as_deref().unwrap_or("no reason was given");
        return format!("blocked until {until}, for {}: {why}", spoken(until.since(view.at)));
    }
    if let Some(wall) = &view.wall {
        return wall.told(view.at);
    }
    if view.finished {
        let later = counts.scheduled.saturating_sub(counts.behind);
        let left = [(later, "put for a later time"), (counts.behind, "behind other steps of their session")];
        let left = left.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("; {count} {why}"));
        return format!("run {} is finished{}", view.run, left.collect::<Vec<_>>().concat());
    }
    let is_moving = counts.ready() > 0 || view.in_flight > 0;
    let unreachable = unreachable.filter(|_| is_moving || counts.parked + counts.delayed > 0);
    let told = nobody.map_or_else(|| busy(view), str::to_owned);
    match unreachable {
        None => told,
        Some(host) if is_moving || nobody.is_some() => format!("{told}; robots unreachable: {host}"),
        Some(host) => format!("robots unreachable: {host}"),
    }
}

/// What a site waits for that may go on.
fn busy(view: &View) -> String {
    let (counts, in_flight) = (&view.download, view.in_flight);
    if counts.ready() == 0 {
        return match (in_flight, counts.parked + counts.delayed, view.parse.waiting + view.parse.leased) {
            (0, 0, pages) => format!("nothing left to ask for; {pages} stored pages are to be parsed"),
            (0, delayed, _) => {
                format!(
                    "nothing is ready; {delayed} are kept back: after a failure, a lost lease, or for robots.txt"
                )
            }
            (running, ..) => format!("{running} in flight, nothing else waits"),
        };
    }
    if in_flight >= view.parallel {
        let took =
            view.response.map(|ms| format!(": answers take {}", spoken(millis(ms)))).unwrap_or_default();
        return format!("{in_flight} in flight = parallel{took}");
    }
    let wait = view.due.since(view.at);
    let pace = spoken(millis(view.interval));
    if wait.is_zero() {
        return format!("a start is due now; {} wait, one start per {pace}", counts.ready());
    }
    format!("next start in {}; {} wait, one start per {pace}", spoken(wait), counts.ready())
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::frontier::state::StageCounts;
    use crate::frontier::{KnownPause, View};

    fn view() -> View {
        View {
            in_flight: 1,
            download: StageCounts { waiting: 40, ..StageCounts::default() },
            response: Some(9_000),
            ..View::example()
        }
    }

    fn told(change: impl FnOnce(&mut View)) -> String {
        let mut view = view();
        change(&mut view);
        why(&view, None, None)
    }

    #[test]
    fn a_site_says_what_it_waits_for() {
        let later = |ms: i64| Timestamp::from_millis(1_800_000_000_000 + ms);
        assert_eq!(told(|_| ()), "a start is due now; 40 wait, one start per 1 s");
        assert_eq!(told(|v| v.due = later(3_200)), "next start in 3.2 s; 40 wait, one start per 1 s");
        assert_eq!(told(|v| v.in_flight = 8), "8 in flight = parallel: answers take 9 s");
        assert_eq!(told(|v| v.download.waiting = 0), "1 in flight, nothing else waits");
        assert_eq!(told(|v| v.pauses = vec![KnownPause::of("sale")]), "paused: sale");
        assert_eq!(told(|v| v.run = 0), "never run: `paced crawl` or `paced seed` begins its first run");
        assert_eq!(told(|v| v.finished = true), "run 1 is finished");
        assert_eq!(
            told(|v| v.is_given_up = true),
            "its run is being given up: if nobody does that any more, `paced seed FILE` does, and begins again"
        );
        assert_eq!(
            told(|v| v.seeds = Some((1_000, 2_500))),
            "a start is due now; 40 wait, one start per 1 s; 1000 of 2500 seeds are put: if nobody puts the others, \
             `paced seed FILE` does"
        );
        let blocked = |v: &mut View| {
            (v.blocked_until, v.blocked_why) = (Some(later(90_000)), Some("Retry-After".to_owned()));
        };
        assert_eq!(told(blocked), "blocked until 2027-01-15T08:01:30.000Z, for 1.5 min: Retry-After");
        let idle = |v: &mut View| (v.download.waiting, v.in_flight, v.download.delayed) = (0, 0, 3);
        assert_eq!(
            told(idle),
            "nothing is ready; 3 are kept back: after a failure, a lost lease, or for robots.txt"
        );
        assert_eq!(why(&view(), Some(NO_WORKER), None), NO_WORKER);
    }

    #[test]
    fn a_host_without_robots_txt_is_the_reason_only_where_nothing_else_moves() {
        let told = |change: fn(&mut View)| {
            let mut view = view();
            change(&mut view);
            why(&view, None, Some("https://b.shop.example: 503"))
        };
        let lost = "robots unreachable: https://b.shop.example: 503";
        let nobody = why(&view(), Some(NO_WORKER), Some("https://b.shop.example: 503"));
        assert_eq!(nobody, format!("{NO_WORKER}; {lost}"));
        assert_eq!(told(|_| ()), format!("a start is due now; 40 wait, one start per 1 s; {lost}"));
        assert_eq!(
            told(|v| (v.download.waiting, v.download.delayed) = (0, 3)),
            format!("1 in flight, nothing else waits; {lost}")
        );
        assert_eq!(told(|v| (v.download.waiting, v.in_flight, v.download.delayed) = (0, 0, 3)), lost);
        assert_eq!(told(|v| (v.in_flight, v.download.parked) = (0, 40)), lost);
        assert_eq!(
            told(|v| v.download.parked = 30),
            format!("a start is due now; 10 wait, one start per 1 s; {lost}")
        );
        assert_eq!(
            told(|v| (v.download.waiting, v.in_flight) = (0, 0)),
            "nothing left to ask for; 0 stored pages are to be parsed",
            "nothing waits for that host"
        );
    }
}
