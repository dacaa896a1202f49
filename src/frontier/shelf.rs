//! What a store must offer for the steps to run on it: places to put records, and indexes in a stated order.
//! The steps are written once over this seam; the plain maps of the model and the tables of `SQLite` stand behind it.

use std::sync::Arc;

use super::mutex_key::MutexKey;
use super::state::{
    AwayHost, BatchCounts, CampaignState, DeadState, EventState, FleetState, LastBeat, MutexState,
    OwnerState, PageState, QueueBooks, Recrawl, RobotsBrief, RobotsState, SessionState, SiteState, Task,
    Turn, UnitDue, UnitState, WaitKey, WorkScope,
};
use super::url_list::UrlChunk;
use super::view::{CampaignName, DatedAct, Freshness, Inspection, LetterPlace};
use crate::task::{DeadLetter, EventKind, PageKey, Priority, Stage};

/// A store that may fail.
pub(crate) trait Fallible {
    type Error;
}

/// A store inside one atomic step. Every answer is ordered, so that all stores make the same choices.
pub(crate) trait Shelf:
    DueShelf
    + TaskShelf
    + HostShelf
    + PageShelf
    + LaneShelf
    + SessionShelf
    + BatchShelf
    + FlowShelf
    + CampaignShelf
    + EventShelf
{
    fn site(&mut self, name: &str) -> Result<Option<SiteState>, Self::Error>;
    /// Saves a site and keeps its entries among the ready ones true.
    fn save_site(&mut self, site: &SiteState) -> Result<(), Self::Error>;
    /// Downloads of all sites that nobody works on, as [`StageCounts::idle`](super::state::StageCounts::idle) counts those of one.
    fn idle_in_all(&mut self) -> Result<u64, Self::Error>;
    /// Removes a site that has nothing left but its record.
    fn remove_site(&mut self, name: &str) -> Result<(), Self::Error>;
    /// All that is kept under a site's name, and its hosts, is kept under another; its record is saved afterwards.
    fn rename_site(&mut self, name: &str, to: &str) -> Result<(), Self::Error>;
    /// The next names after that one, in order.
    fn site_names(&mut self, after: &str, most: u32) -> Result<Vec<String>, Self::Error>;
    fn site_text(&mut self, name: &str) -> Result<Option<String>, Self::Error>;
    fn save_site_text(&mut self, name: &str, text: &str) -> Result<(), Self::Error>;

    fn unit(&mut self, name: &str) -> Result<Option<UnitState>, Self::Error>;
    /// Saves a unit and when it is due.
    fn save_unit(&mut self, unit: &UnitState, due: UnitDue) -> Result<(), Self::Error>;
    /// The longest interval that the files of a unit's sites name, in ms; 0 without any.
    fn longest_interval(&mut self, unit: &str) -> Result<i64, Self::Error>;

    /// Whether any site is of that unit.
    fn has_sites(&mut self, unit: &str) -> Result<bool, Self::Error>;
    /// Notes until when what a unit without sites waits for is kept; none: it isn't idle.
    fn set_idle(&mut self, unit: &str, until: Option<i64>) -> Result<(), Self::Error>;
    /// Units that were noted as idle until `now` or earlier, the earliest first, then by name.
    fn idle_units(&mut self, now: i64, most: u32) -> Result<Vec<String>, Self::Error>;
    /// Removes a unit that has no sites.
    fn remove_unit(&mut self, unit: &str) -> Result<(), Self::Error>;

    fn is_known(&mut self, page: PageKey<'_>, run: i64) -> Result<bool, Self::Error>;
    fn add_known(&mut self, page: PageKey<'_>, run: i64) -> Result<(), Self::Error>;
    /// Forgets pages known in runs before `run`; whether some are left.
    fn sweep_known(&mut self, site: &str, run: i64, most: u32) -> Result<bool, Self::Error>;

    fn dead(&mut self, page: PageKey<'_>, stage: Stage) -> Result<Option<DeadState>, Self::Error>;
    fn save_dead(&mut self, page: PageKey<'_>, stage: Stage, dead: &DeadState) -> Result<(), Self::Error>;
    fn remove_dead(&mut self, page: PageKey<'_>, stage: Stage) -> Result<(), Self::Error>;
    /// A site's letters, by time of death, then stage and URL.
    fn letters(
        &mut self,
        site: &str,
        after: Option<&LetterPlace>,
        most: u32,
    ) -> Result<Vec<DeadLetter>, Self::Error>;

    fn robots(&mut self, origin: &str) -> Result<Option<RobotsState>, Self::Error>;
    /// The same without the rules' text, which can be long.
    fn robots_brief(&mut self, origin: &str) -> Result<Option<RobotsBrief>, Self::Error> {
        Ok(self.robots(origin)?.map(|robots| robots.brief()))
    }
    fn save_robots(&mut self, origin: &str, robots: &RobotsState) -> Result<(), Self::Error>;
    fn remove_robots(&mut self, origin: &str) -> Result<(), Self::Error>;

    /// The first sites that name a host, in the order in which they did: it belongs to the first of all.
    fn sites_of(&mut self, host: &str, most: u32) -> Result<Vec<String>, Self::Error>;
    /// Adds a site to those that name a host, unless it is among them.
    fn save_host(&mut self, host: &str, site: &str) -> Result<(), Self::Error>;
    fn remove_host(&mut self, host: &str, site: &str) -> Result<(), Self::Error>;
    fn hosts_of(&mut self, site: &str) -> Result<Vec<String>, Self::Error>;
    fn has_host(&mut self, site: &str, host: &str) -> Result<bool, Self::Error>;

    fn mutex(&mut self, key: &MutexKey) -> Result<Option<MutexState>, Self::Error>;
    fn save_mutex(&mut self, key: &MutexKey, mutex: &MutexState) -> Result<(), Self::Error>;
    fn remove_mutex(&mut self, key: &MutexKey) -> Result<(), Self::Error>;
    /// Forgets locks with a name that ended by `now`, at most so many.
    fn sweep_mutexes(&mut self, now: i64, most: u32) -> Result<(), Self::Error>;

    fn owner(&mut self, name: &str) -> Result<Option<OwnerState>, Self::Error>;
    fn save_owner(&mut self, name: &str, owner: &OwnerState) -> Result<(), Self::Error>;
    fn owners(&mut self) -> Result<Vec<(String, OwnerState)>, Self::Error>;
    /// What an owner told last.
    fn last_beat(&mut self, owner: &str) -> Result<Option<LastBeat>, Self::Error>;
    fn save_beat(&mut self, owner: &str, beat: &LastBeat) -> Result<(), Self::Error>;
    /// Removes dead owners that hold no lease any more, and what they told.
    fn sweep_owners(&mut self) -> Result<(), Self::Error>;

    /// Adds what was done to a site, and drops what is more than [`MOST_ACTS`] of them or older than `since`, in ms.
    fn add_act(&mut self, site: &str, act: &DatedAct, since: i64) -> Result<(), Self::Error>;
    /// What was done to a site, the latest first.
    fn acts(&mut self, site: &str) -> Result<Vec<DatedAct>, Self::Error>;

    fn inspect(&mut self) -> Result<Inspection, Self::Error>;
}

/// Units and sites by when they are due. A site is of a scope of lanes if it is listed by lane and has something ready in one of
/// these.
pub(crate) trait DueShelf: Fallible {
    /// How many units with something ready have their turn by then, `most` at most: those with a site of the scope ready.
    fn due_count(&mut self, stage: Stage, by: Turn, scope: &WorkScope, most: u32)
    -> Result<u32, Self::Error>;
    /// The n-th of them from 0, the longest due first, then by name.
    fn nth_due(
        &mut self,
        stage: Stage,
        by: Turn,
        scope: &WorkScope,
        n: u32,
    ) -> Result<Option<String>, Self::Error>;
    /// The first turns of units with a site of the scope ready, in order.
    fn next_turns(&mut self, stage: Stage, scope: &WorkScope, most: u32) -> Result<Vec<Turn>, Self::Error>;
    /// When the wait of the first of the unit's sites is over that are of the scope and ready for a download, in ms.
    fn first_ready(&mut self, unit: &str, scope: &WorkScope) -> Result<Option<i64>, Self::Error>;
    /// Of the unit's sites that are of the scope, ready for a download, and whose own wait is over `by` then, in ms: the first
    /// ones by the end of that, then by name.
    fn ready_by(
        &mut self,
        unit: &str,
        scope: &WorkScope,
        by: i64,
        most: u32,
    ) -> Result<Vec<String>, Self::Error>;
    /// The first by name of the unit's sites that are of the scope and have a parse ready: of those after that one, else of
    /// all.
    fn next_parse(
        &mut self,
        unit: &str,
        scope: &WorkScope,
        after: &str,
    ) -> Result<Option<String>, Self::Error>;
}

/// What a fleet agreed on, and how many tasks its tenants asked for lately.
pub(crate) trait LaneShelf: Fallible {
    fn fleet(&mut self) -> Result<Arc<FleetState>, Self::Error>;
    fn save_fleet(&mut self, fleet: &FleetState) -> Result<(), Self::Error>;
    /// Counts one more task of a tenant. Of its window the newest `keep` are kept, until that time.
    fn count_in(&mut self, window: Window<'_>, at: i64, keep: u32, until: i64) -> Result<(), Self::Error>;
    /// When the n-th newest task of a window was counted, from 0, in ms.
    fn nth_newest(&mut self, window: Window<'_>, n: u32) -> Result<Option<i64>, Self::Error>;
    /// Forgets windows that are over by `now`, at most so many: the first ones by end, then stage and tenant.
    fn sweep_windows(&mut self, now: i64, most: u32) -> Result<(), Self::Error>;
}

/// What flowed through the queues of sites lately.
pub(crate) trait FlowShelf: Fallible {
    /// Keeps the books of a site as a slot began, unless those are kept; what is older than an hour before that may go.
    fn open_slot(&mut self, site: &str, slot: i64, books: QueueBooks) -> Result<(), Self::Error>;
    /// Keeps the books of a site as its run began.
    fn open_run(&mut self, site: &str, books: QueueBooks) -> Result<(), Self::Error>;
    /// The books that are kept, by slot.
    fn books(&mut self, site: &str) -> Result<Vec<(i64, QueueBooks)>, Self::Error>;
    /// The slot by which the waits of a site were halved last.
    fn waits_slot(&mut self, site: &str) -> Result<Option<i64>, Self::Error>;
    /// Halves the waits of a site so often, by that slot; those that come to nothing go.
    fn halve_waits(&mut self, site: &str, halvings: i64, slot: i64) -> Result<(), Self::Error>;
    /// Counts a wait. It makes none of its tenant's own where there are `most` of the site.
    fn add_wait(&mut self, site: &str, wait: &WaitKey, most: u32) -> Result<(), Self::Error>;
    /// What was counted of waits.
    fn waits(&mut self, site: &str) -> Result<Vec<(WaitKey, u64)>, Self::Error>;
}

/// What operators are to be told, by kind and site.
pub(crate) trait EventShelf: Fallible {
    fn event(&mut self, kind: EventKind, site: &str) -> Result<Option<EventState>, Self::Error>;
    fn save_event(&mut self, event: &EventState) -> Result<(), Self::Error>;
    fn remove_event(&mut self, kind: EventKind, site: &str) -> Result<(), Self::Error>;
    /// The one that happened first, with when: by time, then by the name of its kind, then by site.
    fn first_event(&mut self) -> Result<Option<(i64, EventKind, String)>, Self::Error>;
    /// The site of the one that may be taken first of those that may be by `now`, with since when: by time, then by site.
    fn first_due_event(&mut self, kind: EventKind, now: i64) -> Result<Option<(i64, String)>, Self::Error>;
    fn count_events(&mut self) -> Result<u64, Self::Error>;
    /// All of them, in no order.
    fn events(&mut self) -> Result<Vec<EventState>, Self::Error>;
}

/// The tasks of a stage that were made for a tenant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) stage: Stage,
    pub(crate) tenant: &'a str,
}

/// Sessions of a site. Which tasks are behind their heads, the tasks themselves say.
pub(crate) trait SessionShelf: Fallible {
    fn session(&mut self, site: &str, name: &str) -> Result<Option<SessionState>, Self::Error>;
    fn save_session(&mut self, site: &str, name: &str, session: &SessionState) -> Result<(), Self::Error>;
    fn remove_session(&mut self, site: &str, name: &str) -> Result<(), Self::Error>;
    /// The downloads that are behind the head of a session, in the order of their steps.
    fn steps_behind(&mut self, site: &str, name: &str, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Names of sessions that are held, in order.
    fn held_sessions(&mut self, site: &str, most: u32) -> Result<Vec<String>, Self::Error>;
    /// How many sessions are kept that ended.
    fn count_ended(&mut self, site: &str) -> Result<u64, Self::Error>;
    /// Sessions that ended, each with when: the earliest first, then by name.
    fn ended_sessions(&mut self, site: &str, most: u32) -> Result<Vec<(i64, String)>, Self::Error>;
}

/// The books of batches, site by site.
pub(crate) trait BatchShelf: Fallible {
    fn batch(&mut self, site: &str, name: &str) -> Result<Option<BatchCounts>, Self::Error>;
    fn save_batch(&mut self, site: &str, name: &str, batch: &BatchCounts) -> Result<(), Self::Error>;
    fn remove_batch(&mut self, site: &str, name: &str) -> Result<(), Self::Error>;
    /// How many batches are kept that ended.
    fn count_ended_batches(&mut self, site: &str) -> Result<u64, Self::Error>;
    /// Batches that ended, each with when: the earliest first, then by name.
    fn ended_batches(&mut self, site: &str, most: u32) -> Result<Vec<(i64, String)>, Self::Error>;
}

/// Campaigns: their names, their records, and their lists by chunk.
pub(crate) trait CampaignShelf: Fallible {
    /// The names that are taken, in order.
    fn campaign_names(&mut self) -> Result<Vec<CampaignName>, Self::Error>;
    fn save_campaign_name(&mut self, name: &CampaignName) -> Result<(), Self::Error>;
    fn remove_campaign_name(&mut self, name: &str) -> Result<(), Self::Error>;
    fn campaign(&mut self, site: &str, name: &str) -> Result<Option<CampaignState>, Self::Error>;
    fn save_campaign(&mut self, site: &str, name: &str, campaign: &CampaignState) -> Result<(), Self::Error>;
    /// Removes a campaign that has no chunks.
    fn remove_campaign(&mut self, site: &str, name: &str) -> Result<(), Self::Error>;
    /// The campaigns of a site, by name.
    fn campaigns_of(&mut self, site: &str) -> Result<Vec<(String, CampaignState)>, Self::Error>;
    fn chunk(&mut self, site: &str, name: &str, number: u32) -> Result<Option<UrlChunk>, Self::Error>;
    fn save_chunk(
        &mut self,
        site: &str,
        name: &str,
        number: u32,
        chunk: &UrlChunk,
    ) -> Result<(), Self::Error>;
    fn remove_chunk(&mut self, site: &str, name: &str, number: u32) -> Result<(), Self::Error>;
}

/// Hosts that can't be reached, and the tasks that wait for them.
pub(crate) trait HostShelf: Fallible {
    /// When a host of a site is looked at again, in ms; none where it isn't kept back.
    fn away(&mut self, site: &str, origin: &str) -> Result<Option<i64>, Self::Error>;
    fn set_away(&mut self, site: &str, origin: &str, at: Option<i64>) -> Result<(), Self::Error>;
    /// The host that is looked at first: by time, then site and origin.
    fn first_away(&mut self) -> Result<Option<AwayHost>, Self::Error>;
    /// The hosts of a site that are kept back: as many as its file names at most, and those that it named before.
    fn hosts_away(&mut self, site: &str) -> Result<Vec<String>, Self::Error>;
    /// Of the sites that wait for a host too, and longer than until `at`: the one that waits longest, the last by name of those.
    fn waits_longest(&mut self, origin: &str, at: i64) -> Result<Option<String>, Self::Error>;
    /// Tasks that wait for a host, by priority, then position.
    fn parked(&mut self, site: &str, origin: &str, most: u32) -> Result<Vec<Task>, Self::Error>;
}

/// Tasks, wherever they stand.
pub(crate) trait TaskShelf: Fallible {
    fn task(&mut self, page: PageKey<'_>, stage: Stage) -> Result<Option<Task>, Self::Error>;
    /// The task that runs under that token of a process: sought among its leases.
    fn granted(&mut self, owner: &str, token: u64) -> Result<Option<Task>, Self::Error>;
    /// Saves a task that stands nowhere yet.
    fn add_task(&mut self, task: &Task) -> Result<(), Self::Error>;
    fn save_task(&mut self, task: &Task) -> Result<(), Self::Error>;
    fn remove_task(&mut self, task: &Task) -> Result<(), Self::Error>;
    /// The waiting task of a lane that goes first: by priority, then position.
    fn first_waiting(&mut self, site: &str, stage: Stage, lane: &str) -> Result<Option<Task>, Self::Error>;
    /// Those behind that place of it, in order.
    fn waiting_behind(
        &mut self,
        site: &str,
        stage: Stage,
        lane: &str,
        behind: (Priority, i64),
        most: u32,
    ) -> Result<Vec<Task>, Self::Error>;
    /// The least position among the waiting tasks of a lane of each priority.
    fn first_positions(
        &mut self,
        site: &str,
        stage: Stage,
        lane: &str,
    ) -> Result<Vec<(Priority, i64)>, Self::Error>;
    /// Delayed tasks whose time has come, by time, then position, site and stage.
    fn overdue(&mut self, now: i64, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// When the next delayed task's time comes.
    fn next_delayed(&mut self) -> Result<Option<i64>, Self::Error>;
    /// Running tasks whose lease has ended by `now` or whose owner is dead, by end, then position, site
    /// and stage.
    fn lost_leases(&mut self, now: i64, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// When the next lease ends; `i64::MIN` if a dead owner has one.
    fn next_lease_end(&mut self) -> Result<Option<i64>, Self::Error>;
    /// Waiting, parked and delayed tasks of a site, by stage, then fingerprint.
    fn idle_tasks(&mut self, site: &str, most: u32) -> Result<Vec<Task>, Self::Error>;
    /// Running tasks of a site that has no others, in no order.
    fn running_tasks(&mut self, site: &str) -> Result<Vec<Task>, Self::Error>;
}

/// Pages that were fetched before.
pub(crate) trait PageShelf: Fallible {
    fn page(&mut self, page: PageKey<'_>) -> Result<Option<PageState>, Self::Error>;
    /// Removes pages of a site, at most so many; whether some may be left.
    fn remove_pages(&mut self, site: &str, most: u32) -> Result<bool, Self::Error>;
    /// Saves a page in place of what was found of it before.
    fn save_page(
        &mut self,
        page: PageKey<'_>,
        before: Option<&PageState>,
        now: &PageState,
    ) -> Result<(), Self::Error>;

    /// The latest time at which a page of a site is asked for again that has this `recrawl`, in ms; none where none has it.
    fn last_recrawl(&mut self, site: &str, period: i64) -> Result<Option<i64>, Self::Error>;
    /// The first page to be asked for again, of a site that has room for it: by time, then site and `recrawl`.
    fn first_recrawl(&mut self) -> Result<Option<Recrawl>, Self::Error>;
    /// How many pages have a `recrawl`, how many of them are fresh at `now`, and how old the oldest is, as
    /// [`PageState::fetched_slot`] tells it.
    fn freshness(&mut self, site: &str, now: i64) -> Result<Freshness, Self::Error>;
}
