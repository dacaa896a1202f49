//! Time as the crawler counts it: whole milliseconds since 1970, read from one place; and waiting for a time that a rule names.
//! Tries that are repeated are `patience`, work that is done together is `batch`.

mod followed;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) use followed::Followed;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_util::sync::CancellationToken;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The moment `wait` later, to the millisecond.
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(millis(wait)))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A hundred years.
const LONGEST_WAIT: i64 = 100 * 366 * 24 * 3_600_000;

/// A duration in whole milliseconds, as the frontier stores it: a hundred years at most, so that any time may be added to it.
/// A `Crawl-delay` is whatever a site writes.
pub fn millis(wait: Duration) -> i64 {
    i64::try_from(wait.as_millis()).map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT))
}

/// RFC 3339 in UTC with milliseconds: `2026-11-20T09:00:00.123Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = i128::from(self.0) * 1_000_000;
        let Ok(t) = OffsetDateTime::from_unix_timestamp_nanos(nanos) else {
            return write!(f, "{}ms", self.0);
        };
        let (date, clock) = (t.date(), t.time());
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            clock.hour(),
            clock.minute(),
            clock.second(),
            clock.millisecond()
        )
    }
}

/// Reads RFC 3339, any offset.
impl FromStr for Timestamp {
    type Err = time::error::Parse;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let nanos = OffsetDateTime::parse(text, &Rfc3339)?.unix_timestamp_nanos();
        Ok(Self(i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a component reads the time. Cheap to clone; clones of a fake clock move together.
#[derive(Clone, Debug)]
pub struct Clock(ClockKind);

#[derive(Clone, Debug)]
enum ClockKind {
    Wall,
    SinceBoot { base: i64 },
    Following(Arc<Followed>),
    Fake(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's wall clock. It may jump: nothing that spaces requests uses it.
    pub const fn wall() -> Self {
        Self(ClockKind::Wall)
    }

    /// `base` plus the time since boot: one clock for every process of a machine, unmoved by changes of the wall clock.
    pub const fn since_boot(base: Timestamp) -> Self {
        Self(ClockKind::SinceBoot { base: base.0 })
    }

    /// Another machine's clock, as far as its answers tell. It is never ahead of the true time, once the first one is there.
    pub(crate) const fn following(followed: Arc<Followed>) -> Self {
        Self(ClockKind::Following(followed))
    }

    /// A clock that stands still until it is advanced.
    pub fn fake(start: Timestamp) -> Self {
        Self(ClockKind::Fake(Arc::new(AtomicI64::new(start.0))))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        Timestamp(match &self.0 {
            ClockKind::Wall => wall_millis(),
            ClockKind::SinceBoot { base } => base + millis(since_boot()),
            ClockKind::Following(_) => self.micros().0.div_euclid(1_000),
            ClockKind::Fake(now) => now.load(Ordering::SeqCst),
        })
    }

    /// The time now in µs since 1970: at the earliest and at the latest.
    fn micros(&self) -> (i64, i64) {
        let now = match &self.0 {
            ClockKind::SinceBoot { base } => base * 1_000 + boot_micros(),
            ClockKind::Following(followed) => {
                let known = followed.at(boot_micros());
                return known.unwrap_or_else(|| (wall_millis() * 1_000, wall_millis() * 1_000));
            }
            ClockKind::Wall | ClockKind::Fake(_) => self.now().0 * 1_000,
        };
        (now, now)
    }

    /// How long it is until `then`, and how late it is already: one of them is zero. The former ends when it surely has come;
    /// the latter is the most that it may be. Where the two are further apart than `apart`, both go by the middle.
    pub fn look(&self, then: Timestamp, apart: Duration) -> (Duration, Duration) {
        let (mut least, mut most) = self.micros();
        if most - least > micros(apart) {
            (least, most) = (least.midpoint(most), least.midpoint(most));
        }
        let then = then.0.saturating_mul(1_000);
        let span = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or(0));
        if least < then {
            (span(then.saturating_sub(least)), Duration::ZERO)
        } else {
            (Duration::ZERO, span(most.saturating_sub(then)))
        }
    }

    /// How far apart the earliest and the latest are that it may be.
    pub fn doubt(&self) -> Duration {
        let (least, most) = self.micros();
        Duration::from_micros(u64::try_from(most - least).unwrap_or(0))
    }

    /// Moves a fake clock forward; any other clock moves by itself and is left alone.
    pub fn advance(&self, by: Duration) {
        if let ClockKind::Fake(now) = &self.0 {
            now.fetch_add(millis(by), Ordering::SeqCst);
        }
    }
}

/// Time since the machine booted, suspended time included (`CLOCK_BOOTTIME`).
pub fn since_boot() -> Duration {
    read(ClockId::Boottime)
}

/// Time that this thread was on a processor (`CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// The same in µs.
pub(crate) fn boot_micros() -> i64 {
    micros(since_boot())
}

pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Waits for so long.
pub async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits until then.
pub async fn wait_until(then: Instant) {
    tokio::time::sleep_until(then.into()).await;
}

/// Waits until `told` is cancelled, and for so long after.
pub async fn wait_after(told: &CancellationToken, time: Duration) {
    told.cancelled().await;
    wait(time).await;
}

/// What comes of `work`, if it takes no longer than that; else it is dropped.
pub async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(time, work).await.ok()
}

fn wall_millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_back_what_it_prints() {
        let t = Timestamp::from_millis(1_795_165_200_123);
        assert_eq!(t.to_string(), "2026-11-20T09:00:00.123Z");
        assert_eq!(t.to_string().parse::<Timestamp>().ok(), Some(t));
        assert_eq!("2026-11-20T18:00:00.123+09:00".parse::<Timestamp>().ok(), Some(t));
    }

    #[test]
    fn a_time_that_never_was_is_long_over_and_one_that_never_comes_is_far() {
        let clock = Clock::wall();
        let look = |then| clock.look(Timestamp::from_millis(then), Duration::ZERO);
        assert!(look(i64::MIN).1 > Duration::from_hours(24) && look(i64::MAX).0 > Duration::from_hours(24));
    }

    #[test]
    fn a_fake_clock_moves_only_when_told_and_its_clones_with_it() {
        let clock = Clock::fake(Timestamp::from_millis(5));
        let twin = clock.clone();
        clock.advance(Duration::from_millis(7));
        assert_eq!(twin.now(), Timestamp::from_millis(12));
    }
}
