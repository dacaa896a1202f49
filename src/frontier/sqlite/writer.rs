//! The writer thread: steps that come together share a transaction.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::{Notify, oneshot};

use super::memory::Memory;
use super::transaction::Tables;
use super::{STEPS, boot, explain, is_busy, is_full};
use crate::batch::{Batches, linger};
use crate::clock::{Clock, Timestamp};
use crate::frontier::backend::Effort;
use crate::frontier::error::FrontierError;
use crate::frontier::state::LEASE_MS;
use crate::frontier::steps;
use crate::frontier::table::{Haste, Reply, Step, UNTIL_A_CLAIM};
use crate::task::{Outcome, Settled, Settlement};

/// The most steps in one transaction, and the most that several of them may weigh: a start that comes up meanwhile waits for no
/// more than these.
const BATCH: usize = 16;
const WEIGHT: usize = 256;
/// How long steps that no start waits for look out for company, where there is some: half of a step's cost is its commit.
const LINGER: Duration = Duration::from_millis(3);

pub(super) struct PendingStep {
    pub(super) step: Step,
    pub(super) reply: oneshot::Sender<Result<Reply, FrontierError>>,
}

pub(super) struct StepWriter {
    path: PathBuf,
    connection: Connection,
    clock: Clock,
    /// Since when there is no space left to write.
    full_since: Option<Timestamp>,
    /// Empty after a transaction that failed.
    memory: Memory,
    effort: Arc<Mutex<Effort>>,
    brought: Arc<Notify>,
}

impl StepWriter {
    pub(super) fn new(
        path: PathBuf,
        connection: Connection,
        clock: Clock,
        (effort, brought): (Arc<Mutex<Effort>>, Arc<Notify>),
    ) -> Self {
        Self { path, connection, clock, full_since: None, memory: Memory::default(), effort, brought }
    }

    /// Steps that arrive together share a transaction; each still reads its own time.
    pub(super) fn work(mut self, inbox: &mut Batches<PendingStep>) {
        let mut in_company = false;
        while let Some(batch) = next_batch(inbox, &mut in_company) {
            self.answer(batch);
        }
    }

    /// Does a batch. Where one step is what fails, the others are none the worse: each is done alone then.
    fn answer(&mut self, batch: Vec<PendingStep>) {
        match self.commit(&batch) {
            Ok(replies) => {
                if brings(&batch, &replies) {
                    self.brought.notify_one();
                }
                for (job, reply) in batch.into_iter().zip(replies) {
                    // A worker that went away needs no answer: the step stands.
                    let _ = job.reply.send(Ok(reply));
                }
            }
            Err(error) if batch.len() > 1 && is_of_one_step(&error) => {
                for job in batch {
                    self.answer(vec![job]);
                }
            }
            Err(error) => {
                let error = explain(&self.path, &error);
                for job in batch {
                    let _ = job.reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// All the steps or none of them; a busy file is tried again with patience.
    fn commit(&mut self, jobs: &[PendingStep]) -> rusqlite::Result<Vec<Reply>> {
        let mut tries = STEPS.begin();
        loop {
            match self.try_commit(jobs) {
                Err(error) if is_busy(&error) && tries.again_here() => {}
                Err(error) if is_full(&error) => {
                    self.full_since.get_or_insert(self.clock.now());
                    return Err(error);
                }
                done => return done,
            }
        }
    }

    fn try_commit(&mut self, jobs: &[PendingStep]) -> rusqlite::Result<Vec<Reply>> {
        let reads = jobs.iter().all(|job| job.step.only_reads());
        let behaviour = if reads { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
        let transaction = self.connection.transaction_with_behavior(behaviour)?;
        let resumes = self.full_since.filter(|_| !reads);
        if let Some(since) = resumes {
            renew(&transaction, since, self.clock.now())?;
            self.memory = Memory::default();
        }
        let mut replies = Vec::with_capacity(jobs.len());
        let mut tables = Tables::new(&transaction, std::mem::take(&mut self.memory))?;
        for PendingStep { step, .. } in jobs {
            let now = self.clock.now();
            replies.push(steps::apply(&mut tables, step.clone(), now.as_millis())?);
            if matches!(step, Step::Enlist { .. }) {
                boot::saw(&transaction, now)?;
            }
        }
        tables.flush()?;
        let (memory, effort) = (tables.memory, tables.file.effort.get());
        transaction.commit()?;
        self.effort.lock().unwrap_or_else(PoisonError::into_inner).add(effort);
        if resumes.is_some() {
            self.full_since = None;
        }
        self.memory = memory;
        Ok(replies)
    }
}

/// Whether something may be claimed now that no claim was told of: one at the end of the batch saw all that came before it. What
/// waits for a claim brings nothing that one is needed for, but for a parse that was not taken along.
fn brings(batch: &[PendingStep], replies: &[Reply]) -> bool {
    let leaves_parse = |step: &Step, reply: &Reply| match (step, reply) {
        (Step::Settle { settlements, .. }, Reply::Settle(settled)) => {
            let is_left = |(settlement, settled): (&Settlement, &Settled)| {
                matches!(settlement.outcome, Outcome::Done { stored: Some(_), .. })
                    && *settled == Settled::Kept
            };
            settlements.iter().zip(settled).any(is_left)
        }
        _ => false,
    };
    let brings = |(job, reply): (&PendingStep, &Reply)| {
        job.step.may_bring() && job.step.haste() != Haste::Claim || leaves_parse(&job.step, reply)
    };
    let is_seen = matches!(batch.last(), Some(PendingStep { step: Step::Claim { .. }, .. }));
    !is_seen && batch.iter().zip(replies).any(brings)
}

/// Whether a row that a step met is what is wrong, and not the file.
fn is_of_one_step(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), None | Some(ErrorCode::ConstraintViolation))
}

/// Nobody could renew a lease or settle while there was no space left: no lease ends by that.
fn renew(connection: &Connection, since: Timestamp, now: Timestamp) -> rusqlite::Result<()> {
    let sql = "UPDATE task SET until = ?2 WHERE place = 3 AND until > ?1 AND until < ?2";
    connection.execute(sql, [since.as_millis(), now.as_millis() + LEASE_MS]).map(drop)
}

/// What is done next. A step that a request's start waits for goes first, as its permit ages meanwhile. A claim's permits are
/// for a few ms later: it takes what waits for it along. Where the last batch held more than one, others work at the same
/// time: then steps that nobody waits for look out for them a little.
fn next_batch(inbox: &mut Batches<PendingStep>, in_company: &mut bool) -> Option<Vec<PendingStep>> {
    let is_likely = *in_company;
    inbox.next(linger(move |waiting| company_expected(waiting, is_likely)), |waiting| {
        let urgent = waiting.iter().position(|job| job.step.is_urgent());
        if let Some(job) = urgent.and_then(|at| waiting.remove(at)) {
            let is_claim = matches!(job.step, Step::Claim { .. });
            let mut batch = if is_claim { take_company(waiting) } else { Vec::new() };
            batch.push(job);
            return batch;
        }
        *in_company = waiting.len() > 1;
        waiting.drain(..fitting(waiting)).collect()
    })
}

/// How many of the first steps fit into one transaction. One that is too heavy for company has one to itself.
fn fitting(waiting: &VecDeque<PendingStep>) -> usize {
    let mut weight = 0;
    let is_room = |job: &&PendingStep| {
        weight += job.step.weight();
        weight <= WEIGHT
    };
    waiting.iter().take(BATCH).take_while(is_room).count().max(1)
}

/// How long company is waited for: not at all where a commit is worth it, or somebody waits for an answer.
fn company_expected(waiting: &VecDeque<PendingStep>, is_likely: bool) -> Duration {
    match () {
        () if waiting.iter().any(|job| !job.step.can_wait()) => Duration::ZERO,
        () if waiting.len() >= BATCH || fitting(waiting) < waiting.len() => Duration::ZERO,
        () if waiting.iter().all(|job| job.step.haste() == Haste::Claim) => UNTIL_A_CLAIM,
        () if is_likely => LINGER,
        () => Duration::ZERO,
    }
}

/// Takes what a claim has room for, of the steps that bring what workers did. One that is too heavy comes when no start is waited
/// for.
fn take_company(waiting: &mut VecDeque<PendingStep>) -> Vec<PendingStep> {
    let (mut company, mut others, mut room) = (Vec::new(), VecDeque::new(), WEIGHT);
    for job in waiting.drain(..) {
        let weight = job.step.weight();
        if company.len() + 1 < BATCH && weight <= room && job.step.can_wait() {
            room -= weight;
            company.push(job);
        } else {
            others.push_back(job);
        }
    }
    *waiting = others;
    company
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::batches;
    use crate::canonical_url::CanonicalUrl;
    use crate::frontier::step::Claim;
    use crate::task::{LeaseKey, Put, Stage};

    fn url() -> CanonicalUrl {
        CanonicalUrl::parse("https://shop.example/").expect("a URL")
    }

    fn lease() -> LeaseKey {
        LeaseKey { token: 1, site: "shop".to_owned(), stage: Stage::Download, url: url() }
    }

    fn put(haste: Haste) -> Step {
        Step::Put { site: "shop".to_owned(), puts: Vec::new(), elsewhere: 0, haste }
    }

    /// A put of so many links, each with a URL of so many bytes.
    fn links(count: usize, bytes: usize) -> Step {
        let url = format!("https://shop.example/{}", "x".repeat(bytes));
        let url = CanonicalUrl::parse(&url).expect("a URL");
        let puts = vec![Put::link(url, 1); count];
        Step::Put { site: "shop".to_owned(), puts, elsewhere: 0, haste: Haste::Claim }
    }

    fn claim() -> Step {
        let (owner, dice) = ("one".to_owned(), Vec::new());
        Step::Claim { claim: Claim { owner, token: 1, download: 1, parse: 0, dice, lead: 0 } }
    }

    fn rearm() -> Step {
        Step::Rearm { lease: lease(), asked: None, lead: 0 }
    }

    fn view() -> Step {
        Step::Text { site: "shop".to_owned() }
    }

    fn pending(step: Step) -> PendingStep {
        PendingStep { step, reply: oneshot::channel().0 }
    }

    /// The batches that these steps are done in, by what they are called.
    fn done_in(steps: Vec<Step>) -> Vec<Vec<&'static str>> {
        let (jobs, mut inbox) = batches();
        for step in steps {
            assert!(jobs.send(pending(step)).is_ok(), "it is open");
        }
        drop(jobs);
        let called = |batch: Vec<PendingStep>| batch.iter().map(|job| job.step.called()).collect();
        std::iter::from_fn(|| next_batch(&mut inbox, &mut false)).map(called).collect()
    }

    #[test]
    fn a_claim_takes_along_what_workers_bring_and_is_done_last_of_it() {
        let steps = vec![put(Haste::Claim), view(), claim(), put(Haste::Nobody)];
        let batches = [vec!["put.step", "put.step", "claim.step"], vec!["view.text"]];
        assert_eq!(done_in(steps), batches);
        let many = done_in((0..20).map(|_| put(Haste::Claim)).chain([claim()]).collect());
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [BATCH, 5]);
    }

    #[test]
    fn i16_a_claim_s_company_is_weighed_and_not_only_counted() {
        let weights = |steps: Vec<Step>| {
            let (jobs, mut inbox) = batches();
            for step in steps {
                assert!(jobs.send(pending(step)).is_ok(), "it is open");
            }
            drop(jobs);
            let weights = |batch: Vec<PendingStep>| batch.iter().map(|job| job.step.weight()).collect();
            std::iter::from_fn(|| next_batch(&mut inbox, &mut false))
                .map(weights)
                .collect::<Vec<Vec<usize>>>()
        };
        let steps = vec![links(200, 60), links(100, 60), links(1_000, 60), links(50, 60), claim()];
        assert_eq!(weights(steps), [vec![200, 50, 1], vec![100], vec![1_000]]);
        assert_eq!(weights(vec![links(100, 1_000), claim()]), [vec![200, 1]]);
        assert_eq!(weights(vec![links(100, 1_600), claim()]), [vec![1], vec![400]]);
        let give_up = || Step::GiveUp { site: "shop".to_owned(), run: None, goes_on: false };
        let alone = [vec![1_000], vec![1_000], vec![100, 1]];
        assert_eq!(weights(vec![give_up(), give_up(), links(100, 60), view()]), alone);
        let waiting = |counts: &[usize]| counts.iter().map(|count| pending(links(*count, 60))).collect();
        assert_eq!(company_expected(&waiting(&[200, 50]), false), UNTIL_A_CLAIM);
        assert_eq!(company_expected(&waiting(&[200, 100]), false), Duration::ZERO);
    }

    #[test]
    fn what_a_late_start_waits_for_goes_first_and_alone() {
        let batches = [vec!["lease.rearm"], vec!["put.step"]];
        assert_eq!(done_in(vec![put(Haste::Claim), rearm()]), batches);
    }

    #[test]
    fn company_is_waited_for_by_what_waits() {
        let ms = Duration::from_millis;
        for (steps, is_likely, time) in [
            (vec![put(Haste::Claim); 3], false, UNTIL_A_CLAIM),
            (vec![put(Haste::Claim); BATCH], false, ms(0)),
            (vec![put(Haste::Claim), put(Haste::Nobody)], true, LINGER),
            (vec![put(Haste::Nobody)], false, ms(0)),
            (vec![put(Haste::Claim), view()], true, ms(0)),
            (vec![put(Haste::Claim), claim()], true, ms(0)),
        ] {
            let waiting = steps.into_iter().map(pending).collect();
            assert_eq!(company_expected(&waiting, is_likely), time);
        }
    }
}
