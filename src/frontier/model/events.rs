//! Events of the model, by kind and site.

use super::{Model, Sure};
use crate::frontier::shelf::EventShelf;
use crate::frontier::state::EventState;
use crate::task::EventKind;

impl EventShelf for Model {
    fn event(&mut self, kind: EventKind, site: &str) -> Sure<Option<EventState>> {
        Ok(self.events.iter().find(|event| is_of(event, kind, site)).cloned())
    }

    fn save_event(&mut self, event: &EventState) -> Sure<()> {
        self.remove_event(event.event.kind, &event.event.site)?;
        self.events.push(event.clone());
        Ok(())
    }

    fn remove_event(&mut self, kind: EventKind, site: &str) -> Sure<()> {
        self.events.retain(|event| !is_of(event, kind, site));
        Ok(())
    }

    fn first_event(&mut self) -> Sure<Option<(i64, EventKind, String)>> {
        let place = |event: &EventState| (event.at, event.event.kind.word(), event.event.site.clone());
        let first = self.events.iter().min_by_key(|event| place(event));
        Ok(first.map(|event| (event.at, event.event.kind, event.event.site.clone())))
    }

    fn first_due_event(&mut self, kind: EventKind, now: i64) -> Sure<Option<(i64, String)>> {
        let of_kind = self.events.iter().filter(|event| event.event.kind == kind);
        let due = of_kind.filter_map(|event| Some((event.next?, event.event.site.clone())));
        Ok(due.filter(|(next, _)| *next <= now).min())
    }

    fn count_events(&mut self) -> Sure<u64> {
        Ok(self.events.len() as u64)
    }

    fn events(&mut self) -> Sure<Vec<EventState>> {
        Ok(self.events.clone())
    }
}

fn is_of(event: &EventState, kind: EventKind, site: &str) -> bool {
    event.event.kind == kind && event.event.site == site
}
