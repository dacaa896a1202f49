//! The frontier: what is known, what is next, and when. Each method is one atomic step on the backend's own clock.
//! Nothing here knows HTTP or HTML.

/// Asks for a step; its answer is that of the reply of the same name.
macro_rules! ask {
    ($self:ident, $step:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        match $self.0.step(Step::$step { $($field $(: $value)?),* }).await? {
            Reply::$step(answer) => Ok(answer),
            other => unreachable!("a step is answered by its own reply, not by {other:?}"),
        }
    };
}

mod back_up;
mod backend;
mod batches;
pub mod campaigns;
mod company;
mod error;
mod events;
mod lanes;
mod members;
mod model;
mod mutex_key;
mod pauses;
pub mod permit;
mod redis;
mod runs;
mod shelf;
mod sqlite;
pub mod state;
mod step;
mod steps;
mod table;
pub mod unit_news;
mod url_list;
mod value;
mod view;

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::try_join_all;

pub use error::{FrontierError, FrontierErrorKind};
pub use members::Member;
pub use mutex_key::MutexKey;
pub use state::{
    Agreed, BatchCounts, EventEnd, GroupPaused, LastBeat, MOST_NOW, Pause, PausesOfAll, QueueFlow,
    SignOfLife, SiteSettings, TakenEvent, TuneReply, Tuning, WorkScope,
};
pub use step::{
    Act, Beaten, Begun, Claim, Feeding, Forgotten, Grant, LockReply, Lost, QueueChange, Rearm, Registered,
    Registration, Renamed, Run, SeedReply,
};
pub use view::{
    CampaignName, CampaignPhase, CampaignStatus, DatedAct, EventsStatus, Freshness, HeldSession, Inspection,
    KnownPause, KnownRobots, KnownWall, LatestPage, LetterPlace, Owner, QueuePlace, Queued, Says,
    SessionStatus, SessionStep, UnitStatus, UntoldEvent, UrlStatus, View, Whose,
};

use crate::canonical_url::{CanonicalUrl, Host};
use crate::clock::{Clock, millis};
use crate::manners::departure::LEAST_GRACE;
use crate::task::{
    DeadLetter, LeaseKey, Put, PutReply, Settled, Settlement, Stage, StoredPage, WallSighting,
};
use backend::{Backend, Modelled};
pub(crate) use redis::LONGEST_SLEEP;
use redis::{Shared, is_redis};
pub use redis::{redis_answers, without_password};
use sqlite::Embedded;
pub(crate) use table::UNTIL_A_CLAIM;
use table::{Haste, Reply, Step};

/// Tokens of leases, the last of a claim's as well, are below this: every store has room for 63 bits.
pub const TOKENS: u64 = i64::MAX as u64;

/// Views asked for at once: few, as a start that comes up meanwhile waits for them.
const VIEWS: usize = 32;

/// A frontier. Cheap to clone; clones are the same frontier.
#[derive(Clone, Debug)]
pub struct Frontier(Arc<dyn Backend>);

impl Frontier {
    /// Opens the frontier that a URL names: `sqlite:PATH`, `redis://host:port/db`, `rediss://…`, `unix:/path`,
    /// `redis+cluster://host:port,host:port`. A server is connected to by the first step.
    pub fn open(url: &str) -> Result<Self, FrontierError> {
        Self::open_if(url, false)
    }

    /// Opens a frontier that must be there already: where there is none, none is made.
    pub fn open_existing(url: &str) -> Result<Self, FrontierError> {
        Self::open_if(url, true)
    }

    fn open_if(url: &str, must_exist: bool) -> Result<Self, FrontierError> {
        let bad = |why: &str| FrontierErrorKind::BadUrl(why.to_owned());
        let refusal = match url.split_once(':') {
            Some(("sqlite", "")) => bad("no path after `sqlite:`"),
            Some(("sqlite", path)) if must_exist && !Path::new(path).is_file() => FrontierErrorKind::Missing,
            Some(("sqlite", path)) => return Self::sqlite(Path::new(path), None),
            _ if is_redis(url) => return Ok(Self(Arc::new(Shared::open(url, None, must_exist)?))),
            _ => bad(
                "name a frontier as sqlite:PATH, redis://host:port/db or redis+cluster://host:port,host:port",
            ),
        };
        Err(FrontierError::new(refusal, without_password(url)))
    }

    /// The embedded frontier in a file; a clock of one's own is for tests.
    pub fn sqlite(path: &Path, clock: Option<Clock>) -> Result<Self, FrontierError> {
        Ok(Self(Arc::new(Embedded::open(path, clock)?)))
    }

    /// The frontier on a Redis or a cluster of them; a clock of one's own is for tests.
    pub fn redis(url: &str, clock: Option<Clock>) -> Result<Self, FrontierError> {
        Ok(Self(Arc::new(Shared::open(url, clock, false)?)))
    }

    /// The pure model in memory: the specification that backends are compared with. It forgets with the process.
    pub fn model(clock: Clock) -> Self {
        Self(Arc::new(Modelled { model: Mutex::default(), clock }))
    }

    /// Calls sent to a server so far; none where there is no server.
    pub fn calls(&self) -> Option<u64> {
        self.0.calls()
    }

    /// Statements that the steps so far took on a file; none elsewhere.
    pub fn statements(&self) -> Option<u64> {
        self.0.effort().map(|effort| effort.statements)
    }

    /// Instructions of `SQLite`'s machine that they took; none elsewhere.
    pub fn instructions(&self) -> Option<u64> {
        self.0.effort().map(|effort| effort.instructions)
    }

    /// Steps that are asked for while this is held are done together: for tests of what a batch remembers between steps.
    pub fn hold(&self) -> Box<dyn Any> {
        self.0.hold()
    }

    /// The clock that this frontier goes by.
    pub fn clock(&self) -> Clock {
        self.0.clock()
    }

    /// The clock that a pace unit goes by: on a cluster that of its partition's server.
    pub fn clock_of(&self, unit: &MutexKey) -> Clock {
        self.0.clock_of(unit)
    }

    /// Whether what lies of a site is known to be away.
    pub(crate) fn is_away_for(&self, site: &str) -> bool {
        self.0.is_away_for(site)
    }

    /// How long before it a start is to be granted at the latest, in ms: answers from far away take longer than is usual.
    pub(crate) fn lead(&self) -> i64 {
        let doubt = millis(self.0.doubt());
        if doubt > millis(LEAST_GRACE) / 2 { 2 * doubt } else { 0 }
    }
}

/// What workers live by.
impl Frontier {
    /// Puts pages into a site's queue, in order. Each answer says what became of that page.
    pub async fn put(&self, site: &str, puts: Vec<Put>) -> Result<Vec<PutReply>, FrontierError> {
        self.put_waiting(site, puts, false).await
    }

    /// Puts a page whose parse is a dead letter into the parse queue again, from where it is kept. False: there is no such
    /// letter, or no page is kept.
    pub async fn parse_again(&self, site: &str, url: &CanonicalUrl) -> Result<bool, FrontierError> {
        ask!(self, ParseAgain { site: site.to_owned(), url: url.clone() })
    }

    /// Puts pages whose `recrawl` is over as requests into their sites' queues, at most `most` (and 1,000) of them, the
    /// longest due first. A site with 1,000 waiting downloads is passed over until it has room.
    pub async fn feed(&self, most: u32) -> Result<Feeding, FrontierError> {
        ask!(self, Feed { most })
    }

    /// Whether what is put now is taken in.
    ///
    /// # Errors
    /// The memory is full, or the frontier can't be asked.
    pub async fn has_room(&self) -> Result<(), FrontierError> {
        self.feed(0).await.map(drop)
    }

    /// Grants up to as many tasks as asked for, each due, each under a lease of 30 s.
    pub async fn claim(&self, claim: Claim) -> Result<Grant, FrontierError> {
        let mut grant = ask!(self, Claim { claim })?;
        grant.lost.sort();
        Ok(grant)
    }

    /// Whether `woken` tells when another process made something claimable; without that it must be asked often.
    pub fn has_wake_ups(&self) -> bool {
        self.0.is_remote()
    }

    /// Resolves when this member is to claim what another process made claimable: a hint, never a task.
    pub async fn woken(&self, member: &Member) {
        self.0.woken(&member.name).await;
    }

    /// Takes a new start for a permit that grew late.
    pub async fn rearm(&self, lease: &LeaseKey) -> Result<Rearm, FrontierError> {
        self.rearm_asking(lease, None, 0).await
    }

    /// The same, `lead` ms ahead at the least; one that was re-armed to be far away is `asked` about once more.
    pub async fn rearm_asking(
        &self,
        lease: &LeaseKey,
        asked: Option<i64>,
        lead: i64,
    ) -> Result<Rearm, FrontierError> {
        ask!(self, Rearm { lease: lease.clone(), asked, lead })
    }

    /// Says that the body ended: the request no longer counts against `parallel`. False: the lease is lost.
    pub async fn landed(&self, lease: LeaseKey) -> Result<bool, FrontierError> {
        ask!(self, Landed { lease, block: None, haste: Haste::Nobody })
    }

    /// Says that the body ended, and for how long and why the unit is to be left alone from now on. The block holds even
    /// where the lease is lost; a shorter one never shortens a longer one.
    pub async fn landed_with(
        &self,
        lease: LeaseKey,
        block: Option<(Duration, String)>,
    ) -> Result<bool, FrontierError> {
        let haste = if block.is_some() { Haste::Start } else { Haste::Nobody };
        ask!(self, Landed { lease, block, haste })
    }

    /// Says that the body ended, and that it refuses: nothing is asked there from now on but one probe at a time. That holds
    /// even where the lease is lost. False: it is.
    pub async fn refuse(&self, lease: LeaseKey, refusal: WallSighting) -> Result<bool, FrontierError> {
        ask!(self, Refuse { lease, refusal })
    }

    /// Says how a page was answered that was asked for without a lease: refused, or else by the site, which ends its walls.
    /// False: there is no such site.
    pub async fn probed(
        &self,
        site: &str,
        url: &CanonicalUrl,
        refusal: Option<WallSighting>,
    ) -> Result<bool, FrontierError> {
        ask!(self, Probed { site: site.to_owned(), url: url.to_string(), refusal })
    }

    /// Makes the next probe of a site due. False: no wall of it is known.
    pub async fn resume(&self, site: &str) -> Result<bool, FrontierError> {
        ask!(self, Resume { site: site.to_owned() })
    }

    /// Gives a task back whose start came too late, to its old place after 1 s; no attempt is counted.
    pub async fn back(&self, lease: LeaseKey) -> Result<bool, FrontierError> {
        ask!(self, Back { lease, unused: true })
    }

    /// Gives a task back that can't be brought to its end here, for a reason that isn't its own: to its old place after
    /// 1 s, neither an attempt nor a loss. Its start stands: the request may have been sent.
    pub async fn hand_back(&self, lease: LeaseKey) -> Result<bool, FrontierError> {
        ask!(self, Back { lease, unused: false })
    }

    /// Says that a site asks to be left alone for so long: no start of its unit before that is over. A shorter block never
    /// shortens a longer one. False: there is no such site.
    pub async fn block(&self, site: &str, wait: Duration, why: &str) -> Result<bool, FrontierError> {
        ask!(self, Block { site: site.to_owned(), wait, why: why.to_owned() })
    }

    /// Renews leases for 30 s; false for those that are lost.
    pub async fn extend(&self, leases: Vec<LeaseKey>) -> Result<Vec<bool>, FrontierError> {
        ask!(self, Extend { leases })
    }

    /// Says how tasks ended. Sent again with the same token it changes nothing and answers the same.
    pub async fn settle(
        &self,
        owner: &str,
        token: u64,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<Settled>, FrontierError> {
        self.settle_waiting(owner, token, settlements, false).await
    }

    /// What is known of an origin's `robots.txt`.
    pub async fn robots(&self, origin: &str) -> Result<Option<KnownRobots>, FrontierError> {
        ask!(self, Robots { origin: origin.to_owned() })
    }

    /// The site that a host belongs to.
    pub async fn site_of(&self, host: &Host) -> Result<Option<String>, FrontierError> {
        ask!(self, SiteOf { host: host.as_str().to_owned() })
    }

    /// Where the newest stored body of a page is kept.
    pub async fn stored(&self, site: &str, url: &CanonicalUrl) -> Result<Option<StoredPage>, FrontierError> {
        Ok(self.latest(site, url).await?.map(|latest| latest.stored))
    }

    /// The page as it was last kept.
    pub async fn latest(&self, site: &str, url: &CanonicalUrl) -> Result<Option<LatestPage>, FrontierError> {
        ask!(self, Stored { site: site.to_owned(), url: url.clone() })
    }

    pub(crate) fn no_site(&self, site: &str) -> FrontierError {
        FrontierError::new(FrontierErrorKind::NoSite(site.to_owned()), self.0.shown())
    }
}

/// What a person's verbs use.
impl Frontier {
    /// Puts a site's rules in force.
    pub async fn register(&self, registration: Registration) -> Result<Registered, FrontierError> {
        ask!(self, Register { new: registration })
    }

    /// Sets a value of a running site, in force for the very next claim. False: there is no such site, or it can't be set so.
    pub async fn tune(&self, site: &str, tuning: Tuning) -> Result<bool, FrontierError> {
        let set: Result<TuneReply, FrontierError> =
            ask!(self, Tune { site: site.to_owned(), tunings: vec![tuning], act: None });
        Ok(set? == TuneReply::Done)
    }

    /// The same, by somebody and for a reason that are kept with it: all of the values or, where one can't be, none.
    pub async fn tune_by(
        &self,
        act: Act,
        site: &str,
        tunings: Vec<Tuning>,
    ) -> Result<TuneReply, FrontierError> {
        ask!(self, Tune { site: site.to_owned(), tunings, act: Some(act) })
    }

    /// Keeps what was done to a site, or under no name what concerns none that is there. False: there is no such site.
    pub async fn note(&self, site: &str, act: Act) -> Result<bool, FrontierError> {
        ask!(self, Note { site: site.to_owned(), act })
    }

    /// What people did to a site, the latest first: 1,000 acts and 400 days at most.
    pub async fn acts(&self, site: &str) -> Result<Vec<DatedAct>, FrontierError> {
        ask!(self, Acts { site: site.to_owned() })
    }

    /// The names of all sites, in order. They are read in portions, each at a moment of its own.
    pub async fn sites(&self) -> Result<Vec<String>, FrontierError> {
        let (mut names, mut from) = (BTreeSet::new(), Some(String::new()));
        while let Some(place) = from {
            let portion = ask!(self, Sites { from: place })?;
            names.extend(portion.names);
            from = portion.next;
        }
        Ok(names.into_iter().collect())
    }

    /// How a site stands; none if there is no such site.
    pub async fn view(&self, site: &str) -> Result<Option<View>, FrontierError> {
        Ok(ask!(self, View { site: site.to_owned() })?.map(|view| *view))
    }

    /// How these sites stand, in their order; those that are not there are left out. Each is read at a moment of its own,
    /// but several travel together.
    pub async fn views(&self, sites: &[String]) -> Result<Vec<View>, FrontierError> {
        let mut views = Vec::with_capacity(sites.len());
        for portion in sites.chunks(VIEWS) {
            let read = try_join_all(portion.iter().map(|site| self.view(site))).await?;
            views.extend(read.into_iter().flatten());
        }
        Ok(views)
    }

    /// The text of a site's file as registered.
    pub async fn text(&self, site: &str) -> Result<Option<String>, FrontierError> {
        ask!(self, Text { site: site.to_owned() })
    }

    /// How many pages of a site are younger than their `recrawl`, and how old the oldest is.
    pub async fn freshness(&self, site: &str) -> Result<Freshness, FrontierError> {
        ask!(self, Freshness { site: site.to_owned() })
    }

    /// Where a URL stands in a site: its tasks, dead letters, page.
    pub async fn whereabouts(&self, site: &str, url: &CanonicalUrl) -> Result<UrlStatus, FrontierError> {
        Ok(*ask!(self, UrlStatus { site: site.to_owned(), url: url.clone() })?)
    }

    /// Forgets a site that has no tasks and no dead letters, a bounded number of pages a step; how far that is.
    pub async fn forget(&self, site: &str) -> Result<Forgotten, FrontierError> {
        ask!(self, Forget { site: site.to_owned() })
    }

    /// Gives a site that nobody works on another name; all it has stays, its pace too.
    pub async fn rename(&self, site: &str, to: &str) -> Result<Renamed, FrontierError> {
        loop {
            match self.rename_step(site, to).await? {
                Renamed::Partly => {}
                renamed => return Ok(renamed),
            }
        }
    }

    /// One step of it.
    pub async fn rename_step(&self, site: &str, to: &str) -> Result<Renamed, FrontierError> {
        ask!(self, Rename { site: site.to_owned(), to: to.to_owned() })
    }

    /// A site's first dead letters, oldest first.
    pub async fn dead_letters(&self, site: &str, most: u64) -> Result<Vec<DeadLetter>, FrontierError> {
        self.dead_letters_after(site, None, most).await
    }

    /// A site's next dead letters after that one, which may be gone meanwhile; oldest first.
    pub async fn dead_letters_after(
        &self,
        site: &str,
        after: Option<LetterPlace>,
        most: u64,
    ) -> Result<Vec<DeadLetter>, FrontierError> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        ask!(self, DeadLetters { site: site.to_owned(), most, after })
    }

    /// Removes dead letters for good; which of them were there.
    pub async fn drop_letters(
        &self,
        site: &str,
        letters: Vec<(Stage, CanonicalUrl)>,
    ) -> Result<Vec<bool>, FrontierError> {
        ask!(self, DropLetters { site: site.to_owned(), letters })
    }

    /// Everything in it: for tests of small frontiers.
    pub async fn inspect(&self) -> Result<Inspection, FrontierError> {
        Ok(*ask!(self, Inspect {})?)
    }
}

/// The timed mutex's steps; `mutex::TimedMutex` is the type to use.
impl Frontier {
    /// Takes a mutex for `expire` ms if it is free.
    pub async fn try_lock(
        &self,
        key: &MutexKey,
        token: &str,
        expire: i64,
    ) -> Result<LockReply, FrontierError> {
        self.try_lock_ahead(key, token, expire, 0).await
    }

    /// The same, from `lead` ms on.
    pub async fn try_lock_ahead(
        &self,
        key: &MutexKey,
        token: &str,
        expire: i64,
        lead: i64,
    ) -> Result<LockReply, FrontierError> {
        ask!(self, TryLock { mutex: key.clone(), token: token.to_owned(), expire, lead })
    }

    /// Releases without waiting for the answer: for a guard that is dropped.
    pub(crate) fn post_unlock(&self, key: &MutexKey, token: &str) {
        let step = Step::Unlock { mutex: key.clone(), token: token.to_owned() };
        self.0.post(step);
    }

    /// Releases a mutex that the token holds; false: it doesn't.
    pub async fn unlock(&self, key: &MutexKey, token: &str) -> Result<bool, FrontierError> {
        ask!(self, Unlock { mutex: key.clone(), token: token.to_owned() })
    }

    /// Moves the end of a mutex that the token holds to `expire` ms from now; false: it doesn't hold it.
    pub async fn extend_lock(&self, key: &MutexKey, token: &str, expire: i64) -> Result<bool, FrontierError> {
        ask!(self, ExtendLock { mutex: key.clone(), token: token.to_owned(), expire })
    }

    pub(crate) async fn holds_lock(&self, key: &MutexKey, token: &str) -> Result<bool, FrontierError> {
        ask!(self, HoldsLock { mutex: key.clone(), token: token.to_owned() })
    }

    /// How long a mutex is still held, by whomever, in ms.
    pub async fn lock_left(&self, key: &MutexKey) -> Result<Option<i64>, FrontierError> {
        ask!(self, LockLeft { mutex: key.clone() })
    }
}
