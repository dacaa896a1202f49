//! Leave to start one request, looked at again when the connection is up (section "from permit to wire").

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::step::{LockReply, Rearm};
use super::{Frontier, FrontierError, MutexKey};
use crate::clock::{self, Clock, Timestamp, millis};
use crate::manners::departure::MOST_AHEAD;
use crate::manners::{grace, lead_ms};
use crate::task::{Departure, Lease, LeaseKey};

/// How long a new start is waited for once the process is to end.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// The longest sleep of one who waits for a mutex to end: its holder may have released it, or been tuned.
const LONGEST_SLEEP: i64 = 5_000;
/// New starts that may grow late again before the task goes back.
const REARMS: u32 = 3;

/// Leave to start one request. Without one, nothing is sent.
///
/// Clones share one permit: however often it is looked at, it is one start.
#[derive(Clone, Debug)]
pub struct Permit(Arc<PermitKind>);

#[derive(Debug)]
enum PermitKind {
    Unpaced(Clock),
    Paced(Paced),
    Single(Single),
}

/// A start that no task stands for: it takes its unit's mutex itself.
#[derive(Debug)]
struct Single {
    frontier: Frontier,
    mutex: MutexKey,
    token: String,
    interval: Duration,
    /// From when on the mutex is its own, in ms by the frontier's clock; `i64::MIN` before.
    at: AtomicI64,
}

#[derive(Debug)]
struct Paced {
    frontier: Frontier,
    lease: LeaseKey,
    /// When the request is to be sent, and the waits that begin then.
    departure: Mutex<Departure>,
    rearms: AtomicU32,
    /// Cancelled when no new start is to be waited for.
    leaving: CancellationToken,
}

/// Why a permit no longer holds.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotNow {
    /// It grew late each time: the task goes back, no attempt is counted.
    #[error("its start was late {REARMS} times")]
    TooLate,
    /// The site was paused or blocked meanwhile: the task went back already.
    #[error("the site was paused or blocked meanwhile")]
    WentBack,
    /// The lease was lost: somebody else has the task.
    #[error("its lease was lost")]
    Stale,
    /// The frontier could not be asked.
    #[error("the frontier could not be asked: {0}")]
    Frontier(FrontierError),
    /// It grew late, and this process is to end: the task goes back.
    #[error("its start was late, and this process is to end")]
    Leaving,
}

impl Permit {
    /// The permit that a download lease carries. Once `leaving`, a permit that grew late waits a few seconds for a new start,
    /// no longer.
    pub fn of(lease: &Lease, frontier: &Frontier, leaving: CancellationToken) -> Self {
        if lease.departure.wait().is_zero() {
            return Self(Arc::new(PermitKind::Unpaced(frontier.clock())));
        }
        Self(Arc::new(PermitKind::Paced(Paced {
            frontier: frontier.clone(),
            lease: lease.key(),
            departure: Mutex::new(lease.departure),
            rearms: AtomicU32::new(0),
            leaving,
        })))
    }

    /// A permit for one start outside of all tasks, as for a person's look at a page: it takes the timed mutex of the pace
    /// unit for `interval`, waiting for its turn as any outsider does.
    pub fn single(frontier: &Frontier, unit: &str, interval: Duration) -> Self {
        if interval.is_zero() {
            return Self(Arc::new(PermitKind::Unpaced(frontier.clock())));
        }
        Self(Arc::new(PermitKind::Single(Single {
            frontier: frontier.clone(),
            mutex: MutexKey::unit(unit),
            token: format!("single-{:016x}", fastrand::u64(..)),
            interval,
            at: AtomicI64::new(i64::MIN),
        })))
    }

    /// A permit that never grows late, for servers of one's own.
    pub fn unpaced() -> Self {
        Self(Arc::new(PermitKind::Unpaced(Clock::wall())))
    }

    /// Called when the connection is up: returns when the request is to be sent, which is right then. The stamp is that moment.
    pub async fn start(&self) -> Result<Timestamp, NotNow> {
        match &*self.0 {
            PermitKind::Unpaced(clock) => Ok(clock.now()),
            PermitKind::Paced(paced) => paced.start().await,
            PermitKind::Single(single) => single.start().await.map_err(NotNow::Frontier),
        }
    }

    /// Holds the pace unit for so long from now, and for no less than its interval: a site asked for that. False: this permit
    /// took no mutex, or it isn't its own any more.
    pub(crate) async fn hold(&self, wait: Duration) -> Result<bool, FrontierError> {
        let PermitKind::Single(single) = &*self.0 else { return Ok(false) };
        let expire = millis(wait.max(single.interval));
        single.frontier.extend_lock(&single.mutex, &single.token, expire).await
    }
}

impl Paced {
    /// Waits for the departure; one that is missed by more than the grace is asked for anew. A process that is to end sends
    /// nothing that it hasn't sent.
    async fn start(&self) -> Result<Timestamp, NotNow> {
        let clock = self.frontier.clock();
        loop {
            if self.leaving.is_cancelled() {
                return Err(NotNow::Leaving);
            }
            let departure = self.departure();
            let grace = grace(departure.wait());
            match clock.look(departure.at(), grace / 2) {
                (left, _) if !left.is_zero() => {
                    self.leaving.run_until_cancelled(clock::wait(left)).await;
                }
                (_, late) if late <= grace => return Ok(clock.now()),
                _ => self.depart_anew().await?,
            }
        }
    }

    /// Takes a new start, not more often than a few times.
    async fn depart_anew(&self) -> Result<(), NotNow> {
        if self.rearms.fetch_add(1, Ordering::SeqCst) >= REARMS {
            return Err(NotNow::TooLate);
        }
        tokio::select! {
            biased;
            rearmed = self.rearm() => rearmed,
            () = clock::wait_after(&self.leaving, LAST_WAIT) => Err(NotNow::Leaving),
        }
    }

    fn departure(&self) -> Departure {
        *self.departure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new start. One that is far away is asked about once more shortly before: the site may have been paused meanwhile.
    async fn rearm(&self) -> Result<(), NotNow> {
        let mut asked = None;
        loop {
            let lead = self.frontier.lead();
            match self.frontier.rearm_asking(&self.lease, asked, lead).await.map_err(NotNow::Frontier)? {
                Rearm::Departs(departure) => {
                    let far = departure.at - self.frontier.clock().now().as_millis() - millis(MOST_AHEAD);
                    *self.departure.lock().unwrap_or_else(PoisonError::into_inner) = departure;
                    if far <= 0 || asked == Some(departure.at) {
                        return Ok(());
                    }
                    wait_ms(far).await;
                    asked = Some(departure.at);
                }
                Rearm::Held(wait) => wait_ms(wait.min(LONGEST_SLEEP)).await,
                Rearm::WentBack => return Err(NotNow::WentBack),
                Rearm::Stale => return Err(NotNow::Stale),
            }
        }
    }
}

impl Single {
    /// Waits for its turn; a start that wasn't used in time is moved, or taken anew.
    async fn start(&self) -> Result<Timestamp, FrontierError> {
        let (clock, grace) = (self.frontier.clock(), grace(self.interval));
        loop {
            let at = self.at.load(Ordering::SeqCst);
            match clock.look(Timestamp::from_millis(at), grace / 2) {
                (left, _) if !left.is_zero() => clock::wait(left).await,
                (_, late) if late <= grace => return Ok(clock.now()),
                _ => self.renew(at > i64::MIN).await?,
            }
        }
    }

    /// Takes the mutex, or moves the end of what was taken and not used in time; or waits for somebody else.
    async fn renew(&self, was_taken: bool) -> Result<(), FrontierError> {
        let (expire, lead) =
            (millis(self.interval), lead_ms(millis(self.interval)).max(self.frontier.lead()));
        if was_taken && self.frontier.extend_lock(&self.mutex, &self.token, expire + lead).await? {
            let soon = self.frontier.clock().now().as_millis() + lead;
            self.at.store(soon, Ordering::SeqCst);
            return Ok(());
        }
        match self.frontier.try_lock_ahead(&self.mutex, &self.token, expire, lead).await? {
            LockReply::Taken(at) => self.at.store(at, Ordering::SeqCst),
            LockReply::Held(left) => wait_ms(left.min(LONGEST_SLEEP)).await,
        }
        Ok(())
    }
}

async fn wait_ms(wait: i64) {
    clock::wait(Duration::from_millis(u64::try_from(wait).unwrap_or(0))).await;
}
