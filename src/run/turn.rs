//! Something that one process of all does: it holds a timed mutex meanwhile. Where it died or left, another one takes over.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::clock::{self, millis};
use crate::frontier::{Frontier, FrontierError, LockReply, MutexKey};

/// How long the mutex is held if its holder dies. It is extended with each step.
pub(super) const HELD: Duration = Duration::from_secs(10);
/// The shortest time after which it is asked for again.
const SHORTEST: Duration = Duration::from_millis(100);

/// What one process of all does, step by step. A second one that does it at the same time does no harm.
pub(super) trait Duty: Send {
    /// What its mutex is called.
    const NAME: &'static str;
    /// What is said where it can't be done.
    const FAILS: &'static str;
    /// The longest time between two steps.
    const LONGEST: Duration;

    /// Does a step; when to do the next one.
    fn step(&mut self) -> impl Future<Output = Result<Duration, FrontierError>> + Send;
}

/// One process of those that may do it.
pub(super) struct InTurn<D> {
    turn: TurnHolder,
    duty: D,
}

impl<D: Duty> InTurn<D> {
    pub(super) fn new(frontier: &Frontier, duty: D) -> Self {
        Self { turn: TurnHolder::new(frontier.clone(), D::NAME), duty }
    }

    /// Does it when it is this process's turn, until it is stopped.
    pub(super) async fn work(mut self, stop: CancellationToken) {
        let mut warned = false;
        while !stop.is_cancelled() {
            let pause = match self.step().await {
                Ok(pause) => pause,
                // The pool says so, once.
                Err(error) if error.is_transient() => D::LONGEST,
                Err(error) => {
                    if !std::mem::replace(&mut warned, true) {
                        warn!(%error, "{}", D::FAILS);
                    }
                    self.turn.let_go();
                    HELD
                }
            };
            stop.run_until_cancelled(clock::wait(pause)).await;
        }
    }

    /// Does a step, if it is this process's turn; when to look again.
    pub(super) async fn step(&mut self) -> Result<Duration, FrontierError> {
        match self.turn.wait_for_turn().await {
            Ok(Some(wait)) => return Ok(wait),
            Ok(None) => {}
            // Where the mutex is away, what can be reached is done nevertheless.
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        self.duty.step().await
    }
}

/// A process's turn at it.
struct TurnHolder {
    frontier: Frontier,
    mutex: MutexKey,
    token: String,
    /// It holds the mutex, as far as it knows.
    holds: bool,
}

impl TurnHolder {
    fn new(frontier: Frontier, what: &str) -> Self {
        let mutex = MutexKey::Named { namespace: "paced".to_owned(), name: what.to_owned() };
        Self { frontier, mutex, token: format!("{:016x}", fastrand::u64(..)), holds: false }
    }

    /// Takes the mutex or goes on holding it; if somebody else holds it, for how long at the least.
    async fn wait_for_turn(&mut self) -> Result<Option<Duration>, FrontierError> {
        let (frontier, mutex, token) = (&self.frontier, &self.mutex, &self.token);
        if self.holds && frontier.extend_lock(mutex, token, millis(HELD)).await? {
            return Ok(None);
        }
        let answer = frontier.try_lock(mutex, token, millis(HELD)).await?;
        self.holds = matches!(answer, LockReply::Taken(_));
        Ok(match answer {
            LockReply::Taken(_) => None,
            LockReply::Held(ms) => Some(Duration::from_millis(ms.unsigned_abs()).max(SHORTEST)),
        })
    }

    /// The next one may do it.
    fn let_go(&mut self) {
        if std::mem::take(&mut self.holds) {
            self.frontier.post_unlock(&self.mutex, &self.token);
        }
    }
}

/// However its process ends that work, nobody waits for it.
impl Drop for TurnHolder {
    fn drop(&mut self) {
        self.let_go();
    }
}
