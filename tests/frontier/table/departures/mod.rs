//! Starts are granted ahead, each for a time of its own, and two waits hold at once.

mod ahead;
mod late;
mod moved;
mod void;

use paced::internals::frontier::{Rearm, Registration};
use paced::internals::task::Lease;

use crate::world::{START, World, ms, starts_at};

/// A site with an interval, of group `g` where one of its own is given, with so many pages.
async fn paced_site(w: &World, name: &str, interval: i64, group: Option<i64>, pages: usize) {
    w.site_with(name, |site| {
        site.settings.interval = interval;
        site.group = group.map(|wait| ("g".to_owned(), wait));
    })
    .await;
    w.put_many(name, pages).await;
}

/// Moves a site to group `g`.
fn to_group(interval: i64, group: i64) -> impl FnOnce(&mut Registration) {
    move |site| {
        site.settings.interval = interval;
        site.group = Some(("g".to_owned(), group));
    }
}

/// A download of that site, by a process that works on it alone; its request starts now.
async fn start_of(w: &World, site: &str) -> Lease {
    let lease = w.grant_of(&[site], w.want(1, 0)).await.leases.pop().expect("a download is due");
    w.depart(&lease);
    lease
}

/// One start after the other, each granted as soon as can be, and where it came from: settled at once.
async fn starts(w: &World, many: usize) -> Vec<(String, i64)> {
    let mut starts = Vec::new();
    while starts.len() < many {
        let grant = w.grant(w.want(1, 0)).await;
        for lease in &grant.leases {
            starts.push((lease.site.clone(), starts_at(lease)));
            w.done(lease).await;
        }
        w.pass(grant.next_in.expect("something is due some day"));
    }
    starts
}

async fn block(w: &World, site: &str, wait: i64) {
    assert!(w.frontier.block(site, ms(wait), "429").await.expect("answers"));
}

/// Asks about a start that is far away once more.
async fn ask_again(w: &World, lease: &Lease, start: i64) -> Rearm {
    w.frontier.rearm_asking(&lease.key(), Some(START + start), 0).await.expect("answers")
}
