//! What a frontier runs on: one private trait, chosen by URL at run time. The handle stands over it and knows no backend.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, pending, ready};

use super::model::Model;
use super::table::{Reply, Step};
use super::{FrontierError, MutexKey};
use crate::clock::Clock;

/// What a file was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effort {
    pub(crate) statements: u64,
    /// Of `SQLite`'s machine, as these ran.
    pub(crate) instructions: u64,
}

impl Effort {
    pub(crate) fn add(&mut self, more: Self) {
        self.statements += more.statements;
        self.instructions += more.instructions;
    }
}

/// Where steps are done, each atomically.
pub(super) trait Backend: Debug + Send + Sync {
    /// Does one step. Dropping the future doesn't undo it.
    fn step(&self, step: Step) -> BoxFuture<'_, Result<Reply, FrontierError>>;

    /// Does a step only where a site lies, although it may be for every part of the frontier.
    fn step_of<'a>(&'a self, _site: &'a str, step: Step) -> BoxFuture<'a, Result<Reply, FrontierError>> {
        self.step(step)
    }

    /// Does a step without anybody waiting for its answer.
    fn post(&self, step: Step);

    /// Steps that are asked for while this is held are done together.
    fn hold(&self) -> Box<dyn Any> {
        Box::new(())
    }

    /// The clock that steps go by, as far as this process can tell.
    fn clock(&self) -> Clock;

    /// The clock that the steps of a mutex go by.
    fn clock_of(&self, _mutex: &MutexKey) -> Clock {
        self.clock()
    }

    /// How far apart the earliest and the latest are that it may be, by the clock that is known least well.
    fn doubt(&self) -> Duration {
        self.clock().doubt()
    }

    /// Which frontier it is, as people may see it.
    fn shown(&self) -> String;

    /// Whether it is a server's, which processes of other machines share. Then its clock is only followed, a process that is
    /// gone shows by its silence alone, and `woken` tells of the others.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether what lies of a site is known to be away: nothing that bears being left out is to be asked there.
    fn is_away_for(&self, _site: &str) -> bool {
        false
    }

    /// Calls sent to a server so far; none where there is no server.
    fn calls(&self) -> Option<u64> {
        None
    }

    /// What the steps so far took; none where that isn't counted.
    fn effort(&self) -> Option<Effort> {
        None
    }

    /// Resolves when that member is to claim what was made claimable: by this process, or by others where a server tells of
    /// them; never where nothing tells.
    fn woken<'a>(&'a self, _member: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(pending())
    }

    /// The file beside which each living process holds a lock, if processes show that they live in this way.
    fn locked_beside(&self) -> Option<&Path> {
        None
    }

    /// From now on no step waits for another one to travel with.
    fn hurry(&self) {}

    /// From now on an outage is waited for as long as it takes.
    fn wait_for_ever(&self) {}
}

/// The model with a clock of its own.
#[derive(Debug)]
pub(super) struct Modelled {
    pub(super) model: Mutex<Model>,
    pub(super) clock: Clock,
}

impl Modelled {
    fn apply(&self, step: Step) -> Reply {
        // Poisoned by a panic in a step: the maps are still those of a test.
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        model.apply(step, self.clock.now())
    }
}

impl Backend for Modelled {
    fn step(&self, step: Step) -> BoxFuture<'_, Result<Reply, FrontierError>> {
        Box::pin(ready(Ok(self.apply(step))))
    }

    fn post(&self, step: Step) {
        self.apply(step);
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn shown(&self) -> String {
        "model".to_owned()
    }
}
