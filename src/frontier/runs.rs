//! Runs: begun, seeded, given up. Each is many small steps, which another process may do as well.

use tracing::warn;

use super::table::{Reply, Step};
use super::{Begun, Frontier, FrontierError, Run, SeedReply, TOKENS};
use crate::canonical_url::fingerprint;
use crate::task::Put;

/// Seeds put in one step.
const SEEDED: usize = 1_000;

/// What tells a list of seeds from another one.
fn list_of(seeds: &[Put]) -> u64 {
    let add = |list: u64, seed: &Put| list.rotate_left(1) ^ fingerprint(seed.url.as_str()).cast_unsigned();
    seeds.iter().fold(0, add) % TOKENS
}

impl Frontier {
    /// Goes on with an unfinished run; when the last one is finished, begins a new one with these seeds. They are put in
    /// portions: a run that was begun by a process which died puts the rest of them now.
    pub async fn begin_run(&self, site: &str, seeds: Vec<Put>) -> Result<Run, FrontierError> {
        self.run(site, &seeds, None).await
    }

    /// Gives up an unfinished run, in small steps, and begins a new one. A run that another process began meanwhile is gone on
    /// with.
    pub async fn begin_fresh_run(&self, site: &str, seeds: Vec<Put>) -> Result<Run, FrontierError> {
        let old = self.view(site).await?.map_or(0, |view| view.run);
        while self.give_up_run(site, old).await? {}
        self.run(site, &seeds, Some(old)).await
    }

    async fn run(&self, site: &str, seeds: &[Put], fresh: Option<i64>) -> Result<Run, FrontierError> {
        let mut begun = self.begin(site, seeds, fresh).await?;
        while begun.is_given_up {
            while self.go_on_giving_up(site).await? {}
            begun = self.begin(site, seeds, Some(begun.run.number)).await?;
        }
        let mut next = begun.next;
        while let Some(from) = next {
            next = match self.seed(site, seeds, from).await? {
                SeedReply::Next(next) => Some(next),
                SeedReply::Done => None,
                SeedReply::Another => {
                    let all = seeds.len();
                    warn!(
                        site,
                        "{from} of {all} seeds were put, then another list took their place, or the run was given up"
                    );
                    begun.run.is_replaced = true;
                    None
                }
            };
        }
        while ask!(self, Sweep { site: site.to_owned() })? {}
        Ok(begun.run)
    }

    /// The first step of a run, which puts none of its seeds yet. It may be a fresh one, to follow the run of that number.
    pub async fn begin(&self, site: &str, seeds: &[Put], fresh: Option<i64>) -> Result<Begun, FrontierError> {
        let count = u32::try_from(seeds.len()).unwrap_or(u32::MAX);
        ask!(self, BeginRun { site: site.to_owned(), fresh, list: list_of(seeds), seeds: count })
    }

    /// Puts at most 1,000 of a run's seeds, from that one on; which is next, if one is. Pages of the run aren't fetched again.
    pub async fn seed(&self, site: &str, seeds: &[Put], from: u32) -> Result<SeedReply, FrontierError> {
        let puts = seeds.iter().skip(from as usize).take(SEEDED).cloned().collect();
        ask!(self, Seed { site: site.to_owned(), list: list_of(seeds), from, puts })
    }

    /// Gives up an unfinished run, its dead letters included, a bounded number of tasks a step; whether some are left.
    pub async fn give_up(&self, site: &str) -> Result<bool, FrontierError> {
        ask!(self, GiveUp { site: site.to_owned(), run: None, goes_on: false })
    }

    /// The same for a run of that number, and no later one.
    pub async fn give_up_run(&self, site: &str, run: i64) -> Result<bool, FrontierError> {
        ask!(self, GiveUp { site: site.to_owned(), run: Some(run), goes_on: false })
    }

    /// The same where a run is being given up: whoever began that may have died.
    pub async fn go_on_giving_up(&self, site: &str) -> Result<bool, FrontierError> {
        ask!(self, GiveUp { site: site.to_owned(), run: None, goes_on: true })
    }
}
