//! The embedded frontier: one `SQLite` file, one writer thread a process, several processes on one folder.
//! What a step does is not decided here.

mod away;
mod backup;
mod batches;
mod boot;
mod by_lane;
mod campaigns;
mod columns;
mod due_list;
mod dues;
mod events;
mod flow;
mod lanes;
mod memory;
mod open;
mod owners;
mod page_row;
mod pages;
#[cfg(test)]
mod plans;
mod schema;
mod sessions;
mod tables;
mod tasks;
mod transaction;
mod upgrade;
mod writer;

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::ErrorCode;
use tokio::sync::{Notify, oneshot};

pub(super) use backup::back_up;
pub(crate) use owners::OwnerFile;

use self::open::connect;
use self::writer::{PendingStep, StepWriter};
use super::backend::{Backend, Effort};
use super::error::{FrontierError, FrontierErrorKind};
use super::table::{Reply, Step};
use crate::batch::{Sender, batches};
use crate::clock::Clock;
use crate::owner_only;
use crate::patience::Patience;

/// A step on a file that others hold is tried for a minute in all: `SQLite` waits by itself.
const STEPS: Patience =
    Patience::new(Duration::from_millis(1), Duration::from_millis(10)).at_most(Duration::from_mins(1));

/// An open frontier file.
#[derive(Debug)]
pub(crate) struct Embedded {
    path: PathBuf,
    clock: Clock,
    /// What the steps that stand took.
    effort: Arc<Mutex<Effort>>,
    /// A step of this process may have made something claimable that no claim was told of.
    brought: Arc<Notify>,
    /// Taken when it is dropped.
    writer: Option<(Sender<PendingStep>, JoinHandle<()>)>,
}

impl Embedded {
    /// Opens or creates the file. The clock is the machine's since boot, unless a test brings its own.
    pub(crate) fn open(path: &Path, clock: Option<Clock>) -> Result<Self, FrontierError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            owner_only::make_folder(folder).map_err(|e| {
                FrontierError::new(FrontierErrorKind::Folder(folder.to_owned()), "").because(e)
            })?;
        }
        let mut connection = connect(path)?;
        let clock = match clock {
            Some(clock) => clock,
            None => boot::clock(&mut connection).map_err(|e| explain(path, &e))?,
        };
        let (jobs, mut inbox) = batches();
        let (path, effort, brought) = (path.to_owned(), Arc::default(), Arc::default());
        let told = (Arc::clone(&effort), Arc::clone(&brought));
        let writer = StepWriter::new(path.clone(), connection, clock.clone(), told);
        let thread = thread::Builder::new()
            .name("frontier".to_owned())
            .spawn(move || writer.work(&mut inbox))
            .map_err(|e| FrontierError::new(FrontierErrorKind::Closed, name(&path)).because(e))?;
        Ok(Self { path, clock, effort, brought, writer: Some((jobs, thread)) })
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

    fn effort(&self) -> Option<Effort> {
        Some(*self.effort.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What this process brings wakes it. Nothing tells of the others.
    fn woken<'a>(&'a self, _member: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.brought.notified())
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

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether there is no space left, asked right after a step that failed. Some systems tell it where the memory that processes share
/// could not grow. A quota, or a limit of a file's size, is for `SQLite` a write that failed: which one it was is what this thread's
/// last call of the system said.
fn is_full(error: &rusqlite::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    use rusqlite::ffi::{
        SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE,
    };
    let said = io::Error::last_os_error().kind();
    match error.sqlite_error().map(|error| error.extended_code) {
        Some(SQLITE_IOERR_SHMSIZE) => true,
        Some(SQLITE_IOERR_WRITE | SQLITE_IOERR_FSYNC | SQLITE_IOERR_TRUNCATE) => {
            matches!(said, QuotaExceeded | FileTooLarge | StorageFull)
        }
        _ => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
    }
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
    use crate::canonical_url::CanonicalUrl;
    use crate::clock::within;
    use crate::frontier::{Claim, Frontier, Member, Registration, SiteSettings, WorkScope};
    use crate::page::Validators;
    use crate::task::{Outcome, Put, Settled, Settlement, StoredPage};
    use std::time::Duration;

    struct Ground {
        frontier: Frontier,
        me: Member,
        _folder: tempfile::TempDir,
    }

    impl Ground {
        async fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let url = format!("sqlite:{}", folder.path().join("frontier.db").display());
            let frontier = Frontier::open(&url).expect("a file");
            let shop = Registration {
                name: "shop".to_owned(),
                text: String::new(),
                group: None,
                hosts: vec!["shop.example".to_owned()],
                settings: SiteSettings { parallel: 8, attempts: 5, ..SiteSettings::default() },
            };
            frontier.register(shop).await.expect("registered");
            let me = frontier.join(WorkScope::All).await.expect("joined");
            let ground = Self { frontier, me, _folder: folder };
            while ground.is_woken().await {}
            ground
        }

        async fn is_woken(&self) -> bool {
            within(Duration::from_millis(20), self.frontier.woken(&self.me)).await.is_some()
        }

        async fn put(&self, path: &str, may_wait: bool) {
            let url = CanonicalUrl::parse(&format!("https://shop.example/{path}")).expect("a URL");
            let puts = vec![Put::seed(url)];
            self.frontier.put_waiting("shop", puts, may_wait).await.expect("put");
        }

        /// Claims a download and settles it, its page stored, with whatever is to take the parse.
        async fn fetch(&self, parse: Option<u64>) -> Settled {
            let owner = self.me.name.clone();
            let token = fastrand::u64(1..1 << 40);
            let claim = Claim { owner, token, download: 1, parse: 0, dice: vec![0], lead: 0 };
            let lease = self.frontier.claim(claim).await.expect("answers").leases.pop().expect("it is due");
            let stored = StoredPage {
                place: format!("pages:{}", lease.fence),
                fetched_at: self.frontier.clock().now(),
                validators: Validators::default(),
            };
            let done = Outcome::Done { stored: Some(stored), recrawl: None };
            let settlement = Settlement { parse, ..Settlement::of(lease, done) };
            let token = fastrand::u64(1..1 << 40);
            let settled = self.frontier.settle_waiting(&self.me.name, token, vec![settlement], true);
            settled.await.expect("settled").remove(0)
        }
    }

    #[tokio::test]
    async fn l1_a_process_is_woken_by_what_it_brought_but_not_by_what_travels_with_a_claim() {
        let ground = Ground::new().await;
        assert!(!ground.is_woken().await);
        ground.put("1", false).await;
        assert!(ground.is_woken().await && !ground.is_woken().await, "once");
        ground.put("2", true).await;
        assert!(!ground.is_woken().await, "no start waits for it");
        let settled = ground.fetch(Some(7)).await;
        assert!(matches!(settled, Settled::Leased(_)), "{settled:?}");
        assert!(!ground.is_woken().await, "a claim, and a settlement that took its parse along");
    }

    #[tokio::test]
    async fn l1_a_process_is_woken_by_a_parse_that_was_not_taken_along() {
        let ground = Ground::new().await;
        ground.put("1", true).await;
        assert!(!ground.is_woken().await);
        assert_eq!(ground.fetch(None).await, Settled::Kept);
        assert!(ground.is_woken().await);
    }
}
