//! A site's pace, shared by a crawl that claims and by an outsider that has nothing but the mutex.

use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{
    Claim, Frontier, FrontierErrorKind, Grant, Registered, Registration, SiteSettings, Tuning, WorkScope,
};
use paced::internals::mutex::TimedMutex;
use paced::internals::task::Put;

use super::player::{self, Player};
use super::{Backend, PATIENCE, assert_spaced, backends, ms, shared_backends, still_backends};

pub const INTERVAL: u64 = 150;
/// Turns that each side must get.
const TURNS: usize = 6;

/// A frontier where the site `books` has far more pages waiting than a test claims.
pub async fn with_books(frontier: &Frontier) {
    with_books_each(frontier, i64::try_from(INTERVAL).expect("small")).await;
}

/// The same at another interval, in ms.
async fn with_books_each(frontier: &Frontier, interval: i64) {
    let settings = SiteSettings {
        interval,
        parallel: 1_000,
        attempts: 5,
        robots: false,
        min_interval: 1,
        max_parallel: 100_000,
        ..SiteSettings::default()
    };
    let books = Registration {
        name: "books".to_owned(),
        text: String::new(),
        group: None,
        hosts: vec!["books.example".to_owned()],
        settings,
    };
    assert!(matches!(frontier.register(books).await.expect("the frontier"), Registered::Version(_)));
    let url = |i: u32| format!("https://books.example/{i}").parse::<CanonicalUrl>().expect("a URL");
    frontier.begin_run("books", (0..300).map(|i| Put::seed(url(i))).collect()).await.expect("the frontier");
}

pub async fn claim(frontier: &Frontier, owner: &str) -> Grant {
    let claim = Claim {
        owner: owner.to_owned(),
        token: fastrand::u64(1..1 << 60),
        download: 4,
        parse: 0,
        dice: vec![0],
        lead: 0,
    };
    frontier.claim(claim).await.expect("the frontier")
}

/// Claims as fast as anything is due, telling each start, until somebody stops it.
async fn crawl(frontier: &Frontier, mut started: impl FnMut(Timestamp)) -> ! {
    let member = frontier.join(WorkScope::of(["books".to_owned()])).await.expect("the frontier");
    loop {
        let grant = claim(frontier, &member.name).await;
        grant.leases.iter().for_each(|lease| started(lease.departure.at()));
        let next_in = grant.next_in.and_then(|wait| u64::try_from(wait).ok()).expect("pages are waiting");
        tokio::time::sleep(ms(next_in)).await;
    }
}

/// Takes the site's pace so many times, as an outsider does.
async fn take(mutex: &TimedMutex, turns: usize) -> Vec<Timestamp> {
    let mut starts = Vec::new();
    while starts.len() < turns {
        starts.push(mutex.lock_within(PATIENCE).await.expect("the outsider gets its turn").taken_at());
    }
    starts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outsider_task_and_a_crawl_share_one_pace_and_both_go_on() {
    for backend in backends() {
        with_books(&backend.frontier).await;
        let (frontier, (started, mut starts)) =
            (backend.frontier.clone(), tokio::sync::mpsc::unbounded_channel());
        let crawl = tokio::spawn(async move {
            crawl(&frontier, |start| started.send(start).expect("the test listens")).await;
        });
        let mut all = vec![starts.recv().await.expect("the crawl begins")];
        let mutex = TimedMutex::of_site_in(&backend.frontier, "books").await.expect("the site");
        all.extend(take(&mutex, TURNS).await);
        while all.len() < 2 * TURNS {
            all.push(starts.recv().await.expect("the crawl goes on"));
        }
        crawl.abort();
        assert_spaced(all, 2 * TURNS, ms(INTERVAL), backend.name);
    }
}

#[tokio::test]
async fn an_outsider_and_a_crawl_in_another_process_share_one_pace_and_both_go_on() {
    const ME: &str = "shared_pace::an_outsider_and_a_crawl_in_another_process_share_one_pace_and_both_go_on";
    if let Some(frontier) = player::frontier() {
        crawl(&frontier, |start| player::tell(start.as_millis())).await;
    }
    for (backend, url) in shared_backends() {
        with_books(&backend.frontier).await;
        let mut crawl = Player::begin(ME, &backend);
        let mut all = vec![crawl.moment()];
        let mutex = TimedMutex::of_site(&url, "books").await.expect("the site");
        all.extend(take(&mutex, TURNS).await);
        while all.len() < 2 * TURNS {
            all.push(crawl.moment());
        }
        assert_spaced(all, 2 * TURNS, ms(INTERVAL), &format!("two processes on {}", backend.name));
    }
}

/// A crawl of `books` and an outsider, on one frontier whose time moves only when told.
struct Sides {
    backend: Backend,
    clock: Clock,
    /// The process that crawls.
    owner: String,
    /// The outsider's.
    mutex: TimedMutex,
}

impl Sides {
    /// On each backend.
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (backend, clock) in still_backends() {
            with_books(&backend.frontier).await;
            let owner = backend.frontier.join(WorkScope::All).await.expect("the frontier").name;
            let mutex = TimedMutex::of_site_in(&backend.frontier, "books").await.expect("the site");
            all.push(Self { backend, clock, owner, mutex });
        }
        all
    }

    fn name(&self) -> &str {
        self.backend.name
    }

    fn pass(&self, millis: u64) {
        self.clock.advance(ms(millis));
    }

    async fn claim(&self) -> Grant {
        claim(&self.backend.frontier, &self.owner).await
    }

    /// How many pages the crawl is granted; it is then when the last of them departs.
    async fn claims(&self) -> usize {
        let leases = self.claim().await.leases;
        if let Some(last) = leases.last() {
            self.clock.advance(last.departure.at().since(self.clock.now()));
        }
        leases.len()
    }

    /// Whether the outsider comes in.
    async fn takes(&self) -> bool {
        self.mutex.try_lock().await.expect("the frontier").is_some()
    }

    /// How long the mutex is held yet.
    async fn left(&self) -> Option<Duration> {
        self.mutex.left().await.expect("the frontier")
    }

    async fn tune(&self, interval: i64) {
        let tuned = self.backend.frontier.tune("books", Tuning::Interval(Some(interval))).await;
        assert!(tuned.expect("the frontier"));
    }
}

#[tokio::test]
async fn who_waited_for_the_other_side_comes_next_though_both_ask_at_the_end() {
    for sides in Sides::all().await {
        assert_eq!(sides.claims().await, 1);
        for round in 0..3 {
            let who = format!("{} round {round}", sides.name());
            assert!(!sides.takes().await, "{who}: the crawl's start holds it");
            sides.pass(INTERVAL);
            let grant = sides.claim().await;
            assert!(grant.leases.is_empty(), "{who}: the outsider waits, the crawl lets it in");
            assert_eq!(grant.next_in, Some(15), "{who}: but only for a tenth of the interval");
            assert!(sides.takes().await, "{who}: the outsider comes in");

            sides.pass(15);
            assert_eq!(sides.claims().await, 0, "{who}: the outsider holds it");
            sides.pass(INTERVAL - 15);
            assert!(!sides.takes().await, "{who}: the crawl waits, it comes first");
            assert_eq!(sides.claims().await, 1, "{who}: the crawl starts");
        }
    }
}

#[tokio::test]
async fn courtesy_ends_so_nobody_waits_for_one_who_gave_up() {
    for sides in Sides::all().await {
        assert_eq!(sides.claims().await, 1);
        assert!(!sides.takes().await);
        sides.pass(INTERVAL + 15);
        assert_eq!(sides.claims().await, 1, "{}: the outsider gave up", sides.name());
        sides.pass(INTERVAL);
        assert_eq!(sides.claims().await, 1, "{}: it waits only once", sides.name());

        sides.pass(INTERVAL);
        assert!(sides.takes().await);
        assert_eq!(sides.claims().await, 0);
        sides.pass(INTERVAL + 15);
        assert!(sides.takes().await, "{}: the crawl gave up", sides.name());
    }
}

#[tokio::test]
async fn one_who_is_late_each_time_is_waited_for_longer_and_longer_until_it_comes_in() {
    for sides in Sides::all().await {
        let name = sides.name();
        assert_eq!(sides.claims().await, 1);
        for turn in [15, 30, 60, 120] {
            assert!(!sides.takes().await && !sides.takes().await, "{name}: asked twice it is one turn");
            sides.pass(INTERVAL + turn - 1);
            assert_eq!(sides.claims().await, 0, "{name}: {turn} ms are the outsider's");
            sides.pass(1);
            assert_eq!(sides.claims().await, 1, "{name}: it missed them");
        }
        assert!(!sides.takes().await);
        sides.pass(INTERVAL + 200);
        assert!(sides.takes().await, "{name}: it is 200 ms late");

        for turn in [15, 30, 60, 120] {
            assert_eq!(sides.claims().await, 0, "{name}: the claims meet the outsider");
            sides.pass(INTERVAL + turn - 1);
            assert!(!sides.takes().await, "{name}: {turn} ms are the claims'");
            sides.pass(1);
            assert!(sides.takes().await, "{name}: they missed them");
        }
        assert_eq!(sides.claims().await, 0);
        sides.pass(INTERVAL + 200);
        assert_eq!(sides.claims().await, 1, "{name}: they are 200 ms late");
        assert!(!sides.takes().await);
        sides.pass(INTERVAL + 15);
        assert_eq!(sides.claims().await, 1, "{name}: who came in has an ordinary turn again");
    }
}

#[tokio::test]
async fn the_interval_in_force_holds_for_an_outsider_that_asked_for_the_mutex_long_ago() {
    for mut sides in Sides::all().await {
        sides.mutex = sides.mutex.expire(ms(1));
        for interval in [5_000, 400] {
            sides.tune(interval).await;
            assert!(sides.takes().await);
            let interval = interval.unsigned_abs();
            assert_eq!(sides.left().await, Some(ms(interval)), "{}", sides.name());
            sides.pass(interval);
        }
    }
}

#[tokio::test]
async fn a_slower_pace_tuned_live_reaches_past_a_waiting_outsider_and_a_quicker_one_too() {
    for sides in Sides::all().await {
        assert_eq!(sides.claims().await, 1);
        // The last start may be 15 ms late on the wire, as that is the grace of 150 ms; that of 100 ms is 10 ms.
        for (interval, left) in [(2_000, 2_000), (100, 105)] {
            assert!(!sides.takes().await);
            sides.tune(interval).await;
            assert_eq!(sides.left().await, Some(ms(left)), "{}", sides.name());
        }
        sides.pass(105);
        assert!(sides.takes().await, "{}", sides.name());
    }
}

#[tokio::test]
async fn an_outsider_that_unlocks_early_or_shortens_its_hold_makes_the_site_due_again() {
    for mut sides in Sides::all().await {
        sides.mutex = sides.mutex.auto_release(true);
        let mut held = sides.mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        for wait in [9_000, 50] {
            held.extend(ms(wait)).await.expect("it is its own");
            assert_eq!(sides.claim().await.next_in, i64::try_from(wait).ok(), "{}", sides.name());
        }
        held.unlock().await.expect("it is its own");
        assert_eq!(sides.claims().await, 1, "{}", sides.name());
    }
}

#[tokio::test]
async fn a_sites_mutex_is_left_to_its_time_whatever_is_asked_of_it() {
    for mut sides in Sides::all().await {
        sides.mutex = sides.mutex.auto_release(true).namespace("mine").expire(ms(1));
        sides.mutex.synchronize(async |_| ()).await.expect("the frontier");
        assert_eq!(
            sides.left().await,
            Some(ms(INTERVAL + 10)),
            "{}: from its start on, 10 ms ahead",
            sides.name()
        );
    }
}

#[tokio::test]
async fn r7_at_most_parallel_requests_are_in_flight_however_many_processes_ask() {
    for (backend, url) in shared_backends() {
        let other = Frontier::open(&url).expect("the same frontier");
        with_books_each(&backend.frontier, 0).await;
        assert!(backend.frontier.tune("books", Tuning::Parallel(Some(3))).await.expect("the frontier"));
        let (one, two) = (
            backend.frontier.join(WorkScope::All).await,
            other.join(WorkScope::All).await.expect("the frontier"),
        );
        let first = claim(&backend.frontier, &one.expect("the frontier").name).await.leases;
        assert_eq!(first.len(), 3, "{}: three of the four asked for", backend.name);
        assert!(claim(&other, &two.name).await.leases.is_empty(), "{}: no room is left", backend.name);
        assert!(backend.frontier.landed(first[1].key()).await.expect("the frontier"));
        assert_eq!(claim(&other, &two.name).await.leases.len(), 1, "{}: one came back", backend.name);
        assert_eq!(
            backend.frontier.view("books").await.expect("the frontier").map(|view| view.in_flight),
            Some(3)
        );
    }
}

#[tokio::test]
async fn without_the_frontier_or_the_site_it_says_so_and_makes_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("data").join("frontier.db");
    let url = format!("sqlite:{}", file.display());
    let error = TimedMutex::of_site(&url, "books").await.expect_err("there is no frontier");
    assert_eq!(error.kind, FrontierErrorKind::Missing);
    assert_eq!(
        error.to_string(),
        format!("{url}: there is no frontier; name another, or begin one with `paced crawl FILE.toml`")
    );
    assert!(!folder.path().join("data").exists(), "asking made something");

    drop(Frontier::open(&url).expect("a frontier"));
    let error = TimedMutex::of_site(&url, "books").await.expect_err("there is no such site");
    assert_eq!(error.kind, FrontierErrorKind::NoSite("books".to_owned()));
    let shown = file.display();
    assert_eq!(
        error.to_string(),
        format!("{shown}: there is no site `books` in it; register it with `paced seed FILE.toml`")
    );
    let error = TimedMutex::of_site("books", "books").await.expect_err("no URL");
    assert!(error.to_string().starts_with("…: name a frontier as sqlite:PATH"), "{error}");
}
