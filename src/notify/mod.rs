//! Tells an operator of events: by a program or by an address, as `[notify]` of `paced.toml` says. What an event is stands in
//! [`Event`](crate::task::Event).

mod command;
mod message;
mod poster;
mod teller;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use poster::EventPoster;
pub(crate) use teller::tell_all;

use crate::clock::{self, Clock};
use crate::fetch::{FetcherError, Webhook};
use crate::frontier::TakenEvent;
use crate::settings::{NotifyTo, WebhookUrl};

/// How long a program may take, and an address.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Tells by a program or by an address. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Notifier(Means);

#[derive(Clone, Debug)]
enum Means {
    Command(Vec<String>),
    Webhook(Arc<Webhook>, WebhookUrl),
}

impl Notifier {
    /// One by that setting. An address is trusted by the system's certificates, and those of `cacert` (PEM).
    pub fn new(to: NotifyTo, cacert: Option<&[u8]>) -> Result<Self, FetcherError> {
        Ok(Self(match to {
            NotifyTo::Command(words) => Means::Command(words),
            NotifyTo::Webhook(url) => Means::Webhook(Arc::new(Webhook::new(ANSWER_WITHIN, cacert)?), url),
        }))
    }

    /// Tells an event; why that failed.
    pub(crate) async fn tell(&self, taken: &TakenEvent) -> Result<(), String> {
        self.send(message::message(&taken.event, taken.at).to_string()).await
    }

    /// Tells that this is a test; why that failed.
    pub(crate) async fn tell_test(&self) -> Result<(), String> {
        self.send(message::test_message(Clock::wall().now()).to_string()).await
    }

    async fn send(&self, message: String) -> Result<(), String> {
        match &self.0 {
            Means::Command(words) => command::run(words, &message, COMMAND_WITHIN).await,
            Means::Webhook(webhook, url) => {
                let posted = clock::within(ANSWER_WITHIN, webhook.post(url.whole(), message)).await;
                posted.unwrap_or_else(|| Err("no answer in time".to_owned()))
            }
        }
    }
}

impl fmt::Display for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Means::Command(words) => NotifyTo::Command(words.clone()).fmt(f),
            Means::Webhook(_, url) => url.fmt(f),
        }
    }
}
