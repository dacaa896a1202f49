//! A start that is granted and not sent yet is void once its process learns that its unit is held up.

use std::sync::Arc;
use std::time::Duration;

use paced::internals::clock::since_boot;
use paced::internals::frontier::Tuning;
use paced::internals::frontier::permit::{NotNow, Permit, PermitGround};
use paced::internals::frontier::unit_news::UnitNews;
use paced::internals::task::Lease;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::{block, paced_site};
use crate::world::{AHEAD, World, at, ms, on_every_backend, path_of, starts_at};

/// The next start of site `a`, granted ahead, and its permit.
async fn granted(w: &World, news: &Arc<UnitNews>) -> (Lease, Permit) {
    let asked = since_boot();
    let lease = w.take().await;
    assert!(starts_at(&lease) > w.now());
    let ground = PermitGround {
        frontier: w.frontier.clone(),
        unit: "a".to_owned(),
        news: Arc::clone(news),
        leaving: CancellationToken::new(),
    };
    let permit = Permit::of(&lease, asked, ground);
    (lease, permit)
}

#[derive(Clone, Copy, Debug)]
enum Learnt {
    Block,
    Pause,
    Tune(i64),
}

impl Learnt {
    async fn happens(self, w: &World) {
        match self {
            Self::Block => block(w, "a", 60_000).await,
            Self::Pause => w.tune("a", Tuning::pause("lunch")).await,
            Self::Tune(interval) => w.tune("a", Tuning::Interval(Some(interval))).await,
        }
    }
}

#[test]
fn i11_a_granted_start_is_void_once_its_process_knows_of_a_block_a_pause_or_a_longer_interval() {
    for learnt in [Learnt::Block, Learnt::Pause, Learnt::Tune(5_000)] {
        on_every_backend(async |w| {
            paced_site(w, "a", 1_000, None, 5).await;
            let first = w.start().await;
            w.done(&first).await;
            w.pass(1_000 - AHEAD);
            let news = Arc::default();
            let (lease, permit) = granted(w, &news).await;
            let (sent, ()) = tokio::join!(permit.start(), async {
                yield_now().await;
                learnt.happens(w).await;
                news.doubt("a");
                w.depart(&lease);
            });
            assert!(matches!(sent, Err(NotNow::WentBack)), "{learnt:?}: {sent:?}");
            let view = w.view("a").await;
            assert_eq!((view.download.waiting, view.download.delayed, view.download.retried), (4, 0, 0));
            assert_eq!(view.last_start, Some(at(starts_at(&first))), "{learnt:?}: its start is unused");
            w.tune("a", Tuning::Paused(None)).await;
            w.pass(60_000);
            let again = w.take().await;
            assert_eq!(
                (path_of(&again), again.attempts),
                (path_of(&lease), 0),
                "{learnt:?}: its old position"
            );
        });
    }
}

#[test]
fn what_was_known_before_the_claim_or_is_of_another_unit_or_changes_nothing_leaves_a_start_alone() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 5).await;
        w.start().await;
        w.pass(1_000 - AHEAD);
        let news: Arc<UnitNews> = Arc::default();
        news.doubt("a");
        let (lease, permit) = granted(w, &news).await;
        let (sent, ()) = tokio::join!(permit.start(), async {
            yield_now().await;
            news.doubt("b");
            w.tune("a", Tuning::Interval(Some(500))).await;
            news.doubt("a");
            w.depart(&lease);
        });
        assert_eq!(sent.expect("it stands"), lease.departure.at());
        assert_eq!((permit.departure(), w.view("a").await.last_start), (lease.departure, Some(at(w.now()))));
        assert_eq!(lease.departure.wait(), ms(1_000));
    });
}

#[test]
fn i11_without_a_pace_a_granted_start_is_void_as_well() {
    on_every_backend(async |w| {
        paced_site(w, "a", 0, None, 5).await;
        let asked = since_boot();
        let lease = w.take().await;
        let news: Arc<UnitNews> = Arc::default();
        let ground = PermitGround {
            frontier: w.frontier.clone(),
            unit: "a".to_owned(),
            news: Arc::clone(&news),
            leaving: CancellationToken::new(),
        };
        let permit = Permit::of(&lease, asked, ground);
        block(w, "a", 60_000).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        news.doubt("a");
        let sent = permit.start().await;
        assert!(matches!(sent, Err(NotNow::WentBack)), "{sent:?}");
        assert_eq!(w.view("a").await.download.waiting, 5);
    });
}
