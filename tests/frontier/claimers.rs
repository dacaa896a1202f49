//! Many claimers on the fake clock: twice as many take no longer and ask the store for little more (C18).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use paced::internals::frontier::{Claim, Forgotten};
use paced::internals::task::Lease;

use crate::world::{World, on_every_backend, starts_at};

/// Each site may start each second, and an answer takes one and a half.
const TAKES: i64 = 1_500;
const SITES: usize = 40;
const PAGES: usize = 20;
/// As the pool does: so many in one claim, and a look after so long at the latest.
const MOST_GRANTED: usize = 8;
const LONGEST_SLEEP: i64 = 5_000;

/// What a crawl asked for.
#[derive(Debug)]
struct Asked {
    took: i64,
    claims: usize,
}

/// One process: its slots, what runs in them, and when something may be claimed.
struct Process {
    name: String,
    slots: usize,
    busy: BinaryHeap<Reverse<(i64, u64)>>,
    leases: BTreeMap<u64, Lease>,
    due: Option<i64>,
    left_some: bool,
}

impl Process {
    fn new(number: usize, slots: usize) -> Self {
        let (busy, leases) = (BinaryHeap::new(), BTreeMap::new());
        Self { name: format!("p{number}"), slots, busy, leases, due: Some(0), left_some: false }
    }

    /// Settles what has ended and fills its slots where that may find something; how many claims it took, and when it wakes
    /// next.
    async fn turn(&mut self, w: &World, dice: &mut fastrand::Rng) -> (usize, Option<i64>) {
        let mut is_worth_it = self.due.is_some_and(|due| due <= w.now());
        while let Some(Reverse((ends, token))) = self.busy.peek().copied()
            && ends <= w.now()
        {
            self.busy.pop();
            w.done(&self.leases.remove(&token).expect("it runs")).await;
            is_worth_it |= self.left_some;
        }
        let mut claims = 0;
        while is_worth_it && self.busy.len() < self.slots {
            claims += 1;
            is_worth_it = self.claim(w, dice).await == Some(0);
        }
        let due = self.due.filter(|_| self.busy.len() < self.slots);
        let ends = self.busy.peek().map(|Reverse((ends, _))| *ends);
        (claims, due.into_iter().chain(ends).min())
    }

    /// Asks once for as much as fits; how soon there is more.
    async fn claim(&mut self, w: &World, dice: &mut fastrand::Rng) -> Option<i64> {
        let wanted = u32::try_from((self.slots - self.busy.len()).min(MOST_GRANTED)).expect("small");
        let rolled = (0..MOST_GRANTED).map(|_| dice.u32(..)).collect();
        let claim = Claim { owner: self.name.clone(), dice: rolled, ..w.want(wanted, 0) };
        let grant = w.grant(claim).await;
        self.left_some = grant.leases.len() >= wanted as usize;
        self.due = grant.next_in.map(|wait| w.now() + wait.min(LONGEST_SLEEP));
        for lease in grant.leases {
            self.busy.push(Reverse((starts_at(&lease) + TAKES, lease.token)));
            self.leases.insert(lease.token, lease);
        }
        grant.next_in
    }
}

async fn crawl(w: &World, processes: usize, slots: usize) -> Asked {
    let mut dice = fastrand::Rng::with_seed(18);
    for site in 0..SITES {
        let name = format!("s{site:02}");
        w.site_with(&name, |shop| {
            shop.settings.parallel = 8;
            // No two have one beat.
            shop.settings.interval = 960 + 2 * i64::try_from(site).expect("small");
        })
        .await;
        w.put_many(&name, PAGES).await;
    }
    let mut fleet: Vec<Process> = (0..processes).map(|number| Process::new(number, slots)).collect();
    let mut wakes: BinaryHeap<Reverse<(i64, usize)>> =
        (0..processes).map(|n| Reverse((w.now(), n))).collect();
    let (begun, mut claims) = (w.now(), 0);
    while let Some(Reverse((at, number))) = wakes.pop() {
        w.pass((at - w.now()).max(0));
        let (asked, next) = fleet[number].turn(w, &mut dice).await;
        claims += asked;
        wakes.extend(next.map(|next| Reverse((next.max(w.now() + 1), number))));
    }
    assert!(fleet.iter().all(|process| process.busy.is_empty()), "all of it ended");
    Asked { took: w.now() - begun, claims }
}

/// The same pages once more, for others.
async fn crawl_anew(w: &World, processes: usize, slots: usize) -> Asked {
    for site in 0..SITES {
        assert_eq!(w.frontier.forget(&format!("s{site:02}")).await.expect("answers"), Forgotten::Wholly);
    }
    crawl(w, processes, slots).await
}

#[test]
fn c18_twice_the_workers_take_no_longer_and_ask_the_store_no_more_often() {
    on_every_backend(async |w| {
        let sixty = crawl(w, 1, 60).await;
        let more = crawl_anew(w, 1, 120).await;
        assert!(more.took <= sixty.took && more.claims <= sixty.claims, "{sixty:?}, {more:?}");
        assert!(sixty.claims <= SITES * PAGES, "about one claim a page: {sixty:?}");
    });
}

#[test]
fn c18_twice_the_processes_take_no_longer_and_each_asks_once_a_start() {
    on_every_backend(async |w| {
        let four = crawl(w, 4, 15).await;
        let eight = crawl_anew(w, 8, 15).await;
        assert!(eight.took <= four.took, "{four:?}, {eight:?}");
        assert!(four.claims <= 4 * SITES * PAGES && eight.claims <= 8 * SITES * PAGES, "{four:?}, {eight:?}");
    });
}
