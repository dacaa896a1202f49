//! What flows through a site's queue: what came in and left lately, how long pages waited, which puts were coalesced.

use paced::internals::frontier::state::{FlowRate, MOST_WAITS, QueueFlow, WAIT_ONE, WaitKey};
use paced::internals::frontier::{QueueChange, Registration, Renamed};
use paced::internals::task::{LaneWish, Lease, Outcome, Priority, Put, PutReply, RobotsAccess};

use crate::world::{World, at, on_every_backend, request, urgent, url};

const SLOT: i64 = 300_000;

/// A site without a pace.
fn quick(site: &mut Registration) {
    site.settings.interval = 0;
    site.settings.parallel = 1_000;
}

fn wished(path: &str, lane: Option<&str>, tenant: Option<&str>) -> Put {
    let wish = LaneWish { lane: lane.map(str::to_owned), urgent: false, tenant: tenant.map(str::to_owned) };
    Put { wish, ..request("a", path) }
}

fn wait(lane: &str, level: u16, tenant: Option<&str>, bucket: u32) -> WaitKey {
    let level = Priority::from_value(level);
    WaitKey { lane: lane.to_owned(), level, tenant: tenant.map(str::to_owned), bucket }
}

fn is_rate(rate: FlowRate, enters: f64, leaves: f64) {
    let differs = (rate.enters - enters).abs() > 1e-9 || (rate.leaves - leaves).abs() > 1e-9;
    assert!(!differs, "{rate:?}, not {enters} in and {leaves} out");
}

impl World {
    async fn flow(&self, site: &str) -> QueueFlow {
        self.frontier.flow(site).await.expect("answers").expect("the site is there")
    }

    async fn waits(&self) -> Vec<(WaitKey, u64)> {
        self.flow("a").await.waits
    }

    async fn all(&self, most: u32) -> Vec<Lease> {
        self.grant(self.want(most, 0)).await.leases
    }

    async fn run(&self) {
        self.frontier.begin_fresh_run("a", Vec::new()).await.expect("begun");
    }
}

#[test]
fn n1_what_came_in_and_left_is_told_of_five_minutes_and_of_an_hour() {
    on_every_backend(async |w| {
        assert_eq!(w.frontier.flow("a").await.expect("answers"), None);
        w.site_with("a", quick).await;
        is_rate(w.flow("a").await.lately(), 0.0, 0.0);
        w.put_many("a", 60).await;
        w.pass(1_000);
        let leases = w.all(36).await;
        for lease in &leases[..30] {
            w.done(lease).await;
        }
        w.die(&leases[30]).await;
        w.retry(&leases[31], 900_000).await;
        let flow = w.flow("a").await;
        is_rate(flow.lately(), 60.0 / 300.0, 31.0 / 300.0);
        is_rate(flow.in_an_hour(), 60.0 / 3_600.0, 31.0 / 3_600.0);
        // Half of the slot after that is over, so that half of it counts.
        w.pass(SLOT + SLOT / 2 - 1_000);
        is_rate(w.flow("a").await.lately(), 30.0 / 300.0, 15.5 / 300.0);
        w.pass(SLOT / 2);
        is_rate(w.flow("a").await.lately(), 0.0, 0.0);
        w.put("a", "new").await;
        w.frontier.requeue("a", vec![url("a", "new")], QueueChange::Drop).await.expect("answers");
        let flow = w.flow("a").await;
        is_rate(flow.lately(), 1.0 / 300.0, 1.0 / 300.0);
        is_rate(flow.in_an_hour(), 61.0 / 3_600.0, 32.0 / 3_600.0);
        w.pass(13 * SLOT);
        is_rate(w.flow("a").await.in_an_hour(), 0.0, 0.0);
    });
}

#[test]
fn n1_what_is_given_up_leaves_the_queue_and_parses_do_not() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        w.put_many("a", 3).await;
        w.fetched(&w.take().await).await;
        w.done(&w.parse().await.expect("it waits")).await;
        is_rate(w.flow("a").await.lately(), 3.0 / 300.0, 1.0 / 300.0);
        while w.frontier.give_up("a").await.expect("answers") {}
        is_rate(w.flow("a").await.lately(), 3.0 / 300.0, 3.0 / 300.0);
    });
}

#[test]
fn n2_a_wait_is_counted_by_lane_level_and_tenant_when_its_download_is_granted() {
    on_every_backend(async |w| {
        w.site_with("a", |site| {
            quick(site);
            site.settings.tenant = Some("own".to_owned());
        })
        .await;
        w.put_with("a", wished("1", Some("slow"), Some("acme"))).await;
        w.put_with("a", wished("2", None, Some("own"))).await;
        w.put_with("a", urgent("a", "3", 119)).await;
        assert_eq!(w.waits().await, [], "a page that waits has not waited yet");
        w.pass(30_000);
        for lease in w.all(9).await {
            w.fetched(&lease).await;
        }
        let counted = [
            (wait("general", 120, None, 5), WAIT_ONE),
            (wait("general", 240, None, 5), WAIT_ONE),
            (wait("slow", 240, Some("acme"), 5), WAIT_ONE),
        ];
        assert_eq!(w.waits().await, counted);
        for _ in 0..3 {
            w.done(&w.parse().await.expect("it waits")).await;
        }
        assert_eq!(w.waits().await, counted, "parses are not counted");
    });
}

#[test]
fn n2_a_retry_and_a_lost_lease_do_not_count_a_wait_again() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        w.put_many("a", 2).await;
        let leases = w.all(2).await;
        let counted = w.waits().await;
        assert_eq!(counted, [(wait("general", 240, None, 0), 2 * WAIT_ONE)]);
        w.retry(&leases[0], 5_000).await;
        w.pass(31_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.all(2).await.len(), 2, "one was retried, one was lost");
        assert_eq!(w.waits().await, counted);
    });
}

#[test]
fn n2_a_robots_txt_has_no_wait() {
    on_every_backend(async |w| {
        w.site_with("a", |site| {
            quick(site);
            site.settings.robots = true;
        })
        .await;
        w.put("a", "1").await;
        let robots = w.take().await;
        assert!(robots.robots.is_some());
        assert_eq!(w.waits().await, []);
        w.robots(&robots, RobotsAccess::Absent, 86_400_000).await;
        w.pass(1_500);
        w.done(&w.take().await).await;
        assert_eq!(w.waits().await, [(wait("general", 240, None, 1), WAIT_ONE)]);
    });
}

#[test]
fn n2_i17_waits_are_halved_every_five_minutes_and_forgotten_in_time() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        let next = async |path: &str| {
            w.put("a", path).await;
            w.done(&w.take().await).await;
        };
        next("1").await;
        let of = |count| [(wait("general", 240, None, 0), count)];
        w.pass(SLOT - 1);
        assert_eq!(w.waits().await, of(WAIT_ONE));
        w.pass(1);
        assert_eq!(w.waits().await, of(WAIT_ONE / 2));
        w.pass(SLOT);
        next("2").await;
        assert_eq!(w.waits().await, of(WAIT_ONE / 4 + WAIT_ONE));
        w.put_with("a", wished("3", None, Some("acme"))).await;
        w.done(&w.take().await).await;
        w.pass(10 * SLOT);
        assert_eq!(
            w.waits().await,
            [(wait("general", 240, None, 0), 1), (wait("general", 240, Some("acme"), 0), 1)]
        );
        w.pass(SLOT);
        assert_eq!(w.waits().await, []);
        next("4").await;
        assert_eq!(w.waits().await, of(WAIT_ONE));
        assert_eq!(w.counters_kept().unwrap_or(1), 1, "nothing is kept of the tenant");
        assert!(w.ends_by_itself());
    });
}

impl World {
    /// Counters of waits, where that can be looked at from outside.
    fn counters_kept(&self) -> Option<u32> {
        if let Some(db) = self.redis() {
            let kept: u32 = db.cli(&["HLEN", "{paced:0}:waits:a"]).parse().expect("a number");
            return Some(kept - 1);
        }
        let file = rusqlite::Connection::open(self.file()?).expect("ours");
        Some(file.query_row("SELECT count(*) FROM wait", [], |row| row.get(0)).expect("counted"))
    }

    /// Whether the waits of a site that is never asked again are forgotten by the server.
    fn ends_by_itself(&self) -> bool {
        let left =
            |db: &crate::support::RedisDb| db.cli(&["PTTL", "{paced:0}:waits:a"]).parse::<i64>().expect("ms");
        self.redis().is_none_or(|db| left(db) > 24 * SLOT)
    }
}

#[test]
fn n2_i17_waits_of_a_quiet_site_go_with_the_starts_of_another_one() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        w.site_with("b", quick).await;
        w.put("a", "1").await;
        w.done(&w.take().await).await;
        for _ in 0..25 {
            w.pass(SLOT);
        }
        w.put("b", "1").await;
        w.done(&w.take().await).await;
        if let Some(file) = w.file() {
            let file = rusqlite::Connection::open(file).expect("ours");
            let kept = "SELECT count(*), (SELECT count(*) FROM waits) FROM wait";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            assert_eq!(file.query_row(kept, [], read), Ok((1, 1)));
        }
    });
}

#[test]
fn n2_i17_a_site_has_a_bounded_number_of_tenants_with_waits_of_their_own() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        let most = usize::try_from(MOST_WAITS).expect("few");
        let paths: Vec<String> = (0..most + 20).map(|number| format!("{number:04}")).collect();
        for some in paths.chunks(100) {
            let puts = some.iter().map(|path| wished(path, None, Some(&format!("t{path}")))).collect();
            w.frontier.put("a", puts).await.expect("put");
        }
        loop {
            let some = w.all(60).await;
            for lease in &some {
                w.done(lease).await;
            }
            if some.is_empty() {
                break;
            }
        }
        let waits = w.waits().await;
        assert_eq!(waits.iter().map(|(_, count)| count).sum::<u64>(), paths.len() as u64 * WAIT_ONE);
        let (own, others): (Vec<_>, Vec<_>) = waits.iter().partition(|(key, _)| key.tenant.is_some());
        assert_eq!((own.len(), others), (most, vec![&(wait("general", 240, None, 0), 20 * WAIT_ONE)]));
    });
}

#[test]
fn n2_what_waits_longest_is_told_of_each_lane_and_level() {
    on_every_backend(async |w| {
        w.site("a").await;
        for (path, lane, priority) in
            [("1", None, 240), ("2", Some("slow"), 240), ("3", None, 340), ("4", None, 340)]
        {
            w.put_with("a", Put { priority: Priority::from_value(priority), ..wished(path, lane, None) })
                .await;
            w.pass(1_000);
        }
        let flow = w.flow("a").await;
        let level = Priority::from_value;
        assert_eq!(flow.longest_waiting(|_, _| true), Some(at(0)));
        assert_eq!(flow.longest_waiting(|lane, _| lane == "slow"), Some(at(1_000)));
        assert_eq!(flow.longest_waiting(|_, of| of == level(340)), Some(at(2_000)));
        assert_eq!(flow.longest_waiting(|_, of| of == level(120)), None);
        assert_eq!(w.view("a").await.oldest, Some(at(0)));
    });
}

#[test]
fn n3_puts_that_were_coalesced_are_told_of_the_last_hour_and_of_the_run() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        let told = async || {
            let flow = w.flow("a").await;
            (flow.coalesced_in_an_hour(), flow.coalesced_in_the_run())
        };
        assert_eq!(told().await, (None, None));
        w.run().await;
        for reply in [PutReply::Created, PutReply::Coalesced] {
            assert_eq!(w.put("a", "1").await, reply);
        }
        let lease = w.take().await;
        for reply in [PutReply::Deferred, PutReply::Coalesced] {
            assert_eq!(w.put("a", "1").await, reply, "what meets a running page is deferred once");
        }
        assert_eq!(told().await, (Some(0.5), Some(0.5)));
        w.done(&lease).await;
        w.done(&w.take().await).await;
        w.run().await;
        assert_eq!(told().await, (Some(0.5), None), "nothing was put in this run");
        assert_eq!(w.link("a", "2").await, PutReply::Created);
        assert_eq!(told().await, (Some(0.4), Some(0.0)));
        w.pass(13 * SLOT);
        assert_eq!(told().await, (None, Some(0.0)));
    });
}

#[test]
fn n1_n2_n3_a_renamed_site_keeps_what_flowed_and_one_that_is_forgotten_leaves_nothing() {
    on_every_backend(async |w| {
        w.site_with("a", quick).await;
        w.run().await;
        w.put("a", "1").await;
        w.put("a", "1").await;
        w.done(&w.take().await).await;
        let before = w.flow("a").await;
        assert!(before.lately() != FlowRate::default() && before.waits.len() == 1 && before.run.is_some());
        assert_eq!(w.frontier.rename("a", "b").await.expect("answers"), Renamed::Done);
        assert_eq!(w.flow("b").await, before);
        assert_eq!(w.frontier.rename("b", "a").await.expect("answers"), Renamed::Done);
        while w.frontier.give_up("a").await.expect("answers") {}
        w.pass(60_000);
        w.frontier.forget("a").await.expect("forgotten");
        assert_eq!(w.frontier.flow("a").await.expect("answers"), None);
        w.site_with("a", quick).await;
        let flow = w.flow("a").await;
        assert_eq!((flow.lately(), flow.in_an_hour(), flow.run), Default::default());
        assert_eq!(flow.waits, []);
        w.put("a", "2").await;
        is_rate(w.flow("a").await.lately(), 1.0 / 300.0, 0.0);
        let lease = w.take().await;
        w.settle(&lease, Outcome::Done { stored: None, recrawl: None }).await;
    });
}
