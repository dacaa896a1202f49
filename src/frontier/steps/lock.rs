//! The timed mutex: taken if free, ended by its time, released only by its owner (V4-V9, R1-R5).

use std::time::Duration;

use super::places::save_unit;
use crate::clock::millis;
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{MutexState, UnitState};
use crate::frontier::step::Lock;
use crate::manners::grace;

/// The longest time, in ms, for which one side leaves the mutex to the other.
pub(in crate::frontier) const LONGEST_TURN: i64 = 4_000;

/// Takes a mutex for `expire` ms if it is free. Asked again with the same token, it answers the same.
pub(super) fn try_lock<S: Shelf>(
    shelf: &mut S,
    key: &MutexKey,
    token: String,
    expire: i64,
    now: i64,
) -> Result<Lock, S::Error> {
    if let Some(held) = shelf.mutex(key)? {
        if held.until > now && held.token == token {
            return Ok(Lock::Taken(held.until.saturating_sub(expire)));
        }
        if held.until > now {
            book_turn(shelf, key, &held, expire)?;
            return Ok(Lock::Held(held.until - now));
        }
        if let Some(mut unit) = unit_of(shelf, key)?.filter(|unit| unit.held_until == held.until) {
            let turn = unit.turn.max(courtesy(expire));
            if held.until + turn > now {
                return Ok(Lock::Held(held.until + turn - now));
            }
            unit.turn = longer(turn);
            save_unit(shelf, &unit)?;
        }
    }
    shelf.save_mutex(key, &MutexState { token, until: now.saturating_add(expire) })?;
    use_turn(shelf, key)?;
    Ok(Lock::Taken(now))
}

/// Releases a mutex that the token holds; a unit that waited for it is due again.
pub(super) fn unlock<S: Shelf>(
    shelf: &mut S,
    key: &MutexKey,
    token: &str,
    now: i64,
) -> Result<bool, S::Error> {
    if !holds(shelf, key, token, now)? {
        return Ok(false);
    }
    shelf.remove_mutex(key)?;
    bring_forward(shelf, key, 0)?;
    Ok(true)
}

/// Moves the end of a mutex that the token holds to `expire` ms from now.
pub(super) fn extend<S: Shelf>(
    shelf: &mut S,
    key: &MutexKey,
    token: &str,
    expire: i64,
    now: i64,
) -> Result<bool, S::Error> {
    if !holds(shelf, key, token, now)? {
        return Ok(false);
    }
    let until = now.saturating_add(expire);
    shelf.save_mutex(key, &MutexState { token: token.to_owned(), until })?;
    bring_forward(shelf, key, until)?;
    Ok(true)
}

/// Whether the token holds a mutex.
pub(super) fn holds<S: Shelf>(
    shelf: &mut S,
    key: &MutexKey,
    token: &str,
    now: i64,
) -> Result<bool, S::Error> {
    Ok(shelf.mutex(key)?.is_some_and(|mutex| mutex.token == token && mutex.until > now))
}

/// How long a mutex is still held, in ms.
pub(super) fn left<S: Shelf>(shelf: &mut S, key: &MutexKey, now: i64) -> Result<Option<i64>, S::Error> {
    Ok(shelf.mutex(key)?.map(|mutex| mutex.until - now).filter(|left| *left > 0))
}

/// Somebody asks for the mutex of a site while a start of the site's own holds it: the next claim lets it in. Without
/// this the two would race at each end, and one whose timer is always a little slower would never win. Where it was
/// too slow for its turn after the start before, this turn is twice as long.
fn book_turn<S: Shelf>(
    shelf: &mut S,
    key: &MutexKey,
    held: &MutexState,
    expire: i64,
) -> Result<(), S::Error> {
    if let Some(mut unit) = unit_of(shelf, key)?
        && unit.owns(&held.token)
    {
        let wait = match (unit.courtesy, &unit.before) {
            (Some((token, wait)), _) if unit.last.as_ref().is_some_and(|last| last.token == token) => wait,
            (Some((token, wait)), Some(before)) if before.token == token => longer(wait),
            _ => courtesy(expire),
        };
        unit.courtesy = unit.last.as_ref().map(|start| (start.token, wait));
        save_unit(shelf, &unit)?;
    }
    Ok(())
}

/// Who waited came in: claims need not wait for it, and its next turn is an ordinary one.
fn use_turn<S: Shelf>(shelf: &mut S, key: &MutexKey) -> Result<(), S::Error> {
    if let Some(mut unit) = unit_of(shelf, key)?
        && unit.courtesy.take().is_some()
    {
        save_unit(shelf, &unit)?;
    }
    Ok(())
}

/// How long, in ms, one who waited has the mutex for itself after its end: as long as a permit may be late.
fn courtesy(interval: i64) -> i64 {
    millis(grace(Duration::from_millis(interval.unsigned_abs())))
}

/// The next turn of one who missed this one: on a loaded machine answers and timers are late again and again.
fn longer(turn: i64) -> i64 {
    (2 * turn).min(LONGEST_TURN)
}

/// A unit that waits for an outsider's lock need not wait longer than that lasts now (L1).
fn bring_forward<S: Shelf>(shelf: &mut S, key: &MutexKey, until: i64) -> Result<(), S::Error> {
    if let Some(mut unit) = unit_of(shelf, key)?
        && unit.held_until > until
    {
        unit.held_until = until;
        save_unit(shelf, &unit)?;
    }
    Ok(())
}

/// The unit that a mutex paces, if it does.
fn unit_of<S: Shelf>(shelf: &mut S, key: &MutexKey) -> Result<Option<UnitState>, S::Error> {
    match key {
        MutexKey::Unit(unit) => shelf.unit(unit),
        MutexKey::Named { .. } => Ok(None),
    }
}
