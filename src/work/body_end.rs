//! Tells the frontier that a body has ended, so that the site's next request may start. Sent at once if somebody waits for it or
//! the site is to be left alone; otherwise the settlement carries it.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::parts::VisitParts;
use crate::clock;
use crate::fetch::Exchange;
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
    /// The settlement says it.
    pub(super) fn settled(mut self) {
        if let Some(later) = self.0.take() {
            later.abort();
        }
    }
}

/// Says that the body ended, now or a little later. A block is said now: the page may take long to be kept.
pub(super) async fn body_end(
    parts: &VisitParts,
    site: &Site,
    lease: &Lease,
    exchange: &Exchange,
    block: Option<&(Duration, String)>,
) -> Result<BodyEnd, FrontierError> {
    let response = exchange.answer.as_ref().map_or(Duration::MAX, |fetched| fetched.page.response);
    let places = site.pace.parallel;
    let is_short = if lease.departure.wait().is_zero() {
        is_crowded(places, parts.under_way.downloads_of(&lease.site))
    } else {
        is_short_of_places(places, lease.departure.wait(), response)
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

/// Whether a place in flight that is kept a little longer could hold up a start: at this pace and response time the places
/// are nearly all taken.
fn is_short_of_places(parallel: u32, interval: Duration, response: Duration) -> bool {
    response.saturating_add(2 * SOON) >= interval.saturating_mul(parallel.saturating_sub(1))
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

    #[test]
    fn places_are_short_where_response_times_fill_them() {
        let ms = Duration::from_millis;
        for (parallel, interval, response, short) in [
            (8, 1_000, 300, false),
            (8, 200, 600, false),
            (8, 200, 1_100, true),
            (1, 1_000, 10, true),
            (2, 1_000, 500, false),
        ] {
            assert_eq!(
                is_short_of_places(parallel, ms(interval), ms(response)),
                short,
                "{parallel} {interval} {response}"
            );
        }
        assert!(is_short_of_places(8, ms(200), Duration::MAX));
    }
}
