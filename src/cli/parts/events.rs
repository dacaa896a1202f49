//! What operators are to be told, as `status` shows it.

use crate::frontier::{EventsStatus, UntoldEvent};

/// How many events wait, and the last one that couldn't be told; nothing where all is well.
pub(in crate::cli) fn told_of_events(events: &EventsStatus) -> Option<String> {
    let waiting = match events.waiting {
        0 => None,
        1 => Some("1 waits to be told by a process with [notify]".to_owned()),
        count => Some(format!("{count} wait to be told by a process with [notify]")),
    };
    let parts: Vec<String> = waiting.into_iter().chain(events.failed.as_ref().map(told_of_untold)).collect();
    (!parts.is_empty()).then(|| format!("events: {}", parts.join("; ")))
}

fn told_of_untold(UntoldEvent { at, kind, site, why, given_up }: &UntoldEvent) -> String {
    let of = if site.is_empty() { String::new() } else { format!(" of {site}") };
    let then = if *given_up { "it isn't tried again" } else { "it is tried again" };
    format!("{}{of} couldn't be told at {at}: {why}; {then}", kind.word())
}
