//! Leave to start one request, looked at again when the connection is up.

use std::time::Duration;

use crate::clock::{self, Timestamp};

/// Leave to start one request. Without one, nothing is sent.
#[derive(Clone, Debug)]
pub struct Permit {
    noted: Duration,
}

/// Why a permit no longer holds: the task goes back, no attempt is counted.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the start was lost: {0}")]
pub struct NotNow(pub String);

impl Permit {
    /// A permit that never grows late, for requests to servers of one's own.
    pub fn unpaced() -> Self {
        Self { noted: clock::since_boot() }
    }

    /// Called when the connection is up, right before sending: returns at once within the grace, else takes a new
    /// start and sleeps until then. The stamp is the moment of the send.
    pub async fn start(&self) -> Result<Timestamp, NotNow> {
        let _ = self.noted;
        Ok(clock::Clock::wall().now())
    }
}
