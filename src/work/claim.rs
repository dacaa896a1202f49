//! The pool: one claimer a process asks for as many tasks as slots are free, and each granted task walks its line.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, debug, info, info_span, warn};

use super::download;
use super::error::VisitError;
use super::lease::beat;
use super::parse;
use super::parts::VisitParts;
use super::scaling::{Scale, most_asking, part_of, workers};
use super::slots::SlottedLease;
use super::under_way::RunningTask;
use super::workers::Workers;
use crate::clock::{self, since_boot};
use crate::frontier::{Claim, FrontierError, Grant, LONGEST_SLEEP, Lost, TOKENS};
use crate::quantity::spoken;
use crate::task::{Lease, Stage};

/// The longest the claimer sleeps where nobody tells it that another process has put something meanwhile.
const LONGEST_SLEEP_UNTOLD: Duration = Duration::from_secs(1);
/// How long a claim under way is waited for when the pool is told to stop: a frontier that is away may not answer for long.
const LAST_CLAIM: Duration = Duration::from_secs(2);
/// Pages that wait to be taken apart are waited for this long when the pool is told to stop; then they go back.
const PARSES_END: Duration = Duration::from_secs(2);
/// How often a process that leaves tells what it still waits for.
const TELL: Duration = Duration::from_secs(10);
/// The time between two looks at how many workers are enough.
const RESCALE: Duration = Duration::from_millis(250);
/// What happens within so much time of a claim is looked after by the next one together: a claim costs a commit. What is due
/// meanwhile isn't held up.
const GATHER: Duration = Duration::from_millis(5);
/// The most tasks granted in one claim, which takes what is due within the next moments.
const MOST_GRANTED: usize = 32;

/// The claimer, and the tasks that it was granted.
#[derive(Debug)]
pub struct Pool {
    parts: Arc<VisitParts>,
    workers: Workers,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// How many tasks this process could not end.
    left: AtomicUsize,
    /// What keeps every task from its end, once it happened.
    broken: Mutex<Option<VisitError>>,
}

impl Pool {
    /// A pool that stops claiming when `stop` is cancelled.
    pub fn new(parts: Arc<VisitParts>, workers: Workers, stop: CancellationToken) -> Self {
        Self {
            parts,
            workers,
            tasks: TaskTracker::new(),
            stop,
            left: AtomicUsize::new(0),
            broken: Mutex::default(),
        }
    }

    /// Claims and runs tasks until stopped or until storage is gone; then waits for running tasks.
    pub async fn work(self) -> Result<(), VisitError> {
        let pool = Arc::new(self);
        let still = CancellationToken::new();
        let beating = tokio::spawn(beat(Arc::clone(&pool.parts), still.clone()));
        let worked = pool.claim_until_stopped().await;
        pool.parts.leaving.cancel();
        pool.parts.frontier.hurry();
        pool.tasks.close();
        pool.wait_for_the_last().await;
        still.cancel();
        // It ends by itself; a panic in it was logged by the runtime.
        let _ = beating.await;
        let left = pool.left.load(Ordering::SeqCst);
        if left > 0 {
            warn!(
                tasks = left,
                "left as they were when they could not be ended; the next start goes on with them"
            );
        }
        let broken = pool.broken().take();
        match broken {
            Some(left) => Err(left),
            None => Ok(worked?),
        }
    }

    /// Waits for what runs, and tells those who wait as well what for.
    async fn wait_for_the_last(&self) {
        if clock::within(PARSES_END, self.tasks.wait()).await.is_some() {
            return;
        }
        self.parts.parse_pool.leave();
        while clock::within(TELL, self.tasks.wait()).await.is_none() {
            let Some((time, url)) = self.parts.under_way.oldest() else { continue };
            info!(
                tasks = self.tasks.len(),
                url = url.as_str(),
                "what runs is waited for; this for {}",
                spoken(time)
            );
        }
    }

    async fn claim_until_stopped(self: &Arc<Self>) -> Result<(), FrontierError> {
        let outages = &self.parts.outages;
        let (mut scale, mut rescaled) = (Scale::default(), None);
        while !self.stop.is_cancelled() {
            // What waits for a disk or the frontier says nothing of response times.
            let is_due = rescaled.is_none_or(|at: Instant| at.elapsed() >= RESCALE);
            if (is_due || self.parts.slots.are_short.load(Ordering::SeqCst)) && !outages.is_any_on() {
                self.rescale(&mut scale);
                rescaled = Some(Instant::now());
            }
            if outages.is_keeping_held_up() {
                self.stop.run_until_cancelled(clock::wait(RESCALE)).await;
                continue;
            }
            let asked = Instant::now();
            let again = tokio::select! {
                again = outages.frontier.patiently(|| self.claim()) => again?,
                // What it may be granted after all returns when this process leaves.
                () = clock::wait_after(&self.stop, LAST_CLAIM) => break,
            };
            let member = self.parts.member();
            let some_are_free = async {
                self.parts.slots.freed.notified().await;
                clock::wait_until(asked + GATHER).await;
            };
            let woken = async {
                self.parts.frontier.woken(&member).await;
                clock::wait_until(asked + GATHER).await;
            };
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = clock::wait_until(again) => {}
                () = some_are_free, if self.parts.slots.left_some.load(Ordering::SeqCst) => {}
                () = woken, if self.parts.slots.free() != (0, 0) => {}
            }
        }
        Ok(())
    }

    /// Claims for the free slots and starts what is granted; when to ask for more.
    async fn claim(self: &Arc<Self>) -> Result<Instant, FrontierError> {
        let (mut download, mut parse) = self.parts.slots.free();
        let is_full = self.parts.outages.memory.is_on();
        if is_full {
            // One that is parsed may make room, or finds that there is some.
            (download, parse) = (0, parse.min(1));
        }
        download = download.min(self.parts.under_way.pages_left());
        if self.parts.ceiling.is_set() && download > 0 {
            self.parts.ceiling.until_ready().await;
            download = 1;
        }
        if download + parse == 0 {
            self.parts.slots.left_some.store(true, Ordering::SeqCst);
            return Ok(Instant::now() + RESCALE);
        }
        let (noted, asked) = (since_boot(), Instant::now());
        let wish = self.wish(download, parse);
        let wanted = [wish.download, wish.parse];
        let grant = self.parts.frontier.claim(wish).await?;
        grant.lost.iter().for_each(tell_of);
        let next = grant.next_in.map_or(Duration::MAX, |ms| Duration::from_millis(ms.unsigned_abs()));
        let longest = if self.parts.frontier.has_wake_ups() { LONGEST_SLEEP } else { LONGEST_SLEEP_UNTOLD };
        let again = next_claim(asked, Instant::now(), next.min(longest));
        self.parts.slots.left_some.store(self.left_some(wanted, &grant), Ordering::SeqCst);
        for lease in grant.leases {
            self.start(lease, noted);
        }
        if is_full {
            return Ok(Instant::now() + RESCALE);
        }
        // On a cluster one partition may say so while others granted tasks.
        if grant.buried {
            self.parts.join_anew().await?;
            return Ok(Instant::now());
        }
        if !self.parts.role.walks(Stage::Download) {
            return Ok(again);
        }
        let is_busy = self.parts.slots.free().0 == 0;
        self.parts.slots.are_short.fetch_or(is_busy && download > 0 && next.is_zero(), Ordering::SeqCst);
        // With every slot taken, a few more may be enough to go on.
        Ok(if download == 0 { again.min(Instant::now() + RESCALE) } else { again })
    }

    /// Whether a stage was given all that was asked for, or wasn't asked for: a slot that gets free may find more.
    fn left_some(&self, wanted: [u32; 2], grant: &Grant) -> bool {
        let all_of = |(stage, wanted): (Stage, u32)| {
            let given = grant.leases.iter().filter(|lease| lease.stage == stage).count();
            self.parts.role.walks(stage) && given >= wanted as usize
        };
        Stage::ALL.into_iter().zip(wanted).any(all_of)
    }

    fn wish(&self, download: usize, parse: usize) -> Claim {
        let number = |n: usize| u32::try_from(n.min(MOST_GRANTED)).unwrap_or(0);
        Claim {
            owner: self.parts.member().name.clone(),
            token: fastrand::u64(1..TOKENS - MOST_GRANTED as u64),
            download: number(download),
            parse: number(parse),
            dice: (0..MOST_GRANTED).map(|_| fastrand::u32(..)).collect(),
            lead: self.parts.frontier.lead(),
        }
    }

    /// Walks a task along its line, and then the parse that its settlement may have taken along. `noted` is the time since boot
    /// right before its claim.
    fn start(self: &Arc<Self>, lease: Lease, noted: Duration) {
        let slot = self.parts.slots.take(lease.stage);
        // Before anything else is claimed: it counts against what may still be asked for.
        let mut running = self.parts.under_way.begin(&lease, noted);
        let pool = Arc::clone(self);
        self.tasks.spawn(async move {
            let mut task = SlottedLease { lease, slot, noted };
            while let Some(next) = pool.walk(task, running).await {
                running = pool.parts.under_way.begin(&next.lease, next.noted);
                task = next;
            }
        });
    }

    /// Walks a task along its line; what its settlement took along.
    async fn walk(&self, task: SlottedLease, _running: RunningTask) -> Option<SlottedLease> {
        let (parts, key) = (&self.parts, task.lease.key());
        let attempt = task.lease.attempts + 1;
        let span = info_span!("visit", site = key.site, url = key.url.as_str(), attempt);
        let line = async {
            debug!(fence = task.lease.fence, stage = %key.stage, "start");
            let walked = match key.stage {
                Stage::Download => download::visit(parts, task).await,
                Stage::Parse => parse::visit(parts, task.lease, task.slot).await.map(|()| None),
            };
            if let Err(left) = &walked {
                parts.return_unused(key, left).await;
            }
            walked
        };
        line.instrument(span).await.unwrap_or_else(|left| {
            self.note(left);
            None
        })
    }

    /// A task was left as it was.
    fn note(&self, left: VisitError) {
        let is_left = left.is_our_own() && !left.is_for_memory();
        self.left.fetch_add(usize::from(is_left), Ordering::SeqCst);
        if left.is_final() {
            self.broken().get_or_insert(left);
            self.stop.cancel();
        }
    }

    fn broken(&self) -> MutexGuard<'_, Option<VisitError>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As many download slots as the response times ask for, and twice as many as there are where these don't suffice.
    fn rescale(&self, scale: &mut Scale) {
        let wanted = match self.workers {
            _ if !self.parts.role.walks(Stage::Download) => 0,
            Workers::Fixed(workers) => workers,
            Workers::Auto { least, most } => {
                let are_short = self.parts.slots.are_short.swap(false, Ordering::SeqCst);
                let slots = &self.parts.slots;
                let known =
                    part_of(workers(&self.parts.under_way.loads()), slots.sharers(), slots.downloading());
                let short = if are_short { 2 * self.parts.slots.downloads() } else { 0 };
                scale.follow(known.max(short).clamp(least, most), Instant::now())
            }
        };
        let before = self.parts.slots.set_downloads(wanted);
        if before != wanted {
            self.parts.monitor.workers(wanted);
            if before.abs_diff(wanted) * 5 > before {
                let most_asking = most_asking(&self.parts.under_way.loads());
                info!(before, workers = wanted, most_asking, "workers scaled");
            }
        }
    }
}

/// When to claim again what is due so long after an answer. A claim takes its way as well: it is sent so much sooner that it
/// is there when the time has come, but a slow frontier isn't asked twice as often for it.
fn next_claim(asked: Instant, answered: Instant, next: Duration) -> Instant {
    (asked + next).max(answered + next / 2)
}

/// Said once, by the process whose claim found it (C10).
fn tell_of(lost: &Lost) {
    let Lost { site, url, stage, losses, kept_back } = lost;
    let then = match kept_back {
        Some(0) => "it is done again at once".to_owned(),
        Some(ms) => format!("it is kept back for {}", spoken(Duration::from_millis(ms.unsigned_abs()))),
        None => "it is given up, as its worker died each time".to_owned(),
    };
    warn!(site, url = url.as_str(), stage = %stage, losses, "lease lost: its worker is gone; {then}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_claim_goes_out_its_way_ahead_but_never_more_than_half_the_time() {
        let (asked, ms) = (Instant::now(), Duration::from_millis);
        for (way, next, again) in [(0, 10, 10), (2, 10, 10), (5, 10, 10), (8, 10, 13), (8, 0, 8)] {
            assert_eq!(next_claim(asked, asked + ms(way), ms(next)), asked + ms(again), "{way} {next}");
        }
    }
}
