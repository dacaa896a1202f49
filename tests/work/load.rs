//! What a fleet asks one Redis for, by kind of step: it grows with pages and sites, not with processes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fleet::{seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

const SITES: usize = 10;
/// How long it is counted for.
const WHILE: Duration = Duration::from_secs(6);

/// Steps of a busy fleet, and pages that came meanwhile; and steps once nothing is left to be done.
struct Asked {
    busy: BTreeMap<String, usize>,
    pages: usize,
    idle: BTreeMap<String, usize>,
}

/// Sites with more pages than are counted, and so many processes.
fn asked_by(processes: usize) -> Option<Asked> {
    let shared = Shared::redis()?;
    let served: Vec<TestSite> = (0..SITES).map(|_| star(60).serve()).collect();
    let file = |(n, site)| SiteFile::of(&format!("s{n}"), site).interval(ms(200)).pace("robots = \"ignore\"");
    let ground = Ground::on(&shared, served.iter().enumerate().map(file));
    seed(&ground);
    // Half of them wait for the end, which asks for more.
    let start = |n: usize| {
        let worker = if n.is_multiple_of(2) { to_the_end } else { worker };
        worker(&ground, &format!("w{n}")).start()
    };
    let workers: Vec<Running> = (0..processes).map(start).collect();
    let arrived = || served.iter().map(|site| site.arrivals().len()).sum::<usize>();
    eventually("a fleet in full swing", || (arrived() > 4 * SITES).then_some(()));
    let (steps, before) = (shared.server().heard_steps(), arrived());
    std::thread::sleep(WHILE);
    let (busy, pages) = (steps.counts(), arrived() - before);
    eventually("the end of all runs", || (arrived() == 61 * SITES).then_some(()));
    std::thread::sleep(Duration::from_secs(3));
    steps.counts();
    std::thread::sleep(WHILE);
    let idle = steps.counts();
    let stops = workers.into_iter().enumerate().map(|(n, mut worker)| {
        if n.is_multiple_of(2) {
            assert!(worker.ended(), "nothing is left");
        } else {
            worker.terminate();
        }
        worker.finish().expect_code(0).stderr
    });
    let logs: Vec<String> = stops.collect();
    // Each site is told of by somebody, with its pace, and not by all of them.
    for site in 0..SITES {
        let line = format!("pulse site=s{site} rate=");
        let lines = logs.iter().flat_map(|log| log.lines()).filter(|told| told.contains(&line));
        let rates: Vec<&str> =
            lines.filter_map(|told| told.split("rate=").nth(1)?.split('/').next()).collect();
        let is_true = |rate: &&str| rate.parse::<f64>().is_ok_and(|rate| (4.0..=5.1).contains(&rate));
        assert!(rates.iter().any(is_true), "site s{site}: {rates:?}");
        assert!(rates.len() < 10, "site s{site} is told of by all of them: {rates:?}");
    }
    Some(Asked { busy, pages, idle })
}

#[test]
fn what_a_fleet_asks_for_grows_with_pages_and_not_with_processes() {
    in_three_tries(|| {
        let (Some(few), Some(many)) = (asked_by(2), asked_by(12)) else { return Ok(()) };
        for (processes, asked) in [(2, &few), (12, &many)] {
            println!(
                "{processes} processes: {} pages: {:?}; idle: {:?}",
                asked.pages, asked.busy, asked.idle
            );
            let count = |name: &str| asked.busy.get(name).copied().unwrap_or(0);
            bound(asked.pages >= 240, format_args!("{} pages", asked.pages))?;
            // Each site every five seconds, and once more where another process begins to tell of it. And who waits for the end
            // and has nothing in hand looks at one site now and then.
            let views = 5 * SITES + processes;
            bound(count("view.site") <= views, format_args!("{processes}: {:?}", asked.busy))?;
            // The settlements of its download and of its parse: nothing else is asked for with each page.
            bound(
                count("settle.step") <= 2 * asked.pages + 20,
                format_args!("{processes}: {:?}", asked.busy),
            )?;
            bound(2 * count("claim.step") <= asked.pages, format_args!("{processes}: {:?}", asked.busy))?;
            // A beat every three seconds and a claim every five, of all processes; one feeds, and sites are told of for a minute.
            let workers = processes / 2;
            let idle: usize = asked.idle.values().sum();
            bound(idle <= workers * 6 + 3 * SITES + 10, format_args!("{processes}: {:?}", asked.idle))?;
        }
        Ok(())
    });
}
