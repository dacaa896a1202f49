//! The story of `docs/fleet.md`: two teams, a flood, an urgent page, a session with a failure, a campaign that is tuned, a pause,
//! and workers that are killed, drained and added. Each claim is asserted by what the shops saw, and by the frontier's books.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use paced::internals::frontier::View;

use crate::fleet::items_of;
use crate::ground::*;
use crate::support::*;

const RULES: &str = "[lanes]\ngeneral = 6\nslow = 1\n\
    [[fairness]]\nlane = \"slow\"\nthreshold = 20\nper = \"1h\"\n";
/// Between two starts on each of the shops.
const PACE: Duration = ms(50);
/// Requests that one worker may have in flight.
const WORKERS: usize = 8;
/// Pages of the flood, of the other team, and of the campaign.
const FLOOD: usize = 400;
const FEW: usize = 10;
const LIST: usize = 250;

struct Story {
    shop: TestSite,
    outlet: TestSite,
    ground: Ground,
}

/// `/red/1`, `/red/2` and so on.
fn of(team: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("/{team}/{number}")).collect()
}

fn serve(paths: &[String]) -> TestSite {
    let front = TestSite::builder().page("/", page("front", [""; 0]));
    let site = paths.iter().fold(front, |site, path| site.page(path, page(path, [""; 0])));
    site.latency(Latency::fixed(ms(30))).serve()
}

/// Pages of a site that wait or run.
fn open(view: &View) -> u64 {
    view.download.waiting + view.download.leased
}

impl Story {
    fn begin(shared: &Shared) -> Self {
        let pages = [of("red", FLOOD), of("blue", FEW), of("tour", 5), of("urgent", 1)].concat();
        let shop = serve(&pages);
        shop.put("/tour/3", Reply::status(410));
        let outlet = serve(&of("list", LIST));
        let files = [("shop", &shop), ("outlet", &outlet)]
            .map(|(name, site)| SiteFile::of(name, site).interval(PACE).pace("robots = \"ignore\""));
        let ground = Ground::on(shared, files);
        ground.data.write("paced.toml", RULES);
        let story = Self { shop, outlet, ground };
        story.with_rules(story.ground.verb_on_all("seed")).run().expect_code(0);
        story
    }

    fn with_rules(&self, verb: Paced) -> Paced {
        verb.args(["--config", &self.ground.data.file("paced.toml").display().to_string()])
    }

    fn worker(&self, name: &str) -> Running {
        let verb = self.with_rules(self.ground.verb("work"));
        let mut worker = verb.args(["--name", name, "--workers", &WORKERS.to_string()]).start();
        worker.wait_for_stderr("at work");
        worker
    }

    /// `paced` in so many words.
    #[track_caller]
    fn say(&self, words: &str) -> Run {
        let mut words = words.split(' ');
        let verb = words.next().expect("a verb");
        words.fold(self.ground.verb(verb), Paced::arg).run().expect_code(0)
    }

    /// Pages of the shop that are put as a list.
    fn put(&self, paths: &[String], options: &str) {
        let urls: Vec<String> = paths.iter().map(|path| self.shop.url(path)).collect();
        let put = self.ground.verb("put").args(["shop", "-"]).args(options.split(' '));
        put.stdin(&urls.join("\n")).run().expect_code(0);
    }

    /// The requests of a team's pages, in order, since so many requests.
    fn asked(&self, team: &str, since: usize) -> Vec<String> {
        let requests = self.shop.requests().split_off(since);
        requests.into_iter().map(|request| request.path).filter(|path| path.starts_with(team)).collect()
    }

    fn books(&self, site: &str) -> View {
        self.ground.view(site)
    }

    /// Red puts a flood, blue ten pages after it: these don't wait for the flood.
    fn two_teams(&self) {
        self.put(&of("red", FLOOD), "--tenant red --priority user");
        self.put(&of("blue", FEW), "--tenant blue --priority user");
        let since = self.shop.requests().len();
        eventually("blue's pages", || (self.asked("/blue", 0).len() == FEW).then_some(()));
        let between = self.asked("/red", since).len();
        assert!(between <= 6 * FEW, "{between} pages of the flood went before ten others");
        let left = self.books("shop").download.waiting;
        assert!(left > FLOOD as u64 / 2, "the flood is over: {left} are left of it");
    }

    /// What an operator asks for has the next start that is free.
    fn an_urgent_page(&self) {
        self.put(&of("urgent", 1), "--priority operator");
        let since = self.shop.requests().len();
        eventually("the urgent page", || (self.shop.count("/urgent/1") == 1).then_some(()));
        let before = self.asked("/red", since).len();
        assert!(before <= 4, "{before} pages went before an urgent one");
    }

    /// Five steps, of which the third one fails: the others wait for it, and go on with it.
    fn a_session(&self) {
        self.put(&of("tour", 5), "--session tour --priority user");
        eventually("a dead step", || (self.ground.letters("shop").len() == 1).then_some(()));
        sleep(10 * PACE);
        assert_eq!(self.asked("/tour", 0), of("tour", 3));
        assert_eq!(self.books("shop").held_in_all, 1);
        self.shop.put("/tour/3", Reply::html(page("mended", [""; 0])));
        self.say("dead revive shop");
        eventually("the last step", || (self.shop.count("/tour/5") == 1).then_some(()));
        let steps = ["/tour/1", "/tour/2", "/tour/3", "/tour/3", "/tour/4", "/tour/5"];
        assert_eq!(self.asked("/tour", 0), steps);
        let tour: Vec<_> =
            self.shop.arrivals().into_iter().filter(|arrival| arrival.path.starts_with("/tour")).collect();
        let one_by_one = tour.windows(2).all(|pair| pair[0].done.is_some_and(|done| done <= pair[1].at));
        assert!(one_by_one, "{tour:?}");
    }

    /// A list that the queue holds a portion of, which is tuned twice.
    fn a_campaign(&self) {
        let urls: Vec<String> = of("list", LIST).iter().map(|path| self.outlet.url(path)).collect();
        let list = self.ground.data.write("night.txt", &urls.join("\n"));
        let list = list.display();
        self.say(&format!("campaign start --name night --site outlet --urls {list} --portion 4 --tick 1s"));
        let most = |most: u64| {
            let open = open(&self.books("outlet"));
            assert!(open <= most, "{open} pages are in the queue, {most} are a portion");
            open
        };
        eventually("a tenth of the list", || {
            most(4);
            (self.outlet.requests().len() > LIST / 10).then_some(())
        });
        self.say("campaign tune night portion=40");
        eventually("a larger portion", || (most(40) > 4).then_some(()));
        self.say("campaign tune night portion=10");
        eventually("a smaller one", || (most(40) <= 10).then_some(()));
        sleep(Duration::from_secs(1));
        for _ in 0..20 {
            most(10);
            sleep(PACE);
        }
    }

    /// A pause with a reason: nothing starts until it is ended.
    fn a_pause(&self) {
        let pause = self.ground.verb("pause").args(["outlet", "--why", "stock-taking"]);
        pause.env("PACED_OPERATOR", "ada").run().expect_code(0);
        sleep(4 * PACE); // what was granted before
        let before = self.outlet.requests().len();
        sleep(20 * PACE);
        assert_eq!(self.outlet.requests().len(), before);
        let acts = wait(self.ground.frontier().acts("outlet")).expect("answers");
        let told = acts.iter().any(|act| act.act.who == "ada" && act.act.why == "stock-taking");
        assert!(told, "{acts:?}");
        self.say("resume outlet");
        eventually("the outlet again", || (self.outlet.requests().len() > before).then_some(()));
    }

    /// Nothing is lost, nothing is early, and only what ran in the killed worker was asked for again.
    fn the_end(&self, workers: &[&str]) {
        let mut again = 0;
        for (name, site) in [("shop", &self.shop), ("outlet", &self.outlet)] {
            let (books, counts) = (self.books(name), site.counts());
            assert_eq!((books.download.imbalance(), books.parse.imbalance()), (0, 0), "{books:?}");
            assert_eq!((open(&books), books.parse.waiting, self.ground.letters(name).len()), (0, 0, 0));
            again += counts.values().sum::<usize>() - counts.len();
            self.ground.assert_paced_but(WORKERS, name, site, PACE);
            let items = workers.iter().flat_map(|worker| items_of(&self.ground, name, worker));
            let items: BTreeSet<String> = items.map(|item| path_of(&text(&item["url"]))).collect();
            assert_eq!(items, counts.into_keys().collect(), "each page is an item");
        }
        assert!(again <= 1 + WORKERS, "{again} pages were asked for again, one of them as it was revived");
    }
}

#[test]
fn c4_c6_c13_c15_f2_one_story_of_a_fleet() {
    let Some(shared) = Shared::redis() else { return };
    let story = Story::begin(&shared);
    let (first, second) = (story.worker("first"), story.worker("second"));
    story.two_teams();
    story.an_urgent_page();
    story.a_session();
    story.a_campaign();
    story.a_pause();
    first.kill();
    let third = story.worker("third");
    story.say("drain second");
    second.finish().expect_code(75);
    eventually("the end of all", || {
        let sites = [&story.shop, &story.outlet];
        let asked: usize = sites.iter().map(|site| site.counts().len()).sum();
        let is_done = |name: &str| open(&story.books(name)) + story.books(name).parse.waiting == 0;
        (asked == 2 + FLOOD + FEW + 5 + 1 + LIST && is_done("shop") && is_done("outlet")).then_some(())
    });
    story.say("drain --all");
    third.finish().expect_code(75);
    drop(first);
    story.the_end(&["first", "second", "third"]);
}
