//! `Asker`: one request after another to a site, each paid by the timed mutex of the site's pace and kept in the archive.

use std::time::Duration;

use crate::archive::Archive;
use crate::canonical_url::CanonicalUrl;
use crate::clock::{self, Timestamp, millis};
use crate::fetch::{Exchange, Fetcher, Request, Unsent};
use crate::frontier::permit::Permit;
use crate::frontier::{Frontier, MutexKey};
use crate::manners::{Signal, wall};
use crate::mutex::TimedMutex;
use crate::quantity::spoken;
use crate::run::RunError;
use crate::settings::Settings;
use crate::site::Site;
use crate::task::{Departure, WallSighting};
use crate::work::{mark_of, told_again, visit_to_keep};

/// The longest that a site which the frontier doesn't know is waited for beyond its interval: others that look at it pay no more,
/// unless its robots.txt asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Asks a site for single pages.
#[derive(Debug)]
pub struct Asker<'a> {
    /// The site, by the rules that are tried.
    pub site: &'a Site,
    /// Whose timed mutex is taken.
    pub frontier: &'a Frontier,
    /// Keeps what is sent and answered.
    pub archive: &'a Archive,
    /// Sends.
    pub fetcher: &'a Fetcher,
    /// Intervals of groups.
    pub settings: &'a Settings,
    /// What was sent so far.
    pub sent: Vec<PaidRequest>,
    /// What a `robots.txt` read here asks for between two requests.
    pub crawl_delay: Duration,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidRequest {
    /// What was asked for.
    pub url: CanonicalUrl,
    /// The pace unit that it was paid to.
    pub unit: String,
    /// The interval that it was paid with.
    pub interval: Duration,
    /// When it was sent.
    pub at: Timestamp,
    /// The status of the answer, and how long it took; none where none came.
    pub answer: Option<(u16, Duration)>,
}

/// Who is paid, and how much.
struct Payment {
    /// The site that has the host.
    owner: String,
    /// Whether the frontier knows it.
    is_known: bool,
    unit: String,
    /// The longer of what the unit and the site wait.
    interval: Duration,
    /// What a group waits, which may be less than its site; zero where that isn't known.
    group: Option<Duration>,
    /// When the site's own wait is over, which its unit's mutex knows nothing of.
    due: Timestamp,
}

impl Payment {
    /// The start that a permit has, with what its unit and its site waited for it.
    fn departure(&self, permit: &Permit) -> Departure {
        let departure = permit.departure();
        Departure { unit: self.group.map_or(departure.unit, millis), ..departure }
    }
}

impl<'a> Asker<'a> {
    /// One that has not asked for anything yet.
    pub fn new(
        site: &'a Site,
        frontier: &'a Frontier,
        archive: &'a Archive,
        fetcher: &'a Fetcher,
        settings: &'a Settings,
    ) -> Self {
        Self { site, frontier, archive, fetcher, settings, sent: Vec::new(), crawl_delay: Duration::ZERO }
    }

    /// Sends one request when its turn comes, and keeps it. The inner error is why none was sent, in words.
    pub(super) async fn exchange(
        &mut self,
        url: &CanonicalUrl,
        robots: bool,
    ) -> Result<Result<Exchange, String>, RunError> {
        let price = self.price(url).await?;
        // Waiting before the connection is made, so that no server has to hold an idle one meanwhile.
        self.wait_for_turn(&price).await?;
        let permit = Permit::single(self.frontier, &price.unit, price.interval);
        let request = Request { site: self.site, url, validators: None, robots };
        let exchange = match self.fetcher.get(request, permit.clone()).await {
            Ok(exchange) => exchange,
            Err(Unsent::NotNow(why)) => return Ok(Err(format!("not sent: {why}"))),
            Err(Unsent::Failed(error)) => return Ok(Err(format!("not sent: {}", error.reason()))),
        };
        let answer =
            exchange.answer.as_ref().ok().map(|fetched| (fetched.page.status, fetched.page.response));
        let (unit, interval) = (price.unit.clone(), price.interval);
        let paid = (unit.clone(), price.departure(&permit));
        // Under the site whose pace it kept: of another one's starts it knows nothing.
        let visit = visit_to_keep(&price.owner, paid, url, &exchange);
        self.sent.push(PaidRequest { url: url.clone(), unit, interval, at: exchange.sent.at, answer });
        let kept = self.archive.keep(visit).await;
        if let Ok(fetched) = &exchange.answer
            && let Signal::Retry { block: Some((wait, why)), .. } =
                Signal::of(&fetched.page, &self.site.pace, self.frontier.clock().now())
        {
            self.leave_alone(&price, &permit, wait, &why).await?;
        }
        if !robots {
            self.tell_wall(&price, url, &exchange).await?;
        }
        kept?;
        Ok(Ok(exchange))
    }

    /// Who tries a page of a walled site is its probe; a page that is refused by a mark that needs no look at it makes a wall. What
    /// is to be asked for again later says nothing of it.
    async fn tell_wall(
        &self,
        price: &Payment,
        url: &CanonicalUrl,
        exchange: &Exchange,
    ) -> Result<(), RunError> {
        let Ok(fetched) = &exchange.answer else { return Ok(()) };
        let (page, now) = (&fetched.page, self.frontier.clock().now());
        let signal = Signal::of(page, &self.site.pace, now);
        let (is_block, is_answer) =
            (matches!(signal, Signal::Retry { block: Some(_), .. }), !matches!(signal, Signal::Retry { .. }));
        let known = self.frontier.view(&price.owner).await?.and_then(|view| view.wall);
        let mark =
            mark_of(fetched, is_block).filter(|mark| mark.is_sure || known.is_some()).map(|mark| mark.why);
        let again =
            known.as_ref().filter(|wall| wall::refuses_again(page.status, &fetched.decoded, wall.looks));
        let again = again.map(|_| told_again(page.status));
        let refusal = mark.or(again).map(|why| WallSighting {
            why,
            of_site: wall::is_of_site(page.status),
            looks: wall::looks(page.status, &fetched.decoded),
            first: wall::FIRST_PROBE,
            dice: fastrand::u32(..),
        });
        if !is_block && (known.is_some() && is_answer || refusal.is_some()) {
            self.frontier.probed(&price.owner, url, refusal).await?;
        }
        Ok(())
    }

    /// Nobody starts a request of the unit for as long as the site asked to be left alone. A site that the frontier doesn't know
    /// can't be blocked there: its unit's mutex is held on, which holds a crawl back as well.
    async fn leave_alone(
        &self,
        price: &Payment,
        permit: &Permit,
        wait: Duration,
        why: &str,
    ) -> Result<(), RunError> {
        if !self.frontier.block(&price.owner, wait, why).await? {
            if !permit.hold(wait).await? {
                TimedMutex::of_unit(self.frontier, &price.unit).expire(wait).lock().await?;
            }
            // It may have been registered meanwhile.
            self.frontier.block(&price.owner, wait, why).await?;
        }
        Ok(())
    }

    async fn wait_for_turn(&self, price: &Payment) -> Result<(), RunError> {
        if price.interval.is_zero() && price.is_known {
            return Ok(());
        }
        // Each server of a cluster has a time of its own.
        let clock = self.frontier.clock_of(&MutexKey::unit(&price.unit));
        if let Some(last) = self.sent.iter().rev().find(|sent| sent.unit == price.unit) {
            // What a robots.txt that was just read asks for may be more than its own request paid.
            let waited = clock.now().since(last.at);
            clock::wait(price.interval.saturating_sub(waited)).await;
        }
        clock::wait(price.due.since(clock.now())).await;
        let mutex = TimedMutex::of_unit(self.frontier, &price.unit);
        while let Some(left) = mutex.left().await? {
            if !price.is_known && left > price.interval.max(LONGEST_WAIT) {
                let why = format!("its pace is held for {}, as after a Retry-After", spoken(left));
                return Err(refused(&price.owner, &why));
            }
            clock::wait(left.min(Duration::from_secs(5))).await;
        }
        Ok(())
    }

    /// The pace in force: that of whichever site has the host in the frontier, and never less than the file says.
    async fn price(&self, url: &CanonicalUrl) -> Result<Payment, RunError> {
        let site = self.site;
        let owner = self.frontier.site_of(&url.host()).await?.unwrap_or_else(|| site.name.clone());
        let in_settings = |group| self.settings.groups.get(group).copied().unwrap_or_default();
        let group = site.group.as_ref().map(in_settings);
        let wanted = site.pace.interval.max(group.unwrap_or_default()).max(self.crawl_delay);
        let Some(view) = self.frontier.view(&owner).await? else {
            let due = Timestamp::default();
            return Ok(Payment { owner, is_known: false, unit: site.unit(), interval: wanted, group, due });
        };
        if let Some(why) = view.held_back() {
            return Err(refused(&view.site, &why));
        }
        let in_force = Duration::from_millis(view.interval.unsigned_abs());
        let group = view.says.group.map(|wait| Duration::from_millis(wait.unsigned_abs()));
        // Whoever tries a page of a walled site is its probe.
        let paced = view.last_start.map_or(Timestamp::default(), |last| last.plus(in_force));
        let due = if view.wall.is_some() { paced } else { view.due };
        let (unit, interval) = (view.unit, wanted.max(in_force));
        Ok(Payment { owner, is_known: true, unit, interval, group, due })
    }
}

fn refused(site: &str, why: &str) -> RunError {
    RunError::Refused(format!(
        "site `{site}` is left alone: {why}; nothing was asked for. A page that was fetched before can be read with --stored"
    ))
}
