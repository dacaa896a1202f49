//! The embedded frontier: one `SQLite` file, one writer thread a process, several processes on one folder.
//! What a step does is not decided here.

mod away;
mod boot;
mod columns;
mod due_list;
mod dues;
mod memory;
mod owners;
mod page_row;
mod pages;
#[cfg(test)]
mod plans;
mod schema;
mod session;
mod tables;
mod tasks;
mod upgrade;

use std::any::Any;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

pub(crate) use owners::OwnerFile;

use self::upgrade::Bar;
use super::backend::Backend;
use super::error::{FrontierError, FrontierErrorKind};
use super::state::LEASE_MS;
use super::steps;
use super::table::{Haste, Reply, Step, UNTIL_A_CLAIM};
use crate::batch::{Batches, Sender, batches, linger};
use crate::clock::{Clock, Timestamp};
use crate::patience::Patience;
use memory::Memory;
use session::Tables;

/// How long another process may hold the file before `SQLite` gives up on a try.
const BUSY: Duration = Duration::from_secs(5);
/// A step on a file that others hold is tried for a minute in all: `SQLite` waits by itself.
const STEPS: Patience =
    Patience::new(Duration::from_millis(1), Duration::from_millis(10)).at_most(Duration::from_mins(1));
/// Changing the journal's mode doesn't wait for other processes by itself.
const JOURNAL: Patience = Patience::new(Duration::from_millis(10), Duration::from_millis(10)).at_most(BUSY);
/// The most steps in one transaction: a start that comes up meanwhile waits for no more than these.
const BATCH: usize = 16;
/// How long steps that no start waits for look out for company, where there is some: half of a step's cost is its commit.
const LINGER: Duration = Duration::from_millis(3);

/// An open frontier file.
#[derive(Debug)]
pub(crate) struct Embedded {
    path: PathBuf,
    clock: Clock,
    /// Statements of steps that stand.
    asked: Arc<AtomicU64>,
    /// Taken when it is dropped.
    writer: Option<(Sender<PendingStep>, JoinHandle<()>)>,
}

struct PendingStep {
    step: Step,
    reply: oneshot::Sender<Result<Reply, FrontierError>>,
}

impl Embedded {
    /// Opens or creates the file. The clock is the machine's since boot, unless a test brings its own.
    pub(crate) fn open(path: &Path, clock: Option<Clock>) -> Result<Self, FrontierError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| {
                FrontierError::new(FrontierErrorKind::Folder(folder.to_owned()), "").because(e)
            })?;
        }
        let mut connection = connect(path)?;
        let clock = match clock {
            Some(clock) => clock,
            None => boot::clock(&mut connection).map_err(|e| explain(path, &e))?,
        };
        let (jobs, mut inbox) = batches();
        let (memory, full_since, asked) = (Memory::default(), None, Arc::new(AtomicU64::new(0)));
        let (path, counted) = (path.to_owned(), asked.clone());
        let writer =
            StepWriter { path: path.clone(), connection, clock: clock.clone(), full_since, memory, asked };
        let thread = thread::Builder::new()
            .name("frontier".to_owned())
            .spawn(move || writer.work(&mut inbox))
            .map_err(|e| FrontierError::new(FrontierErrorKind::Closed, name(&path)).because(e))?;
        Ok(Self { path, clock, asked: counted, writer: Some((jobs, thread)) })
    }

    fn send(&self, job: PendingStep) -> Option<()> {
        self.writer.as_ref()?.0.send(job).ok()
    }
}

/// Steps are done on the writer thread.
impl Backend for Embedded {
    fn step(&self, step: Step) -> BoxFuture<'_, Result<Reply, FrontierError>> {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(PendingStep { step, reply });
        Box::pin(async move {
            let closed = || FrontierError::new(FrontierErrorKind::Closed, name(&self.path));
            sent.ok_or_else(closed)?;
            answer.await.map_err(|_| closed())?
        })
    }

    fn post(&self, step: Step) {
        let _ = self.send(PendingStep { step, reply: oneshot::channel().0 });
    }

    fn hold(&self) -> Box<dyn Any> {
        Box::new(self.writer.as_ref().map(|(jobs, _)| jobs.hold()))
    }

    fn hurry(&self) {
        if let Some((jobs, _)) = &self.writer {
            jobs.hurry();
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn shown(&self) -> String {
        name(&self.path)
    }

    fn statements(&self) -> Option<u64> {
        Some(self.asked.load(Ordering::Relaxed))
    }

    fn locked_beside(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Waits for the steps under way and for SQLite to close the file, so that all of it is in the one file then.
impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some((jobs, thread)) = self.writer.take() {
            drop(jobs);
            let _ = thread.join();
        }
    }
}

struct StepWriter {
    path: PathBuf,
    connection: Connection,
    clock: Clock,
    /// Since when there is no space left to write.
    full_since: Option<Timestamp>,
    /// Empty after a transaction that failed.
    memory: Memory,
    asked: Arc<AtomicU64>,
}

impl StepWriter {
    /// Steps that arrive together share a transaction; each still reads its own time.
    fn work(mut self, inbox: &mut Batches<PendingStep>) {
        let mut in_company = false;
        while let Some(batch) = next_batch(inbox, &mut in_company) {
            match self.commit(&batch) {
                Ok(replies) => {
                    for (job, reply) in batch.into_iter().zip(replies) {
                        // A worker that went away needs no answer: the step stands.
                        let _ = job.reply.send(Ok(reply));
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
        let (memory, asked) = (tables.memory, tables.file.asked.get());
        transaction.commit()?;
        self.asked.fetch_add(asked, Ordering::Relaxed);
        if resumes.is_some() {
            self.full_since = None;
        }
        self.memory = memory;
        Ok(replies)
    }
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
        waiting.drain(..waiting.len().min(BATCH)).collect()
    })
}

/// How long company is waited for: not at all where a commit is worth it, or somebody waits for an answer.
fn company_expected(waiting: &VecDeque<PendingStep>, is_likely: bool) -> Duration {
    match () {
        () if waiting.len() >= BATCH || waiting.iter().any(|job| !job.step.can_wait()) => Duration::ZERO,
        () if waiting.iter().all(|job| job.step.haste() == Haste::Claim) => UNTIL_A_CLAIM,
        () if is_likely => LINGER,
        () => Duration::ZERO,
    }
}

/// Takes what a claim has room for, of the steps that bring what workers did.
fn take_company(waiting: &mut VecDeque<PendingStep>) -> Vec<PendingStep> {
    let (mut company, mut others) = (Vec::new(), VecDeque::new());
    for job in waiting.drain(..) {
        if company.len() + 1 < BATCH && job.step.can_wait() {
            company.push(job);
        } else {
            others.push_back(job);
        }
    }
    *waiting = others;
    company
}

fn connect(path: &Path) -> Result<Connection, FrontierError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(128);
        // Else a statement whose LIMIT is a parameter is planned anew at each use.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    let mut connection = open().map_err(|e| explain(path, &e))?;
    match prepare(&mut connection, path).map_err(|e| explain(path, &e))? {
        None => Ok(connection),
        Some(refusal) => Err(refusal),
    }
}

/// Checks whose file it is before anything is written, creates the tables in an empty one, and brings an older one up to date.
/// What stands against its use.
fn prepare(connection: &mut Connection, path: &Path) -> rusqlite::Result<Option<FrontierError>> {
    let refused = |kind| Ok(Some(FrontierError::new(kind, name(path))));
    let look = |connection: &Connection| -> rusqlite::Result<(i64, i64, i64)> {
        Ok((
            connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
            connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?,
        ))
    };
    // Of one moment: another process may be making the same file.
    let moment = connection.transaction()?;
    let (application, version, tables) = look(&moment)?;
    drop(moment);
    if application != schema::APPLICATION && (application != 0 || version != 0 || tables != 0) {
        return refused(FrontierErrorKind::Foreign);
    }
    if version > schema::VERSION {
        return refused(FrontierErrorKind::Newer(version));
    }
    if application == schema::APPLICATION && version < schema::VERSION {
        if !upgrade::is_from(version) {
            return refused(FrontierErrorKind::Older(version));
        }
        // It wouldn't know the new tables.
        if let Some(process) = OwnerFile::any_held(path) {
            return Ok(Some(FrontierError::older_in_use(version, name(path), &process)));
        }
    }
    let mut tries = JOURNAL.begin();
    while let Err(error) =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
    {
        if !is_busy(&error) || !tries.again_here() {
            return Err(error);
        }
    }
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 4000;",
    )?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if look(&transaction)?.0 == 0 {
        schema::create(&transaction)?;
        transaction.pragma_update(None, "application_id", schema::APPLICATION)?;
        transaction.pragma_update(None, "user_version", schema::VERSION)?;
    }
    transaction.commit()?;
    let mut tries = STEPS.begin();
    loop {
        match upgrade::step(connection, || OwnerFile::any_held(path)) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Ok(None),
            Ok(Err((version, Bar::Newer))) => return refused(FrontierErrorKind::Newer(version)),
            Ok(Err((version, Bar::Process(process)))) => {
                return Ok(Some(FrontierError::older_in_use(version, name(path), &process)));
            }
            Err(error) if is_busy(&error) && tries.again_here() => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Some systems tell it where the memory that processes share could not grow.
fn is_full(error: &rusqlite::Error) -> bool {
    let of_shared_memory = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_error().is_some_and(|error| error.extended_code == of_shared_memory)
}

fn explain(path: &Path, error: &rusqlite::Error) -> FrontierError {
    let kind = match error.sqlite_error_code() {
        _ if is_full(error) => FrontierErrorKind::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FrontierErrorKind::Busy,
        Some(ErrorCode::DatabaseCorrupt) => FrontierErrorKind::Damaged,
        Some(ErrorCode::NotADatabase) => FrontierErrorKind::Foreign,
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            FrontierErrorKind::Folder(path.to_owned())
        }
        _ => FrontierErrorKind::Broken,
    };
    FrontierError::new(kind, name(path)).because(error)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::frontier::step::Claim;
    use crate::task::{LeaseKey, Stage};

    fn url() -> CanonicalUrl {
        CanonicalUrl::parse("https://shop.example/").expect("a URL")
    }

    fn lease() -> LeaseKey {
        LeaseKey { token: 1, site: "shop".to_owned(), stage: Stage::Download, url: url() }
    }

    fn put(haste: Haste) -> Step {
        Step::Put { site: "shop".to_owned(), puts: Vec::new(), haste }
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
