//! The timed mutex: taken if free, ended by its time, released only by its owner (V4-V9, R1-R5).

use super::claim::LONGEST_LEAD;
use super::{Done, Moment};
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{MutexState, UnitState};
use crate::frontier::step::LockReply;
use crate::manners::grace_ms;

/// The longest time, in ms, for which one side leaves the mutex to the other.
pub(in crate::frontier) const LONGEST_TURN: i64 = 4_000;

/// Locks that ended and are forgotten in one step.
pub(in crate::frontier) const SWEPT: u32 = 10;

impl<S: Shelf> Moment<'_, S> {
    /// Takes a mutex for `expire` ms if it is free, from `lead` ms on. Asked again with the same token, it answers the same.
    pub(super) fn try_lock(
        &mut self,
        key: &MutexKey,
        token: String,
        expire: i64,
        lead: i64,
    ) -> Done<S, LockReply> {
        let now = self.now;
        self.shelf.sweep_mutexes(now, SWEPT)?;
        self.sweep_units()?;
        let held = self.known_holder(key)?;
        if let Some(held) = held.as_ref().filter(|held| held.until > now) {
            if held.token == token {
                return Ok(LockReply::Taken(held.until.saturating_sub(expire)));
            }
            self.book_turn(key, held, expire)?;
            return Ok(LockReply::Held(held.until - now));
        }
        if let Some(left) = self.left_of_unit(key)? {
            return Ok(LockReply::Held(left));
        }
        if let Some(left) = self.take_turn(key, held, expire)? {
            return Ok(LockReply::Held(left));
        }
        let from = now + lead.clamp(0, LONGEST_LEAD);
        self.hold(key, &MutexState { token, until: from.saturating_add(expire) })?;
        self.use_turn(key)?;
        Ok(LockReply::Taken(from))
    }

    /// Who holds it, over or not. A start's own lock lasts as long as the unit says: a slow start may have ended with that start. One
    /// that its site has left says nothing new.
    fn known_holder(&mut self, key: &MutexKey) -> Done<S, Option<MutexState>> {
        let Some(mut held) = self.shelf.mutex(key)? else { return Ok(None) };
        if let Some(unit) = self.unit_of(key)?.filter(|unit| unit.owns(&held.token))
            && self.shelf.site(&unit.name)?.is_none_or(|site| site.unit == unit.name)
        {
            held.until = held.until.min(self.paced_until(&unit)?);
        }
        Ok(Some(held))
    }

    /// The claims have the turn after a lock that they met: for how much longer, in ms; none where they missed it.
    fn take_turn(&mut self, key: &MutexKey, over: Option<MutexState>, expire: i64) -> Done<S, Option<i64>> {
        let Some(over) = over else { return Ok(None) };
        let Some(mut unit) = self.unit_of(key)?.filter(|unit| unit.held_until == over.until) else {
            return Ok(None);
        };
        let turn = unit.turn.max(grace_ms(expire));
        if over.until + turn > self.now {
            return Ok(Some(over.until + turn - self.now));
        }
        unit.turn = longer(turn);
        self.save_unit(&unit)?;
        Ok(None)
    }

    /// How long a unit itself waits whose mutex isn't there: after its last start, or after what a site that joined brought.
    fn left_of_unit(&mut self, key: &MutexKey) -> Done<S, Option<i64>> {
        let Some(unit) = self.unit_of(key)? else { return Ok(None) };
        let ends = self.paced_until(&unit)?.max(unit.not_before);
        if ends <= self.now {
            return Ok(None);
        }
        self.retime(&unit)?;
        Ok(Some(ends - self.now))
    }

    /// Releases a mutex that the token holds; a unit that waited for it is due again.
    pub(super) fn unlock(&mut self, key: &MutexKey, token: &str) -> Done<S, bool> {
        let holds = self.holds_lock(key, token)?;
        if holds {
            self.shelf.remove_mutex(key)?;
            self.bring_forward(key, 0)?;
        }
        Ok(holds)
    }

    /// Moves the end of a mutex that the token holds to `expire` ms from now.
    pub(super) fn extend_lock(&mut self, key: &MutexKey, token: &str, expire: i64) -> Done<S, bool> {
        let holds = self.holds_lock(key, token)?;
        if holds {
            let until = self.now.saturating_add(expire);
            self.hold(key, &MutexState { token: token.to_owned(), until })?;
            self.bring_forward(key, until)?;
        }
        Ok(holds)
    }

    /// A token holds a mutex. That of a unit which no site was ever of is forgotten once it is over.
    fn hold(&mut self, key: &MutexKey, mutex: &MutexState) -> Done<S> {
        if let MutexKey::Unit(unit) = key
            && self.shelf.unit(unit)?.is_none()
        {
            self.shelf.set_idle(unit, Some(mutex.until))?;
        }
        self.shelf.save_mutex(key, mutex)
    }

    /// Whether the token holds a mutex.
    pub(super) fn holds_lock(&mut self, key: &MutexKey, token: &str) -> Done<S, bool> {
        Ok(self.shelf.mutex(key)?.is_some_and(|mutex| mutex.token == token && mutex.until > self.now))
    }

    /// How long a mutex is still held, in ms.
    pub(super) fn lock_left(&mut self, key: &MutexKey) -> Done<S, Option<i64>> {
        Ok(self.known_holder(key)?.map(|mutex| mutex.until - self.now).filter(|left| *left > 0))
    }

    /// Somebody asks for the mutex of a site while a start of the site's own holds it: the next claim lets it in, for as long
    /// as a permit may be late. Without
    /// this the two would race at each end, and one whose timer is always a little slower would never win. Where it was
    /// too slow for its turn after the start before, this turn is twice as long.
    fn book_turn(&mut self, key: &MutexKey, held: &MutexState, expire: i64) -> Done<S> {
        let Some(mut unit) = self.unit_of(key)?.filter(|unit| unit.owns(&held.token)) else { return Ok(()) };
        let wait = match (unit.courtesy, &unit.before) {
            (Some((token, wait)), _) if unit.last.as_ref().is_some_and(|last| last.token == token) => wait,
            (Some((token, wait)), Some(before)) if before.token == token => longer(wait),
            _ => grace_ms(expire),
        };
        unit.courtesy = unit.last.map(|start| (start.token, wait));
        self.save_unit(&unit)
    }

    /// Who waited came in: claims need not wait for it, and its next turn is an ordinary one.
    fn use_turn(&mut self, key: &MutexKey) -> Done<S> {
        match self.unit_of(key)?.filter(|unit| unit.courtesy.is_some()) {
            Some(unit) => self.save_unit(&UnitState { courtesy: None, ..unit }),
            None => Ok(()),
        }
    }

    /// A unit that waits for an outsider's lock need not wait longer than that lasts now (L1).
    fn bring_forward(&mut self, key: &MutexKey, until: i64) -> Done<S> {
        match self.unit_of(key)?.filter(|unit| unit.held_until > until) {
            Some(unit) => self.save_unit(&UnitState { held_until: until, ..unit }),
            None => Ok(()),
        }
    }

    /// The unit that a mutex paces, if it does.
    fn unit_of(&mut self, key: &MutexKey) -> Done<S, Option<UnitState>> {
        match key {
            MutexKey::Unit(unit) => self.shelf.unit(unit),
            MutexKey::Named { .. } => Ok(None),
        }
    }
}

/// The next turn of one who missed this one: on a loaded machine answers and timers are late again and again.
fn longer(turn: i64) -> i64 {
    (2 * turn).min(LONGEST_TURN)
}
