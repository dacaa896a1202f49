//! The timed mutex: taken if free, ended by its time, released only by its owner (V4-V9, R1-R5).

use super::places::save_unit;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::MutexState;
use crate::frontier::step::Lock;

/// Takes a mutex for `expire` ms if it is free.
pub(super) fn try_lock<S: Shelf>(
    shelf: &mut S,
    name: &str,
    token: String,
    expire: i64,
    now: i64,
) -> Result<Lock, S::Error> {
    if let Some(left) = left(shelf, name, now)? {
        return Ok(Lock::Held(left));
    }
    shelf.save_mutex(name, &MutexState { token, until: now + expire })?;
    Ok(Lock::Taken)
}

/// Releases a mutex that the token holds; a unit that waited for it is due again.
pub(super) fn unlock<S: Shelf>(shelf: &mut S, name: &str, token: &str, now: i64) -> Result<bool, S::Error> {
    if !holds(shelf, name, token, now)? {
        return Ok(false);
    }
    shelf.remove_mutex(name)?;
    bring_forward(shelf, name, 0)?;
    Ok(true)
}

/// Moves the end of a mutex that the token holds to `expire` ms from now.
pub(super) fn extend<S: Shelf>(
    shelf: &mut S,
    name: &str,
    token: &str,
    expire: i64,
    now: i64,
) -> Result<bool, S::Error> {
    if !holds(shelf, name, token, now)? {
        return Ok(false);
    }
    shelf.save_mutex(name, &MutexState { token: token.to_owned(), until: now + expire })?;
    bring_forward(shelf, name, now + expire)?;
    Ok(true)
}

/// A unit that waits for an outsider's lock need not wait longer than that lasts now (L1).
fn bring_forward<S: Shelf>(shelf: &mut S, mutex: &str, until: i64) -> Result<(), S::Error> {
    let Some(unit) = mutex.strip_prefix("site/") else { return Ok(()) };
    let Some(mut unit) = shelf.unit(unit)?.filter(|unit| unit.held_until > until) else { return Ok(()) };
    unit.held_until = until;
    save_unit(shelf, &unit)
}

/// How long a mutex is still held, in ms.
pub(super) fn left<S: Shelf>(shelf: &mut S, name: &str, now: i64) -> Result<Option<i64>, S::Error> {
    Ok(shelf.mutex(name)?.map(|mutex| mutex.until - now).filter(|left| *left > 0))
}

fn holds<S: Shelf>(shelf: &mut S, name: &str, token: &str, now: i64) -> Result<bool, S::Error> {
    Ok(shelf.mutex(name)?.is_some_and(|mutex| mutex.token == token && mutex.until > now))
}
