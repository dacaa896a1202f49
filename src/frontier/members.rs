//! Who claims: how a process joins, says that it lives, and leaves. What one held that is gone returns (C10).

use super::sqlite::OwnerFile;
use super::step::{Reply, Step};
use super::view::Owner;
use super::{Backend, Frontier, FrontierError, FrontierErrorKind};

/// A process's place among those that claim. Dropping it is the end of its leases.
#[derive(Debug)]
pub struct Member {
    /// The name that its claims carry.
    pub name: String,
    crawls: Vec<String>,
    _file: Option<OwnerFile>,
}

impl Frontier {
    /// Joins those that claim, first freeing the leases of processes that are gone.
    pub async fn join(&self, crawls: Vec<String>) -> Result<Member, FrontierError> {
        self.enter(format!("{:016x}", fastrand::u64(..)), crawls).await
    }

    /// Joins under a name that people know: the member's own begins with it, and with `~` after it. What a process of
    /// that name held that is gone returns at once (C10). The name is made of letters, digits, `.`, `_` and `-`.
    pub async fn join_as(&self, name: &str, crawls: Vec<String>) -> Result<Member, FrontierError> {
        let begins = format!("{name}~");
        let member = self.enter(format!("{begins}{:016x}", fastrand::u64(..)), crawls).await?;
        // On one machine a process that is gone shows at once by the lock on its file, whatever its name.
        if let Backend::Redis(_) = &*self.0 {
            for owner in self.owners().await? {
                if owner.name.starts_with(&begins) && owner.name != member.name && !owner.dead {
                    self.bury(&owner.name).await?;
                }
            }
        }
        Ok(member)
    }

    async fn enter(&self, name: String, crawls: Vec<String>) -> Result<Member, FrontierError> {
        let file = match &*self.0 {
            Backend::Model(..) => None,
            Backend::Redis(shared) => {
                shared.wait_for_ever();
                None
            }
            Backend::Sqlite(embedded) => {
                let file = OwnerFile::lock(embedded.path(), &name).map_err(|e| {
                    let kind = FrontierErrorKind::Folder(embedded.path().to_owned());
                    FrontierError::new(kind, embedded.path().display().to_string()).because(e)
                })?;
                Some(file)
            }
        };
        let member = Member { name, crawls, _file: file };
        self.beat(&member).await?;
        Ok(member)
    }

    /// Joins under a new name: for a process that was declared dead though it lives. What it held returns by itself.
    pub async fn join_anew(&self, buried: &Member) -> Result<Member, FrontierError> {
        let crawls = buried.crawls.clone();
        match buried.name.split_once('~') {
            Some((name, _)) => self.enter(format!("{name}~{:016x}", fastrand::u64(..)), crawls).await,
            None => self.join(crawls).await,
        }
    }

    /// Says that a member is alive, and frees the leases of those that are not. Wanted every few seconds.
    pub async fn beat(&self, member: &Member) -> Result<(), FrontierError> {
        let (owner, crawls) = (member.name.clone(), member.crawls.clone());
        let step = Step::Enlist { owner, pid: std::process::id(), crawls };
        if let Backend::Redis(shared) = &*self.0 {
            for silent in shared.enlist(step).await? {
                self.bury(&silent).await?;
            }
            return Ok(());
        }
        ask!(self, step, Reply::Nothing => ())?;
        self.bury_the_dead(&member.name).await
    }

    /// Leaves those that claim; leases still held return.
    pub async fn leave(&self, member: Member) -> Result<(), FrontierError> {
        self.bury(&member.name).await
    }

    async fn bury_the_dead(&self, own: &str) -> Result<(), FrontierError> {
        let Backend::Sqlite(embedded) = &*self.0 else { return Ok(()) };
        for owner in self.owners().await? {
            if owner.name != own && !owner.dead && OwnerFile::is_free(embedded.path(), &owner.name) {
                self.bury(&owner.name).await?;
                OwnerFile::clear(embedded.path(), &owner.name);
            }
        }
        Ok(())
    }

    /// Declares a process dead: its tokens are stale from now on and its leases return.
    pub async fn bury(&self, owner: &str) -> Result<(), FrontierError> {
        ask!(self, Step::Bury { owner: owner.to_owned() }, Reply::Done(_) => ())
    }

    /// The processes that claim, or did.
    pub async fn owners(&self) -> Result<Vec<Owner>, FrontierError> {
        ask!(self, Step::Owners, Reply::Owners(owners) => owners)
    }
}
