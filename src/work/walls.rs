//! Looks whether an answer refuses (W1, W4): by its marks and, only where there is one that a good page may have as well, by what
//! the page's rule finds. And says it: to the frontier at once, and in the log.

use std::sync::Arc;

use tracing::{info, warn};

use super::error::VisitError;
use super::parts::VisitParts;
use super::refusals::Heard;
use crate::clock::millis;
use crate::content_coding;
use crate::extract::{Extract, Fetched, extract};
use crate::fetch::{Exchange, FetchedPage};
use crate::frontier::FrontierError;
use crate::manners::wall::{self, Answer, Mark, Met, RulePage};
use crate::quantity::spoken;
use crate::site::{PageRule, Site};
use crate::task::{Event, EventKind, Lease, Outcome, Priority, Put, WallSighting};

/// What helps, where a site refuses. Nothing is ever solved or disguised.
const HELP: &str = "what helps: a slower interval, a signature that the owner lets in, or a mail to the owner with `paced audit`";

/// A page that leads on shows it within so many links; this is looked at on the threads that keep the pace.
const MOST_LOOKED_AT: usize = 200;

/// How a site refused a page, if it did. `is_block`: it says for how long it is to be left alone.
pub(super) async fn refusal(
    parts: &VisitParts,
    site: &Arc<Site>,
    lease: &Lease,
    exchange: &Exchange,
    is_block: bool,
) -> Result<Option<WallSighting>, VisitError> {
    let Ok(fetched) = &exchange.answer else { return Ok(None) };
    if lease.robots.is_some() {
        return Ok(None);
    }
    let status = fetched.page.status;
    let is_error = parts.refusals.is_one_error_too_many(site.unit(), status == 503 && !is_block);
    let why = match mark_of(fetched, is_block) {
        Some(mark) if mark.is_sure || !found_something(parts, site, lease, fetched).await? => Some(mark.why),
        _ if is_error => Some("HTTP 503 without a Retry-After, the third among 20 answers".to_owned()),
        _ if !is_block && is_refused_again(lease, fetched) => Some(told_again(status)),
        _ => in_a_row(parts, site, lease, fetched).await?,
    };
    Ok(why.map(|why| WallSighting {
        why,
        of_site: wall::is_of_site(status),
        looks: wall::looks(status, &fetched.decoded),
        first: millis(parts.first_probe),
        dice: fastrand::u32(..),
    }))
}

/// Whether this is a probe, and refused as the pages before.
fn is_refused_again(lease: &Lease, fetched: &FetchedPage) -> bool {
    lease.probe_of.is_some_and(|looks| wall::refuses_again(fetched.page.status, &fetched.decoded, looks))
}

/// What a probe met that has no mark.
pub(crate) fn told_again(status: u16) -> String {
    if wall::may_be_a_page(status) { "the same body again".to_owned() } else { format!("HTTP {status}") }
}

/// Refusals without a mark: several in a row are tried with a page that was good, and are a wall where that is refused too.
async fn in_a_row(
    parts: &VisitParts,
    site: &Arc<Site>,
    lease: &Lease,
    fetched: &FetchedPage,
) -> Result<Option<String>, VisitError> {
    let Some(rule) = site.rule_for(&lease.url) else { return Ok(None) };
    let met = wall::met(fetched.page.status, &fetched.decoded);
    let (name, rule) = (&lease.site, &rule.name);
    let heard = parts.refusals.hear(name, rule, &page_of(lease), met);
    let (Heard::Suspected(open) | Heard::Confirmed(open)) = &heard else { return Ok(None) };
    if matches!(met, Met::Page(_)) && found_something(parts, site, lease, fetched).await? {
        parts.refusals.dismiss(name, rule);
        return Ok(None);
    }
    let told = open.told(rule);
    let (puts, why) = if let Heard::Confirmed(_) = heard {
        let letters = open.letters.iter().filter(|letter| letter.url != lease.url);
        // As the targets of redirects do, they take the place of what was taken in before: a site that is full has room for them.
        let puts = letters.map(|letter| Put { hops: 1, ..again(letter, rule, Priority::LINK) }).collect();
        (puts, Some(format!("{told}, and for one that was good before")))
    } else {
        info!(site = name, url = open.probe.url.as_str(), "{told}: a page that was good is asked for again");
        (vec![again(&open.probe, rule, Priority::ROBOTS)], None)
    };
    parts.outages.frontier.patiently(|| parts.frontier.put(name, puts.clone())).await?;
    Ok(why)
}

fn page_of(lease: &Lease) -> RulePage {
    RulePage { url: lease.url.clone(), depth: lease.depth }
}

/// As deep as it was: what `max_depth` holds off its links stays off.
fn again(page: &RulePage, rule: &str, priority: Priority) -> Put {
    Put { depth: page.depth, rule: Some(rule.to_owned()), ..Put::request(page.url.clone(), priority) }
}

/// The mark of an answer.
pub(crate) fn mark_of(fetched: &FetchedPage, is_block: bool) -> Option<Mark> {
    let page = &fetched.page;
    let words;
    let body = if wall::may_be_a_page(page.status) {
        &fetched.decoded
    } else {
        words = content_coding::beginning(&page.headers, &page.body, wall::LOOKED_AT);
        &words
    };
    wall::mark(&Answer { status: page.status, headers: &page.headers, body, is_block })
}

/// Whether a page is the shop's own after all, though it has a mark.
async fn found_something(
    parts: &VisitParts,
    site: &Arc<Site>,
    lease: &Lease,
    fetched: &FetchedPage,
) -> Result<bool, VisitError> {
    let rule = site.pages.iter().position(|rule| rule.takes(&lease.url));
    let Some(rule) = rule.filter(|_| wall::may_be_a_page(fetched.page.status)) else { return Ok(false) };
    let (site, url, depth) = (Arc::clone(site), lease.url.clone(), lease.depth);
    let (headers, body) = (fetched.page.headers.clone(), fetched.decoded.clone());
    let fetched_at = fetched.page.sent_at;
    let parse = move || {
        let page = Fetched { url: &url, fetched_at, headers: &headers, body: &body };
        let rule = &site.pages[rule];
        // What takes too long is too much for a vendor's page.
        extract(&page, rule, &site).map_or(true, |found| has_found(rule, &found, &site, depth))
    };
    parts.parse_pool.run(&lease.site, parse).await
}

/// Whether a rule finds any of its fields on a page; one without fields, any page to go on to.
pub(super) fn has_found(rule: &PageRule, found: &Extract, site: &Site, depth: u32) -> bool {
    if rule.has_fields() {
        return found.has_fields();
    }
    let takes =
        |url: &url::Url| site.canonical(url.clone()).is_ok_and(|url| site.takes(&url, depth + 1).is_ok());
    found.links.iter().take(MOST_LOOKED_AT).any(takes)
}

impl VisitParts {
    /// Remembers a page that gave what its rule wants, if all that is required was there; and says where a rule finds nothing any
    /// more.
    pub(super) fn learn(&self, lease: &Lease, rule: &PageRule, has_found: bool, is_done: bool, body: &[u8]) {
        let (site, url, name) = (&lease.site, &lease.url, &rule.name);
        if has_found && is_done {
            self.refusals.worked(site, name, &page_of(lease));
        }
        let found_nothing = || self.refusals.found_nothing(site, name, url, wall::met(200, body));
        if !has_found && rule.has_fields() && found_nothing() {
            let url = url.as_str();
            warn!(site, url, "rule `{name}` finds none of its fields: was the shop rebuilt?");
        }
    }

    /// Says that the body ended, and that it refuses; the process that found the wall logs it.
    pub(super) async fn say_refused(
        &self,
        site: &Site,
        lease: &Lease,
        refusal: &WallSighting,
    ) -> Result<(), FrontierError> {
        let refuse = self.outages.frontier.patiently(|| self.frontier.refuse(lease.key(), refusal.clone()));
        // Starts that were granted before are void. Who asks about one comes behind what is on its way.
        let doubt = async { self.news.doubt(&site.unit()) };
        tokio::join!(biased; refuse, doubt).0?;
        // It is only for the log.
        let view = self.frontier.view(&lease.site).await.ok().flatten();
        let Some(wall) = view.and_then(|view| view.wall) else { return Ok(()) };
        let (name, why, url) = (&lease.site, &refusal.why, wall.url.as_str());
        let wait = wall.probe_at.since(self.frontier.clock().now());
        let next = spoken(wait);
        if lease.is_probe() {
            let refused = wall.refused;
            warn!(
                site = name,
                refused, "walled still, since {}: {why}; the next probe in {next}", wall.since
            );
        } else if url == lease.url.as_str() && wall.refused == 0 {
            let text = format!("it refuses ({why}) and is left alone but for a probe, in {next}; {HELP}");
            let event = Event::new(EventKind::Walled, name, text).with("probe_in_s", wait.as_secs());
            self.events.post(event);
            warn!(
                site = name,
                url, "walled: {why}; the site is left alone but for a probe, in {next}; {HELP}"
            );
        }
        Ok(())
    }
}

/// A probe came to an end.
pub(super) fn log_probe(lease: &Lease, outcome: &Outcome) {
    let is_answer = match outcome {
        Outcome::Done { .. } | Outcome::Redirected { .. } => true,
        Outcome::Dead { why } => why.status.is_some(),
        _ => false,
    };
    if lease.is_probe() && is_answer {
        info!(site = lease.site, "the wall is gone: a probe was answered; slowly at first");
    }
}
