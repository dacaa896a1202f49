//! Whole crawls on the fake clock: the published arithmetic, a backlog after an outage, and who waits how long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use paced::internals::frontier::Claim;
use paced::internals::task::{FleetRules, Lease, UnitPick};

use crate::world::{AHEAD, Backend, LEAD, World, on_every_backend, starts_at, wait_for};

/// Crawls one site of a start a second with `workers`, each answer taking `takes` ms; when the last page was there. A worker
/// that is free only when a start is due has its own `LEAD` later.
async fn crawl(w: &World, pages: usize, workers: usize, takes: i64) -> (i64, Vec<i64>) {
    w.site_with("a", |shop| shop.settings.parallel = 100).await;
    w.put_many("a", pages).await;
    let begun = w.now();
    let mut busy: BinaryHeap<Reverse<(i64, u64)>> = BinaryHeap::new();
    let mut leases: BTreeMap<u64, Lease> = BTreeMap::new();
    let mut starts = Vec::new();
    loop {
        while let Some(Reverse((ends, token))) = busy.peek().copied()
            && ends <= w.now()
        {
            busy.pop();
            w.done(&leases.remove(&token).expect("it runs")).await;
        }
        let free = u32::try_from(workers - busy.len()).expect("small");
        let grant = w.grant(w.want(free, 0)).await;
        for lease in grant.leases {
            starts.push(starts_at(&lease) - begun);
            busy.push(Reverse((starts_at(&lease) + takes, lease.token)));
            leases.insert(lease.token, lease);
        }
        let ends = busy.peek().map(|Reverse((ends, _))| ends - w.now());
        // A full house sleeps until somebody is free, as a claimer does.
        let due = grant.next_in.filter(|_| busy.len() < workers);
        let Some(wait) = ends.into_iter().chain(due).min() else { return (w.now() - begun, starts) };
        w.pass(wait.max(1));
    }
}

#[test]
fn v15_v16_v18_the_published_arithmetic_of_a_thousand_pages() {
    let table = [
        (5_000, 1, 5_010_000),
        (5_000, 3, 1_673_340),
        (5_000, 5, 1_006_000),
        (5_000, 6, 1_004_010),
        (200, 1, 999_210),
        (200, 6, 999_210),
        (3_000, 3, 1_005_340),
        (3_000, 2, 1_506_000),
    ];
    for (takes, workers, expected) in table {
        on_every_backend(async |w| {
            let (took, starts) = crawl(w, 1_000, workers, takes).await;
            assert_eq!(took, expected, "T = {takes} ms, W = {workers}");
            assert_eq!(starts.len(), 1_000);
            assert!(starts.is_sorted_by(|one, other| other - one >= 1_000), "never over one start a second");
        });
    }
}

#[test]
fn v17_after_an_outage_each_site_gets_one_start_an_interval_from_the_first_second_on() {
    on_every_backend(async |w| {
        let sites: Vec<String> = (0..20).map(|i| format!("s{i:02}")).collect();
        for site in &sites {
            w.site(site).await;
            w.put_many(site, 250).await;
        }
        w.pass(3_600_000);
        let mut starts: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut dice = fastrand::Rng::with_seed(17);
        let (begun, seconds) = (w.now(), 8);
        while w.now() - begun < seconds * 1_000 {
            // Workers come at once, each with a claim of its own, more of them than there are due sites.
            for worker in 0..10 {
                let claim = Claim { owner: format!("w{worker}"), dice: vec![dice.u32(..)], ..w.want(3, 0) };
                for lease in w.grant(claim).await.leases {
                    starts.entry(lease.site.clone()).or_default().push(starts_at(&lease));
                    w.done(&lease).await;
                }
            }
            w.pass(dice.i64(50..150));
        }
        assert_eq!(starts.len(), 20);
        for (site, starts) in starts {
            assert!(starts.is_sorted_by(|one, other| other - one >= 1_000), "{site}: {starts:?}");
            assert!(starts.len() >= 7, "{site} was not left out: {starts:?}");
        }
    });
}

/// Until when all sites are due since the same moment, in ms.
const WARM: i64 = 4_000;

/// How late starts are, in ms, at the 99th percentile, with half the workers that are needed: each request takes 1 s, each
/// site may start each second, and every worker ends at a moment of its own.
async fn lateness(w: &World, sites: usize, seconds: i64, mut dice: impl FnMut() -> u32) -> i64 {
    for site in 0..sites {
        let name = format!("s{site:04}");
        w.site_with(&name, |shop| shop.settings.parallel = 1).await;
        w.put_many(&name, usize::try_from(seconds).expect("small")).await;
    }
    let mut due = BTreeMap::new();
    let mut late = Vec::new();
    let slots = i64::try_from(sites / 2).expect("small");
    let begun = w.now();
    for turn in 0..seconds * slots {
        w.pass(begun + turn * 1_000 / slots - w.now());
        let claim = Claim { dice: vec![dice()], ..w.want(1, 0) };
        for lease in w.grant(claim).await.leases {
            let before = due.insert(lease.site.clone(), w.now() + 1_000).unwrap_or(begun);
            if w.now() - begun > WARM {
                late.push(w.now() - before);
            }
            w.done(&lease).await;
        }
    }
    late.sort_unstable();
    late[late.len() * 99 / 100]
}

/// The same where the earliest is picked, whatever the dice.
async fn lateness_of_earliest(sites: usize, seconds: i64) -> i64 {
    let (w, mut dice) = (World::new(Backend::Sqlite), fastrand::Rng::with_seed(3));
    let rules = FleetRules { pick: UnitPick::Earliest, ..FleetRules::default() };
    w.frontier.agree(rules, 1).await.expect("agreed");
    lateness(&w, sites, seconds, || dice.u32(..)).await
}

/// The choice among due sites is random, and yet nobody waits for more than twice as long as where the earliest goes first.
fn check_lateness(sites: usize, seconds: i64) {
    let earliest = wait_for(lateness_of_earliest(sites, seconds));
    for seed in 0..3 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let random = wait_for(lateness(&World::new(Backend::Sqlite), sites, seconds, || dice.u32(..)));
        println!("{sites} sites, p99 lateness: earliest {earliest} ms, random {random} ms");
        assert!(random > earliest, "it is no choice: {random} ms");
        assert!(random <= 2 * earliest, "{sites} sites: {random} ms, against {earliest} ms for the earliest");
    }
}

#[test]
fn l2_none_of_sixteen_sites_starves_with_half_the_workers_needed() {
    check_lateness(16, 120);
}

#[test]
fn l2_none_of_sixty_four_sites_starves_with_half_the_workers_needed() {
    check_lateness(64, 40);
}

#[test]
fn l2_none_of_six_hundred_sites_starves_with_half_the_workers_needed() {
    check_lateness(600, 12);
}

#[test]
fn l1_sleeping_until_next_in_is_enough_to_end_a_crawl() {
    on_every_backend(async |w| {
        for (site, interval) in [("a", 700), ("b", 1_000), ("c", 1_900)] {
            w.site_with(site, |shop| shop.settings.interval = interval).await;
            w.put_many(site, 20).await;
        }
        let (mut starts, mut claims, mut last) = (0, 0, 0);
        loop {
            claims += 1;
            let grant = w.grant(w.want(4, 4)).await;
            for lease in &grant.leases {
                if lease.stage == paced::internals::task::Stage::Download {
                    starts += 1;
                    last = starts_at(lease);
                }
                w.fetched(lease).await;
            }
            match grant.next_in {
                _ if !grant.leases.is_empty() => {}
                Some(wait) => w.pass(wait),
                None => break,
            }
        }
        assert_eq!((starts, last), (60, LEAD + 19 * 1_900), "no later than the slowest site needs");
        assert_eq!(w.now(), last - AHEAD / 2);
        assert!(claims <= 180, "and without asking in vain: {claims} claims");
    });
}
