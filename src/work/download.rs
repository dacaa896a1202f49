//! The download line: from a granted task to a page that is kept. One step a line, in `visit`.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use super::body_end::{BodyEnd, body_end};
use super::breakers::{health_of, put_off};
use super::error::VisitError;
use super::fresh_pages::FreshPage;
use super::outcome::{Judged, RobotsFound, failed, follow, judge, refused_or, robots_found, unsent_errand};
use super::parts::VisitParts;
use super::settle::Holds;
use super::slots::SlottedLease;
use super::walls::refusal;
use crate::archive::{PlaceError, RecordPlace, SentRequest, Visit, VisitOutcome};
use crate::canonical_url::CanonicalUrl;
use crate::fetch::{Exchange, FetchError, FetchErrorKind, Request, Unsent};
use crate::frontier::FrontierError;
use crate::frontier::permit::{NotNow, Permit};
use crate::page::Validators;
use crate::site::Site;
use crate::task::{
    Departure, Exclusion, Lease, Outcome, RobotsAccess, RobotsFetch, RobotsRecord, Stage, StoredPage,
};

/// Downloads one task's page; the parse that its settlement took along. Its settlement needs no slot, unless many wait for theirs.
pub(super) async fn visit(
    parts: &VisitParts,
    task: SlottedLease,
) -> Result<Option<SlottedLease>, VisitError> {
    let SlottedLease { lease, slot, noted } = task;
    let site = parts.site(&lease).await?;
    let task = Download { parts, site: &site, lease: &lease };
    if let Some(why) = parts.outages.frontier.in_time(task.unwanted()).await? {
        parts.settle(lease, Outcome::Excluded { why, unused: true }).await?;
        return Ok(None);
    }
    let permit = Permit::of(&lease, noted, parts.ground_of(&site));
    let dropped = parts.under_way.asks(&lease, site.unit());
    let asked = async { parts.fetcher.get(task.request().await, permit.clone()).await };
    let exchange = match dropped.run_until_cancelled(asked).await {
        Some(Ok(exchange)) => exchange,
        // Somebody paused it at once. Nobody knows whether it was sent: its start stays counted.
        None => {
            parts.outages.frontier.in_time(parts.frontier.hand_back(lease.key())).await?;
            return Ok(None);
        }
        Some(Err(unsent)) => return not_sent(parts, lease, noted, unsent).await.map(|()| None),
    };
    parts.under_way.answered(lease.token);
    let departure = permit.departure();
    parts.monitor.sent(&site, &lease.url, departure, &exchange);
    let (judged, block) = judge(&site, &lease, &exchange, parts.frontier.clock().now());
    let refusal = refusal(parts, &site, &lease, &exchange, block.is_some()).await?;
    let opened = parts.breakers.hear(&lease, noted, health_of(&exchange));
    let judged = refused_or(judged, &exchange, refusal.as_ref());
    let body_end = match &refusal {
        Some(refusal) => parts.say_refused(&site, &lease, refusal).await.map(|()| BodyEnd::SAID)?,
        None => body_end(parts, &site, &lease, block.as_ref()).await?,
    };
    let place = task.keep(&exchange, departure, &judged).await?;
    let outcome = put_off(task.conclude(&exchange, judged, &place).await?, opened.as_ref());
    let answer = exchange.answer.as_ref().ok();
    let response = answer.map(|fetched| fetched.page.response);
    let bytes = answer.map_or(0, |fetched| fetched.decoded.len());
    parts.under_way.kept(lease.token);
    let _end = parts.slots.free_for_the_end(slot).await;
    let frees_place = body_end.settled();
    let holds = Holds { block, away: opened };
    Ok(parts.settle_download(lease, outcome, holds, response, bytes, frees_place).await?)
}

/// A task that is downloaded, by the rules of its site.
#[derive(Clone, Copy)]
struct Download<'a> {
    parts: &'a VisitParts,
    site: &'a Arc<Site>,
    lease: &'a Lease,
}

impl<'a> Download<'a> {
    /// Why the page isn't to be asked for after all, by the rules in force now.
    async fn unwanted(self) -> Result<Option<Exclusion>, FrontierError> {
        let Self { parts, site, lease } = self;
        if lease.robots.is_some() {
            return Ok(None);
        }
        if !site.scope.covers(&lease.url) {
            return Ok(Some(Exclusion::Scope));
        }
        if site.rule_for(&lease.url).is_none() {
            return Ok(Some(Exclusion::NoRule));
        }
        let allowed = parts.verdicts.allows(site, &lease.url, lease.robots_until).await?;
        Ok((!allowed).then_some(Exclusion::Robots))
    }

    /// What is asked for.
    fn url(self) -> &'a CanonicalUrl {
        self.lease.robots.as_ref().map_or(&self.lease.url, |errand| &errand.fetch)
    }

    async fn request(self) -> Request<'a> {
        let Self { parts, site, lease } = self;
        let stored = lease.stored.as_ref().filter(|stored| !stored.validators.is_empty());
        // A 304 is only asked for while the body that it would confirm is there.
        let validators = match stored.map(|stored| (stored, stored.place.parse::<RecordPlace>())) {
            Some((stored, Ok(place))) if parts.archive.has(&place).await => Some(&stored.validators),
            _ => None,
        };
        Request { site, url: self.url(), validators, robots: lease.robots.is_some() }
    }

    /// Keeps the request and what came of it, durable before the task is settled; where the body is.
    async fn keep(
        self,
        exchange: &Exchange,
        departure: Departure,
        judged: &Judged,
    ) -> Result<RecordPlace, VisitError> {
        let Self { parts, site, lease } = self;
        let paid = (site.unit(), departure);
        let mut visit =
            Visit { fence: lease.fence, ..visit_to_keep(&lease.site, paid, self.url(), exchange) };
        match (&exchange.answer, judged, &lease.stored) {
            (Err(error), _, _) => report(lease, error),
            (Ok(fetched), Judged::NotModified, Some(stored)) => {
                let of = stored.place.parse().map_err(|e: PlaceError| VisitError::Parse(e.to_string()))?;
                let (page, fetched_at) = (fetched.page.clone(), stored.fetched_at);
                visit.outcome = VisitOutcome::NotModified { page, of, fetched_at };
            }
            _ => {}
        }
        Ok(parts.outages.pages.patiently(|| parts.archive.keep(visit.clone())).await?)
    }

    /// How the task ends; a redirect's target is put first, so that a crash in between repeats the put and loses nothing.
    async fn conclude(
        self,
        exchange: &Exchange,
        judged: Judged,
        place: &RecordPlace,
    ) -> Result<Outcome, VisitError> {
        let Self { site, lease, .. } = self;
        if let Some(errand) = &lease.robots {
            return Ok(match robots_found(site, lease.hops, errand, exchange) {
                RobotsFound::Record(record) => robots(lease, errand, record),
                RobotsFound::Moved(to) => Outcome::RobotsMoved { to },
            });
        }
        match judged {
            Judged::Ended(outcome) => Ok(outcome),
            Judged::Moved(to) => self.redirect(to).await,
            Judged::Fine | Judged::NotModified => Ok(self.done(exchange, &judged, place)),
        }
    }

    async fn redirect(self, to: url::Url) -> Result<Outcome, VisitError> {
        let Self { parts, site, lease } = self;
        let owner = match parts.outages.frontier.patiently(|| parts.owner_of(site, &to)).await {
            Ok(owner) => owner,
            Err(error) => return parts.awaits_rules(lease, &error).ok_or(error.into()),
        };
        let put = match follow(site, lease, to, owner.as_deref()) {
            Ok(put) => put,
            Err(outcome) => return Ok(outcome),
        };
        let target = put.url.clone();
        let owner = owner.as_deref().map_or(&site.name, |owner| &owner.name);
        parts.outages.frontier.patiently(|| parts.frontier.put(owner, vec![put.clone()])).await?;
        Ok(Outcome::Redirected { to: target })
    }

    fn done(self, exchange: &Exchange, judged: &Judged, place: &RecordPlace) -> Outcome {
        let Self { parts, site, lease } = self;
        let recrawl = site.rule_for(&lease.url).and_then(|rule| rule.recrawl);
        let Ok(fetched) = &exchange.answer else { return Outcome::Done { stored: None, recrawl } };
        let (given, fetched_at) = (Validators::of(&fetched.page.headers), exchange.sent.at);
        let stored = if let (Judged::NotModified, Some(stored)) = (judged, &lease.stored) {
            let validators = if given.is_empty() { stored.validators.clone() } else { given };
            StoredPage { place: stored.place.clone(), fetched_at, validators }
        } else {
            let place = place.to_string();
            if parts.role.walks(Stage::Parse) {
                let fresh =
                    FreshPage { headers: fetched.page.headers.clone(), body: fetched.decoded.clone() };
                parts.fresh_pages.lay(place.clone(), fresh);
            }
            StoredPage { place, fetched_at, validators: given }
        };
        Outcome::Done { stored: Some(stored), recrawl }
    }
}

/// No request went out: a late start goes back, what could not be asked leaves the task, everything else ends the attempt.
async fn not_sent(
    parts: &VisitParts,
    lease: Lease,
    noted: Duration,
    unsent: Unsent,
) -> Result<(), VisitError> {
    let error = match unsent {
        Unsent::NotNow(why @ (NotNow::TooLate | NotNow::Leaving)) => {
            if matches!(why, NotNow::TooLate) {
                warn!(site = lease.site, url = lease.url.as_str(), "{why}; it goes back");
            }
            parts.outages.frontier.in_time(parts.frontier.back(lease.key())).await?;
            return Ok(());
        }
        Unsent::NotNow(NotNow::Frontier(error)) => return Err(error.into()),
        Unsent::NotNow(why) => {
            debug!(site = lease.site, url = lease.url.as_str(), "not sent: {why}");
            return Ok(());
        }
        Unsent::Failed(error) if matches!(error.kind, FetchErrorKind::Lacking(_)) => {
            return Err(VisitError::Lacking(error));
        }
        Unsent::Failed(error) => error,
    };
    let outcome = match &lease.robots {
        Some(errand) => robots(&lease, errand, unsent_errand(errand, &error)),
        None => failed(&lease, &error),
    };
    report(&lease, &error);
    let opened = parts.breakers.hear(&lease, noted, error.health());
    let outcome = put_off(outcome, opened.as_ref());
    let holds = Holds { away: opened, ..Holds::default() };
    parts.settle_download(lease, outcome, holds, None, 0, true).await?;
    Ok(())
}

/// A request that stands for no task, paid to a pace unit with a departure, and what came of it, as they are kept.
pub(crate) fn visit_to_keep(
    site: &str,
    (unit, departure): (String, Departure),
    url: &CanonicalUrl,
    exchange: &Exchange,
) -> Visit {
    let Exchange { sent, answer } = exchange;
    Visit {
        site: site.to_owned(),
        unit,
        departure,
        fence: 0,
        request: SentRequest {
            url: url.clone(),
            method: sent.method,
            headers: sent.headers.clone(),
            sent_at: sent.at,
            signed_by: sent.signed_by.clone(),
            http_version: answer.as_ref().map_or(http::Version::HTTP_11, |fetched| fetched.page.version),
        },
        outcome: match answer {
            Ok(fetched) => VisitOutcome::Response(fetched.page.clone()),
            Err(error) => VisitOutcome::Failed { error: error.reason() },
        },
    }
}

/// How the asking for a `robots.txt` ends; that it can't be had is said once in a row.
fn robots(lease: &Lease, errand: &RobotsFetch, record: RobotsRecord) -> Outcome {
    if let (RobotsAccess::Unreachable(why), 0) = (&record.access, errand.failures) {
        let (site, host) = (&lease.site, errand.fetch.host());
        warn!(site, "robots.txt of {host} can't be had: {why}; the pages of this host wait for it");
    }
    Outcome::Robots(record)
}

fn report(lease: &Lease, error: &FetchError) {
    let (site, url) = (&lease.site, lease.url.as_str());
    debug!(site, url, attempt = lease.attempts + 1, "{}", error.reason());
}
