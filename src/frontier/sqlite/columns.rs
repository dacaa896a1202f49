//! How values stand in columns: places as numbers, rare things as small JSON records.

use rusqlite::{Result, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::canonical_url::CanonicalUrl;
use crate::frontier::state::{LastAnswers, OwnerState, Place, Rare, Running, Task};
use crate::task::{Departure, LANE, Origin, Priority, Stage};

const WAITING: i64 = 0;
const DELAYED: i64 = 1;
const SCHEDULED: i64 = 2;
const RUNNING: i64 = 3;
const PARKED: i64 = 4;
const BEHIND: i64 = 5;

pub(super) fn read_task(row: &Row<'_>) -> Result<Task> {
    let until = || row.get::<_, Option<i64>>(8).map(Option::unwrap_or_default);
    let place = match row.get::<_, i64>(3)? {
        WAITING => Place::Waiting,
        PARKED => Place::Parked,
        BEHIND => Place::Behind,
        RUNNING => {
            let LeaseColumn { granted_at, fence, in_flight, departure } = json(row, 11)?;
            let token = row.get::<_, i64>(9)?.cast_unsigned();
            let (owner, ends_at) = (row.get(10)?, until()?);
            Place::Running(Running { token, owner, granted_at, ends_at, fence, in_flight, departure })
        }
        delayed => Place::Delayed { until: until()?, scheduled: delayed == SCHEDULED },
    };
    let rare = match row.get_ref(12)?.as_str_or_null()? {
        Some(text) => from_json(text, 12)?,
        None => Rare::default(),
    };
    Ok(Task {
        site: row.get(0)?,
        stage: stage_of(row.get(1)?),
        url: url(row, 2)?,
        place,
        priority: Priority::from_value(row.get(4)?),
        position: row.get(5)?,
        depth: row.get(6)?,
        origin: if row.get::<_, i64>(7)? == 1 { Origin::Link } else { Origin::Request },
        rare,
    })
}

pub(super) fn read_owner(row: &Row<'_>) -> Result<OwnerState> {
    let last = match row.get_ref(1)?.as_str_or_null()? {
        Some(text) => from_json(text, 1)?,
        None => LastAnswers::default(),
    };
    Ok(OwnerState { last, ..json(row, 0)? })
}

/// What of a lease stands in no column of its own. Written as an array, in this order; read as an object as well, which it was
/// before version 5.
#[derive(Deserialize)]
pub(super) struct LeaseColumn {
    granted_at: i64,
    fence: i64,
    in_flight: bool,
    departure: Departure,
}

impl LeaseColumn {
    pub(super) fn of(running: &Running) -> impl Serialize {
        (running.granted_at, running.fence, running.in_flight, running.departure)
    }
}

pub(super) fn place_columns(task: &Task) -> (i64, Option<i64>) {
    match &task.place {
        Place::Waiting => (WAITING, None),
        Place::Parked => (PARKED, None),
        // Its turn in its session.
        Place::Behind => (BEHIND, Some(task.step().1)),
        Place::Delayed { until, scheduled: false } => (DELAYED, Some(*until)),
        Place::Delayed { until, scheduled: true } => (SCHEDULED, Some(*until)),
        Place::Running(running) => (RUNNING, Some(running.ends_at)),
    }
}

pub(super) fn stage_column(stage: Stage) -> i64 {
    i64::from(stage == Stage::Parse)
}

/// Nothing is written of the lane that is always there.
pub(super) fn lane_column(lane: &str) -> &str {
    if lane == LANE { "" } else { lane }
}

pub(super) fn stage_of(column: i64) -> Stage {
    if column == 0 { Stage::Download } else { Stage::Parse }
}

pub(super) fn url(row: &Row<'_>, column: usize) -> Result<CanonicalUrl> {
    let text: String = row.get(column)?;
    CanonicalUrl::parse(&text).map_err(|e| unreadable(column, e))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    from_json(row.get_ref(column)?.as_str()?, column)
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str, column: usize) -> Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(column, e))
}

pub(super) fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}
