//! The frontier on a shared Redis, or on a cluster of them. A function on the server runs each step, on the server's own
//! clock. What a step does is in `lua/`, file by file what `frontier::steps` says.

mod address;
mod away;
mod batch_call;
mod claims;
mod client;
mod connection;
mod connector;
mod error;
mod idle;
mod io_thread;
mod partitions;
mod prelude;
mod program;
mod register;
mod rights;
mod server_check;
mod upgrade;
mod wake;
mod wire;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::oneshot;

use super::backend::Backend;
use super::table::{At, Haste, Reply, Step};
use super::value::{FromWire, MalformedReply};
use super::{FrontierError, FrontierErrorKind, MutexKey};
use crate::clock::Clock;
use address::Address;
pub(super) use address::is_redis;
pub use address::without_password;
use away::AwayPartitions;
use connection::{Connection, LinkState, QueuedStep};
use connector::Connector;
use partitions::{DIRECTORY, Partitions};
pub(crate) use prelude::LONGEST_SLEEP;
use wake::Wake;
pub use wire::redis_answers;

/// A frontier on Redis. It connects with its first step.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Arc<LinkState>,
    /// A test's clock, which all servers go by.
    fake: Option<Clock>,
    connections: Vec<Connection>,
    wake: Arc<Wake>,
    partitions: Partitions,
}

impl Shared {
    /// The frontier that a URL names. The clock is the server's, unless a test brings its own.
    pub(super) fn open(url: &str, clock: Option<Clock>, existing: bool) -> Result<Self, FrontierError> {
        let address = Address::parse(url)
            .map_err(|why| FrontierError::new(FrontierErrorKind::BadUrl(why), without_password(url)))?;
        let partitions = address.partitions();
        let away = AwayPartitions::new(&address.shown);
        let state = Arc::new(LinkState {
            connector: Connector::new(address, existing, clock.clone()),
            io_thread: io_thread::IoThread::default(),
            fake: clock.clone(),
            patient: AtomicBool::new(false),
            away,
            calls: AtomicU64::new(0),
        });
        let connections =
            (0..partitions).map(|partition| Connection::new(partition, Arc::clone(&state))).collect();
        Ok(Self { fake: clock, connections, state, wake: Arc::default(), partitions: Partitions::default() })
    }

    fn clock_at(&self, partition: usize) -> Clock {
        let following = || Clock::following(Arc::clone(self.connections[partition].time()));
        self.fake.clone().unwrap_or_else(following)
    }

    async fn ask(&self, partition: usize, step: &Step, value: Value) -> Result<Value, FrontierError> {
        let (reply, answer) = oneshot::channel();
        self.send(partition, step, value, reply);
        answer.await.map_err(|_| self.closed())?
    }

    fn closed(&self) -> FrontierError {
        FrontierError::new(FrontierErrorKind::Closed, self.shown())
    }

    fn send(
        &self,
        partition: usize,
        step: &Step,
        value: Value,
        reply: oneshot::Sender<Result<Value, FrontierError>>,
    ) {
        let urgent = step.is_urgent() || (step.only_reads() && step.haste() != Haste::Onlooker);
        let waits = step.haste() == Haste::Claim;
        self.connections[partition].send(QueuedStep {
            step: value,
            urgent,
            waits,
            fills: fills(step),
            reply,
        });
    }

    /// Asks for what isn't the whole of a step.
    async fn ask_for<T: FromWire>(
        &self,
        partition: usize,
        step: &Step,
        value: Value,
    ) -> Result<T, FrontierError> {
        T::read(&self.ask(partition, step, value).await?).map_err(|odd| self.broken(&odd))
    }

    fn broken(&self, odd: &MalformedReply) -> FrontierError {
        FrontierError::new(FrontierErrorKind::Broken, self.shown()).because(odd)
    }
}

/// Whether a step takes memory for good. The end of a campaign, noted by a portion of nothing, makes room.
fn fills(step: &Step) -> bool {
    match step {
        Step::FeedCampaign { puts, .. } => !puts.is_empty(),
        Step::Put { .. }
        | Step::ParseAgain { .. }
        | Step::Feed { .. }
        | Step::Seed { .. }
        | Step::Register { .. }
        | Step::BookCampaign { .. }
        | Step::MakeCampaign { .. }
        | Step::AddChunk { .. } => true,
        _ => false,
    }
}

impl Backend for Shared {
    fn step(&self, step: Step) -> BoxFuture<'_, Result<Reply, FrontierError>> {
        Box::pin(self.routed(step))
    }

    fn step_of<'a>(&'a self, site: &'a str, step: Step) -> BoxFuture<'a, Result<Reply, FrontierError>> {
        Box::pin(async move {
            let partition = self.partition_of_site(site).await?.unwrap_or(DIRECTORY);
            self.step_in(partition, step).await
        })
    }

    fn post(&self, step: Step) {
        let partition = match step.at() {
            At::Mutex(mutex) => self.partition_of_mutex(mutex),
            _ => DIRECTORY,
        };
        self.send(partition, &step, step.to_wire(), oneshot::channel().0);
    }

    fn hold(&self) -> Box<dyn Any> {
        Box::new(self.connections.iter().map(Connection::hold).collect::<Vec<_>>())
    }

    /// That of the partition where the directory is.
    fn clock(&self) -> Clock {
        self.clock_at(DIRECTORY)
    }

    fn clock_of(&self, mutex: &MutexKey) -> Clock {
        self.clock_at(self.partition_of_mutex(mutex))
    }

    fn doubt(&self) -> Duration {
        (0..self.connections.len())
            .filter(|partition| !self.state.away.has(*partition))
            .map(|partition| self.clock_at(partition).doubt())
            .max()
            .unwrap_or_default()
    }

    fn is_away_for(&self, site: &str) -> bool {
        Self::is_away_for(self, site)
    }

    fn shown(&self) -> String {
        self.state.connector.address.shown.clone()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn calls(&self) -> Option<u64> {
        Some(self.state.calls.load(Ordering::Relaxed))
    }

    fn woken<'a>(&'a self, member: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let partition = self.wake.woken(member, &self.state).await;
            self.look_into(partition);
        })
    }

    fn hurry(&self) {
        self.connections.iter().for_each(Connection::hurry);
    }

    fn wait_for_ever(&self) {
        self.state.patient.store(true, Ordering::SeqCst);
    }
}
