//! Something that one process of all does: it holds a timed mutex meanwhile. Where it died or left, another one takes over.

use std::time::Duration;

use crate::clock::millis;
use crate::frontier::{Frontier, FrontierError, LockReply, MutexKey};

/// How long the mutex is held if its holder dies. It is extended with each step.
pub(super) const HELD: Duration = Duration::from_secs(10);
/// The shortest time after which it is asked for again.
const SHORTEST: Duration = Duration::from_millis(100);

/// A process's turn at it.
pub(super) struct TurnHolder {
    frontier: Frontier,
    mutex: MutexKey,
    token: String,
    /// It holds the mutex, as far as it knows.
    holds: bool,
}

impl TurnHolder {
    pub(super) fn new(frontier: Frontier, what: &str) -> Self {
        let mutex = MutexKey::Named { namespace: "paced".to_owned(), name: what.to_owned() };
        Self { frontier, mutex, token: format!("{:016x}", fastrand::u64(..)), holds: false }
    }

    /// Takes the mutex or goes on holding it; if somebody else holds it, for how long at the least.
    pub(super) async fn wait_for_turn(&mut self) -> Result<Option<Duration>, FrontierError> {
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
    pub(super) fn let_go(&mut self) {
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
