//! The last log lines of a crawl or a worker: what came of each site.

use std::collections::BTreeSet;

use tracing::{error, info, warn};

use super::sessions::all_told_held;
use crate::frontier::View;
use crate::monitor::Tally;
use crate::quantity::compact;
use crate::run::{CrawlReport, Ending, SiteReport};
use crate::task::Exclusion;

/// The last log lines: what came of it, site by site, and how it ended.
pub(in crate::cli) fn tell(report: &CrawlReport) {
    report.sites.iter().for_each(|site| tell_site(&site.view, site.done(), site.tally));
    for (site, why) in &report.given_up {
        warn!(site, "given up: {why}; it goes on at the next start");
    }
    if report.ending == Ending::Finished && report.is_fruitless() {
        report.sites.iter().for_each(tell_why_nothing);
    }
    if let Some((site, dead, came)) = report.mostly_dead().filter(|_| !report.is_fruitless()) {
        warn!(site, dead, came, "more of its pages died than came: `paced dead list` tells why");
    }
    report.sites.iter().for_each(|site| warn_of_held(&site.view));
    let dead = report.dead();
    match report.ending {
        Ending::Finished => info!(dead, "done"),
        Ending::GivenUp => warn!(dead, "ended early: sites were given up"),
        Ending::Deadline => warn!(dead, "ended early: the deadline is over; the next start goes on here"),
        Ending::MaxPages => warn!(dead, "ended early: --max-pages is reached; the next start goes on here"),
        Ending::Drained => warn!(dead, "drained; the next start goes on here"),
        Ending::Stopped | Ending::Lacking => warn!(dead, "stopped; the next start goes on here"),
    }
}

/// Sessions that wait for somebody.
pub(in crate::cli) fn warn_of_held(view: &View) {
    for held in all_told_held(view) {
        warn!(site = view.site, "{held}");
    }
}

/// Pages came, and none was an item, though the site's rules make items: mostly a `follow` or a `match` is wrong.
pub(in crate::cli) fn warn_of_no_items(report: &CrawlReport, with_items: &BTreeSet<String>) {
    let whole = report.sites.iter().filter(|site| site.run.begun && site.view.finished);
    let fruitless = |report: &&SiteReport| {
        report.tally.pages > 0 && report.tally.items == 0 && report.view.parse.letters == 0
    };
    for report in whole.filter(fruitless) {
        let (site, pages) = (&report.view.site, report.tally.pages);
        if with_items.contains(site) {
            warn!(
                site,
                pages, "no page was an item: `paced try URL` shows which links and rules a page meets"
            );
        }
    }
}

/// Why not one page of a site was kept, and what to do.
fn tell_why_nothing(report: &SiteReport) {
    let (forbidden, odd) = (report.excluded(Exclusion::Robots), report.excluded(Exclusion::Type));
    let (site, letters) = (&report.view.site, report.view.download.letters);
    let why = if forbidden > 0 {
        format!(
            "robots.txt forbids what was asked for ({forbidden}); ask the site's owner for leave, or begin with seeds that it allows"
        )
    } else if odd > 0 {
        format!(
            "no answer is of a type that is accepted ({odd} others); mend accept_types in [fetch], or the seeds"
        )
    } else {
        format!("{letters} dead letters, and no page; mend what they tell, or the seeds, and start again")
    };
    error!(site, "nothing could be crawled: {why}");
}

/// What came of one site; `done` counts its downloads that came to an end.
pub(in crate::cli) fn tell_site(view: &View, done: u64, tally: Tally) {
    info!(
        site = view.site,
        done,
        waiting = view.download.waiting + view.download.delayed,
        dead = view.download.letters + view.parse.letters,
        items = tally.items,
        early = tally.early,
        took = %compact(view.at.since(view.run_began)),
        "crawled"
    );
}
