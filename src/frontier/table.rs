//! The table of steps: a row each says what it takes, what it answers, what the server's script calls it, where on a cluster it
//! goes, and whether somebody waits for it. What a step does is in `steps/`; how one is added, in `README.md`.

use std::time::Duration;

use serde_json::{Value, json};

use super::mutex_key::MutexKey;
use super::state::{
    Agreed, BatchCounts, CampaignTuning, DropMark, DroppedOf, EventEnd, GroupPaused, Pause, PausesOfAll,
    QueueFlow, SignOfLife, TakenEvent, TuneReply, TunedTenants, Tuning, WorkScope,
};
use super::step::{
    Act, Beaten, Begun, CampaignBooked, CampaignCleared, CampaignFed, CampaignMade, CampaignTuned, Claim,
    Feeding, Forgotten, Grant, LockReply, QueueChange, Rearm, Registered, Registration, Renamed, SeedReply,
};
use super::url_list::{ListKey, UrlChunk};
use super::value::{Decoded, FromWire, ToWire};
use super::view::{
    CampaignName, CampaignStatus, DatedAct, EventsStatus, Freshness, Inspection, KnownRobots, LatestPage,
    LetterPlace, Owner, QueuePlace, Queued, SessionStatus, SiteNames, UrlStatus, View,
};
use crate::canonical_url::CanonicalUrl;
use crate::task::{
    CampaignPlan, DeadLetter, Event, EventKind, FleetRules, LaneRule, LeaseKey, Put, PutReply, Settled,
    Settlement, Stage, WallSighting,
};

/// The partition of a cluster that a step is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'a> {
    /// That of a site.
    Site(&'a str),
    /// That of a pace unit.
    Unit(&'a str),
    /// That of a mutex.
    Mutex(&'a MutexKey),
    /// That of the site that has this origin's host.
    Origin(&'a str),
    /// The first one, where the directory of sites and hosts is.
    Directory,
    /// Several: `redis/partitions.rs` takes it apart.
    Several,
}

/// Who is kept waiting by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// A request's start: the permit that it answers with ages until it is told. Or starts are not to be granted any more,
    /// which no claim may overtake.
    Start,
    /// Its asker.
    Asker,
    /// Somebody who looks on: on its way to a server it may wait for company.
    Onlooker,
    /// Nobody, for a few ms.
    Nobody,
    /// Nobody: it travels with the next claim, or goes after [`UNTIL_A_CLAIM`].
    Claim,
}

/// How long what a worker brings may wait for a claim to travel with.
pub(crate) const UNTIL_A_CLAIM: Duration = Duration::from_millis(100);

/// What a row is long by, in bytes.
const ROW: usize = 512;
/// Rows of a step that does a portion of something big, at the most.
const PORTION: usize = 1_000;

impl Haste {
    /// That of what a worker brings.
    pub(crate) fn of(may_wait: bool) -> Self {
        if may_wait { Self::Claim } else { Self::Nobody }
    }
}

macro_rules! steps {
    ($($name:ident { $($field:ident: $type:ty),* } -> $answer:ty, $called:literal, $at:expr, $haste:expr;)*) => {
        /// One step.
        #[derive(Clone, Debug)]
        pub(crate) enum Step { $($name { $($field: $type),* }),* }

        /// What a step answers, by the case of the same name.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Reply { $($name($answer)),* }

        impl Reply {
            /// What a server's answer would be to each step there is.
            pub(crate) fn of_each_step(answer: &Value) -> Vec<Decoded<Self>> {
                vec![$(FromWire::read(answer).map(Self::$name)),*]
            }
        }

        impl Step {
            /// The function that does it on a server. Those of `view` change nothing.
            pub(crate) fn called(&self) -> &'static str {
                match self { $(Self::$name { .. } => $called),* }
            }

            /// The partition that it is for.
            pub(crate) fn at(&self) -> At<'_> {
                match self { $(Self::$name { $($field),* } => { $(let _ = $field;)* $at })* }
            }

            /// Who is kept waiting by it.
            pub(crate) fn haste(&self) -> Haste {
                match self { $(Self::$name { $($field),* } => { $(let _ = $field;)* $haste })* }
            }

            /// The step as a server is sent it: an array with the function first.
            pub(crate) fn to_wire(&self) -> Value {
                let mut row = vec![json!(self.called())];
                match self { $(Self::$name { $($field),* } => { $($field.put(&mut row);)* })* }
                Value::Array(row)
            }

            /// What a server answered.
            pub(crate) fn read(&self, answer: &Value) -> Decoded<Reply> {
                match self { $(Self::$name { .. } => FromWire::read(answer).map(Reply::$name)),* }
            }
        }
    };
}

use At::{Directory, Mutex, Origin, Several, Site, Unit};
use Haste::{Asker, Onlooker, Start};

steps! {
    Register { new: Registration } -> Registered, "sites.register", Several, Asker;
    BeginRun { site: String, fresh: Option<i64>, list: u64, seeds: u32 } -> Begun, "sites.begin_run", Site(site), Asker;
    Seed { site: String, list: u64, from: u32, puts: Vec<Put> } -> SeedReply, "sites.seed", Site(site), Asker;
    GiveUp { site: String, run: Option<i64>, goes_on: bool } -> bool, "sites.give_up", Site(site), Asker;
    Sweep { site: String } -> bool, "sites.sweep", Site(site), Asker;
    Forget { site: String } -> Forgotten, "sites.forget", Several, Asker;
    Unbook { site: String } -> (), "directory.unbook", Directory, Asker;
    Rename { site: String, to: String } -> Renamed, "rename.step", Several, Asker;
    Rebook { site: String, to: String } -> (), "directory.rebook", Directory, Asker;
    EndRename { site: String, to: String } -> (), "rename.finish", Several, Asker;
    Tune { site: String, tunings: Vec<Tuning>, act: Option<Act> } -> TuneReply, "sites.tune", Site(site), Asker;
    TuneGroup { group: String, interval: Option<i64> } -> TuneReply, "sites.tune_group", Unit(group), Asker;
    TuneTenant { tenant: String, rules: Option<Vec<LaneRule>> } -> Option<TunedTenants>, "gate.tune_tenant", Directory, Asker;
    TellTuned { tuned: TunedTenants } -> (), "gate.tell_tuned", Several, Asker;
    TunedTenants {} -> TunedTenants, "view.tuned_tenants", Directory, Asker;
    PauseGroup { group: String, stage: Stage, pause: Option<Pause> } -> GroupPaused, "pauses.of_group", Unit(group), Asker;
    PauseAll { stage: Stage, pause: Option<Pause> } -> (bool, PausesOfAll), "pauses.of_all", Directory, Asker;
    TellPaused { of_all: PausesOfAll, after: String } -> Option<String>, "pauses.tell", Several, Asker;
    ListByLane { after: String } -> Option<String>, "lanes.list", Several, Asker;
    DropRequests { of: DroppedOf } -> (), "pauses.drop", Directory, Asker;
    Drops {} -> Vec<DropMark>, "view.drops", Directory, Asker;
    Note { site: String, act: Act } -> bool, "acts.note", of_acts(site), Asker;
    Block { site: String, wait: Duration, why: String } -> bool, "sites.block", Site(site), Start;

    Put { site: String, puts: Vec<Put>, elsewhere: i64, haste: Haste } -> Option<Vec<PutReply>>, "put.step", Site(site),
        *haste;
    ParseAgain { site: String, url: CanonicalUrl } -> bool, "put.parse_again", Site(site), Asker;
    Feed { most: u32 } -> Feeding, "feed.step", Several, Asker;

    Campaigns {} -> Vec<CampaignName>, "view.campaigns", Directory, Asker;
    BookCampaign { name: String, site: String } -> CampaignBooked, "campaigns.book", Directory, Asker;
    UnbookCampaign { name: String, number: i64 } -> bool, "campaigns.unbook", Directory, Asker;
    MakeCampaign { site: String, name: String, list: ListKey, plan: CampaignPlan } -> CampaignMade, "campaigns.make",
        Site(site), Asker;
    AddChunk { site: String, name: String, mark: String, number: u32, chunk: UrlChunk } -> bool, "campaigns.add_chunk",
        Site(site), Asker;
    BeginCampaign { site: String, name: String, mark: String, act: Act } -> bool, "campaigns.begin", Site(site), Asker;
    FeedCampaign { site: String, name: String, mark: String, from: u32, puts: Vec<Put>, elsewhere: i64 }
        -> Option<CampaignFed>, "campaigns.feed", Site(site), Asker;
    TuneCampaign { site: String, name: String, tunings: Vec<CampaignTuning>, act: Option<Act> } -> CampaignTuned,
        "campaigns.tune", Site(site), Asker;
    DropOfCampaign { site: String, name: String, urls: Vec<CanonicalUrl> } -> Option<u32>, "campaigns.drop", Site(site),
        Asker;
    ClearCampaign { site: String, name: String, wanted: bool } -> CampaignCleared, "campaigns.clear", Site(site), Asker;
    Campaign { site: String, name: String } -> Option<Box<CampaignStatus>>, "view.campaign", Site(site), Asker;
    CampaignChunk { site: String, name: String, number: u32 } -> Option<UrlChunk>, "view.campaign_chunk", Site(site),
        Asker;

    Claim { claim: Claim } -> Grant, "claim.step", Several, Start;
    Rearm { lease: LeaseKey, asked: Option<i64>, lead: i64 } -> Rearm, "lease.rearm", Site(&lease.site), Start;
    Landed { lease: LeaseKey, block: Option<(Duration, String)>, haste: Haste } -> bool, "lease.landed",
        Site(&lease.site), *haste;
    Refuse { lease: LeaseKey, refusal: WallSighting } -> bool, "walls.refuse", Site(&lease.site), Start;
    Probed { site: String, url: String, refusal: Option<WallSighting> } -> bool, "walls.probed", Site(site), Start;
    Resume { site: String } -> bool, "walls.resume", Site(site), Asker;
    Back { lease: LeaseKey, unused: bool } -> bool, "lease.back", Site(&lease.site), Asker;
    Extend { leases: Vec<LeaseKey> } -> Vec<bool>, "lease.extend", Several, Asker;
    Settle { owner: String, token: u64, settlements: Vec<Settlement>, haste: Haste } -> Vec<Settled>, "settle.step",
        Several, *haste;

    Enlist { owner: String, pid: u32, scope: Option<WorkScope>, downloads: bool, tells: Option<SignOfLife> } -> Beaten,
        "owners.enlist", Several, Asker;
    Drain { owner: String } -> bool, "owners.drain", Directory, Asker;
    Bury { owner: String } -> bool, "owners.declare_dead", Several, Asker;
    Owners {} -> Vec<Owner>, "view.owners", Directory, Asker;

    TryLock { mutex: MutexKey, token: String, expire: i64, lead: i64 } -> LockReply, "lock.try", Mutex(mutex), Start;
    Unlock { mutex: MutexKey, token: String } -> bool, "lock.unlock", Mutex(mutex), Start;
    ExtendLock { mutex: MutexKey, token: String, expire: i64 } -> bool, "lock.extend", Mutex(mutex), Asker;
    HoldsLock { mutex: MutexKey, token: String } -> bool, "view.holds_lock", Mutex(mutex), Asker;
    LockLeft { mutex: MutexKey } -> Option<i64>, "view.lock_left", Mutex(mutex), Asker;

    Sites { from: String } -> SiteNames, "view.sites", Directory, Asker;
    View { site: String } -> Option<Box<View>>, "view.site", Site(site), Onlooker;
    Text { site: String } -> Option<String>, "view.text", Site(site), Asker;
    SiteOf { host: String } -> Option<String>, "view.site_of", Directory, Asker;
    Robots { origin: String } -> Option<KnownRobots>, "view.robots", Origin(origin), Asker;
    Stored { site: String, url: CanonicalUrl } -> Option<LatestPage>, "view.stored", Site(site), Asker;
    UrlStatus { site: String, url: CanonicalUrl } -> Box<UrlStatus>, "view.whereabouts", Site(site), Asker;
    Flow { site: String } -> Option<Box<QueueFlow>>, "view.flow", Site(site), Onlooker;
    Freshness { site: String } -> Freshness, "view.freshness", Site(site), Onlooker;
    DeadLetters { site: String, most: u32, after: Option<LetterPlace> } -> Vec<DeadLetter>, "view.dead_letters",
        Site(site), Asker;
    DropLetters { site: String, letters: Vec<(Stage, CanonicalUrl)> } -> Vec<bool>, "letters.drop", Site(site), Asker;
    Agree { rules: FleetRules, mark: u64, by_directory: bool } -> Agreed, "gate.agree", Several, Asker;
    IdleInAll {} -> u64, "view.idle_in_all", Several, Onlooker;
    Fleet {} -> Box<FleetRules>, "view.fleet", Directory, Asker;
    Queue { site: String, lane: String, after: Option<QueuePlace>, most: u32 } -> Option<Vec<Queued>>, "view.queue",
        Site(site), Asker;
    Requeue { site: String, urls: Vec<CanonicalUrl>, change: QueueChange } -> Option<u32>, "queue.change",
        Site(site), Asker;
    DropSteps { site: String, session: String } -> u32, "sessions.drop_steps", Site(site), Asker;
    Session { site: String, name: String } -> Option<Box<SessionStatus>>, "view.session", Site(site), Asker;
    Batch { site: String, name: String } -> Option<Box<BatchCounts>>, "view.batch", Site(site), Asker;
    Acts { site: String } -> Vec<DatedAct>, "view.acts", of_acts(site), Asker;
    PostEvent { event: Event } -> bool, "events.post", Directory, Asker;
    TakeEvent { kinds: Vec<EventKind>, token: u64 } -> Option<TakenEvent>, "events.take", Directory, Asker;
    EndEvent { kind: EventKind, site: String, token: u64, failed: Option<String> } -> EventEnd, "events.finish",
        Directory, Asker;
    Events {} -> EventsStatus, "view.events", Directory, Onlooker;
    Inspect {} -> Box<Inspection>, "view.inspect", Several, Asker;
}

/// Where it is kept what people did: with the site or, where that is gone, with the directory.
fn of_acts(site: &str) -> At<'_> {
    if site.is_empty() { Directory } else { Site(site) }
}

impl Step {
    /// Whether the step changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.called().starts_with("view.")
    }

    /// Whether something may be claimed after it that couldn't be before.
    pub(crate) fn may_bring(&self) -> bool {
        let brings_nothing = matches!(
            self,
            Self::Claim { .. }
                | Self::Enlist { scope: None, .. }
                | Self::Extend { .. }
                | Self::TryLock { .. }
                | Self::ExtendLock { .. }
                | Self::PostEvent { .. }
                | Self::TakeEvent { .. }
                | Self::EndEvent { .. }
        );
        !self.only_reads() && !brings_nothing
    }

    /// Whether a request's start waits for it.
    pub(crate) fn is_urgent(&self) -> bool {
        self.haste() == Start
    }

    /// What it takes, in rows that it writes; where these are long, in so many bytes each.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Put { puts, .. } | Self::Seed { puts, .. } | Self::FeedCampaign { puts, .. } => {
                puts.iter().map(|put| 1 + put.url.as_str().len() / ROW).sum()
            }
            Self::Settle { settlements, .. } => settlements.len(),
            Self::Extend { leases } => leases.len(),
            Self::DropLetters { letters, .. } => letters.len(),
            Self::Requeue { urls, .. } | Self::DropOfCampaign { urls, .. } => urls.len(),
            Self::AddChunk { chunk, .. } => 1 + chunk.packed().len() / ROW,
            Self::Queue { most, .. } | Self::Feed { most } => {
                usize::try_from(*most).unwrap_or(PORTION).min(PORTION)
            }
            Self::GiveUp { .. }
            | Self::Sweep { .. }
            | Self::Forget { .. }
            | Self::DropSteps { .. }
            | Self::ClearCampaign { .. }
            | Self::ListByLane { .. }
            | Self::TellPaused { .. } => PORTION,
            _ => 1,
        }
    }

    /// Whether nobody is kept from anything while the step waits for a few ms.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self.haste(), Haste::Nobody | Haste::Claim)
    }
}
