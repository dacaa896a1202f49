//! What the frontier knows of a site, a pace unit and a task, and the pure rules on them. How it is stored is elsewhere.

mod batch;
mod campaign;
mod counts;
mod event;
mod fleet;
mod flow;
mod pauses;
mod records;
mod session;
mod site;
mod task;
mod tuned;
mod unit;
mod wall;

pub use batch::{BATCH_KEPT_MS, BATCHES_KEPT, BatchCounts, BatchEnd, BatchJoin};
pub use campaign::{
    CAMPAIGN_KEPT_MS, CAMPAIGNS_KEPT, CampaignCounts, CampaignState, CampaignTuning, MARK_MS, UPLOAD_KEPT_MS,
};
pub use counts::StageCounts;
pub use event::{
    EVENT_KEPT_MS, EVENT_LEASE_MS, EVENT_PAUSES, EventEnd, EventState, MOST_EVENTS, QUIET_MS, TakenEvent,
};
pub use fleet::{Agreed, FleetState, MARKS_KEPT, MOST_NOW, MOST_TUNED, TunedTenants};
pub use flow::{
    FlowRate, HOUR_SLOTS, MOST_WAITS, OldestWaiting, QueueBooks, QueueFlow, RUN_SLOT, SLOT_MS, WAIT_BOUNDS,
    WAIT_ONE, WAITS_KEPT, WaitBound, WaitKey, WaitTimes, slot_of,
};
pub use pauses::{
    DROPS_KEPT, DROPS_KEPT_MS, DropMark, DroppedOf, FOR_GOOD, GroupPaused, Pause, Pauses, PausesOfAll,
    SharedPauses,
};
pub use records::{
    AwayHost, DeadState, LastAnswers, LastBeat, OwnerState, PageState, Recrawl, RobotsBrief, RobotsState,
    SignOfLife, WorkScope,
};
pub use session::{ENDED_KEPT, ENDED_MS, SessionPlace, SessionState};
pub use site::{AVERAGED, Seeding, SiteSettings, SiteState, TOLD_MS};
pub use task::{Deferral, EPOCH, Place, Rare, Running, Task, deadline, delay_after_loss, later_expiry};
pub use tuned::{LONGEST_INTERVAL, MOST_PAGES, TuneReply, Tuned, Tuning};
pub use unit::{MutexState, START_TOKEN, Start, Turn, UnitDue, UnitState, UnitWait, mutex_token, nth_of};
pub use wall::{Probe, SlowStart, Wall};

/// Pages are fed to a site while it has fewer waiting downloads.
pub const FED_WAITING: u64 = 1_000;
/// How long a lease lives unless it is renewed, in ms.
pub const LEASE_MS: i64 = 30_000;
/// Losses after which a task is dead.
pub const MAX_LOSSES: u32 = 6;
/// How long a task that went back waits, in ms.
pub const BACK_MS: i64 = 1_000;

/// What isn't spelled out in a record.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
