//! A run under way, watched: how its sites stand, what is told of it, and when it is over.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::noticed::NoticedRuns;
use super::report::Ending;
use super::standstill::Standstill;
use crate::clock;
use crate::frontier::unit_news::UnitNews;
use crate::frontier::{Frontier, FrontierError, View};
use crate::monitor::{Monitor, Pulse, Shown, Tally};
use crate::notify::EventPoster;
use crate::task::{Event, EventKind};
use crate::work::{Breakers, Outages, SiteRules, UnderWay, VisitParts};

/// How often it is looked how sites stand.
const LOOK: Duration = Duration::from_millis(200);
/// Looking takes no more than one part in so many of the time: a frontier far away is asked once a site.
const SHARE: u32 = 20;
/// The longest time between two looks of a crawl: someone may wait for its end.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest of one that works on all sites: a single slow look is no reason to go without several pulses.
const LONGEST_PAUSE_OF_ALL: Duration = Pulse::EVERY;
/// Of so many sites it is asked at once whether they are finished; the first that isn't is an answer.
const SITES_AT_ONCE: usize = 100;
/// How often it is looked of which sites this process tells; each of them is looked at then, and at each pulse.
const LOOK_AT_TOLD: Duration = Duration::from_secs(1);
/// How often fresh pages are counted.
const COUNT_FRESH: Duration = Duration::from_mins(1);

/// What a run works on, and until when.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// These sites, until each is finished or was given up after it made no start for so long.
    Named { names: Vec<String>, give_up: Duration, deadline: Option<Instant> },
    /// All sites of the frontier, until it is stopped or, where that is the end, until nothing is left.
    All { until_empty: bool },
}

/// Looks how sites stand, tells it, and knows when a run is over.
pub(super) struct Watch {
    frontier: Frontier,
    rules: SiteRules,
    outages: Arc<Outages>,
    breakers: Arc<Breakers>,
    under_way: Arc<UnderWay>,
    drained: CancellationToken,
    news: Arc<UnitNews>,
    monitor: Monitor,
    goal: Goal,
    pulse: Pulse,
    /// How the sites stood that were looked at last.
    views: Arc<Vec<View>>,
    /// When the last pulse was.
    beat: Instant,
    /// When fresh pages were counted last.
    counted: Option<Instant>,
    /// When the sites that move were looked at last.
    looked: Instant,
    /// A site that was not finished at the last look: it most likely isn't yet.
    unfinished: Option<String>,
    /// How many looks found that not all sites are finished, though nothing was under way here.
    in_vain: u32,
    still: BTreeMap<String, Standstill>,
    given_up: Vec<(String, String)>,
    events: EventPoster,
    noticed: NoticedRuns,
}

impl Watch {
    pub(super) fn new(goal: Goal, parts: &VisitParts, shown: Shown, dead_share: u64) -> Self {
        Self {
            frontier: parts.frontier.clone(),
            rules: parts.rules.clone(),
            outages: Arc::clone(&parts.outages),
            breakers: Arc::clone(&parts.breakers),
            under_way: Arc::clone(&parts.under_way),
            drained: parts.drained.clone(),
            news: Arc::clone(&parts.news),
            monitor: parts.monitor.clone(),
            pulse: Pulse::new(parts.monitor.clone(), shown),
            goal,
            views: Arc::default(),
            beat: Instant::now(),
            counted: None,
            looked: Instant::now(),
            unfinished: None,
            in_vain: 0,
            still: BTreeMap::new(),
            given_up: Vec::new(),
            events: parts.events.clone(),
            noticed: NoticedRuns::new(dead_share),
        }
    }

    /// Looks again and again until the run is over; why it is. A frontier that doesn't answer is waited for.
    pub(super) async fn until_the_end(&mut self, over: &CancellationToken) -> Result<Ending, FrontierError> {
        let drained = self.drained.clone();
        loop {
            let (began, deadline) = (Instant::now(), self.time_left());
            let looked = tokio::select! {
                looked = self.look() => looked,
                () = over.cancelled() => Ok(false),
                () = drained.cancelled() => Ok(false),
                () = clock::wait(deadline) => Ok(false),
            };
            let finished = match looked {
                Ok(finished) => finished,
                // The pool says so, once.
                Err(error) if error.is_transient() => false,
                Err(error) => return Err(error),
            };
            if let Some(ending) = self.ending(finished, over.is_cancelled()) {
                return Ok(ending);
            }
            let pause = drained.run_until_cancelled(clock::wait(self.pause(began.elapsed())));
            over.run_until_cancelled(pause).await;
        }
    }

    /// Looks how sites stand, and tells how they stood when it is time to; whether the run's goal is reached.
    async fn look(&mut self) -> Result<bool, FrontierError> {
        let is_due = self.beat.elapsed() >= Pulse::EVERY;
        let looked = self.look_at_sites(is_due).await;
        if is_due {
            self.beat();
        }
        self.pulse.draw(&self.views);
        looked
    }

    async fn look_at_sites(&mut self, is_due: bool) -> Result<bool, FrontierError> {
        let finished = self.is_finished().await?;
        if let Goal::All { .. } = self.goal {
            self.look_at_told(is_due).await?;
        }
        if is_due {
            self.count_fresh().await?;
        }
        Ok(finished)
    }

    fn beat(&mut self) {
        self.beat = Instant::now();
        self.pulse.beat(&self.views);
    }

    /// How long to wait after a look that took so long.
    fn pause(&self, took: Duration) -> Duration {
        let longest =
            if matches!(self.goal, Goal::Named { .. }) { LONGEST_PAUSE } else { LONGEST_PAUSE_OF_ALL };
        // The last pages of a fleet aren't to be outnumbered by those who wait for its end.
        let look = LOOK.saturating_mul(2_u32.saturating_pow(self.in_vain)).min(LONGEST_PAUSE);
        look.max(took * SHARE).min(self.time_left()).min(longest)
    }

    /// Until the deadline.
    fn time_left(&self) -> Duration {
        match self.goal {
            Goal::Named { deadline: Some(deadline), .. } => {
                deadline.saturating_duration_since(Instant::now())
            }
            _ => Duration::MAX,
        }
    }

    fn ending(&mut self, finished: bool, over: bool) -> Option<Ending> {
        let of_all = matches!(self.goal, Goal::All { until_empty: true });
        let ending = match () {
            () if finished && self.given_up.is_empty() => Ending::Finished,
            () if finished => Ending::GivenUp,
            // Its pages would never be done here, and nobody may be there who can.
            () if (of_all || self.rules.is_of_lanes()) && self.rules.lacks_something() => Ending::Lacking,
            () if self.drained.is_cancelled() => Ending::Drained,
            () if over => Ending::Stopped,
            () if self.time_left().is_zero() => Ending::Deadline,
            () if self.under_way.is_full() => Ending::MaxPages,
            () => return None,
        };
        self.beat();
        Some(ending)
    }

    async fn count_fresh(&mut self) -> Result<(), FrontierError> {
        if self.counted.is_none_or(|counted| counted.elapsed() >= COUNT_FRESH) {
            self.counted = Some(Instant::now());
            for View { site, .. } in self.views.iter() {
                self.monitor.saw_freshness(site, self.frontier.freshness(site).await?);
            }
        }
        Ok(())
    }

    /// Whether every site is finished, those left out that were given up.
    ///
    /// Sites are looked at one after the other, so several are looked at twice. If no site gained a task between the two
    /// looks, all were empty at the same instant, and no page of one can have put a link into another's queue unseen.
    pub(super) async fn is_finished(&mut self) -> Result<bool, FrontierError> {
        let Some(first) = self.all_finished().await? else { return Ok(false) };
        let is_one = matches!(&self.goal, Goal::Named { names, .. } if names.len() == 1);
        Ok(is_one || self.all_finished().await? == Some(first))
    }

    /// How much ever entered the sites, if all of them are finished.
    async fn all_finished(&mut self) -> Result<Option<u64>, FrontierError> {
        let (names, give_up) = match self.goal.clone() {
            Goal::Named { names, give_up, .. } => (names, give_up),
            Goal::All { until_empty: true } => return self.every_site_finished().await,
            Goal::All { until_empty: false } => return Ok(None),
        };
        let views = self.frontier.views(&names).await?;
        let mut total = Some(0);
        for view in &views {
            let left = !view.finished && !self.is_given_up(view, give_up);
            total = total.filter(|_| !left).map(|total| total + entered(view));
        }
        self.saw(views);
        Ok(total)
    }

    async fn every_site_finished(&mut self) -> Result<Option<u64>, FrontierError> {
        // What this process has in hand is of a site that isn't finished.
        if !self.under_way.is_idle() {
            return Ok(None);
        }
        if let Some(name) = &self.unfinished
            && let Some(view) = self.frontier.view(name).await?
            && !is_empty(&view)
        {
            self.in_vain += 1;
            return Ok(None);
        }
        // Looked at before the sites: what is put of them later is seen there.
        if self.frontier.has_campaigns(&self.rules.scope()).await? {
            self.in_vain += 1;
            return Ok(None);
        }
        let mut total = 0;
        for some in self.rules.all_on(&self.frontier).await?.chunks(SITES_AT_ONCE) {
            for view in self.frontier.views(some).await? {
                if !is_empty(&view) {
                    self.unfinished = Some(view.site);
                    self.in_vain += 1;
                    return Ok(None);
                }
                total += entered(&view);
            }
        }
        Ok(Some(total))
    }

    /// Looks at the sites of which this process tells before a pulse, and meanwhile at those of which it begins to. Of several
    /// processes one at a time tells of a site.
    async fn look_at_told(&mut self, is_due: bool) -> Result<(), FrontierError> {
        if !is_due && self.looked.elapsed() < LOOK_AT_TOLD {
            return Ok(());
        }
        self.looked = Instant::now();
        let mut told = self.under_way.told();
        let mut views = Vec::new();
        if !is_due {
            let seen = self.views.iter().filter(|view| told.contains(&view.site));
            views.extend(seen.cloned());
            told.retain(|site| views.iter().all(|view| view.site != *site));
        }
        if is_due || !told.is_empty() {
            views.extend(self.frontier.views(&told).await?);
            views.sort_by(|one, other| one.site.cmp(&other.site));
            self.saw(views);
        }
        Ok(())
    }

    /// Starts that were granted by what is no longer so are asked about again.
    fn saw(&mut self, views: Vec<View>) {
        let before: HashMap<&str, &View> = self.views.iter().map(|view| (view.site.as_str(), view)).collect();
        for view in views.iter().filter(|view| view.holds_more_than(before.get(view.site.as_str()).copied()))
        {
            self.news.doubt(&view.unit);
        }
        views.iter().filter_map(|view| self.noticed.look(view)).for_each(|event| self.events.post(event));
        self.views = Arc::new(views);
        self.under_way.saw(&self.views);
    }

    /// A site that could make no start for so long, or where nobody answered, with nothing in flight, is left as it is.
    fn is_given_up(&mut self, view: &View, give_up: Duration) -> bool {
        if self.given_up.iter().any(|(name, _)| *name == view.site) {
            return true;
        }
        let now = Instant::now();
        let away = self.breakers.is_open(&view.site);
        let lacking = self.rules.why_left(&view.site);
        let site = self.still.entry(view.site.clone()).or_insert_with(|| Standstill::new(view, now));
        // Nobody is given up for a disk that is full or a frontier that is away.
        let stands = site.look(view, away, lacking, self.outages.is_any_on(), now);
        let Some((stood, why)) = stands.filter(|(stood, _)| *stood >= give_up) else { return false };
        let without = if away { "an answer" } else { "a start" };
        let told = format!("given up after {}s without {without}: {why}", stood.as_secs());
        warn!(site = view.site, "{told}");
        let event = Event::new(EventKind::SiteGivenUp, &view.site, format!("{told}; the next start goes on"));
        self.events.post(event.with("stood_s", stood.as_secs()));
        self.rules.leave(&view.site);
        self.given_up.push((view.site.clone(), why));
        true
    }

    /// What came of it.
    pub(super) async fn results(&self) -> Result<AllResults, FrontierError> {
        let AllResults { mut sites, mut dead, mut held } = AllResults::default();
        for view in self.frontier.views(&self.rules.all_on(&self.frontier).await?).await? {
            dead += view.download.letters + view.parse.letters;
            held.extend((view.held_in_all > 0).then(|| view.clone()));
            if self.under_way.has_worked_on(&view.site) {
                let tally = self.monitor.tally(&view.site);
                sites.push((view, tally));
            }
        }
        Ok(AllResults { sites, dead, held })
    }

    /// Ends what is shown; how the sites stood at the last look, and those that were given up, each with the reason.
    pub(super) fn end(self) -> (Arc<Vec<View>>, Vec<(String, String)>) {
        (self.views, self.given_up)
    }
}

/// What came of a run of all sites.
#[derive(Debug, Default)]
pub(super) struct AllResults {
    /// How the sites stand on which this process worked, and what it did for each.
    pub(super) sites: Vec<(View, Tally)>,
    /// The dead letters of all that it may work on.
    pub(super) dead: u64,
    /// Those that have sessions which a dead step holds.
    pub(super) held: Vec<View>,
}

/// What ever entered a site; it never falls.
fn entered(view: &View) -> u64 {
    let stages = [&view.download, &view.parse];
    stages.iter().map(|stage| stage.created + stage.revived + stage.reruns).sum()
}

/// Whether nothing of a site is left. A run is not over before all its seeds are put. Of a site whose run was never begun, what
/// was put into it nevertheless counts.
fn is_empty(view: &View) -> bool {
    view.finished || view.run == 0 && view.download.is_finished() && view.parse.is_finished()
}
