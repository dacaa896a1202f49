//! `TimedMutex`: a lock shared by threads and processes that ends by itself. It knows nothing of tasks.
//!
//! With `expire` and without `auto_release`, blocks *start* at a steady interval however long they take (V1-V3): that is a
//! site's pace. Without `expire` it is a plain mutex (V4), held by a lease that its guard renews, so that no lock is without
//! an end (R4). The token is new with each acquisition: a past one is nobody's (V9, R2).

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::clock::millis;
use crate::frontier::state::unit_mutex;
use crate::frontier::{Frontier, FrontierError, FrontierErrorKind, Lock};

/// How long a lock without `expire` lives unless its guard renews it (R4).
const LEASE: Duration = Duration::from_secs(10);
/// The longest pause of one who waits for a lock that may be released before its end.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A named lock in a frontier.
#[derive(Clone, Debug)]
pub struct TimedMutex {
    frontier: Frontier,
    name: String,
    expire: Option<Duration>,
    auto_release: bool,
}

/// Why a lock could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MutexError {
    /// It was asked to be released or extended by one who doesn't hold it (any more).
    #[error("the mutex `{0}` is not held by this guard: its time is over, or it was released")]
    NotOwner(String),
    /// It could not be had in the time given.
    #[error("the mutex `{name}` could not be had within {waited:?}")]
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

impl TimedMutex {
    /// The mutex of that name, without `expire`, released automatically.
    pub fn new(frontier: &Frontier, name: &str) -> Self {
        let name = format!("named/{name}");
        Self { frontier: frontier.clone(), name, expire: None, auto_release: true }
    }

    /// The mutex that paces a site of a frontier: taken by every download claim, and by whoever wants to share the pace.
    /// Its `expire` is the interval now in force, and it is never released.
    pub async fn of_site(frontier_url: &str, site: &str) -> Result<Self, FrontierError> {
        let frontier = Frontier::open(frontier_url)?;
        let Some(view) = frontier.view(site).await? else {
            return Err(FrontierError::new(FrontierErrorKind::NoSite(site.to_owned()), frontier_url));
        };
        let expire = Duration::from_millis(u64::try_from(view.interval).unwrap_or(0));
        let name = unit_mutex(&view.unit);
        Ok(Self { frontier, name, expire: Some(expire), auto_release: false })
    }

    /// Keeps mutexes of different purposes apart.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.name = format!("{namespace}/{}", self.name);
        self
    }

    /// It ends so long after it was taken, to the millisecond, whatever its holder does (V6, V7).
    #[must_use]
    pub fn expire(mut self, expire: Duration) -> Self {
        self.expire = Some(expire);
        self
    }

    /// Whether it is released when its guard goes (V5), the default; `false` leaves it to its time.
    #[must_use]
    pub fn auto_release(mut self, auto_release: bool) -> Self {
        self.auto_release = auto_release;
        self
    }

    /// Takes the mutex if it is free (R1).
    pub async fn try_lock(&self) -> Result<Option<Held>, FrontierError> {
        Ok(self.acquire().await?.ok())
    }

    /// Takes the mutex, waiting as long as it needs.
    pub async fn lock(&self) -> Result<Held, FrontierError> {
        let mut pause = Duration::from_millis(1);
        loop {
            match self.acquire().await? {
                Ok(held) => return Ok(held),
                Err(left) => sleep(self.wait(left, &mut pause)).await,
            }
        }
    }

    /// Takes the mutex, or gives up after `patience` (R1).
    pub async fn lock_within(&self, patience: Duration) -> Result<Held, MutexError> {
        match tokio::time::timeout(patience, self.lock()).await {
            Ok(held) => Ok(held?),
            Err(_) => Err(MutexError::TimedOut { name: self.name.clone(), waited: patience }),
        }
    }

    /// Runs `block` under the mutex and gives its value, also where the block itself unlocks.
    pub async fn synchronize<T>(&self, block: impl AsyncFnOnce(&mut Held) -> T) -> Result<T, FrontierError> {
        let mut held = self.lock().await?;
        Ok(block(&mut held).await)
    }

    /// Whether anybody holds it.
    pub async fn is_locked(&self) -> Result<bool, FrontierError> {
        Ok(self.left().await?.is_some())
    }

    /// How long it is still held, by whomever.
    pub async fn left(&self) -> Result<Option<Duration>, FrontierError> {
        Ok(self.frontier.lock_left(&self.name).await?.map(duration))
    }

    async fn acquire(&self) -> Result<Result<Held, Duration>, FrontierError> {
        let token = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let expire = self.expire.unwrap_or(LEASE);
        Ok(match self.frontier.try_lock(&self.name, &token, millis(expire)).await? {
            Lock::Taken => Ok(Held::new(self.clone(), token)),
            Lock::Held(left) => Err(duration(left)),
        })
    }

    /// A timed lock ends when the backend says; one that may be released before is looked at again sooner.
    fn wait(&self, left: Duration, pause: &mut Duration) -> Duration {
        if !self.auto_release {
            return left;
        }
        let wait = pause.mul_f64(0.5 + fastrand::f64() / 2.0).min(left);
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        wait
    }
}

/// A mutex held. Dropped, it is released, unless `auto_release` is off.
#[derive(Debug)]
pub struct Held {
    mutex: TimedMutex,
    token: String,
    unlocked: bool,
    renewal: Option<JoinHandle<()>>,
}

impl Held {
    fn new(mutex: TimedMutex, token: String) -> Self {
        let renewal = mutex.expire.is_none().then(|| tokio::spawn(renew(mutex.clone(), token.clone())));
        Self { mutex, token, unlocked: false, renewal }
    }

    /// Releases it now.
    pub async fn unlock(&mut self) -> Result<(), MutexError> {
        self.unlocked = true;
        self.stop_renewal();
        if self.mutex.frontier.unlock(&self.mutex.name, &self.token).await? {
            return Ok(());
        }
        Err(MutexError::NotOwner(self.mutex.name.clone()))
    }

    /// Moves its end to `expire` from now.
    pub async fn extend(&mut self, expire: Duration) -> Result<(), MutexError> {
        let (name, token) = (&self.mutex.name, &self.token);
        if self.mutex.frontier.extend_lock(name, token, millis(expire)).await? {
            return Ok(());
        }
        Err(MutexError::NotOwner(name.clone()))
    }

    /// Whether it is still this guard's: an extension by nothing would hold.
    pub async fn is_owned(&self) -> Result<bool, FrontierError> {
        if self.unlocked {
            return Ok(false);
        }
        let Some(left) = self.mutex.frontier.lock_left(&self.mutex.name).await? else { return Ok(false) };
        self.mutex.frontier.extend_lock(&self.mutex.name, &self.token, left).await
    }

    /// Waits, then releases it.
    pub async fn sleep(&mut self, wait: Duration) -> Result<(), MutexError> {
        sleep(wait).await;
        self.unlock().await
    }

    fn stop_renewal(&mut self) {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop_renewal();
        if self.mutex.auto_release && !self.unlocked {
            self.mutex.frontier.post_unlock(&self.mutex.name, &self.token);
        }
    }
}

async fn renew(mutex: TimedMutex, token: String) {
    loop {
        sleep_until(Instant::now() + LEASE / 3).await;
        match mutex.frontier.extend_lock(&mutex.name, &token, millis(LEASE)).await {
            Ok(false) => return,
            Ok(true) | Err(_) => {}
        }
    }
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
