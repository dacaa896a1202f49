//! Tells the frontier that a body has ended, so that the site's next request may start. Sent at once if somebody waits for it or
//! the site is to be left alone; otherwise the settlement carries it.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::parts::VisitParts;
use crate::clock::{self, since_boot};
use crate::frontier::FrontierError;
use crate::site::Site;
use crate::task::Lease;

/// How long the settlement may take to come.
const SOON: Duration = Duration::from_millis(200);

/// A word still to be said, unless the settlement says it.
#[derive(Debug)]
#[must_use]
pub(super) struct BodyEnd(Option<JoinHandle<()>>);

impl BodyEnd {
    /// It was said already.
    pub(super) const SAID: Self = Self(None);

    /// The settlement says it, if it wasn't said before; whether it is left to the settlement.
    pub(super) fn settled(mut self) -> bool {
        let later = self.0.take();
        let is_left = later.as_ref().is_some_and(|later| !later.is_finished());
        if let Some(later) = later {
            later.abort();
        }
        is_left
    }
}

/// Says that the body ended, now or a little later. A block is said now: the page may take long to be kept.
pub(super) async fn body_end(
    parts: &VisitParts,
    site: &Site,
    lease: &Lease,
    block: Option<&(Duration, String)>,
) -> Result<BodyEnd, FrontierError> {
    let is_short = if lease.departure.wait().is_zero() {
        is_crowded(site.pace.parallel, parts.under_way.downloads_of(&lease.site))
    } else {
        !parts.under_way.has_places(&lease.site, since_boot() + SOON)
    };
    if is_short || block.is_some() {
        let landed = parts.frontier.landed_with(lease.key(), block.cloned());
        // Said once the block is on its way, so that those who ask what it means for their start come behind it.
        let doubt = async { block.is_some().then(|| parts.news.doubt(&site.unit())) };
        let (answer, _) = tokio::join!(biased; parts.outages.frontier.in_time(landed), doubt);
        match answer {
            // The settlement says it: the page is kept all the same.
            Err(error) if error.is_transient() => parts.outages.frontier.lost(&error),
            answer => drop(answer?),
        }
        return Ok(BodyEnd(None));
    }
    let (frontier, lease) = (parts.frontier.clone(), lease.key());
    let later = tokio::spawn(async move {
        clock::wait(SOON).await;
        // A frontier that is away hears it from the settlement.
        let _ = frontier.landed_waiting(lease).await;
    });
    Ok(BodyEnd(Some(later)))
}

/// Whether a site without pace has so many of its places taken by this process alone that they may all be taken, others being
/// at work as well.
fn is_crowded(parallel: u32, in_flight: usize) -> bool {
    in_flight.saturating_mul(4) >= parallel as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_pace_places_are_short_where_a_process_has_a_quarter_of_them() {
        for (parallel, in_flight, short) in [(64, 3, false), (64, 16, true), (4, 1, true), (1, 1, true)] {
            assert_eq!(is_crowded(parallel, in_flight), short, "{parallel} {in_flight}");
        }
    }
}
