//! Taking one site's records out of segments that hold those of others too: what is left stays where it is, as places
//! are kept elsewhere. A segment without other records goes as a whole.

use std::ops::Range;
use std::sync::Arc;

use super::ArchiveError;
use super::member::blank;
use super::scan::{Record, RecordSeen, SegmentWalk};
use super::store::{OpenSegment, Patches, Store};
use super::warc;
use crate::clock::Timestamp;

/// Records that follow each other are written over together, up to so many bytes.
const TOGETHER: u64 = 1 << 20;

/// Which requests are gone, each with its answer.
pub(super) type Gone<'a> = dyn Fn(&Record) -> bool + 'a;

/// What was erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Requests, each with its answer.
    pub requests: u64,
    /// Segments that held nothing else and are gone.
    pub segments: u64,
    /// Requests in segments that are still written to: where there are any, nothing was erased.
    pub left: u64,
}

/// What a segment holds of a site.
#[derive(Debug, Default)]
struct Holding {
    requests: u64,
    /// Where its records are, those that follow each other in one.
    ranges: Vec<Range<u64>>,
    others: bool,
}

/// Erases all records that are gone, segment by segment; nothing at all where some are in segments that are still written to.
/// Interrupted, it goes on when it is begun again.
pub(super) fn erase(
    store: &Arc<dyn Store>,
    is_gone: &Gone<'_>,
    now: Timestamp,
) -> Result<Erased, ArchiveError> {
    let mut erased = Erased { left: still_written_to(store, is_gone)?, ..Erased::default() };
    if erased.left > 0 {
        return Ok(erased);
    }
    let mut trouble = Ok(());
    for segment in Arc::clone(store).segments()? {
        let segment = segment?;
        if segment.is_open() {
            continue;
        }
        let name = segment.name.clone();
        let held = holding(segment, is_gone).and_then(|held| {
            if held.requests > 0 {
                erase_in(&**store, &name, &held, now)?;
            }
            Ok(held)
        });
        match held {
            Ok(held) => {
                erased.requests += held.requests;
                erased.segments += u64::from(held.requests > 0 && !held.others);
            }
            // The others needn't wait until this one is mended.
            Err(error) => trouble = trouble.and(Err(error)),
        }
    }
    trouble.map(|()| erased)
}

/// How many of them are in segments that are still written to.
fn still_written_to(store: &Arc<dyn Store>, is_gone: &Gone<'_>) -> Result<u64, ArchiveError> {
    let mut count = 0;
    if !store.grows() {
        return Ok(count);
    }
    for segment in Arc::clone(store).segments()? {
        let segment = segment?;
        if segment.is_open() {
            count += holding(segment, is_gone)?.requests;
        }
    }
    Ok(count)
}

fn erase_in(store: &dyn Store, name: &str, held: &Holding, now: Timestamp) -> Result<(), ArchiveError> {
    if !held.others {
        return store.remove(name);
    }
    let bytes = &|range: &Range<u64>| blank_for(name, range, now);
    store.overwrite(name, &Patches { ranges: &held.ranges, bytes })
}

/// What a segment holds of a site, and whether it holds anything else. What can't be read is an error: it could be the site's.
fn holding(segment: OpenSegment, is_gone: &Gone<'_>) -> Result<Holding, ArchiveError> {
    let (mut walk, mut holding) = (SegmentWalk::over(segment), Holding::default());
    let mut mine: Option<String> = None;
    loop {
        let start = walk.at();
        let Some(seen) = walk.seen()? else { return Ok(holding) };
        let is_mine = match seen {
            RecordSeen::Request { id, record } => {
                mine = is_gone(&record).then_some(id);
                holding.requests += u64::from(mine.is_some());
                mine.is_some()
            }
            RecordSeen::Answer { to, .. } => mine.as_ref() == Some(&to),
            RecordSeen::Erased { .. } => continue,
            // The first record says who wrote the segment.
            RecordSeen::Other if start == 0 => continue,
            RecordSeen::Other => false,
        };
        if !is_mine {
            holding.others = true;
            continue;
        }
        match holding.ranges.last_mut().filter(|last| last.end == start && start - last.start < TOGETHER) {
            Some(last) => last.end = walk.at(),
            None => holding.ranges.push(start..walk.at()),
        }
    }
}

/// The bytes that take a record's place.
fn blank_for(segment: &str, range: &Range<u64>, now: Timestamp) -> Result<Vec<u8>, ArchiveError> {
    let too_short =
        || ArchiveError::damaged(segment, range.start, "it is too short for a record of this program");
    blank(range.end - range.start, || warc::erased(now)).ok_or_else(too_short)
}
