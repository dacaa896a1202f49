//! An open connection to a server, or to those of a cluster.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, cmd};

use super::address::Address;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(2);
/// How long an answer may take: past this the server is taken to be away, and what was asked is asked again.
const RESPONSE: Duration = Duration::from_secs(10);

/// A connection that is given up takes with it what it has not sent yet: what was asked is asked again on another one, and
/// these bytes would come after that.
fn tcp() -> TcpSettings {
    let tcp = TcpSettings::default().set_nodelay(true).set_linger_time(Duration::ZERO);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(RESPONSE);
    tcp
}

/// An open connection; clones share it.
#[derive(Clone)]
pub(super) enum RedisClient {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl RedisClient {
    pub(super) async fn connect(address: &Address) -> RedisResult<Self> {
        if address.cluster {
            let client = ClusterClient::builder(address.nodes.clone())
                .connection_timeout(CONNECT)
                .response_timeout(RESPONSE)
                .tcp_settings(tcp())
                .retries(3)
                .build()?;
            return client.get_async_connection().await.map(Self::Cluster);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(RESPONSE));
        let client = Client::open(address.nodes[0].clone().set_tcp_settings(tcp()))?;
        client.get_multiplexed_async_connection_with_config(&config).await.map(Self::One)
    }

    /// Gives one command.
    pub(super) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// A section of `INFO` of the server that has this key.
    pub(super) async fn info(&mut self, section: &str, key: &str) -> RedisResult<String> {
        let mut command = cmd("INFO");
        command.arg(section);
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => {
                let node = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
                let told = connection.route_command(command, RoutingInfo::SingleNode(node)).await?;
                redis::from_redis_value(told).map_err(Into::into)
            }
        }
    }
}
