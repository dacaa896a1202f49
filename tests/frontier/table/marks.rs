//! Marks: a site takes in no more than may wait, and what it refuses is still with whoever asked (M10).

use paced::internals::frontier::{Agreed, QueueChange, Renamed};
use paced::internals::task::{FleetRules, HighWater, Outcome, Priority, Put, PutReply, Settled, Stage};

use crate::world::{World, at, ms, on_every_backend, request, url};

const MARK: u64 = 3;

impl World {
    async fn marked(&self) {
        self.site_with("a", |a| a.settings.interval = 0).await;
        let rules = FleetRules { most_waiting: Some(MARK), ..FleetRules::default() };
        assert_eq!(self.frontier.agree(rules, 1).await.expect("answers"), Agreed::Replaced);
    }

    /// The site's mark is reached: by one that waits, one that failed before, and one for later.
    async fn full(&self) {
        self.marked().await;
        self.put("a", "failed").await;
        self.retry(&self.take().await, 60_000).await;
        self.put_with("a", Put { at: Some(at(9_000_000)), ..request("a", "later") }).await;
        assert_eq!(self.put("a", "waits").await, PutReply::Created);
    }
}

#[test]
fn m10_a_site_at_its_mark_refuses_new_pages_and_takes_them_in_once_fewer_wait() {
    on_every_backend(async |w| {
        w.full().await;
        assert_eq!(w.put("a", "new").await, PutReply::Refused(HighWater::Site));
        assert_eq!(w.link("a", "new").await, PutReply::Refused(HighWater::Site));
        assert_eq!(w.place("a", "new").await, "absent");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.idle()), (3, 3), "it changed nothing");
        w.site("b").await;
        assert_eq!(w.put("b", "new").await, PutReply::Created, "each site has its own");
        let lease = w.grant_of(&["a"], w.want(1, 0)).await.leases.pop().expect("it is due");
        assert_eq!(w.put("a", "new").await, PutReply::Created, "one that runs waits no more");
        assert_eq!(w.put("a", "more").await, PutReply::Refused(HighWater::Site));
        w.done(&lease).await;
    });
}

#[test]
fn m10_a_put_that_makes_no_page_wait_is_not_refused() {
    on_every_backend(async |w| {
        w.marked().await;
        w.put("a", "seen").await;
        w.done(&w.take().await).await;
        w.put("a", "runs").await;
        let running = w.take().await;
        for path in ["1", "2", "3"] {
            assert_eq!(w.put("a", path).await, PutReply::Created);
        }
        assert_eq!(w.put("a", "1").await, PutReply::Coalesced);
        assert_eq!(w.put("a", "runs").await, PutReply::Deferred);
        assert_eq!(w.link("a", "seen").await, PutReply::Known);
        let target = Put { hops: 1, ..request("a", "target") };
        assert_eq!(w.put_with("a", target).await, PutReply::Created, "it takes the place of its origin");
        assert_eq!(w.put("a", "4").await, PutReply::Refused(HighWater::Site));
        w.die(&running).await;
        assert_eq!(w.place("a", "runs").await, "waiting", "a further run was promised before");
    });
}

#[test]
fn m10_what_was_taken_in_before_and_what_shows_a_wall_is_not_refused() {
    on_every_backend(async |w| {
        w.marked().await;
        w.put("a", "dead").await;
        w.die(&w.take().await).await;
        for path in ["1", "2", "3"] {
            w.put("a", path).await;
        }
        assert_eq!(w.put("a", "4").await, PutReply::Refused(HighWater::Site));
        assert_eq!(w.put("a", "dead").await, PutReply::Revived);
        let probe = Put::request(url("a", "probe"), Priority::ROBOTS);
        assert_eq!(w.put_with("a", probe).await, PutReply::Created);
    });
}

#[test]
fn m10_many_puts_at_once_are_taken_in_up_to_the_mark() {
    on_every_backend(async |w| {
        w.marked().await;
        let puts = (0..200).map(|n| request("a", &n.to_string())).collect();
        let replies = w.frontier.put("a", puts).await.expect("answers");
        let taken = replies.iter().take_while(|reply| **reply == PutReply::Created).count() as u64;
        assert_eq!(taken, MARK);
        assert!(replies[3..].iter().all(|reply| *reply == PutReply::Refused(HighWater::Site)), "{replies:?}");
    });
}

#[test]
fn m10_a_page_whose_links_have_no_room_is_parsed_again_later_and_no_attempt_is_counted() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        w.fetched(&w.take().await).await;
        for _ in 0..20 {
            let parse = w.parse().await.expect("it waits");
            assert_eq!(parse.attempts, 0);
            assert_eq!(w.settle(&parse, Outcome::Postponed { after: ms(30_000) }).await, Settled::Kept);
            assert_eq!(w.place_in("a", Stage::Parse, "p").await, "delayed");
            w.pass(29_999);
            assert!(w.parse().await.is_none());
            w.pass(1);
        }
        let books = w.parses("a").await;
        assert_eq!((books.retried, books.dead, books.delayed + books.waiting), (0, 0, 1));
        let parse = w.parse().await.expect("it waits");
        assert_eq!(parse.url, url("a", "p"));
        w.done(&parse).await;
    });
}

impl World {
    async fn marks(&self, rules: FleetRules, sites: &[&str]) {
        for site in sites {
            self.site_with(site, |site| site.settings.interval = 0).await;
        }
        assert_eq!(self.frontier.agree(rules, 1).await.expect("answers"), Agreed::Replaced);
    }

    async fn bytes(&self, site: &str) -> [u64; 2] {
        let view = self.frontier.view(site).await.expect("answers").expect("is there");
        [view.download.bytes, view.parse.bytes]
    }

    async fn in_all(&self) -> u64 {
        self.frontier.idle_in_all().await.expect("answers")
    }
}

/// What pages of these paths weigh while they wait.
fn weight(site: &str, paths: &[&str]) -> u64 {
    paths.iter().map(|path| url(site, path).as_str().len() as u64 + 100).sum()
}

#[test]
fn m10_a_site_whose_waiting_pages_weigh_as_much_as_they_may_refuses_puts_and_links() {
    on_every_backend(async |w| {
        let most_bytes = Some(weight("a", &["one", "three", "two"]));
        w.marks(FleetRules { most_bytes, ..FleetRules::default() }, &["a", "b"]).await;
        for path in ["one", "two"] {
            assert_eq!(w.put("a", path).await, PutReply::Created);
        }
        w.put_with("a", Put { at: Some(at(9_000_000)), ..request("a", "three") }).await;
        assert_eq!(w.bytes("a").await, [weight("a", &["one", "two", "three"]), 0]);
        assert_eq!(w.put("a", "new").await, PutReply::Refused(HighWater::SiteBytes));
        assert_eq!(w.link("a", "new").await, PutReply::Refused(HighWater::SiteBytes));
        assert_eq!(w.put("a", "one").await, PutReply::Coalesced, "it waits already");
        assert_eq!(w.put("b", "new").await, PutReply::Created, "each site has its own");
        let lease = w.grant_of(&["a"], w.want(1, 0)).await.leases.pop().expect("it is due");
        assert_eq!(w.bytes("a").await, [weight("a", &["two", "three"]), 0], "one that runs weighs nothing");
        assert_eq!(w.link("a", "new").await, PutReply::Created);
        w.fetched(&lease).await;
        assert_eq!(w.bytes("a").await[1], weight("a", &["one"]), "its parse waits");
        let urls = vec![url("a", "two"), url("a", "new")];
        w.frontier.requeue("a", urls, QueueChange::Drop).await.expect("answers");
        assert_eq!(w.bytes("a").await[0], weight("a", &["three"]));
    });
}

#[test]
fn m10_a_frontier_at_its_mark_refuses_what_is_put_and_takes_links_in() {
    on_every_backend(async |w| {
        w.marks(FleetRules { most_in_all: Some(3), ..FleetRules::default() }, &["a", "b"]).await;
        for (site, path) in [("a", "1"), ("a", "2"), ("b", "1")] {
            assert_eq!(w.put(site, path).await, PutReply::Created);
        }
        assert_eq!(w.in_all().await, 3);
        for site in ["a", "b"] {
            assert_eq!(w.put(site, "new").await, PutReply::Refused(HighWater::Frontier));
        }
        assert_eq!(w.link("a", "link").await, PutReply::Created, "one paused site would stop the others");
        assert_eq!(w.in_all().await, 4);
        let probe = Put::request(url("a", "probe"), Priority::ROBOTS);
        assert_eq!(w.put_with("a", probe).await, PutReply::Created);
        let urls = ["1", "2", "link"].map(|path| url("a", path)).to_vec();
        w.frontier.requeue("a", urls, QueueChange::Drop).await.expect("answers");
        assert_eq!(w.in_all().await, 2);
        assert_eq!(w.put("b", "new").await, PutReply::Created);
        assert_eq!(w.put("b", "more").await, PutReply::Refused(HighWater::Frontier));
        while w.frontier.rename("b", "c").await.expect("answers") != Renamed::Done {}
        assert_eq!(w.in_all().await, 3, "they wait under another name");
    });
}

#[test]
fn m10_many_puts_at_once_are_taken_in_up_to_each_mark() {
    for (rules, mark) in [
        (FleetRules { most_in_all: Some(60), ..FleetRules::default() }, HighWater::Frontier),
        (
            FleetRules { most_bytes: Some(60 * weight("a", &["100"])), ..FleetRules::default() },
            HighWater::SiteBytes,
        ),
    ] {
        on_every_backend(async |w| {
            w.marks(rules.clone(), &["a"]).await;
            let puts = (100..300).map(|n| request("a", &n.to_string())).collect();
            let replies = w.frontier.put("a", puts).await.expect("answers");
            let taken = replies.iter().take_while(|reply| **reply == PutReply::Created).count();
            assert_eq!(taken, 60);
            assert!(replies[60..].iter().all(|reply| *reply == PutReply::Refused(mark)), "{replies:?}");
        });
    }
}
