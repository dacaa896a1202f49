//! Leave to start one request, looked at again when the connection is up (section "from permit to wire").

use std::sync::{Arc, Mutex, PoisonError};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::step::{LockReply, Rearm};
use super::{Frontier, FrontierError, MutexKey};
use crate::clock::{self, Clock, Timestamp, millis, since_boot};
use crate::manners::departure::MOST_AHEAD;
use crate::manners::grace;
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
    /// When the mutex was taken, in ms since boot; `i64::MIN` before.
    granted: AtomicI64,
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
            granted: AtomicI64::new(i64::MIN),
        })))
    }

    /// A permit that never grows late, for servers of one's own.
    pub fn unpaced() -> Self {
        Self(Arc::new(PermitKind::Unpaced(Clock::wall())))
    }

    /// Called when the connection is up, right before sending: returns at once within the grace, else takes a new start
    /// and sleeps until then. The stamp is the moment of the send.
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
    /// Waits for the departure; one that is missed by more than the grace is asked for anew.
    async fn start(&self) -> Result<Timestamp, NotNow> {
        let clock = self.frontier.clock();
        loop {
            let departure = self.departure();
            let late = clock.now().as_millis() - departure.at;
            if late < 0 {
                wait_ms(-late).await;
            } else if late <= millis(grace(departure.wait())) {
                return Ok(clock.now());
            } else if self.rearms.fetch_add(1, Ordering::SeqCst) >= REARMS {
                return Err(NotNow::TooLate);
            } else {
                tokio::select! {
                    biased;
                    rearmed = self.rearm() => rearmed?,
                    () = clock::wait_after(&self.leaving, LAST_WAIT) => return Err(NotNow::Leaving),
                }
            }
        }
    }

    fn departure(&self) -> Departure {
        *self.departure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new start. One that is far away is asked about once more shortly before: the site may have been paused meanwhile.
    async fn rearm(&self) -> Result<(), NotNow> {
        let mut asked = None;
        loop {
            match self.frontier.rearm_asking(&self.lease, asked, 0).await.map_err(NotNow::Frontier)? {
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
    async fn start(&self) -> Result<Timestamp, FrontierError> {
        while is_late(&self.granted, grace(self.interval)) {
            let asked = millis(since_boot());
            if self.renew().await? {
                self.granted.store(asked, Ordering::SeqCst);
            }
        }
        Ok(self.frontier.clock().now())
    }

    /// Takes the mutex, or moves the end of what was taken and not used in time; false after a wait for somebody else.
    async fn renew(&self) -> Result<bool, FrontierError> {
        let expire = millis(self.interval);
        if self.granted.load(Ordering::SeqCst) > i64::MIN
            && self.frontier.extend_lock(&self.mutex, &self.token, expire).await?
        {
            return Ok(true);
        }
        match self.frontier.try_lock(&self.mutex, &self.token, expire).await? {
            LockReply::Taken(_) => Ok(true),
            LockReply::Held(left) => {
                wait_ms(left.min(LONGEST_SLEEP)).await;
                Ok(false)
            }
        }
    }
}

fn is_late(granted: &AtomicI64, grace: Duration) -> bool {
    // Parts of a ms are cut off from both: a permit of the grace's age may be older than that.
    millis(since_boot()).saturating_sub(granted.load(Ordering::SeqCst)) >= millis(grace)
}

async fn wait_ms(wait: i64) {
    clock::wait(Duration::from_millis(u64::try_from(wait).unwrap_or(0))).await;
}
