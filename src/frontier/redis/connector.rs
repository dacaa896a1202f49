//! Connections to a Redis: opened when they are needed, checked once, thrown away when they break.

use std::sync::atomic::{AtomicBool, Ordering};

use super::address::Address;
use super::client::RedisClient;
use super::error::from_redis;
use super::server_check::check;
use crate::clock::Clock;
use crate::frontier::FrontierError;

/// Where connections come from.
pub(super) struct Connector {
    pub(super) address: Address,
    /// Only a frontier that is there already is wanted.
    existing: bool,
    /// A test's clock.
    fake: Option<Clock>,
    open: tokio::sync::Mutex<Option<RedisClient>>,
    /// A server was reached, and was fit.
    reached: AtomicBool,
    /// It keeps no append-only file, and nobody was told yet.
    forgets: AtomicBool,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl Connector {
    pub(super) fn new(address: Address, existing: bool, fake: Option<Clock>) -> Self {
        let (open, reached, forgets) = Default::default();
        Self { address, existing, fake, open, reached, forgets }
    }

    /// The open connection, or a new one to a server that is fit.
    pub(super) async fn server(&self) -> Result<RedisClient, FrontierError> {
        let mut open = self.open.lock().await;
        if let Some(server) = &*open {
            return Ok(server.clone());
        }
        let connected = RedisClient::connect(&self.address).await;
        let mut server = connected.map_err(|error| from_redis(&self.address, &error))?;
        let forgets = check(&mut server, &self.address, self.existing, self.fake.as_ref()).await?;
        if !self.reached.swap(true, Ordering::SeqCst) {
            self.forgets.store(forgets, Ordering::SeqCst);
        }
        *open = Some(server.clone());
        Ok(server)
    }

    /// Throws the connection away: the next one that is asked for is new.
    pub(super) async fn drop_connection(&self) {
        *self.open.lock().await = None;
    }

    /// Whether the server was found to forget what it holds when it ends; said once.
    pub(super) fn is_forgetful(&self) -> bool {
        self.forgets.swap(false, Ordering::SeqCst)
    }

    /// Whether a server was ever reached.
    pub(super) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::SeqCst)
    }
}
