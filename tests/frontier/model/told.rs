//! Events that operators are to be told, booked: what is due, in whose hands it is, and when it is tried again (C19).

use fastrand::Rng;
use paced::internals::frontier::{EventEnd, EventsStatus, TakenEvent};
use paced::internals::task::{Event, EventKind};

use super::game::{Answer, Move};
use super::ledger::{Ledger, differs};
use super::op::{Op, Posted, SITES};

const HOUR: i64 = 3_600_000;
/// How long whoever took one has to tell it, and how long it waits after each failure, in ms.
const IN_HAND: i64 = 45_000;
const PAUSES: [i64; 4] = [60_000, 300_000, 1_800_000, 7_200_000];
/// The kinds of every history.
pub const KINDS: [EventKind; 2] = [EventKind::RunFailed, EventKind::Walled];

/// One of a kind and site.
pub struct Kept {
    at: i64,
    next: Option<i64>,
    token: Option<u64>,
    failures: u32,
    failed_at: Option<i64>,
}

/// The moves of a history, and some with events among them. These are drawn apart, so that the others stay what they were.
pub fn with_events(seed: u64, moves: impl Iterator<Item = Posted>) -> Vec<Posted> {
    let mut dice = Rng::with_seed(seed ^ 0x7e11);
    let beside = |posted: Posted| {
        let some = if dice.u32(0..12) == 0 { dice.usize(1..4) } else { 0 };
        let events: Vec<Posted> =
            (0..some).map(|_| Posted { op: event_op(&mut dice), joins: posted.joins }).collect();
        events.into_iter().chain([posted])
    };
    moves.flat_map(beside).collect()
}

fn event_op(dice: &mut Rng) -> Op {
    match dice.u32(0..5) {
        0 | 1 => Op::PostEvent { kind: dice.usize(0..KINDS.len()), site: dice.usize(0..SITES.len()) },
        2 => Op::TakeEvent { kinds: dice.usize(0..4) },
        _ => Op::EndEvent { which: dice.usize(0..3), failed: dice.u32(0..3) > 0 },
    }
}

/// Those that a process tells, by chance.
pub fn kinds(which: usize) -> Vec<EventKind> {
    match which {
        0 => vec![EventKind::Walled],
        1 => vec![EventKind::Walled, EventKind::RunFailed],
        _ => KINDS.to_vec(),
    }
}

pub fn event(kind: usize, site: usize, step: usize) -> Event {
    Event::new(KINDS[kind], SITES[site], format!("at step {step}")).with("pages", step as u64)
}

impl Ledger {
    fn forget_old_events(&mut self) {
        let now = self.now;
        self.events.retain(|_, kept| kept.at > now - 24 * HOUR);
    }

    pub fn book_event(&mut self, what: &Move, answer: &Answer) -> Result<(), String> {
        match (what, answer) {
            (Move::PostEvent(event), Answer::Is(is)) => self.post_event(event, *is),
            (Move::TakeEvent(kinds, token), Answer::Taken(taken)) => {
                self.take_event(kinds, *token, taken.as_ref())
            }
            (Move::EndEvent(event, token, failed), Answer::Ended(end)) => {
                self.end_event(event, *token, failed.is_some(), *end)
            }
            _ => differs("C19: the answer to an event", what, answer),
        }
    }

    fn post_event(&mut self, event: &Event, answer: bool) -> Result<(), String> {
        self.forget_old_events();
        let key = (event.kind, event.site.clone());
        let is_news = self.events.get(&key).is_none_or(|kept| kept.at <= self.now - HOUR);
        if is_news {
            let next = Some(self.now);
            let kept = Kept { at: self.now, next, token: None, failures: 0, failed_at: None };
            self.events.insert(key, kept);
        }
        if is_news == answer { Ok(()) } else { differs("C19: post", is_news, answer) }
    }

    fn take_event(
        &mut self,
        kinds: &[EventKind],
        token: u64,
        answer: Option<&TakenEvent>,
    ) -> Result<(), String> {
        self.forget_old_events();
        let turn = |kind: EventKind| kinds.iter().position(|other| *other == kind);
        let due = self.events.iter().filter_map(|((kind, site), kept)| {
            let next = kept.next.filter(|next| *next <= self.now)?;
            Some((next, turn(*kind)?, site.clone(), *kind))
        });
        let first = due.min_by_key(|(next, turn, site, _)| (*next, *turn, site.clone()));
        let expected = first.map(|(_, _, site, kind)| (kind, site));
        if let Some(kept) = expected.as_ref().and_then(|key| self.events.get_mut(key)) {
            (kept.token, kept.next) = (Some(token), Some(self.now + IN_HAND));
        }
        let told = answer.map(|taken| (taken.event.kind, taken.event.site.clone()));
        if expected == told { Ok(()) } else { differs("C19: take", expected, told) }
    }

    fn end_event(&mut self, event: &Event, token: u64, failed: bool, answer: EventEnd) -> Result<(), String> {
        let now = self.now;
        let kept = self.events.get_mut(&(event.kind, event.site.clone()));
        let expected = match kept.filter(|kept| kept.token == Some(token)) {
            None => EventEnd::Stale,
            Some(kept) => {
                (kept.token, kept.next, kept.failed_at) = (None, None, failed.then_some(now));
                let pause = PAUSES.get(kept.failures as usize);
                kept.failures += u32::from(failed);
                match (failed, pause) {
                    (false, _) => EventEnd::Told,
                    (true, None) => EventEnd::GivenUp,
                    (true, Some(pause)) => {
                        kept.next = Some(now + pause);
                        EventEnd::Again(*pause)
                    }
                }
            }
        };
        if expected == answer { Ok(()) } else { differs("C19: end", expected, answer) }
    }

    pub fn check_events(&self, status: &EventsStatus) -> Result<(), String> {
        let waiting = self.events.values().filter(|kept| kept.next.is_some()).count() as u64;
        if waiting != status.waiting {
            return differs("C19: events that wait", waiting, status.waiting);
        }
        let failed = self.events.values().filter_map(|kept| kept.failed_at).max();
        let told = status.failed.as_ref().map(|untold| untold.at.as_millis() - crate::world::START);
        if failed == told { Ok(()) } else { differs("C19: the last failure", failed, told) }
    }
}
