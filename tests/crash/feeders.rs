//! A campaign whose feeder is killed ten times, on each kind of frontier: each URL of its list is put once and asked for once.

use std::thread;
use std::time::Duration;

use paced::internals::frontier::{CampaignPhase, CampaignStatus, Frontier};

use crate::books::tell;
use crate::ground::*;
use crate::support::*;

const KILLS: u32 = 10;
/// URLs of the list: more than are fetched until the last kill, so that each feeder has some to put.
const LIST: usize = 3_000;
/// Pages of it that wait or run at once, at most.
const PORTION: u64 = 270;
/// A dead one's turn lasts ten seconds: the next one begins after it.
const TURN: Duration = Duration::from_mins(1);
const INTERVAL: Duration = ms(10);

struct Night {
    shop: TestSite,
    ground: Ground,
    frontier: Frontier,
    /// What fetches meanwhile: it feeds nothing, and nobody kills it.
    crawl: Running,
}

impl Night {
    fn begin(shared: &Shared) -> Self {
        let (shop, other) = (star(LIST).page("/", page("front", [""; 0])).serve(), star(0).serve());
        let file = |name, site, interval| {
            SiteFile::of(name, site).interval(interval).pace("robots = \"ignore\"").pace("parallel = 4")
        };
        let ground = Ground::on(shared, [file("shop", &shop, INTERVAL), file("other", &other, ms(1))]);
        ground.crawled();
        let urls: Vec<String> = paths(LIST).map(|path| shop.url(&path)).collect();
        let list = ground.data.write("night.txt", &urls.join("\n"));
        let start =
            ground.verb("campaign").args(["start", "--name", "night", "--site", "shop", "--tick", "1s"]);
        start.args(["--portion", &PORTION.to_string(), "--urls"]).arg(list).run().expect_code(0);
        let (frontier, crawl) = (ground.frontier(), Self::crawl(&ground));
        Self { shop, ground, frontier, crawl }
    }

    fn crawl(ground: &Ground) -> Running {
        ground.verb("crawl").arg(ground.file("shop")).start()
    }

    /// One that feeds, and has no page of the list in hand as it dies: it works on another site.
    fn feeder(&self, number: u32) -> Running {
        let work =
            self.ground.verb("work").args(["--name", &format!("feeder-{number}"), "--role", "download"]);
        work.args(["--only-sites", "other"]).start()
    }

    /// How the campaign stands. Its portion is never over its bound, and whatever waits is fetched.
    fn look(&mut self) -> CampaignStatus {
        if self.crawl.ended() {
            let next = Self::crawl(&self.ground);
            std::mem::replace(&mut self.crawl, next).finish().expect_code(0);
        }
        let night = wait(self.frontier.campaign("shop", "night")).expect("an answer").expect("a campaign");
        assert!(night.counts.open <= PORTION, "{night:?}");
        night
    }

    /// Kills the only one that feeds, at some moment after it put something, every other time while it may put more; how much of the
    /// list is put by then.
    fn kill_a_feeder(&mut self, number: u32, fed: u32) -> u32 {
        let mut feeder = self.feeder(number);
        within(TURN, "a portion by the next feeder", || {
            assert!(!feeder.ended(), "{}", feeder.stderr());
            (self.look().campaign.next > fed).then_some(())
        });
        let latest = if number.is_multiple_of(2) { 3_000 } else { 100_000 };
        thread::sleep(Duration::from_micros(fastrand::u64(..latest)));
        feeder.kill();
        assert_eq!(feeder.finish().code, None, "it ended before it was killed");
        let night = self.look();
        assert_eq!(night.phase(), CampaignPhase::Running, "{night:?}");
        night.campaign.next
    }
}

fn killed_ten_times(shared: &Shared) {
    let mut night = Night::begin(shared);
    let fed = (1..=KILLS).fold(0, |fed, number| night.kill_a_feeder(number, fed));
    tell(&format!("{KILLS} feeders killed, {fed} of {LIST} URLs put by them"));
    let last = night.feeder(KILLS + 1);
    let end = eventually("the end of the list", || {
        let status = night.look();
        (status.phase() == CampaignPhase::Ended).then_some(status)
    });
    last.terminate();
    last.finish().expect_code(0);
    night.crawl.finish().expect_code(0);

    let odd: Vec<String> = paths(LIST).filter(|path| night.shop.count(path) != 1).collect();
    assert!(odd.is_empty(), "not asked for once: {odd:?}");
    let (counts, all) = (end.counts, LIST as u64);
    assert_eq!((u64::from(end.campaign.next), counts.done), (all, all), "{end:?}");
    assert_eq!((counts.open, counts.dead, counts.dropped, counts.coalesced), (0, 0, 0, 0), "{end:?}");
    let books = night.ground.view("shop");
    assert_eq!((books.download.imbalance(), books.parse.imbalance()), (0, 0), "{books:?}");
}

/// Most of its time it waits for the turns of the dead, so both kinds of frontier have theirs at once.
#[test]
fn c12_c16_a_campaign_whose_feeder_is_killed_ten_times_puts_each_url_once() {
    let redis = Shared::redis();
    thread::scope(|scope| {
        scope.spawn(|| killed_ten_times(&Shared::default()));
        if let Some(redis) = &redis {
            scope.spawn(|| killed_ten_times(redis));
        }
    });
}
