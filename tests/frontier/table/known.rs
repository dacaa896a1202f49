//! Pages that were seen in a run, when they are many: stores keep them in a form that grows with them.

use paced::internals::task::{Outcome, Put, PutReply, Settlement};

use crate::world::*;

/// More than a few of the sets in which a store may keep them.
const PAGES: usize = 1_500;

#[test]
fn each_of_many_pages_that_were_seen_is_known_and_no_other() {
    on_every_backend(async |world| {
        world.site_with("a", |site| (site.settings.interval, site.settings.parallel) = (0, 1_000)).await;
        world.frontier.begin_run("a", Vec::new()).await.expect("a run");
        world.put_many("a", PAGES).await;
        let mut done = 0;
        while done < PAGES {
            let leases = world.grant(world.want(50, 0)).await.leases;
            assert!(!leases.is_empty(), "{done} of {PAGES}");
            done += leases.len();
            let done = |lease| {
                let outcome = Outcome::Done { stored: None, recrawl: None };
                Settlement::of(lease, outcome)
            };
            let settlements = leases.into_iter().map(done).collect();
            world.frontier.settle(OWNER, world.token(), settlements).await.expect("answers");
        }
        let links = (0..2 * PAGES).map(|i| Put::link(url("a", &format!("{i:05}")), 1)).collect();
        let replies = world.frontier.put("a", links).await.expect("the site is there");
        let (seen, others) = replies.split_at(PAGES);
        assert_eq!(seen.iter().filter(|reply| **reply != PutReply::Known).count(), 0);
        assert_eq!(others.iter().filter(|reply| **reply != PutReply::Created).count(), 0);
        assert_eq!(world.frontier.inspect().await.expect("answers").known, PAGES as u64);
        // What the run before knew is forgotten whole.
        world.frontier.begin_fresh_run("a", Vec::new()).await.expect("a run");
        assert_eq!(world.frontier.inspect().await.expect("answers").known, 0);
    });
}
