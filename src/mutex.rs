//! `TimedMutex`: a lock shared by threads, tasks and processes that ends by itself. It knows nothing of tasks of a crawl.
//!
//! What is kept is the spacing of starts; long blocks overlap (V1-V3, V10). No lock is without an end (R4): without `expire` it
//! is a plain mutex (V4) that its guard renews. A token is new with each acquisition, a past one is nobody's (V9, R2).

use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use crate::clock::{self, Timestamp, millis};
pub use crate::frontier::MutexKey;
use crate::frontier::{Frontier, FrontierError, LockReply};
use crate::manners::lead_ms;
use crate::patience::{Patience, Tries};
use crate::quantity::spoken;

/// How long a lock without `expire` lives unless its guard renews it (R4).
const LEASE: Duration = Duration::from_secs(10);
/// The pauses of one who waits for a lock that its holder will release.
const UNTIL_RELEASED: Patience = Patience::new(Duration::from_millis(2), Duration::from_millis(100));
/// The longest pauses of one who waits for a lock to end by its time: it may have been released after all, or tuned.
const UNTIL_OVER: Patience = Patience::new(Duration::from_secs(5), Duration::from_secs(5));

/// A named lock in a frontier. Cheap to clone; clones are the same mutex, but what one has taken the other has not.
///
/// With `expire` and without `auto_release`, blocks *start* at a steady interval however long they take: that is a site's pace.
/// Without `expire` it is a plain mutex, held by a lease that its guard renews.
///
/// ```
/// use std::time::Duration;
/// use paced::{Frontier, TimedMutex};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let url = format!("sqlite:{}", folder.path().join("frontier.db").display());
/// // Any program that opens the same file, say `sqlite:paced-data/frontier.db`, shares these mutexes.
/// let frontier = Frontier::open(&url)?;
///
/// // A pace: whoever takes it, blocks start at least 50 ms apart, and may overlap.
/// let pace = TimedMutex::new(&frontier, "mail").expire(Duration::from_millis(50)).auto_release(false);
/// let first = pace.lock().await?.taken_at();
/// let second = pace.lock().await?.taken_at();
/// assert!(second.since(first) >= Duration::from_millis(50));
///
/// // A plain mutex: the next one goes on when the block ends.
/// let report = TimedMutex::new(&frontier, "report").namespace("nightly");
/// let lines = report.synchronize(async |_held| 3).await?;
/// assert_eq!(lines, 3);
/// assert!(!report.is_locked().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TimedMutex {
    frontier: Frontier,
    of: Of,
    expire: Option<Duration>,
    lease: Duration,
    auto_release: bool,
}

/// What a mutex is of.
#[derive(Clone, Debug)]
enum Of {
    Key(MutexKey),
    /// The pace unit to which the site belongs at the time.
    Site(String),
}

/// Why a lock could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MutexError {
    /// It was to be released or extended by a guard that doesn't hold it (any more). Nothing was changed.
    #[error(
        "mutex `{0}` is not this guard's any more: it was unlocked, or its time was over and others may hold it"
    )]
    NotOwner(String),
    /// It could not be had in the time given.
    #[error("mutex `{name}` was not free within {}: wait longer, or find out who holds it", spoken(*waited))]
    TimedOut {
        /// The mutex.
        name: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The frontier could not be asked.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl MutexError {
    /// Whether the same may work a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotOwner(_) => false,
            Self::TimedOut { .. } => true,
            Self::Frontier(error) => error.is_transient(),
        }
    }
}

impl TimedMutex {
    /// The mutex of that name, without `expire`, released automatically.
    pub fn new(frontier: &Frontier, name: &str) -> Self {
        Self::of(frontier, Of::Key(MutexKey::named(name)))
    }

    /// The mutex of a pace unit, whose name alone is known: `expire` says for how long an acquisition holds it.
    pub(crate) fn of_unit(frontier: &Frontier, unit: &str) -> Self {
        Self { auto_release: false, ..Self::of(frontier, Of::Key(MutexKey::unit(unit))) }
    }

    fn of(frontier: &Frontier, of: Of) -> Self {
        Self { frontier: frontier.clone(), of, expire: None, lease: LEASE, auto_release: true }
    }

    /// The mutex that paces a site of a frontier that another program crawls with: taken by every download that starts,
    /// and by whoever wants to share the pace. Each acquisition holds it for the site's interval then in force, and
    /// its time alone ends it; `expire`, `auto_release` and `namespace` change nothing here. That a site is paused or
    /// blocked holds up the crawl alone: [`Frontier::view`] tells.
    ///
    /// # Errors
    /// There is no such frontier (none is made), or no such site in it.
    pub async fn of_site(frontier_url: &str, site: &str) -> Result<Self, FrontierError> {
        Self::of_site_in(&Frontier::open_existing(frontier_url)?, site).await
    }

    /// The same, in a frontier that is open already.
    pub async fn of_site_in(frontier: &Frontier, site: &str) -> Result<Self, FrontierError> {
        let mutex = Self { auto_release: false, ..Self::of(frontier, Of::Site(site.to_owned())) };
        mutex.terms().await?;
        Ok(mutex)
    }

    /// Keeps mutexes of different purposes apart.
    #[must_use]
    pub fn namespace(mut self, space: &str) -> Self {
        if let Of::Key(MutexKey::Named { namespace, .. }) = &mut self.of {
            space.clone_into(namespace);
        }
        self
    }

    /// It ends so long after it was taken, whatever its holder does (V6); parts of a millisecond count as a whole one (V7).
    #[must_use]
    pub fn expire(mut self, expire: Duration) -> Self {
        self.expire = Some(expire);
        self
    }

    /// Whether it is released when its guard goes (V5), the default; `false` leaves it to its time. Without `expire` it
    /// then ends with its guard's lease.
    #[must_use]
    pub fn auto_release(mut self, auto_release: bool) -> Self {
        if matches!(self.of, Of::Key(_)) {
            self.auto_release = auto_release;
        }
        self
    }

    /// How long it lives without `expire` unless its guard renews it: shorter than 10 s for tests that can't wait.
    #[doc(hidden)]
    #[must_use]
    pub fn leased_for(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Takes the mutex if it is free (R1).
    pub async fn try_lock(&self) -> Result<Option<Held>, FrontierError> {
        Ok(self.acquire(false).await?.ok())
    }

    /// Takes the mutex, waiting as long as it needs. Dropped half way, it leaves nothing locked.
    pub async fn lock(&self) -> Result<Held, FrontierError> {
        loop {
            if let Some(held) = self.lock_by(None).await? {
                return Ok(held);
            }
        }
    }

    /// Takes the mutex, or gives up after `patience` (R1). It is asked for at least once.
    pub async fn lock_within(&self, patience: Duration) -> Result<Held, MutexError> {
        let held = self.lock_by(Instant::now().checked_add(patience)).await?;
        held.ok_or_else(|| MutexError::TimedOut { name: self.name(), waited: patience })
    }

    async fn lock_by(&self, deadline: Option<Instant>) -> Result<Option<Held>, FrontierError> {
        let mut tries = if self.auto_release { UNTIL_RELEASED } else { UNTIL_OVER }.begin();
        loop {
            let pause = match self.look(&mut tries).await? {
                Ok(held) => return Ok(Some(held)),
                Err(pause) => pause,
            };
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(None);
            }
            clock::wait_until(deadline.map_or(now + pause, |deadline| deadline.min(now + pause))).await;
        }
    }

    /// Runs `block` under the mutex and gives its value, also where the block itself unlocks. Unless `auto_release` is
    /// off, the mutex is free again when this returns.
    pub async fn synchronize<T>(&self, block: impl AsyncFnOnce(&mut Held) -> T) -> Result<T, FrontierError> {
        let mut held = self.lock().await?;
        let value = block(&mut held).await;
        held.release().await;
        Ok(value)
    }

    /// Whether anybody holds it.
    pub async fn is_locked(&self) -> Result<bool, FrontierError> {
        Ok(self.left().await?.is_some())
    }

    /// How long it is still held, by whomever, if nobody releases or extends it.
    pub async fn left(&self) -> Result<Option<Duration>, FrontierError> {
        let (key, _) = self.terms().await?;
        Ok(self.frontier.lock_left(&key).await?.map(duration))
    }

    /// Asks once; held by somebody else, how long to wait before the next time. Half the time that the question took is
    /// taken for the answer's way: one who is told late would else be late at each end.
    async fn look(&self, tries: &mut Tries) -> Result<Result<Held, Duration>, FrontierError> {
        let asked = Instant::now();
        let answer = self.acquire(true).await?;
        let travelled = asked.elapsed() / 2;
        if let Ok(held) = &answer {
            let (left, _) = self.frontier.clock_of(&held.key).look(held.taken_at, Duration::MAX);
            clock::wait(left).await;
        }
        let looks = tries.count();
        let pause = |left: Duration| pause(left.saturating_sub(travelled), tries);
        Ok(answer.map_err(pause).inspect(|held| {
            tracing::debug!(mutex = %held.key, at = %held.taken_at, looks, "mutex taken");
        }))
    }

    /// Takes it if it is free; else how long it is still held. Who waits for its turn in a pace has it a few ms ahead, so that
    /// the answer's way makes no turn late.
    async fn acquire(&self, waits: bool) -> Result<Result<Held, Duration>, FrontierError> {
        let (key, expire) = self.terms().await?;
        let lead = match &key {
            MutexKey::Unit(_) if waits => lead_ms(expire).max(self.frontier.lead()),
            _ => 0,
        };
        let token = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let asked = Asked { frontier: &self.frontier, key: &key, token: &token };
        let answer = self.frontier.try_lock_ahead(&key, &token, expire, lead).await;
        asked.answered();
        Ok(match answer? {
            LockReply::Taken(at) => Ok(Held::new(self, key, token, Timestamp::from_millis(at))),
            LockReply::Held(left) => Err(duration(left)),
        })
    }

    /// Its key and how many ms an acquisition holds; a site's as in force now.
    async fn terms(&self) -> Result<(MutexKey, i64), FrontierError> {
        match &self.of {
            Of::Key(key) => Ok((key.clone(), whole_millis(self.expire.unwrap_or(self.lease)))),
            Of::Site(site) => match self.frontier.view(site).await? {
                Some(view) => Ok((MutexKey::Unit(view.unit), view.interval)),
                None => Err(self.frontier.no_site(site)),
            },
        }
    }

    /// What people call it.
    fn name(&self) -> String {
        match &self.of {
            Of::Key(key) => key.to_string(),
            Of::Site(site) => format!("site {site}"),
        }
    }
}

/// A question under way: if nobody waits for its answer any more, what it took is given back.
struct Asked<'a> {
    frontier: &'a Frontier,
    key: &'a MutexKey,
    token: &'a str,
}

impl Asked<'_> {
    fn answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.frontier.post_unlock(self.key, self.token);
    }
}

/// A mutex held. Dropped, it is released, unless `auto_release` is off; a process that ends right after that may take the
/// release with it, and the mutex then ends by its time or lease: [`unlock`](Self::unlock) is sure.
#[derive(Debug)]
pub struct Held {
    mutex: TimedMutex,
    key: MutexKey,
    token: String,
    taken_at: Timestamp,
    unlocked: bool,
    renewal: Option<AbortOnDropHandle<()>>,
}

impl Held {
    fn new(mutex: &TimedMutex, key: MutexKey, token: String, taken_at: Timestamp) -> Self {
        let mutex = mutex.clone();
        let renewed = mutex.expire.is_none() && matches!(mutex.of, Of::Key(_));
        let renewal = || renew(mutex.frontier.clone(), key.clone(), token.clone(), mutex.lease);
        let renewal = renewed.then(|| AbortOnDropHandle::new(tokio::spawn(renewal())));
        Self { mutex, key, token, taken_at, unlocked: false, renewal }
    }

    /// When it was taken, by the frontier's clock: between two such moments lies at least `expire`, unless it was released.
    pub fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    /// Releases it now, also where `auto_release` is off.
    pub async fn unlock(&mut self) -> Result<(), MutexError> {
        self.renewal = None;
        let owned = self.mutex.frontier.unlock(&self.key, &self.token).await?;
        self.unlocked = true;
        self.owner(owned)
    }

    /// Moves its end to `expire` from now.
    pub async fn extend(&mut self, expire: Duration) -> Result<(), MutexError> {
        let owned = self.mutex.frontier.extend_lock(&self.key, &self.token, whole_millis(expire)).await?;
        self.owner(owned)
    }

    /// Whether it is still this guard's. What a block does after its time must not count (R5): ask before the last step.
    pub async fn is_owned(&self) -> Result<bool, FrontierError> {
        Ok(!self.unlocked && self.mutex.frontier.holds_lock(&self.key, &self.token).await?)
    }

    /// Waits, then releases it.
    pub async fn sleep(&mut self, wait: Duration) -> Result<(), MutexError> {
        clock::wait(wait).await;
        self.unlock().await
    }

    /// What a drop would post, waited for. A failure leaves it to the drop, and to its time.
    async fn release(&mut self) {
        if self.is_due_for_release() {
            self.renewal = None;
            self.unlocked = self.mutex.frontier.unlock(&self.key, &self.token).await.is_ok();
        }
    }

    fn is_due_for_release(&self) -> bool {
        self.mutex.auto_release && !self.unlocked
    }

    fn owner(&self, owned: bool) -> Result<(), MutexError> {
        if owned { Ok(()) } else { Err(MutexError::NotOwner(self.mutex.name())) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_due_for_release() {
            self.mutex.frontier.post_unlock(&self.key, &self.token);
        }
    }
}

/// Keeps a lock without `expire` alive for as long as it is its guard's. A frontier out of reach is asked again.
async fn renew(frontier: Frontier, key: MutexKey, token: String, lease: Duration) {
    loop {
        clock::wait(lease / 3).await;
        if let Ok(false) = frontier.extend_lock(&key, &token, whole_millis(lease)).await {
            return;
        }
    }
}

/// How long to wait before the next look: what ends by its time is slept through, what is released before is looked at sooner, and
/// less and less often.
fn pause(left: Duration, tries: &mut Tries) -> Duration {
    tries.pause().map_or(left, |longest| left.min(longest))
}

/// Whole milliseconds, rounded up: less than was asked for would start a block too early.
fn whole_millis(wait: Duration) -> i64 {
    millis(wait.saturating_add(Duration::from_nanos(999_999)))
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn what_ends_by_its_time_is_slept_through_and_what_is_released_is_looked_at_less_and_less_often() {
        let ms = Duration::from_millis;
        for (patience, left, looks, least, most) in [
            (UNTIL_OVER, ms(1), 1, ms(1), ms(1)),
            (UNTIL_OVER, ms(2_500), 9, ms(2_500), ms(2_500)),
            (UNTIL_OVER, ms(60_000), 1, ms(2_500), ms(5_000)),
            (UNTIL_RELEASED, ms(9_000), 1, ms(1), ms(2)),
            (UNTIL_RELEASED, ms(9_000), 4, ms(8), ms(16)),
            (UNTIL_RELEASED, ms(9_000), 20, ms(50), ms(100)),
            (UNTIL_RELEASED, ms(3), 20, ms(3), ms(3)),
        ] {
            let mut tries = patience.begin();
            let last = (0..looks).map(|_| pause(left, &mut tries)).last().expect("a look");
            assert!((least..=most).contains(&last), "{left:?} {looks}: {last:?}");
        }
    }

    #[tokio::test]
    async fn a_question_sent_again_has_the_same_answer_and_moves_nothing() {
        let clock = Clock::fake(Timestamp::from_millis(1_000));
        let frontier = Frontier::model(clock.clone());
        let key = MutexKey::named("x");
        for _ in 0..2 {
            assert_eq!(frontier.try_lock(&key, "one", 500).await.expect("a model"), LockReply::Taken(1_000));
            clock.advance(Duration::from_millis(200));
        }
        assert_eq!(frontier.try_lock(&key, "other", 500).await.expect("a model"), LockReply::Held(100));
    }
}
