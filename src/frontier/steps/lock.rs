//! The timed mutex: taken if free, ended by its time, released only by its owner (V4-V9, R1-R5).

use super::places::save_unit;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::MutexState;
use crate::frontier::step::Lock;

/// Takes a mutex for `expire` ms if it is free. Asked again with the same token, it answers the same.
pub(super) fn try_lock<S: Shelf>(
    shelf: &mut S,
    name: &str,
    token: String,
    expire: i64,
    now: i64,
) -> Result<Lock, S::Error> {
    if let Some(held) = shelf.mutex(name)?.filter(|held| held.until > now) {
        return Ok(if held.token == token {
            Lock::Taken(held.until.saturating_sub(expire))
        } else {
            Lock::Held(held.until - now)
        });
    }
    shelf.save_mutex(name, &MutexState { token, until: now.saturating_add(expire) })?;
    Ok(Lock::Taken(now))
}

/// Releases a mutex that the token holds; a unit that waited for it is due again.
pub(super) fn unlock<S: Shelf>(shelf: &mut S, name: &str, token: &str, now: i64) -> Result<bool, S::Error> {
    if !holds(shelf, name, token, now)? {
        return Ok(false);
    }
    shelf.remove_mutex(name)?;
    look_again(shelf, name)?;
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
    shelf.save_mutex(name, &MutexState { token: token.to_owned(), until: now.saturating_add(expire) })?;
    look_again(shelf, name)?;
    Ok(true)
}

/// Whether the token holds a mutex.
pub(super) fn holds<S: Shelf>(shelf: &mut S, name: &str, token: &str, now: i64) -> Result<bool, S::Error> {
    Ok(shelf.mutex(name)?.is_some_and(|mutex| mutex.token == token && mutex.until > now))
}

/// How long a mutex is still held, in ms.
pub(super) fn left<S: Shelf>(shelf: &mut S, name: &str, now: i64) -> Result<Option<i64>, S::Error> {
    Ok(shelf.mutex(name)?.map(|mutex| mutex.until - now).filter(|left| *left > 0))
}

/// A unit that waits for the end of its mutex is looked at again, now that the end has moved.
fn look_again<S: Shelf>(shelf: &mut S, name: &str) -> Result<(), S::Error> {
    if let Some(unit) = name.strip_prefix("site/")
        && let Some(mut unit) = shelf.unit(unit)?
        && unit.held_until != 0
    {
        unit.held_until = 0;
        save_unit(shelf, &unit)?;
    }
    Ok(())
}
