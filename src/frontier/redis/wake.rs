//! Hints that something can be claimed: heard on a connection of its own, never the way a task is taken. One that is lost
//! costs a little time, as nobody sleeps for longer than a few seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::{Notify, mpsc};
use tracing::debug;

use super::address::Address;
use super::connection::LinkState;
use super::prelude::CHANNEL;
use crate::patience::Patience;

/// The pauses before the connection is made anew: hints are a help, and need no haste.
const AGAIN: Patience = Patience::new(Duration::from_secs(1), Duration::from_secs(5));

/// Who listens, by name.
#[derive(Debug, Default)]
pub(super) struct Wake {
    sleepers: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Wake {
    /// Resolves with the next hint for `name`. The first call starts to listen.
    pub(super) async fn woken(self: &Arc<Self>, name: &str, state: &Arc<LinkState>) {
        let (hint, first) = {
            let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            let first = sleepers.is_empty();
            (Arc::clone(sleepers.entry(name.to_owned()).or_default()), first)
        };
        if first {
            state.io_thread.run(listen(Arc::downgrade(self), Arc::downgrade(state)));
        }
        hint.notified().await;
    }

    fn tell(&self, name: &str) {
        let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hint) = sleepers.get(name) {
            hint.notify_one();
        }
    }
}

/// Listens for as long as the frontier is open; a connection that breaks is made anew.
async fn listen(wake: Weak<Wake>, state: Weak<LinkState>) {
    let (mut turn, mut tries) = (0, AGAIN.begin());
    while let Some(address) = state.upgrade().map(|state| state.connector.address.clone()) {
        match hear(&wake, &address, turn).await {
            Ok(()) => tries = AGAIN.begin(),
            Err(error) => debug!(%error, "no hints for now"),
        }
        turn += 1;
        tries.again().await;
    }
}

/// Hands on hints until the connection breaks. In a cluster each node hears them all.
async fn hear(wake: &Weak<Wake>, address: &Address, turn: usize) -> redis::RedisResult<()> {
    let node = address.nodes[turn % address.nodes.len()].clone();
    let settings = node.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let client = Client::open(node.set_redis_settings(settings))?;
    let (told, mut hints) = mpsc::unbounded_channel();
    let config = AsyncConnectionConfig::new().set_push_sender(told);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    connection.subscribe(CHANNEL).await?;
    while let Some(PushInfo { kind, data }) = hints.recv().await {
        match (kind, data.get(1), wake.upgrade()) {
            (_, _, None) | (PushKind::Disconnection, _, _) => return Ok(()),
            (PushKind::Message, Some(Value::BulkString(name)), Some(wake)) => {
                wake.tell(&String::from_utf8_lossy(name));
            }
            _ => {}
        }
    }
    Ok(())
}
