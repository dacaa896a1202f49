//! Tells an operator what lies in the frontier, event after event, beside whatever else its process does (C19).

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Notifier;
use crate::clock;
use crate::frontier::{EventEnd, Frontier, FrontierError, TOKENS, TakenEvent};
use crate::quantity::spoken;
use crate::task::EventKind;

/// How often it is looked whether there is something to tell.
const LOOK: Duration = Duration::from_secs(3);
/// How often, where the frontier says that it can't do that.
const LOOK_LATER: Duration = Duration::from_secs(30);
/// How long the frontier may take to hear what became of an event: then it is told once more.
const HEARS_WITHIN: Duration = Duration::from_secs(10);

/// Tells what there is until `closing`, and then what is still due.
pub(crate) async fn tell_all(
    frontier: Frontier,
    notifier: Notifier,
    kinds: Vec<EventKind>,
    closing: CancellationToken,
) {
    let mut warned = false;
    loop {
        // What is left before this look is all that there is.
        let is_last = closing.is_cancelled();
        let pause = match tell_next(&frontier, &notifier, &kinds).await {
            Ok(true) => continue,
            Ok(false) => LOOK,
            Err(error) if error.is_transient() => LOOK,
            Err(error) => {
                if !std::mem::replace(&mut warned, true) {
                    warn!(%error, "what is to be told can't be read");
                }
                LOOK_LATER
            }
        };
        if is_last {
            return;
        }
        closing.run_until_cancelled(clock::wait(pause)).await;
    }
}

/// Tells the event that is due longest; whether there was one.
async fn tell_next(
    frontier: &Frontier,
    notifier: &Notifier,
    kinds: &[EventKind],
) -> Result<bool, FrontierError> {
    let token = fastrand::u64(1..TOKENS);
    let Some(taken) = frontier.take_event(kinds, token).await? else { return Ok(false) };
    let failed = notifier.tell(&taken).await.err();
    let ending = frontier.end_event(&taken.event, token, failed.clone());
    let end = clock::within(HEARS_WITHIN, ending).await.transpose()?;
    log(notifier, &taken, failed.as_deref(), end);
    Ok(true)
}

fn log(notifier: &Notifier, taken: &TakenEvent, failed: Option<&str>, end: Option<EventEnd>) {
    let (site, event) = (&taken.event.site, taken.event.kind.word());
    let Some(why) = failed else {
        info!(site, event, "told by {notifier}: {}", taken.event.text);
        return;
    };
    match end {
        Some(EventEnd::GivenUp) => {
            warn!(
                site,
                event, "{notifier} can't be told, and isn't any more: {why}; the event: {}", taken.event.text
            );
        }
        Some(EventEnd::Again(wait)) => {
            let wait = spoken(Duration::from_millis(wait.unsigned_abs()));
            warn!(site, event, "{notifier} can't be told: {why}; again in {wait}");
        }
        _ => warn!(site, event, "{notifier} can't be told: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::settings::Settings;
    use crate::task::Event;

    const ALL: [EventKind; 2] = [EventKind::RunFailed, EventKind::Walled];

    /// A port where each connection is answered with the next of these statuses, and then nobody listens.
    fn answering(statuses: &'static [&'static str]) -> (Notifier, std::thread::JoinHandle<usize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let answered = std::thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let _ =
                    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
            }
            statuses.len()
        });
        let text = format!("[notify]\nurl = \"http://127.0.0.1:{port}/\"");
        let notify =
            Settings::parse(&text, "paced.toml").expect("good settings").notify.expect("it is there");
        (Notifier::new(notify.to, None).expect("a client"), answered)
    }

    fn ground() -> (Clock, Frontier) {
        let clock = Clock::fake(Timestamp::from_millis(1_800_000_000_000));
        (clock.clone(), Frontier::model(clock))
    }

    async fn post(frontier: &Frontier) {
        frontier.post_event(Event::new(EventKind::Walled, "shop", "403")).await.expect("a model");
    }

    #[tokio::test]
    async fn c19_what_an_address_refuses_is_told_a_minute_later() {
        let (clock, frontier) = ground();
        let (notifier, answered) = answering(&["500 Oops", "200 OK"]);
        post(&frontier).await;
        let next = async || tell_next(&frontier, &notifier, &ALL).await.expect("a model");
        assert!(next().await);
        let untold = frontier.events_status().await.expect("a model").failed.expect("it failed");
        assert_eq!(untold.why, "HTTP 500 Internal Server Error");
        assert!(!next().await, "not before a minute is over");
        clock.advance(Duration::from_mins(1));
        assert!(next().await && !next().await);
        assert_eq!(frontier.events_status().await.expect("a model").failed, None);
        assert_eq!(answered.join().expect("both were asked for"), 2);
    }

    #[tokio::test]
    async fn c19_at_its_end_a_process_tells_what_is_due_and_what_fails_keeps_it_no_longer() {
        let (_, frontier) = ground();
        let (notifier, answered) = answering(&["200 OK"]);
        for kind in ALL {
            frontier.post_event(Event::new(kind, "shop", "no")).await.expect("a model");
        }
        let closing = CancellationToken::new();
        closing.cancel();
        tell_all(frontier.clone(), notifier, ALL.to_vec(), closing).await;
        assert_eq!(answered.join().expect("it was asked"), 1);
        let status = frontier.events_status().await.expect("a model");
        assert_eq!((status.waiting, status.failed.map(|untold| untold.kind)), (1, Some(EventKind::Walled)));
    }
}
