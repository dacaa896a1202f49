//! Walls: what refuses is left alone but for one probe at a time, and asked slowly afterwards (W3-W6).

use paced::internals::clock::Timestamp;
use paced::internals::frontier::{Claim, Rearm, Renamed, WorkScope};
use paced::internals::task::{Failure, LaneWish, Lease, Outcome, Put, RobotsAccess, Settled, WallSighting};

use crate::world::*;

const MINUTE: i64 = 60_000;

fn sighting(of_site: bool) -> WallSighting {
    WallSighting { why: "HTTP 403".to_owned(), of_site, looks: 403, first: MINUTE, dice: 0 }
}

impl World {
    /// A body that refuses ended, and its task goes back.
    async fn refused(&self, lease: &Lease, of_site: bool) {
        self.frontier.refuse(lease.key(), sighting(of_site)).await.expect("said");
        let why = Failure::status(403, "HTTP 403");
        assert_eq!(self.settle(lease, Outcome::Refused { why }).await, Settled::Kept);
    }

    /// The site `a` with so many pages is walled by its first start, which this is.
    async fn walled(&self, pages: usize, of_site: bool) -> Lease {
        self.site("a").await;
        self.put_many("a", pages).await;
        let first = self.start().await;
        self.refused(&first, of_site).await;
        first
    }

    /// When the next probe may start, from now on; none where there is no wall.
    async fn next_probe(&self, site: &str) -> Option<i64> {
        let view = self.frontier.view(site).await.expect("answers").expect("it is there");
        view.wall.map(|wall| wall.probe_at.as_millis() - START - self.now())
    }

    /// The starts of an hour, by claimers that ask as often as they like; each refused as the ones before.
    async fn starts_in(&self, span: i64, claimers: &[&str]) -> Vec<i64> {
        let (until, began, mut starts) = (self.now() + span, self.now(), Vec::new());
        while self.now() < until {
            for owner in claimers {
                let claim = Claim { owner: (*owner).to_owned(), ..self.want(3, 0) };
                for lease in self.grant(claim).await.leases {
                    assert!(lease.is_probe(), "{lease:?}");
                    starts.push(lease.departure.at - START - began);
                    self.refused(&lease, true).await;
                }
            }
            self.pass(5_000);
        }
        starts
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START + ms)
}

#[test]
fn w3_a_walled_site_gets_one_start_in_a_minute_and_five_in_an_hour_whoever_asks() {
    on_every_backend(async |world| {
        let first = world.walled(5, true).await;
        let starts = world.starts_in(61 * MINUTE, &["one", "two", "three"]).await;
        assert_eq!(starts.len(), 5, "{starts:?}");
        assert!(starts[0] >= MINUTE, "{starts:?}");
        let view = world.frontier.view("a").await.expect("answers").expect("it is there");
        let wall = view.wall.expect("it stands");
        assert_eq!((wall.refused, wall.since), (5, at(LEAD)));
        assert_eq!(wall.url, first.url.as_str(), "the first page that it refused");
    });
}

#[test]
fn w3_n7_who_serves_other_lanes_probes_with_a_page_of_theirs() {
    on_every_backend(async |w| {
        w.walled(1, true).await;
        let wish = LaneWish { lane: Some("slow".to_owned()), ..LaneWish::default() };
        w.put_with("a", Put { wish, ..request("a", "slow") }).await;
        w.pass(w.next_probe("a").await.expect("it is walled"));
        w.work_on("some", WorkScope::of_lanes(["slow".to_owned()])).await;
        let claim = Claim { owner: "some".to_owned(), ..w.want(1, 0) };
        let probe = w.grant(claim).await.leases.pop().expect("it is due");
        assert_eq!(
            (path_of(&probe).as_str(), probe.is_probe()),
            ("slow", true),
            "though another was refused"
        );
    });
}

/// A process of a fleet.
struct Process {
    name: String,
    comes_at: i64,
    /// Starts that it was granted and hasn't sent, and whether it has learnt since that they may be void.
    granted: Vec<(Lease, bool)>,
    /// What it sent, and when each is answered.
    sent: Vec<(i64, Lease)>,
}

/// A fleet before a site that refuses from its tenth answer on.
struct Fleet<'a> {
    world: &'a World,
    of_site: bool,
    dice: fastrand::Rng,
    processes: Vec<Process>,
    answers: u32,
    /// Since when it is known that the site refuses, and when requests went out after that.
    known: Option<i64>,
    after: Vec<i64>,
}

impl Fleet<'_> {
    /// Plays until an hour after the wall: when requests went out, in ms from when it was known.
    async fn requests_after(mut self) -> Vec<i64> {
        while self.known.is_none_or(|known| self.world.now() < known + 60 * MINUTE) {
            for turn in 0..self.processes.len() {
                self.send(turn).await;
                self.hear(turn).await;
                if self.processes[turn].comes_at <= self.world.now() {
                    self.claim(turn).await;
                }
            }
            let events = self.processes.iter().flat_map(|process| {
                let granted = process.granted.iter().map(|(lease, _)| starts_at(lease));
                let sent = process.sent.iter().map(|(at, _)| *at);
                granted.chain(sent).chain([process.comes_at])
            });
            let next = events.min().expect("they come again");
            self.world.pass((next - self.world.now()).max(1));
        }
        self.after
    }

    /// Sends what is due. A start is asked about where its process knows that it may be void.
    async fn send(&mut self, turn: usize) {
        let now = self.world.now();
        let is_due = |(lease, _): &mut (Lease, bool)| starts_at(lease) <= now;
        let due: Vec<(Lease, bool)> = self.processes[turn].granted.extract_if(.., is_due).collect();
        for (mut lease, is_in_doubt) in due {
            if is_in_doubt {
                match self.world.frontier.rearm(&lease.key()).await.expect("answers") {
                    Rearm::Departs(departure) => lease.departure = departure,
                    _ => continue,
                }
                self.processes[turn].granted.push((lease, false));
                continue;
            }
            if let Some(known) = self.known {
                self.after.push(now - known);
            }
            // A probe may take longer than its lease lasts.
            let longest = if lease.is_probe() { 40_000 } else { 3_000 };
            self.processes[turn].sent.push((now + self.dice.i64(20..longest), lease));
        }
    }

    async fn hear(&mut self, turn: usize) {
        let now = self.world.now();
        let answered: Vec<(i64, Lease)> =
            self.processes[turn].sent.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, lease) in answered {
            self.answers += 1;
            if self.answers < 10 {
                self.world.done(&lease).await;
                continue;
            }
            self.world.frontier.refuse(lease.key(), sighting(self.of_site)).await.expect("said");
            self.known.get_or_insert(now);
            self.processes[turn].granted.iter_mut().for_each(|(_, is_in_doubt)| *is_in_doubt = true);
            let why = Failure::status(403, "HTTP 403");
            self.world.settle(&lease, Outcome::Refused { why }).await;
        }
    }

    /// Now and then a process gives a probe back that it hasn't sent, or dies with it.
    async fn claim(&mut self, turn: usize) {
        let name = self.processes[turn].name.clone();
        let want = self.world.want(self.dice.u32(1..4), 0);
        let claim =
            paced::internals::frontier::Claim { owner: name.clone(), dice: vec![self.dice.u32(..)], ..want };
        let grant = self.world.grant(claim).await;
        let longest = if self.known.is_some() { 60_000 } else { 1_000 };
        self.processes[turn].comes_at = self.world.now() + self.dice.i64(50..longest);
        let mut is_dead = grant.buried;
        for lease in grant.leases {
            match self.dice.u32(..if lease.is_probe() { 6 } else { 1 }) {
                4 => assert!(self.world.back(&lease).await),
                5 => {
                    self.world.frontier.bury(&name).await.expect("said");
                    is_dead = true;
                }
                _ => self.processes[turn].granted.push((lease, false)),
            }
        }
        if is_dead {
            let process = &mut self.processes[turn];
            process.name.push('x');
            process.granted.clear();
            process.sent.clear();
        }
    }
}

#[test]
fn w3_once_a_wall_is_known_one_request_goes_out_in_a_minute_and_five_in_the_hour_however_many_work() {
    for (seed, processes) in (1..).zip([1, 2, 3, 5, 8, 21]) {
        for of_site in [true, false] {
            on_every_backend(async |world| {
                world.site_with("a", |shop| shop.settings.parallel = 100).await;
                world.put_many("a", 100).await;
                let process =
                    |n| Process { name: format!("p{n}"), comes_at: 0, granted: Vec::new(), sent: Vec::new() };
                let fleet = Fleet {
                    world,
                    of_site,
                    dice: fastrand::Rng::with_seed(seed),
                    processes: (0..processes).map(process).collect(),
                    answers: 0,
                    known: None,
                    after: Vec::new(),
                };
                let after = fleet.requests_after().await;
                let within = |span: i64| after.iter().filter(|at| **at < span).count();
                let counts = (within(MINUTE), within(60 * MINUTE));
                assert!(counts.0 <= 1 && counts.1 <= 5, "{processes} processes, seed {seed}: {after:?}");
                assert!(counts.1 >= 1, "{processes} processes, seed {seed}: no probe was ever sent");
                let books = world.downloads("a").await;
                assert_eq!((books.done, books.dead), (9, 0), "{books:?}");
            });
        }
    }
}

#[test]
fn w3_a_403_walls_its_site_and_a_430_the_whole_group() {
    for of_site in [true, false] {
        on_every_backend(async |world| {
            for name in ["a", "b"] {
                world.site_with(name, |shop| shop.group = Some(("g".to_owned(), 0))).await;
                world.put_many(name, 3).await;
            }
            let lease = world.start().await;
            world.refused(&lease, of_site).await;
            world.pass(5_000);
            let next = world.claim().await;
            assert_eq!(next.is_some(), of_site, "{next:?}");
            assert!(next.is_none_or(|next| next.site != lease.site && !next.is_probe()));
        });
    }
}

#[test]
fn w3_the_probe_is_the_first_page_that_was_refused_and_another_one_waits_for_it() {
    on_every_backend(async |world| {
        let first = world.walled(4, true).await;
        world.pass(2 * MINUTE);
        let probe = world.start().await;
        assert_eq!((&probe.url, probe.is_probe(), probe.attempts), (&first.url, true, 0));
        // It takes for ever, and is renewed.
        for _ in 0..30 {
            world.pass(20_000);
            assert_eq!(world.frontier.extend(vec![probe.key()]).await.expect("renewed"), [true]);
            assert_eq!(world.claim().await, None, "one probe at a time");
        }
        world.done(&probe).await;
        assert_eq!(world.next_probe("a").await, None);
    });
}

#[test]
fn w3_every_other_probe_is_of_another_page_as_the_first_one_alone_may_be_refused() {
    for of_site in [true, false] {
        on_every_backend(async |world| {
            let first = world.walled(3, of_site).await;
            world.pass(2 * MINUTE);
            let probe = world.start().await;
            assert_eq!(probe.url, first.url);
            world.refused(&probe, of_site).await;
            world.pass(3 * MINUTE);
            let other = world.start().await;
            assert!(other.is_probe() && other.url != first.url, "{other:?}");
            world.refused(&other, of_site).await;
            world.pass(6 * MINUTE);
            assert_eq!(world.start().await.url, first.url, "it is its turn again");
        });
    }
}

#[test]
fn w3_a_probe_that_was_never_sent_is_due_again_at_once() {
    for of_site in [true, false] {
        on_every_backend(async |world| {
            world.walled(3, of_site).await;
            world.pass(2 * MINUTE);
            for _ in 0..4 {
                let probe = world.start().await;
                assert!(probe.is_probe(), "{probe:?}");
                world.frontier.back(probe.key()).await.expect("it goes back");
                world.pass(2_000);
            }
            let probe = world.start().await;
            world.refused(&probe, of_site).await;
            let next = world.next_probe("a").await.expect("it stands");
            assert!((MINUTE..=3 * MINUTE).contains(&next), "only one was sent: {next}");
        });
    }
}

#[test]
fn w3_a_probe_that_had_to_read_robots_txt_first_is_due_still_with_its_page() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| shop.settings.robots = true).await;
        w.put("a", "p").await;
        let errand = w.start().await;
        w.robots(&errand, RobotsAccess::Absent, 10_000).await;
        w.pass(1_000);
        let first = w.start().await;
        w.refused(&first, true).await;
        let wait = w.next_probe("a").await.expect("it is walled");
        w.pass(wait);
        let errand = w.start().await;
        assert!(errand.robots.is_some() && errand.is_probe(), "its record has ended: {errand:?}");
        w.robots(&errand, RobotsAccess::Absent, 10_000).await;
        w.pass(1_000);
        let probe = w.start().await;
        assert_eq!((path_of(&probe).as_str(), probe.is_probe()), ("p", true));
        w.done(&probe).await;
        assert_eq!(w.next_probe("a").await, None, "the wall is gone");
    });
}

#[test]
fn w5_a_refusal_under_a_lease_that_was_lost_is_no_wall_after_the_last_one() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 5).await;
        let (one, late) = (world.start().await, world.next_start_in(1_000).await);
        world.refused(&one, true).await;
        world.pass(10 * MINUTE);
        assert!(world.start().await.is_probe(), "the leases are over");
        world.frontier.probed("a", &one.url, None).await.expect("it came");
        world.frontier.refuse(late.key(), sighting(true)).await.expect("said");
        assert_eq!(world.next_probe("a").await, None);
    });
}

#[test]
fn w4_refused_pages_go_behind_the_others_without_an_attempt() {
    on_every_backend(async |world| {
        let first = world.walled(3, true).await;
        world.frontier.probed("a", &first.url, None).await.expect("it came");
        world.pass(10_000);
        let order = world.order(10_000).await;
        assert_eq!(order, ["00001", "00002", "00000"]);
    });
}

#[test]
fn w5_refusals_that_were_in_flight_together_are_one_wall() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 5).await;
        let (one, two, late) =
            (world.start().await, world.next_start_in(1_000).await, world.next_start_in(1_000).await);
        world.refused(&one, true).await;
        let probe = world.next_probe("a").await;
        world.refused(&two, true).await;
        assert_eq!(world.next_probe("a").await, probe, "the second tells nothing new");
        world.frontier.probed("a", &one.url, None).await.expect("it came");
        world.refused(&late, true).await;
        assert_eq!(world.next_probe("a").await, None, "it was asked for before the wall ended");
    });
}

#[test]
fn w3_a_start_that_was_granted_before_the_wall_is_void_and_the_probe_s_own_is_not() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 5).await;
        let one = world.start().await;
        let granted = world.next_start_in(1_000).await;
        world.refused(&one, false).await;
        assert_eq!(world.frontier.rearm(&granted.key()).await.expect("answers"), Rearm::WentBack);
        world.pass(2 * MINUTE);
        let probe = world.start().await;
        world.pass(10_000);
        assert!(matches!(world.frontier.rearm(&probe.key()).await.expect("answers"), Rearm::Departs(_)));
    });
}

#[test]
fn w6_after_a_wall_starts_are_slow_and_a_refusal_goes_back_to_the_wait_before() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 80).await;
        let mut refused = world.start().await;
        for wait in [MINUTE, 2 * MINUTE, 4 * MINUTE] {
            world.refused(&refused, true).await;
            assert_eq!(world.next_probe("a").await, Some(wait));
            world.pass(wait);
            refused = world.start().await;
        }
        world.done(&refused).await;
        assert_eq!(world.next_probe("a").await, None);
        // One that was granted under a longer wait may have been later on the wire.
        let gaps = [4_000; 20].into_iter().chain([2_050]).chain([2_000; 19]).chain([1_100]).chain([1_000; 4]);
        for gap in gaps {
            let lease = world.next_start_in(gap).await;
            world.done(&lease).await;
        }
        let lease = world.next_start_in(1_000).await;
        world.refused(&lease, true).await;
        assert_eq!(world.next_probe("a").await, Some(4 * MINUTE), "where it was");
    });
}

#[test]
fn w6_thirty_quiet_minutes_forget_it() {
    on_every_backend(async |world| {
        world.walled(9, true).await;
        world.pass(MINUTE);
        let probe = world.start().await;
        world.refused(&probe, true).await;
        world.pass(2 * MINUTE);
        let probe = world.start().await;
        world.done(&probe).await;
        world.pass(31 * MINUTE);
        let lease = world.start().await;
        world.refused(&lease, true).await;
        assert_eq!(world.next_probe("a").await, Some(MINUTE));
    });
}

#[test]
fn w6_a_block_of_a_minute_has_a_slow_start_and_a_shorter_one_has_none() {
    for (wait, gap) in [(59_000, 1_000), (60_000, 4_000)] {
        on_every_backend(async |world| {
            world.site("a").await;
            world.put_many("a", 9).await;
            world.frontier.block("a", ms(wait), "503").await.expect("blocked");
            world.pass(wait);
            let lease = world.start().await;
            world.done(&lease).await;
            let next = world.next_start_in(gap).await;
            world.done(&next).await;
        });
    }
}

#[test]
fn w6_an_ordinary_shop_with_503s_that_say_for_how_long_keeps_its_unblocked_starts() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 200).await;
        let (began, mut starts, mut blocked) = (world.now(), 0, 0);
        loop {
            let Some(lease) = world.claim().await else {
                // Pages that wait for their next attempt come last.
                if starts >= 190 {
                    break;
                }
                world.pass(50);
                continue;
            };
            world.depart(&lease);
            starts += 1;
            if starts % 20 == 7 {
                let why = Failure::status(503, "503");
                let outcome = Outcome::Retry { after: ms(1_000), why };
                world.settle_with(&lease, outcome, Some((ms(59_000), "503".to_owned()))).await;
                blocked += 59_000;
            } else {
                world.done(&lease).await;
            }
        }
        let unblocked = (world.now() - began - blocked) / 1_000;
        assert!(starts * 100 >= unblocked * 95, "{starts} starts of {unblocked}");
    });
}

#[test]
fn w3_a_renamed_site_keeps_its_wall_and_one_that_has_ended_does_not_come_back_with_a_name() {
    on_every_backend(async |world| {
        world.walled(3, false).await;
        let rename = async |from: &str, to: &str| {
            assert_eq!(world.frontier.rename(from, to).await.expect("answers"), Renamed::Done);
        };
        rename("a", "b").await;
        assert!(world.next_probe("b").await.is_some());
        rename("b", "a").await;
        world.pass(2 * MINUTE);
        let probe = world.start().await;
        assert!(probe.is_probe());
        world.done(&probe).await;
        assert_eq!(world.next_probe("a").await, None);
        for (from, to) in [("a", "b"), ("b", "a")] {
            rename(from, to).await;
            assert_eq!(world.next_probe(to).await, None, "{to}");
        }
    });
}

#[test]
fn w3_a_wall_that_ended_in_a_group_does_not_come_back_when_the_site_leaves_it() {
    on_every_backend(async |world| {
        world.walled(3, false).await;
        let join = async |group: Option<&str>| {
            world
                .site_with("a", |shop| shop.group = group.map(|name| (format!("group:{name}"), 1_000)))
                .await;
        };
        join(Some("g")).await;
        assert!(world.next_probe("a").await.is_some(), "it comes along");
        world.pass(2 * MINUTE);
        let probe = world.start().await;
        assert!(probe.is_probe());
        world.done(&probe).await;
        join(None).await;
        assert_eq!(world.next_probe("a").await, None);
    });
}

#[test]
fn w3_resume_makes_the_probe_due_and_says_where_there_is_no_wall() {
    on_every_backend(async |world| {
        world.site("a").await;
        world.put_many("a", 2).await;
        assert!(!world.frontier.resume("a").await.expect("answers"));
        let first = world.start().await;
        world.refused(&first, true).await;
        world.pass(2_000);
        assert_eq!(world.claim().await, None);
        assert!(world.frontier.resume("a").await.expect("answers"));
        assert!(world.take().await.is_probe());
    });
}
