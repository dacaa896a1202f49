//! The ceiling of a whole process: so many request starts a second, over all sites.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota};

/// The most starts a second of a process, evenly spaced; or none.
#[derive(Debug, Default)]
pub struct Ceiling(Option<DefaultDirectRateLimiter>);

impl Ceiling {
    /// At most `per_second` starts a second, one at a time.
    pub fn per_second(per_second: Option<NonZeroU32>) -> Self {
        let quota = per_second.map(|rate| Quota::per_second(rate).allow_burst(NonZeroU32::MIN));
        Self(quota.map(DefaultDirectRateLimiter::direct))
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the next start.
    pub async fn until_ready(&self) {
        if let Some(limiter) = &self.0 {
            limiter.until_ready().await;
        }
    }
}
