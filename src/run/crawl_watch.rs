//! A crawl under way, watched: how its sites stand, what is told of it, and when it is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::crawl::CrawlOptions;
use super::report::{CrawlReport, Ending, SiteReport};
use super::standstill::Standstill;
use crate::frontier::{Frontier, FrontierError, FrontierErrorKind, Run, View, without_password};
use crate::monitor::{Monitor, Pulse, Shown};
use crate::work::{Outages, Roster};

/// How often it is looked at how the sites stand.
const LOOK: Duration = Duration::from_millis(200);
/// How often fresh pages are counted.
const COUNT_FRESH: Duration = Duration::from_mins(1);
/// How long the last look may take: a frontier on a server that is away may not answer at all.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// With more sites than this it is looked less often.
const FEW_SITES: usize = 50;

/// Looks how the sites stand, tells it, and knows when a crawl is over.
pub(super) struct Watch<'a> {
    options: &'a CrawlOptions,
    frontier: Frontier,
    roster: Roster,
    outages: Arc<Outages>,
    monitor: Monitor,
    began: Instant,
    pulse: Pulse,
    /// When fresh pages were counted last.
    counted: Option<Instant>,
    names: Vec<String>,
    still: BTreeMap<String, Standstill>,
    given_up: Vec<(String, String)>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        options: &'a CrawlOptions,
        frontier: &Frontier,
        roster: &Roster,
        outages: Arc<Outages>,
        monitor: &Monitor,
        shown: Shown,
    ) -> Self {
        Self {
            options,
            frontier: frontier.clone(),
            roster: roster.clone(),
            outages,
            monitor: monitor.clone(),
            began: Instant::now(),
            pulse: Pulse::new(monitor.clone(), shown),
            counted: None,
            names: roster.names(),
            still: BTreeMap::new(),
            given_up: Vec::new(),
        }
    }

    /// Looks again and again until the crawl is over; why it is.
    pub(super) async fn until_the_end(
        &mut self,
        stop: &CancellationToken,
        pool_ended: impl Fn() -> bool,
    ) -> Result<Ending, FrontierError> {
        loop {
            let deadline = self.time_left();
            let looked = tokio::select! {
                looked = self.is_finished() => looked,
                () = stop.cancelled() => Ok(false),
                () = tokio::time::sleep(deadline) => Ok(false),
            };
            let finished = match looked {
                Ok(finished) => finished,
                // The pool says so, once.
                Err(error) if error.is_transient() => false,
                Err(error) => return Err(error),
            };
            if let Some(ending) = self.ending(stop, finished) {
                self.pulse.beat();
                return Ok(ending);
            }
            if pool_ended() {
                return Ok(Ending::Stopped);
            }
            let told = tokio::select! {
                told = self.tell() => told,
                () = stop.cancelled() => Ok(()),
                () = tokio::time::sleep(deadline) => Ok(()),
            };
            if let Err(error) = told
                && !error.is_transient()
            {
                return Err(error);
            }
            let pause = if self.names.len() > FEW_SITES { LOOK * 5 } else { LOOK };
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
        }
    }

    /// Beats the pulse when it is time to.
    async fn tell(&mut self) -> Result<(), FrontierError> {
        if !self.pulse.is_due() {
            return Ok(());
        }
        if self.counted.is_none_or(|counted| counted.elapsed() >= COUNT_FRESH) {
            self.counted = Some(Instant::now());
            for name in &self.names {
                self.monitor.saw_freshness(name, self.frontier.freshness(name).await?);
            }
        }
        self.pulse.beat();
        Ok(())
    }

    /// Until the deadline.
    fn time_left(&self) -> Duration {
        self.options.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_sub(self.began.elapsed()))
    }

    fn ending(&self, stop: &CancellationToken, finished: bool) -> Option<Ending> {
        let late = self.time_left().is_zero();
        match () {
            () if finished && self.given_up.is_empty() => Some(Ending::Finished),
            () if finished => Some(Ending::GivenUp),
            () if stop.is_cancelled() => Some(Ending::Stopped),
            () if late => Some(Ending::Deadline),
            () if self.monitor.is_full() => Some(Ending::MaxPages),
            () => None,
        }
    }

    /// Whether every site is finished, those left out that were given up.
    ///
    /// Sites are looked at each at its own moment, so several are looked at twice: if nothing entered any of them in between,
    /// no page of one can have put a link into another's queue unseen.
    async fn is_finished(&mut self) -> Result<bool, FrontierError> {
        let Some(entered) = self.look().await? else { return Ok(false) };
        Ok(self.names.len() == 1 || self.look().await? == Some(entered))
    }

    /// Looks how every site stands; if all are finished, how much ever entered them.
    pub(super) async fn look(&mut self) -> Result<Option<u64>, FrontierError> {
        let mut total = Some(0);
        for view in self.frontier.views(&self.names).await? {
            let left = !view.finished && !self.is_given_up(&view);
            total = total.filter(|_| !left).map(|total| total + entered(&view));
            self.monitor.saw(view);
        }
        self.pulse.draw();
        Ok(total)
    }

    /// A site that could make no start for so long, or where nobody answered, with nothing in flight, is left as it is.
    fn is_given_up(&mut self, view: &View) -> bool {
        if self.given_up.iter().any(|(name, _)| *name == view.site) {
            return true;
        }
        let now = Instant::now();
        let away = self.monitor.is_away(&view.unit);
        let site = self.still.entry(view.site.clone()).or_insert_with(|| Standstill::new(view, now));
        // Nobody is given up for a disk that is full or a frontier that is away.
        let stands = site.look(view, away, self.outages.is_any_on(), now);
        let Some((stood, why)) = stands.filter(|(stood, _)| *stood >= self.options.give_up) else {
            return false;
        };
        let without = if away { "an answer" } else { "a start" };
        warn!(site = view.site, "given up after {}s without {without}: {why}", stood.as_secs());
        self.roster.remove(&view.site);
        self.given_up.push((view.site.clone(), why));
        true
    }

    /// What came of it; `found` is how the sites stood before, and their runs.
    pub(super) async fn report(
        mut self,
        ending: Ending,
        found: BTreeMap<String, (Option<View>, Run)>,
    ) -> Result<CrawlReport, FrontierError> {
        let looked = tokio::time::timeout(LAST_LOOK, self.last_look()).await;
        self.pulse.clear();
        let (finished, views) = looked.unwrap_or_else(|_| Err(self.no_answer()))?;
        let site = |view: View| {
            let (found, run) = found.get(&view.site)?.clone();
            let tally = self.monitor.tally(&view.site);
            Some(SiteReport { found: found.unwrap_or_else(|| view.clone()), run, view, tally })
        };
        let sites = views.into_iter().filter_map(site).collect();
        let ending = if finished && self.given_up.is_empty() { Ending::Finished } else { ending };
        Ok(CrawlReport { ending, sites, given_up: self.given_up })
    }

    /// Whether every site is finished, and how they stand.
    async fn last_look(&mut self) -> Result<(bool, Vec<View>), FrontierError> {
        Ok((self.is_finished().await?, self.frontier.views(&self.names).await?))
    }

    fn no_answer(&self) -> FrontierError {
        let at = without_password(&self.options.equipment.places.frontier);
        FrontierError::new(FrontierErrorKind::Away, at).because("how the sites stand can't be told")
    }
}

/// What ever entered a site; it never falls.
pub(crate) fn entered(view: &View) -> u64 {
    let stages = [&view.download, &view.parse];
    stages.iter().map(|stage| stage.created + stage.revived + stage.reruns).sum()
}
