//! The timed mutex's steps; `mutex::TimedMutex` is the type to use.

use super::table::{Reply, Step};
use super::{Frontier, FrontierError, LockReply, MutexKey};

impl Frontier {
    /// Takes a mutex for `expire` ms if it is free.
    pub async fn try_lock(
        &self,
        key: &MutexKey,
        token: &str,
        expire: i64,
    ) -> Result<LockReply, FrontierError> {
        self.try_lock_ahead(key, token, expire, 0).await
    }

    /// The same, from `lead` ms on.
    pub async fn try_lock_ahead(
        &self,
        key: &MutexKey,
        token: &str,
        expire: i64,
        lead: i64,
    ) -> Result<LockReply, FrontierError> {
        ask!(self, TryLock { mutex: key.clone(), token: token.to_owned(), expire, lead })
    }

    /// Releases without waiting for the answer: for a guard that is dropped.
    pub(crate) fn post_unlock(&self, key: &MutexKey, token: &str) {
        let step = Step::Unlock { mutex: key.clone(), token: token.to_owned() };
        self.0.post(step);
    }

    /// Releases a mutex that the token holds; false: it doesn't.
    pub async fn unlock(&self, key: &MutexKey, token: &str) -> Result<bool, FrontierError> {
        ask!(self, Unlock { mutex: key.clone(), token: token.to_owned() })
    }

    /// Moves the end of a mutex that the token holds to `expire` ms from now; false: it doesn't hold it.
    pub async fn extend_lock(&self, key: &MutexKey, token: &str, expire: i64) -> Result<bool, FrontierError> {
        ask!(self, ExtendLock { mutex: key.clone(), token: token.to_owned(), expire })
    }

    pub(crate) async fn holds_lock(&self, key: &MutexKey, token: &str) -> Result<bool, FrontierError> {
        ask!(self, HoldsLock { mutex: key.clone(), token: token.to_owned() })
    }

    /// How long a mutex is still held, by whomever, in ms.
    pub async fn lock_left(&self, key: &MutexKey) -> Result<Option<i64>, FrontierError> {
        ask!(self, LockLeft { mutex: key.clone() })
    }
}
