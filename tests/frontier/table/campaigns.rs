//! Campaigns: a list lies beside the queue and is put portion by portion, each URL once, whoever feeds and dies (C11-C16).

use paced::internals::frontier::campaigns::{
    CampaignBooked, CampaignFed, CampaignStarted, CampaignTuned, ListKey, UrlList, put_of,
};
use paced::internals::frontier::state::{CAMPAIGN_KEPT_MS, CAMPAIGNS_KEPT, CampaignTuning, UPLOAD_KEPT_MS};
use paced::internals::frontier::{
    Act, CampaignName, CampaignPhase, CampaignStatus, Forgotten, Renamed, Tuning,
};
use paced::internals::task::{
    BatchNames, CampaignPlan, CampaignPortion, Failure, FleetRules, Lease, Outcome, Priority, Put, PutReply,
};

use crate::world::{World, at, on_every_backend, path_of, request, url};

const MINUTE: i64 = 60_000;
/// Shorter than a lease.
const TICK: i64 = 20_000;

fn plan(portion: u32) -> CampaignPlan {
    CampaignPlan { portion: CampaignPortion::Pages(portion), tick: TICK, ..CampaignPlan::default() }
}

/// So many pages, from that one on, few of them in a chunk.
fn pages(from: u32, count: u32) -> UrlList {
    let mut list = UrlList::in_chunks_of(4);
    (from..from + count).for_each(|n| list.push(url("a", &format!("{n:04}"))));
    list
}

impl World {
    /// A site without a pace, and without a robots.txt.
    async fn fast_site(&self, name: &str) {
        self.site_with(name, |site| {
            site.settings.interval = 0;
            site.settings.parallel = 50;
            site.settings.attempts = 1;
        })
        .await;
    }

    async fn start_list(&self, name: &str, plan: &CampaignPlan, mut list: UrlList) -> CampaignStarted {
        self.frontier.start_campaign("a", name, plan, &mut list, Act::default()).await.expect("answers")
    }

    /// A campaign of so many pages on a fast site.
    async fn campaign_of(&self, count: u32, portion: u32) {
        self.fast_site("a").await;
        assert_eq!(self.start_list("c", &plan(portion), pages(0, count)).await, CampaignStarted::Done);
    }

    async fn standing(&self, name: &str) -> CampaignStatus {
        self.frontier.campaign("a", name).await.expect("answers").expect("it is there")
    }

    /// Feeds all that is due; how many pages were put.
    async fn feed_all(&self) -> u64 {
        let mut all = 0;
        for (name, status) in self.frontier.campaigns().await.expect("answers") {
            all += self.frontier.top_up(&name, &status).await.expect("answers");
        }
        all
    }

    async fn set(&self, name: &str, tuning: CampaignTuning) -> CampaignTuned {
        self.frontier.tune_campaign(Act::default(), "a", name, vec![tuning]).await.expect("answers")
    }

    /// So many downloads, as many as there are.
    async fn take_some(&self, most: u32) -> Vec<Lease> {
        self.grant(self.want(most, 0)).await.leases
    }

    async fn do_some(&self, most: u32) -> Vec<String> {
        let leases = self.take_some(most).await;
        for lease in &leases {
            self.done(lease).await;
        }
        leases.iter().map(path_of).collect()
    }

    /// Fed, open, done, dead, coalesced, left.
    async fn counted_of(&self, name: &str) -> [u64; 6] {
        let status = self.standing(name).await;
        let counts = status.counts;
        let fed = u64::from(status.campaign.next);
        [fed, counts.open, counts.done, counts.dead, counts.coalesced, status.left()]
    }

    /// A step of whoever feeds `c`.
    async fn feed_of(&self, list: &ListKey, from: u32, puts: Vec<Put>) -> Option<CampaignFed> {
        self.frontier.feed_campaign("a", "c", list, from, puts).await.expect("answers")
    }

    /// Notes the end of a campaign, as whoever feeds does.
    async fn note_its_end(&self, name: &str) {
        let campaign = self.standing(name).await.campaign;
        let noting = self.frontier.feed_campaign("a", name, &campaign.list, campaign.next, Vec::new());
        noting.await.expect("answers");
    }

    async fn sweep_all(&self) {
        self.frontier.sweep_campaigns(None).await.expect("answers");
    }
}

#[test]
fn c12_no_more_than_a_portion_of_it_waits_or_runs_at_once() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        assert_eq!(w.feed_all().await, 10);
        assert_eq!(w.feed_all().await, 0, "a portion is there");
        assert_eq!(w.downloads("a").await.waiting, 10);
        let held = w.take_some(4).await;
        w.pass(TICK);
        assert_eq!(w.feed_all().await, 0, "what runs is open too");
        assert_eq!(w.counted_of("c").await, [10, 10, 0, 0, 0, 23]);
        for lease in &held {
            w.done(lease).await;
        }
        assert_eq!(w.feed_all().await, 4, "its tick came meanwhile");
        assert_eq!(w.counted_of("c").await, [14, 10, 4, 0, 0, 19]);
        w.do_some(4).await;
        w.pass(TICK - 1);
        assert_eq!(w.feed_all().await, 0, "more than half is left, and the next tick isn't there");
        w.pass(1);
        assert_eq!(w.feed_all().await, 4);
    });
}

#[test]
fn c12_it_is_topped_up_before_its_tick_where_less_than_half_of_a_portion_is_left() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        w.feed_all().await;
        w.do_some(5).await;
        assert_eq!(w.feed_all().await, 0);
        w.do_some(1).await;
        assert_eq!(w.feed_all().await, 6);
        assert_eq!(w.standing("c").await.campaign.next_tick, at(w.now() + TICK).as_millis());
    });
}

#[test]
fn c15_a_long_list_is_never_in_the_queue_at_once_and_ends_whole() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        let mut list = UrlList::default();
        (0..2_300).for_each(|n| list.push(url("a", &format!("{n:04}"))));
        assert_eq!(w.start_list("c", &plan(400), list).await, CampaignStarted::Done);
        let mut fetched = Vec::new();
        while w.standing("c").await.phase() == CampaignPhase::Running {
            w.feed_all().await;
            assert!(w.downloads("a").await.waiting <= 400);
            fetched.extend(w.do_some(50).await);
        }
        assert!(fetched.len() == 2_300 && fetched.is_sorted(), "each once, in the list's order");
        assert_eq!(w.counted_of("c").await, [2_300, 0, 2_300, 0, 0, 0]);
    });
}

#[test]
fn c16_two_that_feed_the_same_portion_put_it_once() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        let (name, seen) = w.frontier.campaigns().await.expect("answers").remove(0);
        let mut put = 0;
        for _ in 0..3 {
            put += w.frontier.top_up(&name, &seen).await.expect("answers");
        }
        assert_eq!((put, w.downloads("a").await.waiting), (10, 10));
        // One that was stopped for long comes with what was next then.
        w.do_some(10).await;
        let late = (0..5).map(|n| put_of(&url("a", &format!("{n:04}")), "c", &plan(10))).collect();
        let fed = w.feed_of(&seen.campaign.list, 0, late).await.expect("it is there");
        assert_eq!((fed.put, fed.next, fed.room), (0, 10, 10));
        assert_eq!(w.downloads("a").await.waiting, 0);
    });
}

#[test]
fn c16_no_more_is_put_than_there_is_room_for_whatever_is_asked() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        let all = |from: u32| -> Vec<Put> {
            (from..23).map(|n| put_of(&url("a", &format!("{n:04}")), "c", &plan(10))).collect()
        };
        let list = w.standing("c").await.campaign.list;
        let fed = w.feed_of(&list, 0, all(0)).await.expect("it is there");
        assert_eq!((fed.put, fed.next, fed.room), (10, 10, 0));
        let fed = w.feed_of(&list, 10, all(10)).await;
        assert_eq!(fed.map(|fed| (fed.put, fed.next)), Some((0, 10)));
    });
}

#[test]
fn c16_a_feed_that_hung_until_the_name_had_another_list_puts_nothing_of_the_old_one() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        let old = w.standing("c").await.campaign.list;
        w.set("c", CampaignTuning::Stopped { keep: false }).await;
        assert_eq!(w.start_list("c", &plan(10), pages(100, 23)).await, CampaignStarted::Done);
        let late = (0..5).map(|n| put_of(&url("a", &format!("{n:04}")), "c", &plan(10))).collect();
        assert_eq!(w.feed_of(&old, 0, late).await, None);
        assert_eq!((w.downloads("a").await.waiting, w.standing("c").await.campaign.next), (0, 0));
        assert_eq!(w.feed_all().await, 10);
        assert_eq!(w.do_some(10).await[0], "0100");
    });
}

#[test]
fn c13_portion_tick_and_priority_are_set_while_it_runs_and_hold_at_the_next_tick() {
    on_every_backend(async |w| {
        w.campaign_of(100, 4).await;
        w.feed_all().await;
        assert_eq!(w.set("c", CampaignTuning::Portion(CampaignPortion::Pages(6))).await, CampaignTuned::Done);
        assert_eq!(w.feed_all().await, 0, "not before the tick");
        let urgent = Priority::from_value(120);
        assert_eq!(w.set("c", CampaignTuning::Priority(urgent)).await, CampaignTuned::Done);
        assert_eq!(w.set("c", CampaignTuning::Tick(5_000)).await, CampaignTuned::Done);
        w.pass(4_999);
        assert_eq!(w.feed_all().await, 0);
        w.pass(1);
        assert_eq!(w.feed_all().await, 2);
        let next = w.take().await;
        assert_eq!((path_of(&next).as_str(), next.priority), ("0004", urgent), "as urgent as it is now");
        assert_eq!(w.set("c", CampaignTuning::Portion(CampaignPortion::Pages(2))).await, CampaignTuned::Done);
        w.pass(5_000);
        assert_eq!(w.feed_all().await, 0, "six are open");
        let acts = w.frontier.acts("a").await.expect("answers");
        assert_eq!(acts.len(), 5, "the start and what was set");
        assert_eq!(w.set("x", CampaignTuning::Paused(true)).await, CampaignTuned::Unknown);
    });
}

#[test]
fn c13_a_portion_by_the_pace_follows_the_interval_as_it_is_set() {
    on_every_backend(async |w| {
        w.site("a").await;
        let by_pace = CampaignPlan { tick: 20_000, ..CampaignPlan::default() };
        assert_eq!(w.start_list("c", &by_pace, pages(0, 400)).await, CampaignStarted::Done);
        let interval = w.view("a").await.interval;
        assert_eq!(w.standing("c").await.interval, interval);
        assert_eq!(i64::from(w.standing("c").await.room), 40_000 / interval);
        w.tune("a", Tuning::Interval(Some(2 * interval))).await;
        assert_eq!(i64::from(w.standing("c").await.room), 20_000 / interval);
        w.tune("a", Tuning::Interval(Some(100 * interval))).await;
        assert_eq!(w.standing("c").await.room, 16, "at the least");
    });
}

#[test]
fn c13_one_that_is_paused_is_fed_again_once_it_is_resumed() {
    on_every_backend(async |w| {
        w.campaign_of(10, 4).await;
        w.feed_all().await;
        assert_eq!(w.set("c", CampaignTuning::Paused(true)).await, CampaignTuned::Done);
        assert_eq!(w.standing("c").await.phase(), CampaignPhase::Paused);
        assert_eq!(w.do_some(9).await.len(), 4, "what waits of it goes on");
        w.pass(10 * MINUTE);
        assert_eq!(w.feed_all().await, 0);
        assert_eq!(w.set("c", CampaignTuning::Paused(false)).await, CampaignTuned::Done);
        assert_eq!(w.feed_all().await, 4);
    });
}

#[test]
fn c11_c14_its_progress_tells_when_it_ends_by_the_pace_and_as_seen() {
    on_every_backend(async |w| {
        w.campaign_of(20, 10).await;
        w.feed_all().await;
        assert_eq!(w.standing("c").await.observed_eta(), None, "nothing has ended");
        w.pass(30_000);
        let leases = w.take_some(6).await;
        for lease in &leases[..4] {
            w.done(lease).await;
        }
        let why = Failure { status: Some(404), ..Failure::new("404") };
        w.settle(&leases[4], Outcome::Dead { why }).await;
        assert_eq!(w.counted_of("c").await, [10, 5, 4, 1, 0, 15]);
        let status = w.standing("c").await;
        assert_eq!(status.observed_eta(), Some(90_000), "five in 30 s, and 15 are left");
        assert_eq!(CampaignStatus { interval: 2_000, ..status }.paced_eta(), Some(30_000));
    });
}

#[test]
fn c14_the_rate_is_that_of_the_last_hour() {
    on_every_backend(async |w| {
        w.campaign_of(200, 10).await;
        for _ in 0..5 {
            w.feed_all().await;
            w.do_some(10).await;
            w.pass(30 * MINUTE);
        }
        w.feed_all().await;
        let status = w.standing("c").await;
        assert_eq!(status.campaign.marks.len(), 2);
        assert_eq!(status.at - status.campaign.marks[0].0, 30 * MINUTE);
        assert_eq!(status.observed_eta(), Some(150 * 3 * MINUTE));
    });
}

#[test]
fn c12_a_page_of_two_campaigns_is_fetched_once_and_counted_for_both() {
    on_every_backend(async |w| {
        w.campaign_of(3, 10).await;
        assert_eq!(w.start_list("d", &plan(10), pages(2, 3)).await, CampaignStarted::Done);
        assert_eq!(w.feed_all().await, 6);
        assert_eq!(w.downloads("a").await.waiting, 5);
        assert_eq!(w.counted_of("d").await, [3, 3, 0, 0, 1, 3]);
        assert_eq!(w.do_some(9).await.len(), 5);
        assert_eq!(w.counted_of("c").await, [3, 0, 3, 0, 0, 0]);
        assert_eq!(w.counted_of("d").await, [3, 0, 3, 0, 1, 0]);
        assert_eq!(w.standing("c").await.phase(), CampaignPhase::Ended);
    });
}

#[test]
fn c12_what_stops_drops_what_waits_of_it_alone() {
    on_every_backend(async |w| {
        w.campaign_of(30, 10).await;
        w.feed_all().await;
        let running = w.take().await;
        // Others want two of them as well.
        let of_batch = Put { batches: BatchNames::of("b"), ..request("a", "0003") };
        assert_eq!(w.put_with("a", of_batch).await, PutReply::Coalesced);
        assert_eq!(w.start_list("d", &plan(10), pages(4, 1)).await, CampaignStarted::Done);
        w.feed_all().await;
        w.put("a", "own").await;
        assert_eq!(w.set("c", CampaignTuning::Stopped { keep: false }).await, CampaignTuned::Done);
        assert_eq!(w.frontier.drop_of_campaign("a", "c").await.expect("answers"), 9);
        assert_eq!(w.frontier.drop_of_campaign("a", "c").await.expect("answers"), 0);
        let status = w.standing("c").await;
        assert_eq!(
            (status.phase(), status.counts.open, status.counts.dropped),
            (CampaignPhase::Stopping, 1, 9)
        );
        w.pass(TICK);
        assert_eq!(w.feed_all().await, 0);
        w.done(&running).await;
        assert_eq!(w.standing("c").await.phase(), CampaignPhase::Stopped);
        assert_eq!(w.do_some(50).await, ["0003", "0004", "own"]);
        assert_eq!(w.set("c", CampaignTuning::Paused(true)).await, CampaignTuned::Over);
    });
}

#[test]
fn c12_what_stops_may_let_end_what_waits_of_it() {
    on_every_backend(async |w| {
        w.campaign_of(30, 10).await;
        w.feed_all().await;
        assert_eq!(w.set("c", CampaignTuning::Stopped { keep: true }).await, CampaignTuned::Done);
        assert_eq!(w.frontier.drop_of_campaign("a", "c").await.expect("answers"), 0);
        assert_eq!(w.set("c", CampaignTuning::Paused(false)).await, CampaignTuned::Over);
        assert_eq!(w.do_some(50).await.len(), 10);
        assert_eq!((w.feed_all().await, w.standing("c").await.phase()), (0, CampaignPhase::Stopped));
    });
}

#[test]
fn c16_a_list_that_is_half_there_goes_on_and_feeds_nothing_before_it_is_whole() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        let mut list = pages(0, 10);
        let (key, chunks) = (list.key(), list.chunks().to_vec());
        w.frontier.book_campaign("c", "a").await.expect("answers");
        w.frontier.make_campaign("a", "c", &key, &plan(9)).await.expect("answers");
        let add = async |number: u32| {
            let chunk = &chunks[number as usize];
            w.frontier.add_chunk("a", "c", &key, number, chunk).await.expect("answers")
        };
        assert!(add(0).await && !add(2).await && add(1).await && add(0).await);
        let act = Act::default;
        assert!(!w.frontier.begin_campaign("a", "c", &key, act()).await.expect("answers"), "one is missing");
        assert_eq!((w.feed_all().await, w.standing("c").await.phase()), (0, CampaignPhase::Uploading));
        // It was killed. The same list goes on, another one takes its place.
        assert_eq!(w.start_list("c", &plan(9), pages(0, 10)).await, CampaignStarted::Done);
        assert_eq!(w.feed_all().await, 9);
        assert!(w.frontier.begin_campaign("a", "c", &key, act()).await.expect("answers"), "asked again");
        assert_eq!(w.frontier.acts("a").await.expect("answers").len(), 1);
        assert_eq!(w.start_list("c", &plan(9), pages(0, 3)).await, CampaignStarted::Running("a".to_owned()));
    });
}

#[test]
fn c16_a_list_that_never_came_whole_is_forgotten_after_a_day() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        let mut list = pages(0, 10);
        w.frontier.book_campaign("c", "a").await.expect("answers");
        w.frontier.make_campaign("a", "c", &list.key(), &plan(9)).await.expect("answers");
        let (key, chunk) = (list.key(), list.chunks()[0].clone());
        w.frontier.add_chunk("a", "c", &key, 0, &chunk).await.expect("answers");
        w.pass(UPLOAD_KEPT_MS - 1);
        w.sweep_all().await;
        assert_eq!(w.standing("c").await.campaign.chunks, 1);
        w.pass(1);
        w.sweep_all().await;
        assert_eq!(w.frontier.campaign("a", "c").await.expect("answers"), None);
        assert_eq!(w.frontier.campaign_names().await.expect("answers"), []);
    });
}

#[test]
fn c11_one_that_ended_is_shown_for_thirty_days_and_its_list_goes_at_once() {
    on_every_backend(async |w| {
        w.campaign_of(10, 50).await;
        w.feed_all().await;
        w.do_some(50).await;
        w.note_its_end("c").await;
        w.sweep_all().await;
        let status = w.standing("c").await;
        assert_eq!((status.campaign.chunks, status.campaign.ended_at.is_some()), (0, true));
        assert_eq!(w.counted_of("c").await, [10, 0, 10, 0, 0, 0]);
        w.pass(CAMPAIGN_KEPT_MS - 1);
        w.sweep_all().await;
        assert_eq!(w.counted_of("c").await, [10, 0, 10, 0, 0, 0]);
        w.pass(1);
        w.sweep_all().await;
        assert_eq!(w.frontier.campaign("a", "c").await.expect("answers"), None);
    });
}

#[test]
fn c11_the_name_of_one_that_runs_is_refused_and_of_one_that_ended_taken_again() {
    on_every_backend(async |w| {
        w.campaign_of(10, 50).await;
        w.fast_site("b").await;
        let again = async || w.start_list("c", &plan(9), pages(5, 3)).await;
        assert_eq!(again().await, CampaignStarted::Running("a".to_owned()));
        let elsewhere = async |mut list: UrlList| {
            w.frontier.start_campaign("b", "c", &plan(9), &mut list, Act::default()).await.expect("answers")
        };
        assert_eq!(elsewhere(pages(0, 1)).await, CampaignStarted::Running("a".to_owned()));
        w.feed_all().await;
        w.do_some(50).await;
        assert_eq!(again().await, CampaignStarted::Done);
        assert_eq!(w.counted_of("c").await, [0, 0, 0, 0, 0, 3], "it is another one");
        w.feed_all().await;
        w.do_some(50).await;
        w.note_its_end("c").await;
        assert_eq!(elsewhere(pages(0, 1)).await, CampaignStarted::Done);
        assert_eq!(w.frontier.campaign("a", "c").await.expect("answers"), None);
    });
}

#[test]
fn c11_a_hundred_are_kept_and_the_first_that_ended_makes_room() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        for n in 0..CAMPAIGNS_KEPT {
            assert_eq!(w.start_list(&format!("c{n:02}"), &plan(1), pages(0, 1)).await, CampaignStarted::Done);
        }
        assert_eq!(w.start_list("more", &plan(1), pages(0, 1)).await, CampaignStarted::Full);
        assert_eq!(w.set("c07", CampaignTuning::Stopped { keep: true }).await, CampaignTuned::Done);
        assert_eq!(w.start_list("more", &plan(1), pages(0, 1)).await, CampaignStarted::Done);
        let names = w.frontier.campaign_names().await.expect("answers");
        assert!(names.len() == CAMPAIGNS_KEPT && names.iter().all(|name| name.name != "c07"));
    });
}

#[test]
fn c11_a_name_that_was_taken_again_is_not_given_back() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        let book = async || w.frontier.book_campaign("c", "a").await.expect("answers");
        let CampaignBooked::Number(number) = book().await else { panic!("it is free") };
        let first = CampaignName { name: "c".to_owned(), site: "a".to_owned(), number };
        assert_eq!(book().await, CampaignBooked::Number(number + 1));
        assert!(!w.frontier.unbook_campaign(&first).await.expect("answers"));
        let second = CampaignName { number: number + 1, ..first };
        assert!(w.frontier.unbook_campaign(&second).await.expect("answers"));
        assert_eq!(w.frontier.campaign_names().await.expect("answers"), []);
    });
}

#[test]
fn c12_a_site_that_is_forgotten_takes_its_campaigns_along_and_one_that_is_renamed_brings_them() {
    on_every_backend(async |w| {
        w.campaign_of(10, 4).await;
        w.feed_all().await;
        assert_eq!(w.frontier.rename("a", "n").await.expect("answers"), Renamed::Done);
        let names = w.frontier.campaign_names().await.expect("answers");
        assert_eq!(names.iter().map(|name| name.site.as_str()).collect::<Vec<_>>(), ["n"]);
        assert_eq!(w.do_some(9).await.len(), 4);
        w.pass(MINUTE);
        assert_eq!(w.feed_all().await, 4, "its list came along");
        assert_eq!(w.do_some(9).await.len(), 4);
        w.pass(MINUTE);
        loop {
            match w.frontier.forget("n").await.expect("answers") {
                Forgotten::Partly => {}
                forgotten => break assert_eq!(forgotten, Forgotten::Wholly),
            }
        }
        assert_eq!(w.frontier.campaign_names().await.expect("answers"), []);
        assert_eq!(w.frontier.campaign("n", "c").await.expect("answers"), None);
        w.fast_site("a").await;
        assert_eq!(w.start_list("c", &plan(4), pages(0, 2)).await, CampaignStarted::Done);
    });
}

#[test]
fn m10_a_site_that_holds_as_many_pages_as_it_may_gets_no_portion() {
    on_every_backend(async |w| {
        w.campaign_of(10, 4).await;
        let rules = FleetRules { most_waiting: Some(3), ..FleetRules::default() };
        w.frontier.agree(rules, 1).await.expect("answers");
        for path in ["x", "y", "z"] {
            w.put("a", path).await;
        }
        assert_eq!(w.feed_all().await, 0);
        assert_eq!(w.counted_of("c").await, [0, 0, 0, 0, 0, 10]);
        w.do_some(1).await;
        w.pass(MINUTE);
        assert_eq!(w.feed_all().await, 4, "a portion goes in whole");
    });
}

#[test]
fn n4_a_page_without_room_for_one_more_batch_is_of_the_campaign_alone() {
    on_every_backend(async |w| {
        w.fast_site("a").await;
        let eight = (0..8).map(|n| n.to_string()).collect();
        w.put_with("a", Put { batches: eight, ..request("a", "0001") }).await;
        let plan = CampaignPlan { batch: Some("b".to_owned()), ..plan(10) };
        assert_eq!(w.start_list("c", &plan, pages(0, 4)).await, CampaignStarted::Done);
        assert_eq!(w.feed_all().await, 4);
        assert_eq!(w.counted_of("c").await, [4, 4, 0, 0, 1, 4]);
        let batch = w.frontier.batch_on("a", "b").await.expect("answers").expect("it is there");
        assert_eq!(batch.open(), 3);
    });
}

#[test]
fn c16_a_run_that_is_given_up_gets_nothing_of_it() {
    on_every_backend(async |w| {
        w.campaign_of(10, 4).await;
        w.feed_all().await;
        w.frontier.give_up("a").await.expect("answers");
        let view = w.view("a").await;
        assert_eq!(view.is_given_up, w.standing("c").await.room == 0);
        while w.frontier.go_on_giving_up("a").await.expect("answers") {}
        assert_eq!(w.standing("c").await.counts.dropped, 4);
        assert_eq!(w.feed_all().await, 4);
    });
}

#[test]
fn c11_the_name_of_a_campaign_whose_site_is_renamed_half_way_stays_its_own() {
    on_every_backend(async |w| {
        w.campaign_of(23, 10).await;
        w.fast_site("b").await;
        let first = w.frontier.rename_step("a", "new").await.expect("answers");
        let mut list = UrlList::in_chunks_of(4);
        list.push(url("b", "0000"));
        let started = w.frontier.start_campaign("b", "c", &plan(10), &mut list, Act::default()).await;
        let started = started.expect("answers");
        assert!(matches!(started, CampaignStarted::Running(_)), "{started:?} after {first:?}");
        if first != Renamed::Done {
            assert_eq!(w.frontier.rename("a", "new").await.expect("answers"), Renamed::Done);
        }
        let names = w.frontier.campaign_names().await.expect("answers");
        assert_eq!(names.iter().map(|name| name.site.as_str()).collect::<Vec<_>>(), ["new"]);
        assert_eq!(w.feed_all().await, 10);
    });
}
