//! What steps are asked and what they answer, where it isn't a simple value. The steps themselves: `table.rs`.

use serde::{Deserialize, Serialize};

use super::state::SiteSettings;
use crate::canonical_url::CanonicalUrl;
use crate::task::{Departure, Lease, Priority, Stage};

/// A site as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The site's name.
    pub name: String,
    /// The file's text, for processes that haven't the file.
    pub text: String,
    /// Its group, and the group's own interval in ms.
    pub group: Option<(String, i64)>,
    /// Its hosts: each belongs to one site.
    pub hosts: Vec<String>,
    /// The values that the frontier works by.
    pub settings: SiteSettings,
}

/// What became of a registration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Registered {
    /// The rules are in force, under this version.
    Version(i64),
    /// They are not; the reason names what to do.
    Refused(String),
}

/// A pass over a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number, from 1.
    pub number: i64,
    /// It began now; else it goes on where it was.
    pub begun: bool,
    /// Another list of seeds took the place of those that were being put, or the run was given up meanwhile.
    pub is_replaced: bool,
}

impl Run {
    /// The run of that number, whose seeds are not another list's.
    pub fn of(number: i64, begun: bool) -> Self {
        Self { number, begun, is_replaced: false }
    }
}

/// A run, and what is still to be done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The run.
    pub run: Run,
    /// The first seed of the list that isn't put yet.
    pub next: Option<u32>,
    /// The run is being given up: that goes on first, then a fresh one begins.
    pub is_given_up: bool,
}

/// How far a list of seeds is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedReply {
    /// This one is the next.
    Next(u32),
    /// All of them are.
    Done,
    /// It is the run's list no more: another one took its place, or the run was given up.
    Another,
}

/// What a claim asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The process that asks. What it works on was said when it joined.
    pub owner: String,
    /// The first lease's token; the i-th gets `token + i`. Asked again with the same one, the grant is the same.
    pub token: u64,
    /// Downloads wanted.
    pub download: u32,
    /// Parses wanted.
    pub parse: u32,
    /// Random numbers for the choice among due units.
    pub dice: Vec<u32>,
    /// How long before it a start is to be granted at the latest, in ms, where answers take longer than is usual.
    pub lead: i64,
}

impl Claim {
    /// The stages of which something is wanted, and how much.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (Stage, u32)> {
        [(Stage::Download, self.download), (Stage::Parse, self.parse)]
            .into_iter()
            .filter(|(_, wanted)| *wanted > 0)
    }
}

/// What a claim gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The tasks, each under a lease.
    pub leases: Vec<Lease>,
    /// The time until the claimer is to come again, in ms; none: only another event helps. That is when something more can be
    /// claimed if nothing else happens, or later where others who sleep come for it (L1).
    pub next_in: Option<i64>,
    /// The process that asked was declared dead, or never joined: it gets nothing under this name. One that lives joins anew.
    pub buried: bool,
    /// The leases that this claim found lost, by site and URL.
    pub lost: Vec<Lost>,
}

/// A lease that was over before its task was settled: its worker is gone, or was silent for too long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The task's site.
    pub site: String,
    /// The task's URL.
    pub url: CanonicalUrl,
    /// Download or parse.
    pub stage: Stage,
    /// How often it was lost, this time included.
    pub losses: u32,
    /// How long the task is kept back, in ms; none where it is given up, as its worker died each time.
    pub kept_back: Option<i64>,
}

/// What a process is answered that says it is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beaten {
    /// How many processes share the downloads of all sites: those that said so and are taken for alive; 0 for one that works on
    /// some sites alone.
    pub sharers: u32,
    /// It is to claim nothing more and to end.
    pub drained: bool,
}

/// What a feed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feeding {
    /// Pages that were put.
    pub put: u64,
    /// The time until the next page is due, in ms: 0 where a bounded step left some over, none where no page is. Pages of
    /// a site that has no room don't count.
    pub next_in: Option<i64>,
}

/// What became of asking for a new start for a permit that grew late.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rearm {
    /// Send then.
    Departs(Departure),
    /// Somebody else holds the mutex for so many ms: ask again then.
    Held(i64),
    /// The site is paused or blocked: the task went back.
    WentBack,
    /// The lease is lost.
    Stale,
}

/// What a person did, as the log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Who.
    pub who: String,
    /// What, as in `tune interval=2s`.
    pub did: String,
    /// Why.
    pub why: String,
}

/// What is to become of waiting tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// They go, as if they had never been asked for.
    Drop,
    /// Those that are so urgent get another priority.
    Priority {
        /// As they are.
        from: Priority,
        /// As they are to be.
        to: Priority,
    },
    /// Those of a lane go to another one.
    Lane {
        /// Where they wait.
        from: String,
        /// Where they are to wait.
        to: String,
    },
}

/// What became of asking for a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockReply {
    /// It is the asker's, from this moment on, in ms since 1970 by the frontier's clock: a few ms ahead where so asked for.
    Taken(i64),
    /// It is somebody else's for so many ms more.
    Held(i64),
}

/// How far the forgetting of a site is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgotten {
    /// There is no such site.
    Unknown,
    /// It is being renamed: why that is to be finished first.
    Refused(String),
    /// It still has tasks or dead letters: so many, of which so many are in a worker's hands.
    Busy {
        /// All of them.
        tasks: u64,
        /// Those under a lease.
        leased: u64,
    },
    /// Its last start is less than an interval ago, or it is blocked: that is not to be forgotten.
    NotYet {
        /// For so long, in ms.
        wait: i64,
    },
    /// Some of what is known of its pages is left.
    Partly,
    /// It is gone. Its last start stays, so that nobody asks its hosts early.
    Wholly,
}

/// What became of the renaming of a site.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Renamed {
    /// There is no such site.
    Unknown,
    /// There is a site of the new name.
    Taken,
    /// One of the two names is that of another renaming: why that is to be finished first.
    Refused(String),
    /// Tasks are in workers' hands.
    Busy {
        /// So many.
        leased: u64,
    },
    /// The new name would lie in another partition of the cluster.
    Elsewhere,
    /// Some of what there are many of is left to be renamed.
    Partly,
    /// It has the new name.
    Done,
}

/// What became of asking for the name of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignBooked {
    /// It is taken, under this number.
    Number(i64),
    /// A campaign of another site has it.
    Taken(String),
    /// As many campaigns are kept as may be.
    Full,
}

/// What became of asking for a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignMade {
    /// This chunk of its list is the next.
    Next(u32),
    /// One of that name is under way.
    Running,
    /// Some of the list of an earlier one is left to be removed.
    Partly,
    /// There is no such site.
    NoSite,
}

/// What became of putting some of a campaign's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CampaignFed {
    /// Pages that were put now.
    pub put: u32,
    /// The next URL of its list.
    pub next: u32,
    /// How many more may be put now.
    pub room: u32,
}

/// What became of setting something of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignTuned {
    /// It is so from now on.
    Done,
    /// It has ended, or was stopped.
    Over,
    /// There is no such campaign, or its list isn't whole.
    Unknown,
}

/// How far what nobody needs of a campaign is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignCleared {
    /// Nothing is to be removed.
    Kept,
    /// Some of its list is left.
    Partly,
    /// It is gone.
    Gone,
}
