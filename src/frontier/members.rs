//! Who claims: how a process joins, says what it works on and that it lives, and leaves. What one held that is gone returns
//! (C10).

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::sqlite::OwnerFile;
use super::state::{LEASE_MS, SignOfLife, WorkScope};
use super::step::Beaten;
use super::table::{Reply, Step};
use super::view::Owner;
use super::{Frontier, FrontierError, FrontierErrorKind};
use crate::clock::{self, Timestamp, boot_micros, since_boot};
use crate::task::LeaseKey;

/// How long a server takes a process for alive after a beat, which is renewed every 3 s.
pub(super) const BEAT: Duration = Duration::from_secs(10);

/// How long one that joins waits for the burial of one that had its name.
const BURIAL: Duration = Duration::from_secs(1);

impl SignOfLife {
    /// The version of this process and its machine.
    pub fn of_this_process() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), host, ..Self::default() }
    }
}

/// A process's place among those that claim. Dropping it is the end of its leases.
#[derive(Debug)]
pub struct Member {
    /// The name that its claims carry.
    pub name: String,
    _file: Option<OwnerFile>,
    /// When its newest beat that was heard was sent, in µs since boot.
    beaten: AtomicI64,
}

impl Frontier {
    /// Joins those that claim, first freeing the leases of processes that are gone.
    pub async fn join(&self, scope: WorkScope) -> Result<Member, FrontierError> {
        self.enter(format!("{:016x}", fastrand::u64(..)), scope).await
    }

    /// Joins under a name that people know: the member's own begins with it, and with `~` after it. What a process of
    /// that name held that is gone returns at once (C10). The name is made of letters, digits, `.`, `_` and `-`.
    pub async fn join_as(&self, name: &str, scope: WorkScope) -> Result<Member, FrontierError> {
        let begins = format!("{name}~");
        let member = self.enter(format!("{begins}{:016x}", fastrand::u64(..)), scope).await?;
        // On one machine a process that is gone shows at once by the lock on its file, whatever its name.
        if self.0.is_remote() {
            for owner in self.owners().await? {
                if owner.name.starts_with(&begins) && owner.name != member.name && !owner.dead {
                    // A part of the frontier that is silent does it once it answers.
                    clock::within(BURIAL, self.bury(&owner.name)).await.transpose()?;
                }
            }
        }
        Ok(member)
    }

    async fn enter(&self, name: String, scope: WorkScope) -> Result<Member, FrontierError> {
        self.0.wait_for_ever();
        let lock = |path| {
            OwnerFile::lock(path, &name).map_err(|e| {
                FrontierError::new(FrontierErrorKind::Folder(path.to_owned()), self.0.shown()).because(e)
            })
        };
        let file = self.0.locked_beside().map(lock).transpose()?;
        let member = Member { name, _file: file, beaten: AtomicI64::new(boot_micros()) };
        self.work_on_telling(&member.name, scope, Some(SignOfLife::of_this_process())).await?;
        self.bury_the_dead(&member.name).await?;
        Ok(member)
    }

    /// Joins under a new name: for a process that was declared dead though it lives. What it held returns by itself.
    pub async fn join_anew(&self, buried: &Member, scope: WorkScope) -> Result<Member, FrontierError> {
        match buried.name.split_once('~') {
            Some((name, _)) => self.enter(format!("{name}~{:016x}", fastrand::u64(..)), scope).await,
            None => self.join(scope).await,
        }
    }

    /// Says what a process works on from now on: its very next claim goes by that.
    pub async fn work_on(&self, owner: &str, scope: WorkScope) -> Result<(), FrontierError> {
        self.work_on_telling(owner, scope, None).await
    }

    /// For a worker for lanes all sites are listed by lane first, a portion a step, unless they are (N7).
    async fn work_on_telling(
        &self,
        owner: &str,
        scope: WorkScope,
        tells: Option<SignOfLife>,
    ) -> Result<(), FrontierError> {
        let mut next = matches!(scope, WorkScope::Lanes(_)).then(String::new);
        while let Some(after) = next {
            next = self.list_by_lane(&after).await?;
        }
        self.say(owner, Some(scope), false, tells).await.map(drop)
    }

    /// Lists a portion of the sites by lane: where the next one begins.
    pub async fn list_by_lane(&self, after: &str) -> Result<Option<String>, FrontierError> {
        ask!(self, ListByLane { after: after.to_owned() })
    }

    /// Says that a member is alive, and that it downloads where it does; frees the leases of those that are not alive. Wanted every
    /// few seconds. The answer is how many processes share the downloads of all sites.
    pub async fn beat(&self, member: &Member, downloads: bool) -> Result<u32, FrontierError> {
        Ok(self.beat_telling(member, downloads, SignOfLife::of_this_process()).await?.sharers)
    }

    /// The same, and what people may know of the process.
    pub async fn beat_telling(
        &self,
        member: &Member,
        downloads: bool,
        tells: SignOfLife,
    ) -> Result<Beaten, FrontierError> {
        let sent = boot_micros();
        let beaten = self.tell(&member.name, downloads, tells).await?;
        self.bury_the_dead(&member.name).await?;
        member.beaten.fetch_max(sent, Ordering::SeqCst);
        Ok(beaten)
    }

    /// Says no more than that a process is alive, and what people may know of it.
    pub async fn tell(
        &self,
        owner: &str,
        downloads: bool,
        tells: SignOfLife,
    ) -> Result<Beaten, FrontierError> {
        self.say(owner, None, downloads, Some(tells)).await
    }

    /// A process claims nothing more and ends, once it hears of that with its next beat. False where none of that name lives.
    pub async fn drain(&self, owner: &str) -> Result<bool, FrontierError> {
        ask!(self, Drain { owner: owner.to_owned() })
    }

    /// Until when, by the time since boot, nobody takes a member for dead, as far as it can tell by itself. On one machine the
    /// lock on its file says that it lives.
    pub(crate) fn surely_lives_until(&self, member: &Member) -> Duration {
        if !self.0.is_remote() {
            return Duration::MAX;
        }
        let beaten = member.beaten.load(Ordering::SeqCst);
        Duration::from_micros(u64::try_from(beaten).unwrap_or(0)) + BEAT
    }

    /// Renews a lease, after a sign of life where the lease lies and nowhere else, so that no other part of the frontier is waited
    /// for: until when it is the member's, by the time since boot; none if it is lost.
    pub async fn hold_lease(
        &self,
        member: &Member,
        lease: LeaseKey,
    ) -> Result<Option<Duration>, FrontierError> {
        let sent = since_boot();
        let lasts = Duration::from_millis(LEASE_MS.unsigned_abs());
        let mut until = sent + lasts;
        if self.0.is_remote() {
            let (owner, pid) = (member.name.clone(), std::process::id());
            let alive = Step::Enlist { owner, pid, scope: None, downloads: false, tells: None };
            self.0.step_of(&lease.site, alive).await?;
            until = sent + lasts.min(BEAT);
        }
        Ok((self.extend(vec![lease]).await? == [true]).then_some(until))
    }

    /// A server that hears of a process declares those dead that it hasn't heard of for too long.
    async fn say(
        &self,
        owner: &str,
        scope: Option<WorkScope>,
        downloads: bool,
        tells: Option<SignOfLife>,
    ) -> Result<Beaten, FrontierError> {
        ask!(self, Enlist { owner: owner.to_owned(), pid: std::process::id(), scope, downloads, tells })
    }

    /// Leaves those that claim; leases still held return.
    pub async fn leave(&self, member: Member) -> Result<(), FrontierError> {
        self.bury(&member.name).await
    }

    async fn bury_the_dead(&self, own: &str) -> Result<(), FrontierError> {
        let Some(path) = self.0.locked_beside() else { return Ok(()) };
        for owner in self.owners().await? {
            if owner.name != own && !owner.dead && self.is_gone(&owner) {
                self.bury(&owner.name).await?;
                OwnerFile::clear(path, &owner.name);
            }
        }
        Ok(())
    }

    /// Declares a process dead: its tokens are stale from now on and its leases return.
    pub async fn bury(&self, owner: &str) -> Result<(), FrontierError> {
        ask!(self, Bury { owner: owner.to_owned() }).map(drop)
    }

    /// The processes that nobody has declared dead. On one machine the lock on a process's file tells at once that it is gone.
    pub async fn not_dead(&self) -> Result<Vec<Owner>, FrontierError> {
        Ok(self.owners().await?.into_iter().filter(|owner| !owner.dead && !self.is_gone(owner)).collect())
    }

    /// The processes that claim and are alive: on a server one that is gone counts for as long as its last beat may.
    pub async fn at_work(&self) -> Result<Vec<Owner>, FrontierError> {
        let mut owners = self.not_dead().await?;
        let now = self.clock().now();
        owners.retain(|owner| !self.is_silent(owner, now));
        Ok(owners)
    }

    /// Whether a server has not heard of a process for so long that the next one that beats declares it dead.
    fn is_silent(&self, owner: &Owner, now: Timestamp) -> bool {
        self.0.is_remote() && owner.beat.as_ref().is_some_and(|beat| now.since(beat.at) > BEAT)
    }

    /// Whether nobody holds the lock on a process's file.
    fn is_gone(&self, owner: &Owner) -> bool {
        self.0.locked_beside().is_some_and(|path| OwnerFile::is_free(path, &owner.name))
    }

    /// The processes that claim, or did.
    pub async fn owners(&self) -> Result<Vec<Owner>, FrontierError> {
        ask!(self, Owners {})
    }
}
