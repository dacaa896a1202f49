//! Campaigns are fed by one process of all that download: what it does in a step, any other one goes on with at any moment (C12,
//! C16).

use std::time::{Duration, Instant};

use tracing::{debug, info};

use super::turn::Duty;
use crate::frontier::state::{CampaignState, MARK_MS};
use crate::frontier::{CampaignName, CampaignPhase, CampaignStatus, Frontier, FrontierError};
use crate::task::{Event, EventKind};

/// The shortest and the longest time between two looks: a portion may be half gone, or somebody may start a campaign, at any time.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The same while there is none.
const IDLE: Duration = Duration::from_secs(5);
/// What is over is looked for so often.
const SWEPT_EVERY: Duration = Duration::from_mins(10);

/// Feeds all campaigns.
pub(super) struct CampaignFeeder {
    frontier: Frontier,
    /// When it looked last for what is over.
    swept: Option<Instant>,
}

/// Two who feed put no page twice.
impl Duty for CampaignFeeder {
    const NAME: &'static str = "campaigns";
    const FAILS: &'static str = "campaigns can't be fed";
    const LONGEST: Duration = LONGEST;

    /// Looks at each of them.
    async fn step(&mut self) -> Result<Duration, FrontierError> {
        if self.swept.is_none_or(|at| at.elapsed() >= SWEPT_EVERY) {
            self.swept = Some(Instant::now());
            self.frontier.sweep_campaigns(None).await?;
        }
        let (mut next, mut failed) = (IDLE, None);
        for name in self.frontier.campaign_names().await? {
            // One that can't be reached or read keeps no other one waiting.
            match self.look_at(&name).await {
                Ok(again) => next = next.min(again),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(next.max(SHORTEST)), Err)
    }
}

impl CampaignFeeder {
    pub(super) fn new(frontier: Frontier) -> Self {
        Self { frontier, swept: None }
    }

    /// Looks at a campaign; when to look again.
    async fn look_at(&self, name: &CampaignName) -> Result<Duration, FrontierError> {
        let Some(status) = self.frontier.campaign(&name.site, &name.name).await? else { return Ok(IDLE) };
        self.tend(name, &status).await?;
        // A tick that has passed while a portion is full: less than half of it may be left at any time.
        let tick = status.campaign.next_tick - status.at;
        let again = if status.campaign.is_to_be_ended() { LONGEST } else { IDLE };
        let is_awaited = status.campaign.is_fed() && tick > 0;
        Ok(if is_awaited { again.min(Duration::from_millis(tick.unsigned_abs())) } else { again })
    }

    /// Does for a campaign what is due.
    async fn tend(&self, name: &CampaignName, status: &CampaignStatus) -> Result<(), FrontierError> {
        let CampaignName { name: campaign, site, .. } = name;
        if status.room > 0 {
            let put = self.frontier.top_up(name, status).await?;
            debug!(campaign, site, pages = put, "put of a campaign");
            return Ok(());
        }
        if status.campaign.drops && status.campaign.stopped {
            self.frontier.drop_of_campaign(site, campaign).await?;
        }
        let is_over = status.campaign.is_done(status.counts.open);
        let is_news = is_over && status.campaign.ended_at.is_none();
        let is_to_mark = status.phase() == CampaignPhase::Running
            && status.campaign.marks.last().is_some_and(|(at, _)| status.at - at >= MARK_MS);
        if is_news {
            // Before its end is noted: a process that dies in between leaves both to the next one.
            self.frontier.post_event(end_of(name, status)).await?;
        }
        if is_news || is_to_mark {
            let CampaignState { list, next, .. } = &status.campaign;
            self.frontier.feed_campaign(site, campaign, list, *next, Vec::new()).await?;
        }
        if is_news {
            let (fed, dead) = (status.campaign.next, status.counts.dead);
            info!(campaign, site, fed, dead, "a campaign has ended");
            self.frontier.clear_list(name).await?;
        }
        Ok(())
    }
}

/// What an operator is told as a campaign ends (C19).
fn end_of(CampaignName { name, site, .. }: &CampaignName, status: &CampaignStatus) -> Event {
    let (fed, all, dead) = (status.campaign.next, status.campaign.list.total, status.counts.dead);
    let text = format!("the campaign `{name}` has ended: {fed} of its {all} pages were put; dead: {dead}");
    Event::new(EventKind::CampaignDone, site, text)
        .with("fed", fed.into())
        .with("pages", all.into())
        .with("dead", dead)
}
