//! Many claimers on the fake clock: twice as many take no longer, and what they ask of the store grows with pages, not with
//! them (C18, L1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use paced::internals::frontier::{Claim, Forgotten};
use paced::internals::task::{Lease, Stage};

use crate::world::{AHEAD, Backend, World, on_every_backend, starts_at, wait_for};

/// As the pool does: so many in one claim, and a look after so long at the latest.
const MOST_GRANTED: usize = 32;
const LONGEST_SLEEP: i64 = 5_000;

/// What is crawled, and by whom.
#[derive(Clone, Copy)]
struct Plan {
    sites: usize,
    interval: i64,
    pages: usize,
    /// How long an answer takes.
    takes: i64,
    processes: usize,
    slots: usize,
    /// So many of them come no more from then on.
    killed: (usize, i64),
}

/// Forty sites may start each second, and an answer takes one and a half.
const SLOW: Plan = Plan {
    sites: 40,
    interval: 1_000,
    pages: 20,
    takes: 1_500,
    processes: 1,
    slots: 60,
    killed: (0, i64::MAX),
};
/// 250 starts a second, and slots for all of them in each process.
const FAST: Plan = Plan { sites: 50, interval: 200, pages: 25, takes: 300, slots: 500, ..SLOW };

/// What a crawl asked for.
#[derive(Debug, Default)]
struct Asked {
    took: i64,
    claims: usize,
    /// The same while every site has pages and the beginning is over.
    steady: (usize, usize),
    /// How much later than it might have a start came at most, in ms.
    late: i64,
}

/// One process: its slots, what runs in them, and when something may be claimed.
struct Process {
    name: String,
    slots: usize,
    takes: i64,
    busy: BinaryHeap<Reverse<(i64, u64)>>,
    leases: BTreeMap<u64, Lease>,
    due: Option<i64>,
    left_some: bool,
}

impl Process {
    fn new(number: usize, plan: Plan) -> Self {
        let (busy, leases) = (BinaryHeap::new(), BTreeMap::new());
        let (slots, takes) = (plan.slots, plan.takes);
        Self { name: format!("p{number}"), slots, takes, busy, leases, due: Some(0), left_some: false }
    }

    /// When it does something next.
    fn next(&self) -> Option<i64> {
        let due = self.due.filter(|_| self.busy.len() < self.slots);
        let ends = self.busy.peek().map(|Reverse((ends, _))| *ends);
        due.into_iter().chain(ends).min()
    }

    /// Settles what has ended and fills its slots where that may find something; how many claims it took, and what it was granted.
    async fn turn(&mut self, w: &World, dice: &mut fastrand::Rng) -> (usize, Vec<(String, i64)>) {
        let mut is_worth_it = self.due.is_some_and(|due| due <= w.now());
        while let Some(Reverse((ends, token))) = self.busy.peek().copied()
            && ends <= w.now()
        {
            self.busy.pop();
            w.done(&self.leases.remove(&token).expect("it runs")).await;
            is_worth_it |= self.left_some;
        }
        let (mut claims, mut starts) = (0, Vec::new());
        while is_worth_it && self.busy.len() < self.slots {
            claims += 1;
            is_worth_it = self.claim(w, dice, &mut starts).await == Some(0);
        }
        (claims, starts)
    }

    /// Asks once for as much as fits; how soon there is more.
    async fn claim(
        &mut self,
        w: &World,
        dice: &mut fastrand::Rng,
        starts: &mut Vec<(String, i64)>,
    ) -> Option<i64> {
        let wanted = u32::try_from((self.slots - self.busy.len()).min(MOST_GRANTED)).expect("small");
        let rolled = (0..MOST_GRANTED).map(|_| dice.u32(..)).collect();
        let claim = Claim { owner: self.name.clone(), dice: rolled, ..w.want(wanted, 0) };
        let grant = w.grant(claim).await;
        self.left_some = grant.leases.len() >= wanted as usize;
        self.due = grant.next_in.map(|wait| w.now() + wait.min(LONGEST_SLEEP));
        for lease in grant.leases {
            starts.push((lease.site.clone(), starts_at(&lease)));
            self.busy.push(Reverse((starts_at(&lease) + self.takes, lease.token)));
            self.leases.insert(lease.token, lease);
        }
        grant.next_in
    }
}

async fn crawl(w: &World, plan: Plan) -> Asked {
    let mut dice = fastrand::Rng::with_seed(18);
    for site in 0..plan.sites {
        let name = format!("s{site:02}");
        w.site_with(&name, |shop| {
            shop.settings.parallel = 8;
            // No two have one beat.
            shop.settings.interval = plan.interval - 40 + 2 * i64::try_from(site).expect("small");
        })
        .await;
        w.put_many(&name, plan.pages).await;
    }
    let mut fleet: Vec<Process> = (0..plan.processes).map(|number| Process::new(number, plan)).collect();
    let (begun, mut asked, mut last, mut left) =
        (w.now(), Asked::default(), BTreeMap::new(), plan.sites * plan.pages);
    let steady = begun + 1_000..begun + i64::try_from(plan.pages - 2).expect("small") * (plan.interval - 40);
    while let Some((at, number)) = next_of(&fleet, plan.killed, w.now()).filter(|_| left > 0) {
        w.pass((at - w.now()).max(0));
        let (claims, starts) = fleet[number].turn(w, &mut dice).await;
        asked.claims += claims;
        left -= starts.len();
        if steady.contains(&w.now()) {
            asked.steady = (asked.steady.0 + claims, asked.steady.1 + starts.len());
        }
        for (site, start) in starts {
            let interval = plan.interval - 40 + 2 * site[1..].parse::<i64>().expect("a number");
            let before = last.insert(site, start).unwrap_or(start - interval);
            asked.late = asked.late.max(start - before - interval);
        }
        // Who was told by what this one did comes when it was told.
        let told = w.asleep(Stage::Download).unwrap_or_default();
        for process in &mut fleet {
            process.due = told.get(&process.name).copied().or(process.due);
        }
    }
    for process in &mut fleet {
        w.pass((process.busy.iter().map(|Reverse((ends, _))| *ends).max().unwrap_or(0) - w.now()).max(0));
        (process.due, process.left_some) = (None, false);
        process.turn(w, &mut dice).await;
    }
    asked.took = w.now() - begun;
    asked
}

/// Whose turn is next of those who live, and when: in the next ms at the soonest.
fn next_of(fleet: &[Process], killed: (usize, i64), now: i64) -> Option<(i64, usize)> {
    let turns = fleet.iter().enumerate().filter_map(|(number, process)| Some((process.next()?, number)));
    let alive = turns.filter(|(at, number)| *number >= killed.0 || (*at).max(now) < killed.1);
    alive.min_by_key(|(at, number)| ((*at).max(now), *number))
}

/// The same pages once more, for others.
async fn crawl_anew(w: &World, plan: Plan) -> Asked {
    for site in 0..plan.sites {
        assert_eq!(w.frontier.forget(&format!("s{site:02}")).await.expect("answers"), Forgotten::Wholly);
    }
    crawl(w, plan).await
}

#[test]
fn c18_twice_the_workers_take_no_longer_and_ask_the_store_no_more_often() {
    on_every_backend(async |w| {
        let sixty = crawl(w, SLOW).await;
        let more = crawl_anew(w, Plan { slots: 120, ..SLOW }).await;
        assert!(more.took <= sixty.took && more.claims <= sixty.claims, "{sixty:?}, {more:?}");
        assert!(sixty.claims <= SLOW.sites * SLOW.pages, "about one claim a page: {sixty:?}");
    });
}

#[test]
fn c18_twice_the_processes_take_no_longer() {
    on_every_backend(async |w| {
        let four = crawl(w, Plan { processes: 4, slots: 15, ..SLOW }).await;
        let eight = crawl_anew(w, Plan { processes: 8, slots: 15, ..SLOW }).await;
        assert!(eight.took <= four.took, "{four:?}, {eight:?}");
    });
}

#[test]
fn c18_l1_claims_a_start_hardly_grow_with_the_processes_on_a_server() {
    for (processes, most) in [(1, 20), (4, 60), (24, 120), (100, 250)] {
        let Some(w) = on_a_server() else { return };
        let asked = wait_for(crawl(&w, Plan { processes, ..FAST }));
        let (claims, starts) = asked.steady;
        println!("{processes} claimers: {claims} claims for {starts} starts, at most {} ms late", asked.late);
        assert!(starts > 500 && claims * 100 <= most * starts, "{processes} claimers: {asked:?}");
        assert!(asked.late <= AHEAD, "{processes} claimers: {asked:?}");
    }
}

#[test]
fn l1_what_a_killed_claimer_was_told_another_one_meets_within_a_quarter_of_a_second() {
    let one_site = Plan { sites: 1, interval: 1_000, pages: 8, ..FAST };
    for (plan, processes, killed, most) in [
        (FAST, 2, 1, AHEAD),
        (FAST, 24, 1, AHEAD),
        (FAST, 24, 12, 1_000),
        (one_site, 2, 1, 250 + AHEAD),
        (one_site, 4, 1, 250 + AHEAD),
        // Who stood in for it as well.
        (one_site, 4, 2, 1_000),
    ] {
        let Some(w) = on_a_server() else { return };
        let asked = wait_for(crawl(&w, Plan { processes, killed: (killed, 1_700), ..plan }));
        println!("{killed} of {processes} killed: at most {} ms late", asked.late);
        assert!(asked.late <= most, "{killed} of {processes} killed: {asked:?}");
    }
}

/// Only where processes of many machines share a frontier are they told moments of their own.
fn on_a_server() -> Option<World> {
    Backend::all().into_iter().find(|backend| matches!(backend, Backend::Redis)).map(World::new)
}
