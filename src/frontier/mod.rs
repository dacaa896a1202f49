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
mod locks;
mod members;
mod model;
mod mutex_key;
mod pauses;
pub mod permit;
mod redis;
mod runs;
mod shelf;
mod sites;
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
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
use crate::task::{LeaseKey, Put, PutReply, Settled, Settlement, StoredPage, WallSighting};
use backend::{Backend, Modelled};
pub(crate) use redis::LONGEST_SLEEP;
use redis::{Shared, is_redis};
pub use redis::{redis_answers, without_password};
use sqlite::Embedded;
pub(crate) use table::UNTIL_A_CLAIM;
use table::{Haste, Reply, Step};

/// Tokens of leases, the last of a claim's as well, are below this: every store has room for 63 bits.
pub const TOKENS: u64 = i64::MAX as u64;

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

    /// Whether `woken` tells as well when another process made something claimable; without that it must be asked often.
    pub fn has_wake_ups(&self) -> bool {
        self.0.is_remote()
    }

    /// Resolves when this member is to claim what was made claimable meanwhile: a hint, never a task.
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
