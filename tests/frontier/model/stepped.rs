//! Sessions, booked: one step of each goes on at a time, in order (I7).

use std::collections::BTreeMap;

use paced::internals::frontier::SessionStatus;
use paced::internals::task::{OnFailure, Put, SessionWish, Stage};

use super::ledger::{Key, Ledger, Place, Task, differs};

/// Sessions that a put may name.
pub const SESSIONS: [&str; 2] = ["s", "t"];

/// For how long a session is remembered that ended.
const KEPT: i64 = 86_400_000;

#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The only step that goes on.
    pub head: Option<String>,
    /// The head is a dead letter.
    held: bool,
    skips: bool,
    ended: Option<i64>,
    steps: Steps,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Steps {
    created: u64,
    done: u64,
    dead: u64,
    dropped: u64,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    Dead,
    Dropped,
}

/// By site and name.
pub type Sessions = BTreeMap<(String, String), Session>;

impl Task {
    /// Whether it is a step of that session.
    pub fn is_of(&self, session: &str) -> bool {
        self.session.as_deref() == Some(session)
    }

    /// The more urgent step goes first, then the one that was put, or put for, the earlier.
    fn step(&self) -> (u16, i64, i64) {
        (self.priority, self.after.unwrap_or(self.turn), self.turn)
    }
}

impl Ledger {
    fn session(&mut self, site: &str, name: &str) -> &mut Session {
        let now = self.now;
        let session = self.sessions.entry((site.to_owned(), name.to_owned())).or_default();
        if session.ended.is_some_and(|at| at <= now - KEPT) {
            *session = Session::default();
        }
        session
    }

    /// The session that the dead letter of a page holds.
    pub fn held_by(&self, key: &Key) -> Option<String> {
        let holds = |session: &Session| session.held && session.head.as_ref() == Some(&key.2);
        let held = self.sessions.iter().find(|((site, _), session)| *site == key.0 && holds(session));
        held.map(|((_, name), _)| name.clone()).filter(|_| key.1 == Stage::Download)
    }

    /// The page of a dead letter that holds a session.
    pub fn first_held(&self) -> Option<Key> {
        let held = self.sessions.iter().find(|(_, session)| session.held);
        held.and_then(|((site, _), session)| Some((site.clone(), Stage::Download, session.head.clone()?)))
    }

    /// Whether a put of a step is answered that its page is busy: it is elsewhere, or in hand otherwise.
    pub fn is_busy(&self, key: &Key, put: &Put) -> bool {
        let Some(wish) = &put.session else { return false };
        match self.tasks.get(key) {
            Some(Task { session: Some(name), .. }) => *name != wish.name,
            Some(task) => task.errand || !task.is_idle(),
            None => self.held_by(key).is_some_and(|held| held != wish.name),
        }
    }

    pub fn tell_session(&mut self, site: &str, wish: &SessionWish) {
        if let Some(on_failure) = wish.on_failure {
            self.session(site, &wish.name).skips = on_failure == OnFailure::Skip;
        }
    }

    /// The task is a step from now on, and stands where its turn is.
    pub fn join(&mut self, key: &Key, wish: &SessionWish) {
        self.tell_session(&key.0, wish);
        let session = self.session(&key.0, &wish.name);
        session.steps.created += 1;
        session.ended = None;
        if let Some(task) = self.tasks.get_mut(key) {
            task.session = Some(wish.name.clone());
            task.place = Place::Behind;
        }
        self.put_in_order(&key.0, &wish.name);
    }

    /// A step ended; `next` takes its place, if it is a step of the session. It may be one `again`.
    pub fn step_ended(&mut self, key: &Key, name: &str, how: Ended, next: Option<&str>, again: bool) {
        let session = self.session(&key.0, name);
        match how {
            Ended::Done => session.steps.done += 1,
            Ended::Dead => session.steps.dead += 1,
            Ended::Dropped => session.steps.dropped += 1,
        }
        session.steps.created += u64::from(again);
        if session.head.take_if(|head| *head == key.2).is_some()
            && let Some(next) = next
        {
            let next = (key.0.clone(), Stage::Download, next.to_owned());
            let is_step = |task: &&mut Task| task.is_of(name) && task.place == Place::Behind;
            if let Some(task) = self.tasks.get_mut(&next).filter(is_step) {
                task.begun = true;
                self.let_in(&next, name);
            }
        }
        self.put_in_order(&key.0, name);
    }

    /// A step is dropped with all others of its site.
    pub fn step_given_up(&mut self, key: &Key, name: &str) {
        let session = self.session(&key.0, name);
        session.steps.dropped += 1;
        session.head.take_if(|head| *head == key.2);
        self.note_end(&key.0, name);
    }

    /// A step dies: whether it holds its session, with its letter or, where it runs once more, itself.
    pub fn dies(&mut self, key: &Key, runs_again: bool) -> bool {
        let Some(name) = self.tasks.get(key).and_then(|task| task.session.clone()) else { return false };
        let session = self.session(&key.0, &name);
        if session.skips {
            return false;
        }
        session.steps.dead += 1;
        session.steps.created += u64::from(runs_again);
        session.held = !runs_again;
        true
    }

    /// The letter that held a session is gone.
    pub fn release(&mut self, site: &str, name: &str, is_revived: bool) {
        let session = self.session(site, name);
        session.held = false;
        if is_revived {
            session.steps.created += 1;
        } else {
            session.head = None;
            self.put_in_order(site, name);
        }
    }

    /// All letters of a site are gone, and with them what held its sessions.
    pub fn release_all(&mut self, site: &str) {
        for name in SESSIONS {
            let session = self.session(site, name);
            if session.held {
                (session.held, session.head) = (false, None);
                self.note_end(site, name);
            }
        }
    }

    /// The first step goes on where none does, and in place of one that never started and comes after it.
    pub fn put_in_order(&mut self, site: &str, name: &str) {
        let session = self.session(site, name);
        if !session.held {
            let head = session.head.clone().map(|url| (site.to_owned(), Stage::Download, url));
            let behind = self
                .tasks
                .iter()
                .filter(|(key, task)| key.0 == site && task.is_of(name) && task.place == Place::Behind);
            let first = behind.min_by_key(|(_, task)| task.step());
            let first = first.map(|(key, task)| (key.clone(), task.step()));
            match (head.and_then(|head| self.tasks.get_mut(&head)), first) {
                (None, Some((first, _))) => self.let_in(&first, name),
                (Some(head), Some((first, step))) if !head.begun && step < head.step() => {
                    head.place = Place::Behind;
                    self.let_in(&first, name);
                }
                _ => {}
            }
        }
        self.note_end(site, name);
    }

    fn note_end(&mut self, site: &str, name: &str) {
        let now = self.now;
        let session = self.session(site, name);
        let Steps { created, done, dead, dropped } = session.steps;
        if created == done + dead + dropped && !session.held {
            session.ended = Some(now);
        }
    }

    fn let_in(&mut self, key: &Key, name: &str) {
        let now = self.now;
        self.session(&key.0, name).head = Some(key.2.clone());
        self.let_in_now.insert(key.clone());
        let Some(task) = self.tasks.get_mut(key) else { return };
        task.place = match task.after.filter(|at| *at > now) {
            Some(at) if task.attempts + task.losses == 0 => Place::Scheduled(at),
            Some(at) => Place::Delayed(at),
            None => Place::Waiting,
        };
    }

    /// How a session is told.
    pub fn check_session(&self, site: &str, name: &str, told: Option<&SessionStatus>) -> Result<(), String> {
        let known = self.sessions.get(&(site.to_owned(), name.to_owned()));
        let known = known.filter(|session| session.ended.is_none_or(|at| at > self.now - KEPT));
        let known = known.filter(|session| session.steps != Steps::default() || told.is_some());
        let (Some(known), Some(status)) = (known, told) else {
            return if known.is_some() || told.is_some() {
                differs("a session", known, told)
            } else {
                Ok(())
            };
        };
        let session = &status.session;
        let steps = Steps {
            created: session.created,
            done: session.done,
            dead: session.dead,
            dropped: session.dropped,
        };
        let shown = (
            session.head.as_ref().map(|url| url.as_str().to_owned()),
            session.held,
            session.on_failure == OnFailure::Skip,
            session.ended_at.is_some(),
            steps,
        );
        let expected = (known.head.clone(), known.held, known.skips, known.ended.is_some(), known.steps);
        if shown != expected {
            return differs(&format!("C11: session {name} of {site}"), expected, shown);
        }
        let behind = self
            .tasks
            .iter()
            .filter(|(key, task)| key.0 == site && task.is_of(name) && task.place == Place::Behind);
        let mut behind: Vec<_> = behind.map(|(key, task)| (task.step(), key.2.clone())).collect();
        behind.sort();
        let expected: Vec<String> = behind.into_iter().map(|(_, url)| url).collect();
        let next: Vec<String> = status.next.iter().map(|step| step.url.as_str().to_owned()).collect();
        if next == expected {
            Ok(())
        } else {
            differs(&format!("I7: steps behind {name} of {site}"), expected, next)
        }
    }
}
