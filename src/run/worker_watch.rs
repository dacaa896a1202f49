//! Work under way, watched: how the sites stand that move, what is told of it, and when it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::crawl_watch::entered;
use super::error::RunError;
use super::site_folder::SiteFolder;
use super::worker::WorkEnding;
use crate::frontier::{Frontier, FrontierError, View};
use crate::monitor::{Monitor, Pulse, Shown};
use crate::work::{Roster, VisitError};

/// How often it is looked whether something is to be done here.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked at how sites stand while their number changes; else at each pulse, as a frontier far away is asked
/// once a site.
const LOOK_AT_SITES: Duration = Duration::from_secs(1);
/// Of so many sites it is asked at once whether they are finished; the first that isn't is an answer.
const SITES_AT_ONCE: usize = 100;
/// Looking takes no more than one part in so many of the time.
const SHARE: u32 = 20;
/// A site moves if something of it was granted to this process within this time.
const LATELY: Duration = Duration::from_mins(1);
/// How often fresh pages are counted.
const COUNT_FRESH: Duration = Duration::from_mins(1);
/// When site files are read again that could not be registered.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// Looks how the sites stand on which this process works, and knows when it is over.
pub(super) struct Watch {
    frontier: Frontier,
    monitor: Monitor,
    roster: Roster,
    folder: Option<SiteFolder>,
    reload: Arc<Notify>,
    /// Nothing being left is the end.
    until_empty: bool,
    pulse: Pulse,
    /// When it was last looked at how sites stand, and at how many.
    looked: (Instant, usize),
    /// When fresh pages were counted last.
    counted: Option<Instant>,
    /// A site that was not finished at the last look: it most likely isn't yet.
    unfinished: Option<String>,
}

impl Watch {
    pub(super) fn new(
        frontier: &Frontier,
        monitor: &Monitor,
        roster: &Roster,
        shown: Shown,
        folder: Option<SiteFolder>,
        reload: Arc<Notify>,
        until_empty: bool,
    ) -> Self {
        Self {
            frontier: frontier.clone(),
            monitor: monitor.clone(),
            roster: roster.clone(),
            folder,
            reload,
            until_empty,
            pulse: Pulse::new(monitor.clone(), shown),
            looked: (Instant::now(), 0),
            counted: None,
            unfinished: None,
        }
    }

    /// Looks again and again until the work is over; why it is. A frontier that does not answer is waited for.
    pub(super) async fn until_the_end(
        &mut self,
        stop: &CancellationToken,
        pool_ended: impl Fn() -> bool,
    ) -> Result<WorkEnding, FrontierError> {
        loop {
            let began = Instant::now();
            let looked = tokio::select! {
                looked = self.look() => looked,
                () = stop.cancelled() => Ok(false),
            };
            match looked {
                Ok(true) => return Ok(WorkEnding::Empty),
                // Its pages would never be done here, and nobody may be there who can.
                _ if self.until_empty && self.roster.lacks_something() => return Ok(WorkEnding::Lacking),
                Err(error) if !error.is_transient() => return Err(error),
                Ok(false) | Err(_) => {}
            }
            if stop.is_cancelled() || pool_ended() {
                return Ok(WorkEnding::Stopped);
            }
            let pause = LOOK.max(began.elapsed() * SHARE);
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
                () = self.reload.notified() => {
                    stop.run_until_cancelled(self.read_again()).await;
                }
            }
        }
    }

    /// Whether nothing is left, where that is the end.
    async fn look(&mut self) -> Result<bool, FrontierError> {
        let moving = self.monitor.moving(LATELY);
        let is_time = self.pulse.is_due();
        let (looked, count) = self.looked;
        if is_time || (moving.len() != count && looked.elapsed() >= LOOK_AT_SITES) {
            for view in self.frontier.views(&moving).await? {
                self.monitor.saw(view);
            }
            self.looked = (Instant::now(), moving.len());
        }
        if is_time {
            self.count_fresh(&moving).await?;
            self.pulse.beat();
        }
        self.pulse.draw();
        Ok(self.until_empty && self.is_empty().await?)
    }

    async fn count_fresh(&mut self, moving: &[String]) -> Result<(), FrontierError> {
        if self.counted.is_none_or(|counted| counted.elapsed() >= COUNT_FRESH) {
            self.counted = Some(Instant::now());
            for name in moving {
                self.monitor.saw_freshness(name, self.frontier.freshness(name).await?);
            }
        }
        Ok(())
    }

    /// Whether nothing waits, runs or is delayed by back-off anywhere.
    ///
    /// Sites are looked at each at its own moment, twice: if nothing entered any of them in between, all were finished at
    /// one moment, and a page of one can't have put a link into another's queue unseen.
    async fn is_empty(&mut self) -> Result<bool, FrontierError> {
        if let Some(name) = &self.unfinished
            && let Some(view) = self.frontier.view(name).await?
            && !is_finished(&view)
        {
            return Ok(false);
        }
        let Some(first) = self.all_finished().await? else { return Ok(false) };
        Ok(self.all_finished().await? == Some(first))
    }

    /// What ever entered the sites, if all of them are finished.
    async fn all_finished(&mut self) -> Result<Option<u64>, FrontierError> {
        let mut total = 0;
        for some in self.frontier.sites().await?.chunks(SITES_AT_ONCE) {
            for view in self.frontier.views(some).await? {
                if !is_finished(&view) {
                    self.unfinished = Some(view.site);
                    return Ok(None);
                }
                total += entered(&view);
            }
        }
        Ok(Some(total))
    }

    /// Reads the site files again, as soon as the frontier takes them.
    async fn read_again(&mut self) {
        let Some(folder) = &mut self.folder else {
            warn!("told to read site files again, but none were named: start with --sites DIR");
            return;
        };
        match folder.read(&self.frontier).await {
            Ok(()) => {}
            Err(RunError::Visit(VisitError::Frontier(error))) => {
                warn!(%error, "site files can't be registered yet; they are read again soon");
                let reload = Arc::clone(&self.reload);
                tokio::spawn(async move {
                    tokio::time::sleep(READ_AGAIN).await;
                    reload.notify_one();
                });
            }
            Err(error) => tracing::error!("{error}; the rules that were in force stay so"),
        }
    }
}

/// Also a site whose run was never begun: what was put into it nevertheless counts.
fn is_finished(view: &View) -> bool {
    view.download.is_finished() && view.parse.is_finished()
}
