//! Marks: a site takes in no more than may wait, and what it refuses is still with whoever asked (M10).

use paced::internals::frontier::Agreed;
use paced::internals::task::{FleetRules, Outcome, Priority, Put, PutReply, Settled, Stage};

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
        assert_eq!(w.put("a", "new").await, PutReply::Refused);
        assert_eq!(w.link("a", "new").await, PutReply::Refused);
        assert_eq!(w.place("a", "new").await, "absent");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.idle()), (3, 3), "it changed nothing");
        w.site("b").await;
        assert_eq!(w.put("b", "new").await, PutReply::Created, "each site has its own");
        let lease = w.grant_of(&["a"], w.want(1, 0)).await.leases.pop().expect("it is due");
        assert_eq!(w.put("a", "new").await, PutReply::Created, "one that runs waits no more");
        assert_eq!(w.put("a", "more").await, PutReply::Refused);
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
        assert_eq!(w.put("a", "4").await, PutReply::Refused);
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
        assert_eq!(w.put("a", "4").await, PutReply::Refused);
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
        assert!(replies[3..].iter().all(|reply| *reply == PutReply::Refused), "{replies:?}");
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
