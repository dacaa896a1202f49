//! What this process learns of its pace units while starts of theirs wait to be sent: one table a process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tracing::warn;

use super::state::LEASE_MS;
use crate::clock::since_boot;
use crate::manners::departure::{LATE, LEAST_EXACT, MOST_GRACE};
use crate::quantity::spoken;

/// By pace unit, what those who hold a start of it must know. Times are since boot.
#[derive(Debug, Default)]
pub struct UnitNews {
    units: Mutex<HashMap<String, UnitNote>>,
    /// Told when a unit is in doubt, or a start went out late.
    told: Notify,
    /// It was said that the frontier is too far away for exact starts.
    far: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct UnitNote {
    /// When something was learnt by which starts that were granted before may be void.
    doubted: Duration,
    /// The last start that was sent late: by which lease, and when.
    late: Option<(u64, Duration)>,
    /// Until when any of it matters.
    until: Duration,
}

impl UnitNews {
    /// The unit may be blocked, paused or slowed down since now.
    pub fn doubt(&self, unit: &str) {
        let now = since_boot();
        // Whoever was granted a start before has sent it by then, or lost its lease.
        self.note(unit, now + Duration::from_millis(LEASE_MS.unsigned_abs()), |news| news.doubted = now);
    }

    /// Whether something was learnt of the unit since then.
    pub fn is_in_doubt(&self, unit: &str, since: Duration) -> bool {
        self.units().get(unit).is_some_and(|news| news.doubted > since)
    }

    /// A start under that token is sent right now, which is late; its unit waits so long between two.
    pub(super) fn went_late(&self, unit: &str, token: u64, wait: Duration) {
        let now = since_boot();
        self.note(unit, now + wait + MOST_GRACE, |news| news.late = Some((token, now)));
    }

    /// For how much longer the start under that token is to be kept back, as another one went out late: from the real send on
    /// the unit waits its time, but for what counts as exact.
    pub(super) fn held(&self, unit: &str, token: u64, wait: Duration) -> Duration {
        let late = self.units().get(unit).and_then(|news| news.late).filter(|(whose, _)| *whose != token);
        let Some((_, sent)) = late.filter(|_| wait >= LEAST_EXACT) else { return Duration::ZERO };
        (sent + wait).saturating_sub(LATE + since_boot())
    }

    /// The frontier's time is known so badly that only the mean rate is kept: said once.
    pub(super) fn is_far(&self, doubt: Duration) {
        if !self.far.swap(true, Ordering::SeqCst) {
            let doubt = spoken(doubt);
            warn!(
                "the frontier is far away, its time is known to {doubt}: only the mean rate of starts is kept"
            );
        }
    }

    /// Resolves when there is something new.
    pub(super) fn told(&self) -> Notified<'_> {
        self.told.notified()
    }

    fn note(&self, unit: &str, until: Duration, note: impl FnOnce(&mut UnitNote)) {
        let (mut units, now) = (self.units(), since_boot());
        units.retain(|_, news| news.until > now);
        let news = units.entry(unit.to_owned()).or_default();
        note(news);
        news.until = news.until.max(until);
        drop(units);
        self.told.notify_waiters();
    }

    fn units(&self) -> MutexGuard<'_, HashMap<String, UnitNote>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_late_start_keeps_the_next_one_of_its_unit_back_and_no_other() {
        let news = UnitNews::default();
        news.went_late("a", 1, SECOND);
        let held = news.held("a", 2, SECOND);
        assert!(held > Duration::ZERO && held + LATE <= SECOND, "{held:?}");
        assert_eq!(news.held("a", 1, SECOND), Duration::ZERO, "itself");
        assert_eq!(news.held("b", 2, SECOND), Duration::ZERO, "another unit");
        assert_eq!(news.held("a", 2, LEAST_EXACT / 2), Duration::ZERO, "the mean rate alone is kept there");
    }

    #[test]
    fn what_matters_no_more_is_forgotten() {
        let news = UnitNews::default();
        news.note("gone", since_boot(), |_| {});
        news.doubt("a");
        assert!(news.is_in_doubt("a", Duration::ZERO) && !news.is_in_doubt("a", since_boot()));
        assert_eq!(news.units().keys().collect::<Vec<_>>(), ["a"]);
    }
}
