//! Sessions: one step of each is in the queue, its head; the others are behind it (C6). What takes a head away lets the next one in,
//! in the same step.

use super::{Done, Moment, REMOVED};
use crate::canonical_url::CanonicalUrl;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{ENDED_KEPT, ENDED_MS, Place, SessionState, SiteState, Task};
use crate::frontier::view::{HeldSession, SessionStatus, SessionStep};
use crate::task::{OnFailure, SessionWish, Stage};

/// Sessions that ended, forgotten whenever one ends.
pub(in crate::frontier) const SWEPT: u32 = 2;
/// Steps of a session that one look shows.
pub(in crate::frontier) const STEPS_SHOWN: u32 = 20;

/// Held sessions of a site that one look shows.
pub(in crate::frontier) const HELD_SHOWN: u32 = 5;

/// How a step leaves its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving<'a> {
    /// What became of it.
    pub(super) how: Left,
    /// The step that takes its place, if that is behind it.
    pub(super) next: Option<&'a CanonicalUrl>,
    /// It is a step of it once more.
    pub(super) again: bool,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It is done.
    Done,
    /// It died, and holds nothing.
    Dead,
    /// Nobody wants it any more, or wants it otherwise.
    Dropped,
}

impl Left {
    /// Nothing else takes its place.
    pub(super) const fn alone(self) -> Leaving<'static> {
        Leaving { how: self, next: None, again: false }
    }
}

impl<S: Shelf> Moment<'_, S> {
    /// The session of that name, with what a put says of it.
    fn session_for(&mut self, site: &SiteState, wish: &SessionWish) -> Done<S, SessionState> {
        let new = || SessionState { began_at: self.now, ..SessionState::default() };
        let known = self.shelf.session(&site.name, &wish.name)?.filter(|session| !session.is_over(self.now));
        let mut session = known.unwrap_or_else(new);
        session.on_failure = wish.on_failure.unwrap_or(session.on_failure);
        Ok(session)
    }

    /// A put says what a step that dies does from now on.
    pub(super) fn tell_session(&mut self, site: &SiteState, wish: &SessionWish) -> Done<S> {
        if wish.on_failure.is_none() {
            return Ok(());
        }
        let session = self.session_for(site, wish)?;
        self.shelf.save_session(&site.name, &wish.name, &session)
    }

    /// A task that is behind all others is a step of its session from now on.
    pub(super) fn joined(&mut self, site: &mut SiteState, wish: &SessionWish) -> Done<S> {
        let mut session = self.session_for(site, wish)?;
        session.created += 1;
        session.ended_at = None;
        self.put_in_order(site, &wish.name, session)
    }

    /// Places of the steps of a session may have changed.
    pub(super) fn reorder(&mut self, site: &mut SiteState, task: &Task) -> Done<S> {
        let Some(name) = &task.rare.session else { return Ok(()) };
        match self.shelf.session(&site.name, name)? {
            Some(session) => self.put_in_order(site, name, session),
            None => Ok(()),
        }
    }

    /// A step of a session has ended. A further run of it is behind the others by now.
    pub(super) fn left(
        &mut self,
        site: &mut SiteState,
        (name, url): (&str, &CanonicalUrl),
        leaving: Leaving<'_>,
    ) -> Done<S> {
        let Some(mut session) = self.shelf.session(&site.name, name)? else { return Ok(()) };
        *(match leaving.how {
            Left::Done => &mut session.done,
            Left::Dead => &mut session.dead,
            Left::Dropped => &mut session.dropped,
        }) += 1;
        session.created += u64::from(leaving.again);
        if session.head.take_if(|head| head == url).is_some()
            && let Some(next) = leaving.next
            && let Some(mut next) = self.shelf.task(site.page(next), Stage::Download)?
            && next.place == Place::Behind
            && next.rare.session.as_deref() == Some(name)
        {
            // No other one goes before it any more.
            next.rare.begun = true;
            self.let_in(site, &mut session, next)?;
        }
        self.put_in_order(site, name, session)
    }

    /// The first step that is behind others is let in where there is no head, and where it goes before one that was never granted.
    fn put_in_order(&mut self, site: &mut SiteState, name: &str, mut session: SessionState) -> Done<S> {
        // Of a run that is given up no step goes on.
        if !session.held && !site.given_up {
            let head = match &session.head {
                Some(head) => self.shelf.task(site.page(head), Stage::Download)?,
                None => None,
            };
            let first = self.shelf.steps_behind(&site.name, name, 1)?.pop();
            match (head, first) {
                (None, Some(first)) => self.let_in(site, &mut session, first)?,
                (Some(mut head), Some(first)) if !head.rare.begun && first.step() < head.step() => {
                    self.shift(site, &mut head, Place::Behind)?;
                    self.let_in(site, &mut session, first)?;
                }
                _ => {}
            }
        }
        if session.left() == 0 && !session.held {
            session.ended_at = Some(self.now);
        }
        self.shelf.save_session(&site.name, name, &session)?;
        if session.ended_at.is_some() { self.sweep_sessions(site, SWEPT) } else { Ok(()) }
    }

    fn let_in(&mut self, site: &mut SiteState, session: &mut SessionState, mut task: Task) -> Done<S> {
        session.head = Some(task.url.clone());
        let scheduled = task.rare.attempts + task.rare.losses == 0;
        let later = task.rare.after.filter(|at| *at > self.now);
        let to = later.map_or(Place::Waiting, |until| Place::Delayed { until, scheduled });
        self.shift(site, &mut task, to)
    }

    /// Whether the head that dies now holds its session.
    pub(super) fn is_to_hold(&mut self, site: &SiteState, task: &Task) -> Done<S, bool> {
        let Some(name) = &task.rare.session else { return Ok(false) };
        let session = self.shelf.session(&site.name, name)?;
        Ok(session.is_some_and(|session| session.on_failure == OnFailure::Block))
    }

    /// Whether the dead letter of a page holds a session.
    pub(super) fn holds_a_session(&mut self, site: &SiteState, url: &CanonicalUrl) -> Done<S, bool> {
        let letter = if site.held > 0 { self.shelf.dead(site.page(url), Stage::Download)? } else { None };
        Ok(letter.is_some_and(|letter| letter.session.is_some()))
    }

    /// A step died whose letter holds the session, or, with a further run, takes its own place.
    pub(super) fn died_in_session(&mut self, site: &mut SiteState, name: &str, runs_again: bool) -> Done<S> {
        let Some(mut session) = self.shelf.session(&site.name, name)? else { return Ok(()) };
        session.dead += 1;
        if runs_again {
            session.created += 1;
        } else {
            session.held = true;
            site.held += 1;
        }
        self.shelf.save_session(&site.name, name, &session)
    }

    /// The letter that held a session is gone: it is its head again, or the next step goes on without it.
    pub(super) fn release(&mut self, site: &mut SiteState, name: Option<&str>, is_revived: bool) -> Done<S> {
        let Some(name) = name else { return Ok(()) };
        let Some(mut session) = self.shelf.session(&site.name, name)?.filter(|session| session.held) else {
            return Ok(());
        };
        session.held = false;
        site.held = site.held.saturating_sub(1);
        if is_revived {
            session.created += 1;
            return self.shelf.save_session(&site.name, name, &session);
        }
        session.head = None;
        self.put_in_order(site, name, session)
    }

    /// Drops steps of a session that nobody works on, a bounded number: how many. Those behind its head go first, so that none is let
    /// in.
    pub(super) fn drop_steps(&mut self, name: &str, session: &str) -> Done<S, u32> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(0) };
        let mut steps = self.shelf.steps_behind(name, session, REMOVED)?;
        if steps.is_empty()
            && let Some(head) = self.shelf.session(name, session)?.and_then(|session| session.head)
            && let Some(head) = self.shelf.task(site.page(&head), Stage::Download)?
            && head.running().is_none()
            && head.rare.session.as_deref() == Some(session)
        {
            steps.push(head);
        }
        steps.iter().try_for_each(|step| self.drop_task(&mut site, step))?;
        self.save(&site)?;
        Ok(u32::try_from(steps.len()).unwrap_or(REMOVED))
    }

    /// Forgets sessions that ended long ago, or before as many others as are kept: so many at most.
    pub(super) fn sweep_sessions(&mut self, site: &SiteState, most: u32) -> Done<S> {
        let over = self.shelf.count_ended(&site.name)?.saturating_sub(ENDED_KEPT);
        for (place, (at, name)) in (0..).zip(self.shelf.ended_sessions(&site.name, most)?) {
            if place < over || at <= self.now - ENDED_MS {
                self.shelf.remove_session(&site.name, &name)?;
            }
        }
        Ok(())
    }

    /// The first sessions of a site that are held.
    pub(super) fn sessions_held(&mut self, site: &str) -> Done<S, Vec<HeldSession>> {
        let mut held = Vec::new();
        for name in self.shelf.held_sessions(site, HELD_SHOWN)? {
            let url = self.shelf.session(site, &name)?.and_then(|session| session.head);
            held.extend(url.map(|url| HeldSession { name, url }));
        }
        Ok(held)
    }

    /// How a session stands; none where there is no such one any more.
    pub(super) fn session_status(&mut self, site: &str, name: &str) -> Done<S, Option<Box<SessionStatus>>> {
        let known = self.shelf.session(site, name)?.filter(|session| !session.is_over(self.now));
        let Some(session) = known else { return Ok(None) };
        let behind = self.shelf.steps_behind(site, name, STEPS_SHOWN)?;
        let next = behind.into_iter().map(|task| SessionStep { url: task.url, priority: task.priority });
        Ok(Some(Box::new(SessionStatus { next: next.collect(), session })))
    }
}
