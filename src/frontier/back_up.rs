//! A copy of an embedded frontier, beside whatever works on it.

use std::path::Path;

use super::sqlite;
use super::{Frontier, FrontierError, FrontierErrorKind};

impl Frontier {
    /// Copies it into a new file, as it is at one moment. Whoever opens the copy first lets each pace unit wait its interval, and
    /// its block once more; what is under lease returns.
    pub async fn back_up(&self, to: &Path) -> Result<(), FrontierError> {
        let Some(from) = self.0.locked_beside().map(Path::to_owned) else {
            return Err(FrontierError::new(FrontierErrorKind::OfServer, self.0.shown()));
        };
        let (to, now) = (to.to_owned(), self.clock().now());
        let copied = tokio::task::spawn_blocking(move || sqlite::back_up(&from, &to, now)).await;
        copied.unwrap_or_else(|_| Err(FrontierError::new(FrontierErrorKind::Closed, self.0.shown())))
    }
}
