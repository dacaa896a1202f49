//! A permit between the claim and the wire: within its grace it stands, later it takes a new start, waits for its turn, or is lost.

use std::sync::Arc;
use std::time::Duration;

use paced::internals::clock::since_boot;
use paced::internals::frontier::permit::{NotNow, Permit, PermitGround};
use paced::internals::frontier::unit_news::UnitNews;
use paced::internals::frontier::{Frontier, Tuning, WorkScope};
use paced::internals::manners::grace;
use paced::internals::mutex::TimedMutex;
use paced::internals::task::Lease;
use tokio_util::sync::CancellationToken;

use super::shared_pace::{claim, with_books};
use super::support::{bound, in_three_tries};
use super::{Backend, backends, ms};

const INTERVAL: Duration = Duration::from_millis(400);

/// A frontier with pages of one site, and who claims them.
struct Claimer {
    backend: Backend,
    owner: String,
    news: Arc<UnitNews>,
}

impl Claimer {
    /// On each backend, on its own time.
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for backend in backends() {
            with_books(&backend.frontier).await;
            tune(&backend.frontier, Tuning::Interval(i64::try_from(INTERVAL.as_millis()).ok())).await;
            let owner = backend.frontier.join(WorkScope::All).await.expect("the frontier").name;
            all.push(Self { backend, owner, news: Arc::default() });
        }
        all
    }

    /// The next start, waited for, and its permit.
    async fn start(&self) -> (Lease, Permit) {
        loop {
            let asked = since_boot();
            let mut grant = claim(&self.backend.frontier, &self.owner).await;
            if let Some(lease) = grant.leases.pop() {
                let ground = PermitGround {
                    frontier: self.backend.frontier.clone(),
                    unit: "books".to_owned(),
                    news: Arc::clone(&self.news),
                    leaving: CancellationToken::new(),
                };
                let permit = Permit::of(&lease, asked, ground);
                return (lease, permit);
            }
            tokio::time::sleep(ms(5)).await;
        }
    }
}

async fn tune(frontier: &Frontier, tuning: Tuning) {
    assert!(frontier.tune("books", tuning).await.expect("the frontier"));
}

/// Until a start that was just granted has grown late.
async fn grow_late() {
    // It was granted 10 ms ahead.
    tokio::time::sleep(grace(INTERVAL) + ms(30)).await;
}

#[tokio::test]
async fn l7_a_permit_used_after_its_grace_comes_an_interval_behind_the_start_that_was_granted_meanwhile() {
    for claimer in Claimer::all().await {
        let (_, late) = claimer.start().await;
        let (other, _) = claimer.start().await;
        let sent = late.start().await.expect("a new start");
        let gap = sent.since(other.departure.at());
        assert!(gap >= INTERVAL, "{}: {gap:?} behind the other one", claimer.backend.name);
    }
}

#[test]
fn l7_a_start_that_went_out_late_keeps_the_next_one_of_its_unit_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    in_three_tries(|| runtime.block_on(late_within_its_grace()));
}

async fn late_within_its_grace() -> Result<(), String> {
    for claimer in Claimer::all().await {
        let name = claimer.backend.name;
        let (lease, permit) = claimer.start().await;
        permit.start().await.map_err(|why| format!("{name}: {why}"))?;
        tokio::time::sleep(grace(INTERVAL) / 2).await;
        // As if the process had stood still between: the same permit, now half its grace late.
        permit.start().await.map_err(|why| format!("{name}: {why}"))?;
        let sent = since_boot();
        let (next, permit) = claimer.start().await;
        permit.start().await.map_err(|why| format!("{name}: {why}"))?;
        let gap = since_boot().saturating_sub(sent);
        let apart = next.departure.at().since(lease.departure.at());
        bound(
            apart == INTERVAL && permit.departure() == next.departure,
            format_args!("{name}: it took a new start"),
        )?;
        bound(gap + ms(3) >= INTERVAL, format_args!("{name}: {gap:?} between the two on the wire"))?;
    }
    Ok(())
}

#[tokio::test]
async fn a_late_permit_waits_while_an_outsider_holds_the_pace() {
    for claimer in Claimer::all().await {
        let frontier = &claimer.backend.frontier;
        let (_, late) = claimer.start().await;
        let pace = TimedMutex::of_site_in(frontier, "books").await.expect("the site");
        let taken = pace.lock().await.expect("the frontier").taken_at();
        let gap = late.start().await.expect("a new start").since(taken);
        assert!(gap >= INTERVAL, "{}: {gap:?} behind the outsider", claimer.backend.name);
    }
}

#[test]
fn a_permit_stands_within_its_grace_and_is_lost_once_three_new_starts_grew_late() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    in_three_tries(|| runtime.block_on(late_again_and_again()));
}

async fn late_again_and_again() -> Result<(), String> {
    for claimer in Claimer::all().await {
        let name = claimer.backend.name;
        let (lease, permit) = claimer.start().await;
        let last_start = async || {
            let view = claimer.backend.frontier.view("books").await.expect("the frontier");
            view.expect("the site").last_start
        };
        permit.start().await.map_err(|why| format!("{name}: {why}"))?;
        bound(
            last_start().await == Some(lease.departure.at()),
            format_args!("{name}: it grew late at once"),
        )?;
        for number in 1..=3 {
            grow_late().await;
            let before = last_start().await;
            permit.clone().start().await.map_err(|why| format!("{name}: new start {number}: {why}"))?;
            assert!(last_start().await > before, "{name}: new start {number} is the old one");
        }
        grow_late().await;
        let lost = permit.start().await;
        assert!(matches!(lost, Err(NotNow::TooLate)), "{name}: {lost:?}");
    }
    Ok(())
}

#[tokio::test]
async fn i11_a_late_permit_is_lost_where_the_site_was_paused_or_the_task_is_gone() {
    for claimer in Claimer::all().await {
        let (name, frontier) = (claimer.backend.name, &claimer.backend.frontier);
        let (given_back, permit) = claimer.start().await;
        assert!(frontier.back(given_back.key()).await.expect("the frontier"));
        grow_late().await;
        let lost = permit.start().await;
        assert!(matches!(lost, Err(NotNow::Stale)), "{name}: {lost:?}");

        let (_, permit) = claimer.start().await;
        tune(frontier, Tuning::pause("lunch")).await;
        grow_late().await;
        let lost = permit.start().await;
        assert!(matches!(lost, Err(NotNow::WentBack)), "{name}: {lost:?}");
    }
}
