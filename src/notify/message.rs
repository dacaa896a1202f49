//! An event as a program or an address is told it: one JSON object.

use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::task::Event;

/// The event, when it happened, and an id that is the same however often it is told.
pub(super) fn message(event: &Event, at: Timestamp) -> Value {
    let Event { kind, site, text, figures } = event;
    let site = (!site.is_empty()).then_some(site);
    let of = site.map_or("", String::as_str);
    let id = format!("{} {of} {at}", kind.word());
    json!({ "event": kind, "site": site, "at": at, "text": text, "figures": figures, "id": id })
}

/// What a test of the setting says.
pub(super) fn test_message(at: Timestamp) -> Value {
    let text = "this is a test: events of this machine's frontier are told in this way";
    json!({ "event": "test", "site": null, "at": at, "text": text, "figures": {}, "id": format!("test  {at}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::EventKind;

    #[test]
    fn c19_an_event_is_one_object_with_the_same_id_each_time() {
        let event = Event::new(EventKind::DeadShare, "shop", "12 of 40 pages are dead").with("dead", 12);
        let at = Timestamp::from_millis(1_800_000_000_000);
        let told = json!({
            "event": "dead_share", "site": "shop", "at": "2027-01-15T08:00:00.000Z",
            "text": "12 of 40 pages are dead", "figures": { "dead": 12 },
            "id": "dead_share shop 2027-01-15T08:00:00.000Z",
        });
        assert_eq!([message(&event, at), message(&event, at)], [told.clone(), told]);
        assert_eq!(message(&Event::new(EventKind::RunFailed, "", "no"), at)["site"], Value::Null);
    }
}
