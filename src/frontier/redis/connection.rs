//! The way to one partition: steps that come together travel together, one batch at a time, and a batch whose answer was
//! lost is sent again under its number until it is answered. What is in a step isn't looked at here.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;
use tracing::warn;

use super::away::AwayPartitions;
use super::batch_call::{BatchCall, Joined};
use super::connector::Connector;
use super::error::from_redis;
use super::io_thread::IoThread;
use super::wire::BatchReply;
use crate::batch::{Batches, Hold, Sender, batches, linger};
use crate::clock::{Clock, Followed, boot_micros};
use crate::frontier::table::UNTIL_A_CLAIM;
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::patience::Patience;

/// The most steps in one batch: a step that comes meanwhile waits for no more than these.
const BATCH: usize = 64;
/// How long a step that no start waits for looks out for a claim to travel with.
const LINGER: Duration = Duration::from_millis(15);
/// How long after a claim others are expected.
const CLAIMING: Duration = Duration::from_secs(1);
/// A batch is sent again soon, as a request's start may wait for it.
const PATIENCE: Patience = Patience::new(Duration::from_millis(20), Duration::from_secs(1));
/// How long a process that does one thing tries.
const FOR_ONE_THING: Duration = Duration::from_secs(10);
/// How old the last look at the server's memory may be.
const MEMORY_LOOK: Duration = Duration::from_secs(1);

/// What the keys of a partition begin with.
pub(super) fn key_of(partition: usize) -> String {
    format!("{{paced:{partition}}}")
}

/// A step on its way.
pub(super) struct QueuedStep {
    pub(super) step: Value,
    /// A request's start waits for it.
    pub(super) urgent: bool,
    /// Nobody waits for it before the next claim.
    pub(super) waits: bool,
    /// It fills the memory.
    pub(super) fills: bool,
    pub(super) reply: oneshot::Sender<Result<Value, FrontierError>>,
}

impl QueuedStep {
    /// The step changes nothing, as its name says.
    fn only_reads(&self) -> bool {
        self.step.get(0).and_then(Value::as_str).is_some_and(|name| name.starts_with("view."))
    }
}

/// What the connections of one frontier share.
#[derive(Debug)]
pub(super) struct LinkState {
    pub(super) connector: Connector,
    pub(super) io_thread: IoThread,
    /// A test's clock, which goes with each batch.
    pub(super) fake: Option<Clock>,
    /// Whether to try for as long as it takes: a worker keeps what it has to tell.
    pub(super) patient: AtomicBool,
    pub(super) away: AwayPartitions,
    /// Batches sent, for those who count calls.
    pub(super) calls: std::sync::atomic::AtomicU64,
}

/// The way to one partition; its carrier starts with the first step.
#[derive(Debug)]
pub(super) struct Connection {
    partition: usize,
    state: Arc<LinkState>,
    /// What its answers tell of the time of the partition's server.
    time: Arc<Followed>,
    jobs: OnceLock<Sender<QueuedStep>>,
}

impl Connection {
    pub(super) fn new(partition: usize, state: Arc<LinkState>) -> Self {
        Self { partition, state, time: Arc::default(), jobs: OnceLock::new() }
    }

    pub(super) fn time(&self) -> &Arc<Followed> {
        &self.time
    }

    /// Hands a step over; its answer comes by `job.reply`.
    pub(super) fn send(&self, job: QueuedStep) {
        // Without a carrier the job is dropped, and whoever waits is told so.
        let _ = self.jobs().send(job);
    }

    /// Nothing waits for company any more.
    pub(super) fn hurry(&self) {
        self.jobs().hurry();
    }

    /// What is handed over while this is held travels together.
    pub(super) fn hold(&self) -> Hold<QueuedStep> {
        self.jobs().hold()
    }

    fn jobs(&self) -> &Sender<QueuedStep> {
        self.jobs.get_or_init(|| {
            let (jobs, inbox) = batches();
            let carrier = BatchSender {
                partition: self.partition,
                key: key_of(self.partition),
                state: Arc::clone(&self.state),
                time: Arc::clone(&self.time),
                joined: None,
                claimed: None,
                memory: None,
            };
            self.state.io_thread.run(carrier.carry(inbox));
            jobs
        })
    }
}

struct BatchSender {
    partition: usize,
    key: String,
    state: Arc<LinkState>,
    time: Arc<Followed>,
    joined: Option<Joined>,
    claimed: Option<Instant>,
    /// Whether the memory was full, and when that was looked at.
    memory: Option<(Instant, bool)>,
}

impl BatchSender {
    async fn carry(mut self, mut inbox: Batches<QueuedStep>) {
        while let Some(mut batch) = self.gather(&mut inbox).await {
            batch = self.refuse_when_full(batch).await;
            if !batch.is_empty() {
                self.deliver(batch).await;
            }
        }
    }

    /// Takes what has come, and waits a little for a claim to travel with if one is likely.
    async fn gather(&mut self, inbox: &mut Batches<QueuedStep>) -> Option<Vec<QueuedStep>> {
        let claimed = self.claimed.filter(|_| self.state.fake.is_none());
        let is_claiming = move || claimed.is_some_and(|at| at.elapsed() < CLAIMING);
        let time = move |waiting: &VecDeque<QueuedStep>| match () {
            () if waiting.len() >= BATCH || waiting.iter().any(|job| job.urgent) => Duration::ZERO,
            () if !is_claiming() => Duration::ZERO,
            () if waiting.iter().all(|job| job.waits) => UNTIL_A_CLAIM,
            () => LINGER,
        };
        let take = |waiting: &mut VecDeque<QueuedStep>| waiting.drain(..waiting.len().min(BATCH)).collect();
        let batch: Vec<QueuedStep> = inbox.next_async(linger(time), take).await?;
        if batch.iter().any(|job| job.urgent) {
            self.claimed = Some(Instant::now());
        }
        Some(batch)
    }

    /// A full memory refuses what would fill it further; what empties it goes on.
    async fn refuse_when_full(&mut self, batch: Vec<QueuedStep>) -> Vec<QueuedStep> {
        if !batch.iter().any(|job| job.fills) || !self.is_full().await {
            return batch;
        }
        let (refused, rest): (Vec<QueuedStep>, Vec<QueuedStep>) =
            batch.into_iter().partition(|job| job.fills);
        let error =
            FrontierError::new(FrontierErrorKind::MemoryFull, self.state.connector.address.shown.clone());
        answer_all(refused, &error);
        rest
    }

    async fn is_full(&mut self) -> bool {
        let Ok(mut server) = self.state.connector.server().await else { return false };
        if let Some((at, full)) = self.memory
            && at.elapsed() < MEMORY_LOOK
        {
            return full;
        }
        let told = server.info("memory", &self.key).await;
        if let Err(error) = &told {
            let error = from_redis(&self.state.connector.address, error);
            if error.is_away() {
                self.state.away.begin(self.partition, &error);
            }
        }
        let info = told.unwrap_or_default();
        let number = |name: &str| -> Option<u64> {
            info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        let limit = number("maxmemory:").filter(|most| *most > 0);
        let full = limit.zip(number("used_memory:")).is_some_and(|(most, used)| used >= most);
        self.memory = Some((Instant::now(), full));
        full
    }

    /// Sends a batch until it is answered, or until patience is over.
    async fn deliver(&mut self, batch: Vec<QueuedStep>) {
        let steps: Vec<&Value> = batch.iter().map(|job| &job.step).collect();
        let steps = match rmp_serde::to_vec(&steps) {
            Ok(steps) => steps,
            Err(why) => return answer_all(batch, &self.malformed(&why.to_string())),
        };
        let reads = batch.iter().all(QueuedStep::only_reads);
        let mut call = BatchCall { steps, reads, number: None, asked: None };
        let is_patient = self.state.patient.load(Ordering::SeqCst);
        let mut tries = if is_patient { PATIENCE } else { PATIENCE.at_most(FOR_ONE_THING) }.begin();
        let error = loop {
            let error = match self.call(&mut call).await {
                Ok(replies) => return self.answered(batch, replies),
                Err(error) => error,
            };
            if !error.is_away() || !self.state.connector.was_reached() {
                break error;
            }
            self.state.away.begin(self.partition, &error);
            if !tries.again().await {
                break error;
            }
        };
        answer_all(batch, &error);
    }

    async fn call(&mut self, batch: &mut BatchCall) -> Result<Vec<Value>, FrontierError> {
        let connector = &self.state.connector;
        let mut server = connector.server().await?;
        let fake =
            self.state.fake.as_ref().map_or(String::new(), |clock| clock.now().as_millis().to_string());
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        // An answer that was lost comes again as it was: its time is that of the first try.
        let asked = *batch.asked.get_or_insert_with(boot_micros);
        let called = batch.run(&mut server, &self.key, &mut self.joined, &fake).await;
        let answer = match called {
            Ok(answer) => answer,
            Err(error) => {
                let is_moving = error.code() == Some("TRYAGAIN");
                // A node of a cluster that is silent says nothing of the others, which share the connection.
                let is_one_of_many = connector.address.cluster && error.is_timeout();
                let error = from_redis(&connector.address, &error);
                if error.is_away() && !is_moving && !is_one_of_many {
                    connector.drop_connection().await;
                }
                return Err(error);
            }
        };
        let BatchReply { now, answers } = BatchReply::read(&answer).map_err(|why| self.malformed(&why))?;
        if self.state.fake.is_none() {
            self.time.sample(asked, boot_micros(), now);
        }
        Ok(answers)
    }

    fn malformed(&self, why: &str) -> FrontierError {
        let at = self.state.connector.address.shown.clone();
        FrontierError::new(FrontierErrorKind::Broken, at).because(why)
    }

    fn answered(&self, batch: Vec<QueuedStep>, replies: Vec<Value>) {
        self.state.away.end(self.partition);
        if self.state.patient.load(Ordering::SeqCst) && self.state.connector.is_forgetful() {
            let frontier = &self.state.connector.address.shown;
            warn!(
                frontier,
                "this Redis keeps no append-only file: what it holds is gone with it; set appendonly yes"
            );
        }
        for (job, reply) in batch.into_iter().zip(replies) {
            // A worker that went away needs no answer: the step stands.
            let _ = job.reply.send(Ok(reply));
        }
    }
}

fn answer_all(batch: Vec<QueuedStep>, error: &FrontierError) {
    for job in batch {
        let _ = job.reply.send(Err(error.clone()));
    }
}
