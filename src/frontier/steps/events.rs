//! Events: taken in at most once an hour by kind and site, taken by one process at a time, told at least once (C19).

use super::{Done, Moment};
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{EVENT_KEPT_MS, EventEnd, EventState, MOST_EVENTS, QUIET_MS, TakenEvent};
use crate::frontier::view::{EventsStatus, UntoldEvent};
use crate::task::{Event, EventKind};

impl<S: Shelf> Moment<'_, S> {
    /// Takes an event in. False: there was one of its kind and site within the hour.
    pub(super) fn post_event(&mut self, event: Event) -> Done<S, bool> {
        self.sweep_events()?;
        let known = self.shelf.event(event.kind, &event.site)?;
        if known.is_some_and(|known| known.at > self.now - QUIET_MS) {
            return Ok(false);
        }
        self.shelf.save_event(&EventState::new(event, self.now))?;
        if self.shelf.count_events()? > MOST_EVENTS
            && let Some((_, kind, site)) = self.shelf.first_event()?
        {
            self.shelf.remove_event(kind, &site)?;
        }
        Ok(true)
    }

    /// Gives out the event of these kinds that is due longest, for as long as it takes to tell it.
    pub(super) fn take_event(&mut self, kinds: &[EventKind], token: u64) -> Done<S, Option<TakenEvent>> {
        self.sweep_events()?;
        let mut first: Option<(i64, EventKind, String)> = None;
        for kind in kinds {
            let due = self.shelf.first_due_event(*kind, self.now)?;
            if let Some((next, site)) = due
                && first.as_ref().is_none_or(|(other, ..)| next < *other)
            {
                first = Some((next, *kind, site));
            }
        }
        let Some((_, kind, site)) = first else { return Ok(None) };
        let Some(mut event) = self.shelf.event(kind, &site)? else { return Ok(None) };
        let taken = event.take(token, self.now);
        self.shelf.save_event(&event)?;
        Ok(Some(taken))
    }

    /// Ends what was taken under a token: it was told, or couldn't be for that reason.
    pub(super) fn end_event(
        &mut self,
        kind: EventKind,
        site: &str,
        token: u64,
        failed: Option<String>,
    ) -> Done<S, EventEnd> {
        let known = self.shelf.event(kind, site)?.filter(|event| event.token == Some(token));
        let Some(mut event) = known else { return Ok(EventEnd::Stale) };
        let end = event.end(failed, self.now);
        self.shelf.save_event(&event)?;
        Ok(end)
    }

    /// How far events are told.
    pub(super) fn events_status(&mut self) -> Done<S, EventsStatus> {
        let events = self.shelf.events()?;
        let waiting = events.iter().filter(|event| event.next.is_some()).count() as u64;
        let failed = events
            .into_iter()
            .filter_map(untold)
            .max_by_key(|untold| (untold.at, untold.kind.word(), untold.site.clone()));
        Ok(EventsStatus { waiting, failed })
    }

    /// Events that happened a day ago go, told or not.
    fn sweep_events(&mut self) -> Done<S> {
        while let Some((_, kind, site)) =
            self.shelf.first_event()?.filter(|(at, ..)| *at <= self.now - EVENT_KEPT_MS)
        {
            self.shelf.remove_event(kind, &site)?;
        }
        Ok(())
    }
}

fn untold(event: EventState) -> Option<UntoldEvent> {
    let (at, why) = event.failed?;
    let Event { kind, site, .. } = event.event;
    Some(UntoldEvent { at: Timestamp::from_millis(at), kind, site, why, given_up: event.next.is_none() })
}
