//! Hints of when something can be claimed: heard on a connection of its own, never the way a task is taken. One that is lost
//! costs a little time, as nobody sleeps for longer than a few seconds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use redis::{AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, Value};
use tokio::sync::{Notify, mpsc};
use tracing::debug;

use super::address::Address;
use super::connection::LinkState;
use super::prelude::CHANNEL;
use crate::clock;
use crate::patience::Patience;

/// The pauses before the connection is made anew: hints are a help, and need no haste.
const AGAIN: Patience = Patience::new(Duration::from_secs(1), Duration::from_secs(5));

/// Who listens, by name.
#[derive(Debug, Default)]
pub(super) struct Wake {
    sleepers: Mutex<HashMap<String, Arc<ToldMember>>>,
    /// Hints are listened for.
    listens: AtomicBool,
}

/// One member, and when it was told to claim, by partition. A claim answers that anew.
#[derive(Debug, Default)]
struct ToldMember {
    told: Mutex<HashMap<usize, Instant>>,
    hint: Notify,
}

impl ToldMember {
    fn told(&self) -> MutexGuard<'_, HashMap<usize, Instant>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> Option<(usize, Instant)> {
        self.told().iter().map(|(partition, at)| (*partition, *at)).min_by_key(|(_, at)| *at)
    }
}

impl Wake {
    /// Resolves when `name` was told to claim; from which partition. The first call starts to listen.
    pub(super) async fn woken(self: &Arc<Self>, name: &str, state: &Arc<LinkState>) -> usize {
        let (sleeper, is_first) = {
            let mut sleepers = self.sleepers();
            let sleeper = Arc::clone(sleepers.entry(name.to_owned()).or_default());
            (sleeper, !self.listens.swap(true, Ordering::SeqCst))
        };
        if is_first {
            state.io_thread.run(listen(Arc::downgrade(self), Arc::downgrade(state)));
        }
        loop {
            let hint = sleeper.hint.notified();
            let Some((partition, at)) = sleeper.first() else {
                hint.await;
                continue;
            };
            tokio::select! {
                () = hint => {}
                () = clock::wait_until(at) => {
                    sleeper.told().remove(&partition);
                    return partition;
                }
            }
        }
    }

    /// A claim is answered with when to come next: what its member was told before holds no more.
    pub(super) fn claims(&self, name: &str, partition: usize) {
        if let Some(sleeper) = self.sleepers().get(name) {
            sleeper.told().remove(&partition);
        }
    }

    /// A member is gone, or goes on under another name: nobody sleeps under this one any more.
    pub(super) fn forget(&self, name: &str) {
        self.sleepers().remove(name);
    }

    /// A hint is the partition, the time until then in ms, and whom it is for.
    fn tell(&self, hint: &str) -> Option<()> {
        let mut parts = hint.splitn(3, ' ');
        let partition = parts.next()?.parse().ok()?;
        let wait = Duration::from_millis(parts.next()?.parse().ok()?);
        self.tell_member(parts.next()?, partition, wait)
    }

    /// Tells a member to claim in a partition after so long; nothing where nobody sleeps under that name.
    pub(super) fn tell_member(&self, name: &str, partition: usize, wait: Duration) -> Option<()> {
        let at = Instant::now() + wait;
        let sleeper = self.sleepers().get(name).map(Arc::clone)?;
        let mut told = sleeper.told();
        let first = told.get(&partition).map_or(at, |before| at.min(*before));
        told.insert(partition, first);
        drop(told);
        sleeper.hint.notify_one();
        Some(())
    }

    fn sleepers(&self) -> MutexGuard<'_, HashMap<String, Arc<ToldMember>>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
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
            (PushKind::Message, Some(Value::BulkString(hint)), Some(wake)) => {
                wake.tell(&String::from_utf8_lossy(hint));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Shared;
    use super::*;
    use crate::frontier::state::WorkScope;
    use crate::frontier::step::{Beaten, Claim, Grant};
    use crate::frontier::table::{Reply, Step};

    #[test]
    fn i17_c10_of_a_member_that_left_or_was_declared_dead_nothing_is_kept() {
        let shared = Shared::open("redis://127.0.0.1:1/", None, false).expect("it is reached later");
        let sleeps = |name: &str| drop(shared.wake.sleepers().insert(name.to_owned(), Arc::default()));
        sleeps("alive");
        for n in 0..1_000 {
            let [left, dead] = ["left", "dead"].map(|what| format!("{what}~{n}"));
            sleeps(&left);
            sleeps(&dead);
            shared.note_members(0, &Step::Bury { owner: left }, &Reply::Bury(true));
            let claim = Claim { owner: dead, token: 1, download: 1, parse: 1, dice: Vec::new(), lead: 0 };
            let grant = Grant { buried: true, ..Grant::default() };
            shared.note_members(0, &Step::Claim { claim }, &Reply::Claim(grant));
        }
        assert_eq!(shared.wake.sleepers().keys().collect::<Vec<_>>(), ["alive"]);
    }

    #[test]
    fn l1_a_member_that_says_anew_what_it_works_on_claims_at_once_as_it_is_told_nothing_until_then() {
        let shared = Shared::open("redis://127.0.0.1:1/", None, false).expect("it is reached later");
        let sleeper = Arc::new(ToldMember::default());
        shared.wake.sleepers().insert("one".to_owned(), Arc::clone(&sleeper));
        let enlist = |owner: &str, scope| Step::Enlist {
            owner: owner.to_owned(),
            pid: 1,
            scope,
            downloads: false,
            tells: None,
        };
        shared.note_members(0, &enlist("one", None), &Reply::Enlist(Beaten::default()));
        shared.note_members(0, &enlist("other", Some(WorkScope::All)), &Reply::Enlist(Beaten::default()));
        assert!(sleeper.first().is_none());
        shared.note_members(0, &enlist("one", Some(WorkScope::All)), &Reply::Enlist(Beaten::default()));
        assert!(sleeper.first().is_some_and(|(partition, at)| partition == 0 && at <= Instant::now()));
    }
}
