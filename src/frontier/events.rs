//! Events that operators are to be told (C19).

use super::table::{Reply, Step};
use super::{EventEnd, EventsStatus, Frontier, FrontierError, TakenEvent};
use crate::task::{Event, EventKind};

impl Frontier {
    /// Leaves an event for whoever tells it. False: there was one of its kind and site within the hour.
    pub async fn post_event(&self, event: Event) -> Result<bool, FrontierError> {
        ask!(self, PostEvent { event })
    }

    /// Takes the event of these kinds that is due longest. Nobody else gets it for 45 s.
    pub async fn take_event(
        &self,
        kinds: &[EventKind],
        token: u64,
    ) -> Result<Option<TakenEvent>, FrontierError> {
        ask!(self, TakeEvent { kinds: kinds.to_vec(), token })
    }

    /// Ends what was taken under that token: it was told, or couldn't be for that reason.
    pub async fn end_event(
        &self,
        event: &Event,
        token: u64,
        failed: Option<String>,
    ) -> Result<EventEnd, FrontierError> {
        ask!(self, EndEvent { kind: event.kind, site: event.site.clone(), token, failed })
    }

    /// How far events are told.
    pub async fn events_status(&self) -> Result<EventsStatus, FrontierError> {
        ask!(self, Events {})
    }
}
