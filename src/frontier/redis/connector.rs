//! Connections to a Redis: opened when they are needed, checked once, thrown away when they break.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

use super::address::Address;
use super::error::from_redis;
use super::server_check::check;
use crate::frontier::FrontierError;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);
/// How long an answer may take: past this the server is taken to be away, and what was asked is asked again.
const RESPONSE: Duration = Duration::from_secs(10);

/// An open connection; clones share it.
#[derive(Clone)]
pub(super) enum RedisClient {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Where connections come from.
pub(super) struct Connector {
    pub(super) address: Address,
    /// Only a frontier that is there already is wanted.
    existing: bool,
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
    pub(super) fn new(address: Address, existing: bool) -> Self {
        Self {
            address,
            existing,
            open: tokio::sync::Mutex::default(),
            reached: AtomicBool::new(false),
            forgets: AtomicBool::new(false),
        }
    }

    /// The open connection, or a new one to a server that is fit.
    pub(super) async fn server(&self) -> Result<RedisClient, FrontierError> {
        let mut open = self.open.lock().await;
        if let Some(server) = &*open {
            return Ok(server.clone());
        }
        let mut server = self.connect().await.map_err(|error| from_redis(&self.address, &error))?;
        let found = check(&mut server, &self.address, self.existing).await?;
        self.forgets.store(found.forgets, Ordering::SeqCst);
        self.reached.store(true, Ordering::SeqCst);
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

    async fn connect(&self) -> RedisResult<RedisClient> {
        if self.address.cluster {
            let client = ClusterClient::builder(self.address.nodes.clone())
                .connection_timeout(CONNECT)
                .response_timeout(RESPONSE)
                .retries(3)
                .build()?;
            return Ok(RedisClient::Cluster(client.get_async_connection().await?));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(RESPONSE));
        let client = Client::open(self.address.nodes[0].clone())?;
        Ok(RedisClient::One(client.get_multiplexed_async_connection_with_config(&config).await?))
    }
}

impl RedisClient {
    /// Gives one command.
    pub(super) async fn query<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> RedisResult<T> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}
