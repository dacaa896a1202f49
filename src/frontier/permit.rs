//! Leave to start one request, looked at again when the connection is up (section "from permit to wire").

use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::step::{LockReply, Rearm};
use super::steps::claim::LONGEST_LEAD;
use super::unit_news::UnitNews;
use super::{Frontier, FrontierError, MutexKey};
use crate::clock::{self, Clock, Timestamp, millis, since_boot};
use crate::manners::departure::{LATE, MOST_AHEAD};
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
    /// How long the last answer to a move of it took, in ms.
    trip: AtomicI64,
}

/// What the permits of one pace unit go by.
#[derive(Clone, Debug)]
pub struct PermitGround {
    /// Where the start was granted.
    pub frontier: Frontier,
    /// The pace unit.
    pub unit: String,
    /// What the process learns of its units.
    pub news: Arc<UnitNews>,
    /// Cancelled when no new start is to be waited for.
    pub leaving: CancellationToken,
}

#[derive(Debug)]
struct Paced {
    ground: PermitGround,
    lease: LeaseKey,
    granted: Mutex<Granted>,
    rearms: AtomicU32,
}

/// The start that a permit has.
#[derive(Clone, Copy, Debug)]
struct Granted {
    /// When the request is to be sent, and the waits that begin then.
    departure: Departure,
    /// The time since boot right before it was asked for, or asked about: what was learnt earlier is known to it.
    asked: Duration,
}

/// What a permit is to do now.
enum PermitStep {
    Wait(Duration),
    /// So late.
    Send(Duration),
    /// It is too late.
    Rearm,
}

/// Why a permit no longer holds.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotNow {
    /// It grew late each time: the task goes back, no attempt is counted.
    #[error("its start was late {REARMS} times")]
    TooLate,
    /// The site was paused, blocked or slowed down meanwhile: the task went back already, its start unused.
    #[error("the site was paused, blocked or slowed down meanwhile")]
    WentBack,
    /// The lease was lost: somebody else has the task.
    #[error("its lease was lost")]
    Stale,
    /// The frontier could not be asked.
    #[error("the frontier could not be asked: {0}")]
    Frontier(FrontierError),
    /// It isn't sent yet, and this process is to end: the task goes back.
    #[error("it was not sent yet, and this process is to end")]
    Leaving,
}

impl Permit {
    /// The permit that a download lease carries, whose claim was sent right after `asked`, by the time since boot. Once `leaving`, a permit that grew late waits a few seconds for a new start,
    /// no longer.
    pub fn of(lease: &Lease, asked: Duration, ground: PermitGround) -> Self {
        let granted = Mutex::new(Granted { departure: lease.departure, asked });
        let rearms = AtomicU32::new(0);
        Self(Arc::new(PermitKind::Paced(Paced { ground, lease: lease.key(), granted, rearms })))
    }

    /// A permit for one start outside of all tasks, as for a person's look at a page: it takes the timed mutex of the pace
    /// unit for `interval`, waiting for its turn as any outsider does.
    pub fn single(frontier: &Frontier, unit: &str, interval: Duration) -> Self {
        if interval.is_zero() {
            return Self(Arc::new(PermitKind::Unpaced(frontier.clock_of(&MutexKey::unit(unit)))));
        }
        Self(Arc::new(PermitKind::Single(Single {
            frontier: frontier.clone(),
            mutex: MutexKey::unit(unit),
            token: format!("single-{:016x}", fastrand::u64(..)),
            interval,
            at: AtomicI64::new(i64::MIN),
            trip: AtomicI64::new(0),
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

    /// Ends when what isn't sent yet is to go back, as this process is to end; never where no task stands for the start.
    pub async fn leaves(&self) {
        match &*self.0 {
            PermitKind::Paced(paced) => paced.ground.leaving.cancelled().await,
            PermitKind::Unpaced(_) | PermitKind::Single(_) => std::future::pending().await,
        }
    }

    /// When its request is to be sent, and the waits that begin then, as last granted.
    pub fn departure(&self) -> Departure {
        match &*self.0 {
            PermitKind::Unpaced(_) => Departure::default(),
            PermitKind::Paced(paced) => paced.granted().departure,
            PermitKind::Single(single) => single.departure(),
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
    /// nothing that it hasn't sent, and what it learns of the unit meanwhile counts.
    async fn start(&self) -> Result<Timestamp, NotNow> {
        let PermitGround { frontier, unit, news, leaving } = &self.ground;
        let clock = frontier.clock_of(&MutexKey::unit(unit));
        loop {
            let mut told = pin!(news.told());
            told.as_mut().enable();
            let Granted { departure, asked } = self.granted();
            if leaving.is_cancelled() {
                return Err(NotNow::Leaving);
            }
            if news.is_in_doubt(unit, asked) {
                self.ask(Some(departure.at)).await?;
                continue;
            }
            match self.next(&clock, departure) {
                PermitStep::Wait(left) => tokio::select! {
                    () = clock::wait(left) => {}
                    () = told => {}
                    () = leaving.cancelled() => {}
                },
                PermitStep::Send(late) => {
                    if late > LATE {
                        news.went_late(unit, self.lease.token, spell(departure.unit));
                    }
                    return Ok(clock.now());
                }
                PermitStep::Rearm if self.rearms.fetch_add(1, Ordering::SeqCst) >= REARMS => {
                    return Err(NotNow::TooLate);
                }
                PermitStep::Rearm => self.ask(None).await?,
            }
        }
    }

    /// A start whose predecessor was sent late is sent late itself, as far as its own grace allows.
    fn next(&self, clock: &Clock, departure: Departure) -> PermitStep {
        if !departure.is_paced() {
            return PermitStep::Send(Duration::ZERO);
        }
        let grace = grace(departure.wait());
        let PermitGround { unit, news, .. } = &self.ground;
        let doubt = clock.doubt();
        if doubt > grace / 2 {
            news.is_far(doubt);
        }
        let (left, late) = clock.look(departure.at(), grace / 2);
        if !left.is_zero() {
            return PermitStep::Wait(left);
        }
        match news.held(unit, self.lease.token, spell(departure.unit)) {
            held if late + held > grace => PermitStep::Rearm,
            held if !held.is_zero() => PermitStep::Wait(held),
            _ => PermitStep::Send(late),
        }
    }

    fn granted(&self) -> Granted {
        *self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a new start, or whether the one at that time still stands.
    async fn ask(&self, whether: Option<i64>) -> Result<(), NotNow> {
        tokio::select! {
            biased;
            rearmed = self.rearm(whether) => rearmed,
            () = clock::wait_after(&self.ground.leaving, LAST_WAIT) => Err(NotNow::Leaving),
        }
    }

    /// Takes a new start. One that is far away is asked about once more shortly before: the site may have been paused meanwhile.
    async fn rearm(&self, mut whether: Option<i64>) -> Result<(), NotNow> {
        let PermitGround { frontier, unit, .. } = &self.ground;
        let clock = frontier.clock_of(&MutexKey::unit(unit));
        loop {
            let (asked, lead) = (since_boot(), frontier.lead());
            match frontier.rearm_asking(&self.lease, whether, lead).await.map_err(NotNow::Frontier)? {
                Rearm::Departs(departure) => {
                    let far = departure.at - clock.now().as_millis() - millis(MOST_AHEAD);
                    *self.granted.lock().unwrap_or_else(PoisonError::into_inner) =
                        Granted { departure, asked };
                    if far <= 0 || whether == Some(departure.at) {
                        return Ok(());
                    }
                    wait_ms(far).await;
                    whether = Some(departure.at);
                }
                Rearm::Held(wait) => wait_ms(wait.min(LONGEST_SLEEP)).await,
                Rearm::WentBack => return Err(NotNow::WentBack),
                Rearm::Stale => return Err(NotNow::Stale),
            }
        }
    }
}

impl Single {
    fn departure(&self) -> Departure {
        let wait = millis(self.interval);
        Departure { at: self.at.load(Ordering::SeqCst), unit: wait, site: wait }
    }

    /// Waits for its turn; a start that wasn't used in time is moved, or taken anew.
    async fn start(&self) -> Result<Timestamp, FrontierError> {
        let (clock, grace) = (self.frontier.clock_of(&self.mutex), grace(self.interval));
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
        let expire = millis(self.interval);
        let lead = lead_ms(expire).max(self.frontier.lead());
        // An answer that was slower than a start may be ahead was one of its kind: the mutex isn't held for as long again.
        let ahead = lead.max(self.trip.load(Ordering::SeqCst)).min(LONGEST_LEAD);
        if was_taken && self.moved(expire, ahead).await? {
            return Ok(());
        }
        match self.frontier.try_lock_ahead(&self.mutex, &self.token, expire, lead).await? {
            LockReply::Taken(at) => self.at.store(at, Ordering::SeqCst),
            LockReply::Held(left) => wait_ms(left.min(LONGEST_SLEEP)).await,
        }
        Ok(())
    }

    /// Moves the start to `lead` ms from now, and the end of the mutex to no sooner than an interval after it: the mutex is moved
    /// later than this is sent, whenever the answer comes. False: the mutex isn't its own any more.
    async fn moved(&self, expire: i64, lead: i64) -> Result<bool, FrontierError> {
        let (asked, sent) = (self.frontier.clock_of(&self.mutex).now().as_millis(), since_boot());
        let is_own = self.frontier.extend_lock(&self.mutex, &self.token, expire + lead).await?;
        if is_own {
            self.at.store(asked + lead, Ordering::SeqCst);
            // An answer that comes after its time is waited for the next time.
            self.trip.store(millis(since_boot().saturating_sub(sent)), Ordering::SeqCst);
        }
        Ok(is_own)
    }
}

async fn wait_ms(wait: i64) {
    clock::wait(spell(wait)).await;
}

fn spell(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
