//! What follows from how a visit went. Pure: the site's answer and the lease in, the outcome out.

use std::time::Duration;

use url::Url;

use super::links::{tenant_of, wish_for};
use super::walls::mark_of;
use crate::canonical_url::CanonicalUrl;
use crate::fetch::{Exchange, FetchError, FetchErrorKind};
use crate::manners::{MOST_REDIRECTS, MOST_ROBOTS_REDIRECTS, Signal, backoff, location};
use crate::page::Headers;
use crate::robots::{UnreachableRow, record_of, unreachable};
use crate::site::Site;
use crate::task::{
    BatchNames, Exclusion, Failure, LaneWish, Lease, Origin, Outcome, Put, RobotsFetch, RobotsRecord,
    SessionWish, WallSighting,
};

/// What an answer means to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It brought the page.
    Fine,
    /// The stored page is still right.
    NotModified,
    /// It is elsewhere.
    Moved(Url),
    /// It ends so.
    Ended(Outcome),
}

/// How a page's visit went, and for how long the site wants to be left alone.
pub(super) fn judge(
    site: &Site,
    lease: &Lease,
    exchange: &Exchange,
    now: crate::clock::Timestamp,
) -> (Judged, Option<(Duration, String)>) {
    let fetched = match &exchange.answer {
        Ok(fetched) => fetched,
        Err(error) => return (Judged::Ended(failed(lease, error)), None),
    };
    match Signal::of(&fetched.page, &site.pace, now) {
        Signal::Fine => (Judged::Fine, None),
        Signal::NotModified if lease.stored.is_some() => (Judged::NotModified, None),
        Signal::NotModified => {
            let why = Failure::status(304, "HTTP 304 Not Modified, though nothing was asked to compare");
            (Judged::Ended(Outcome::Dead { why }), None)
        }
        Signal::Redirect(to) => (Judged::Moved(to), None),
        Signal::Retry { why, block } => (Judged::Ended(again(lease, why)), block),
        Signal::Dead(why) => (Judged::Ended(Outcome::Dead { why }), None),
    }
}

/// What a page is that a wall stands before.
pub(super) fn refused_or(judged: Judged, exchange: &Exchange, refusal: Option<&WallSighting>) -> Judged {
    match (refusal, &exchange.answer) {
        (Some(refusal), Ok(fetched)) => {
            let why = Failure::status(fetched.page.status, refusal.why.clone());
            Judged::Ended(Outcome::Refused { why })
        }
        _ => judged,
    }
}

/// How a task ends whose request failed or could not be sent.
pub(super) fn failed(lease: &Lease, error: &FetchError) -> Outcome {
    match error.kind {
        FetchErrorKind::Type(_) => Outcome::Excluded { why: Exclusion::Type, unused: false },
        _ if error.is_transient() => again(lease, Failure::new(error.reason())),
        _ => Outcome::Dead { why: Failure::new(error.reason()) },
    }
}

fn again(lease: &Lease, why: Failure) -> Outcome {
    Outcome::Retry { after: backoff(lease.attempts + 1, fastrand::f64()), why }
}

/// Where a redirect leads as a put into `owner`'s queue, or how it ends where it can't be followed.
pub(super) fn follow(site: &Site, lease: &Lease, to: Url, owner: Option<&Site>) -> Result<Put, Outcome> {
    let dead = |reason: String| Err(Outcome::Dead { why: Failure::new(reason) });
    let Some(owner) = owner else {
        let host = match CanonicalUrl::from_url(to) {
            Ok(target) => target.host(),
            Err(error) => return dead(format!("redirected to what is no page: {error}")),
        };
        return dead(format!("redirected out of scope to {host}: add it to scope.hosts"));
    };
    let target = match owner.canonical(to) {
        Ok(target) => target,
        Err(error) => return dead(format!("redirected to what is no page: {error}")),
    };
    if target == lease.url && !site.fetch.cookies {
        return dead("redirected to itself; if it wants cookies, set cookies = true in [fetch]".to_owned());
    }
    if lease.hops >= MOST_REDIRECTS {
        return dead(format!("redirected more than {MOST_REDIRECTS} times, last to {target}"));
    }
    if !owner.scope.covers(&target) {
        return Err(Outcome::Excluded { why: Exclusion::Scope, unused: false });
    }
    let Some(rule) = owner.rule_for(&target) else {
        return Err(Outcome::Excluded { why: Exclusion::NoRule, unused: false });
    };
    let put = match lease.origin {
        // A link to the page that runs would be known already, and the page lost: it is asked for once more.
        Origin::Link if target != lease.url => Put::link(target, lease.depth),
        Origin::Request | Origin::Link => Put::request(target, lease.priority),
    };
    let (depth, hops, priority) = (lease.depth, lease.hops + 1, lease.priority);
    let wish = LaneWish { urgent: lease.urgent, ..wish_for(tenant_of(lease, site), owner) };
    let rule = Some(rule.name.clone());
    let session = lease.session.as_deref().filter(|_| owner.name == site.name).map(SessionWish::of);
    // A campaign is of one site: what it leads to elsewhere is none of it.
    let is_of = |name: &&String| owner.name == site.name || !BatchNames::is_of_campaign(name);
    let batches = lease.batches.iter().filter(is_of).cloned().collect();
    Ok(Put { priority, depth, hops, rule, wish, session, batches, ..put })
}

/// What an answer to the request for a `robots.txt` comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RobotsFound {
    /// A record.
    Record(RobotsRecord),
    /// It is there.
    Moved(CanonicalUrl),
}

/// What came of asking for a `robots.txt` to which `hops` redirects led.
pub(crate) fn robots_found(site: &Site, hops: u32, errand: &RobotsFetch, exchange: &Exchange) -> RobotsFound {
    let row = UnreachableRow { failures: errand.failures, random: fastrand::f64() };
    let fetched = match &exchange.answer {
        Ok(fetched) => fetched,
        Err(error) => return RobotsFound::Record(unreachable(&error.reason(), row)),
    };
    let page = &fetched.page;
    if matches!(page.status, 301 | 302 | 303 | 307 | 308) {
        return match moved_robots(hops, &errand.fetch, &page.headers) {
            Ok(to) => RobotsFound::Moved(to),
            Err(why) => RobotsFound::Record(unreachable(&why, row)),
        };
    }
    // A page of the wall's is not the host's word: taken for none, everything would be allowed.
    if let Some(mark) = mark_of(fetched, false) {
        return RobotsFound::Record(unreachable(&mark.why, row));
    }
    RobotsFound::Record(record_of(page.status, &page.headers, &fetched.decoded, &site.pace, row))
}

/// Where a redirected `robots.txt` is, or why it can't be had; `hops` redirects led to the one that was `asked` for. It may be on
/// another host (RFC 9309 section 2.3.1.2); the fetcher asks none but public ones.
fn moved_robots(hops: u32, asked: &CanonicalUrl, headers: &Headers) -> Result<CanonicalUrl, String> {
    let Some(Ok(target)) = location(asked, headers) else {
        return Err("robots.txt is redirected nowhere".to_owned());
    };
    let to = CanonicalUrl::from_url(target).map_err(|e| format!("robots.txt is redirected: {e}"))?;
    if hops >= MOST_ROBOTS_REDIRECTS {
        return Err(format!("robots.txt is redirected more than {MOST_ROBOTS_REDIRECTS} times"));
    }
    Ok(to)
}

/// The record of a `robots.txt` for which no request could be sent.
pub(super) fn unsent_errand(errand: &RobotsFetch, error: &FetchError) -> RobotsRecord {
    unreachable(&error.reason(), UnreachableRow { failures: errand.failures, random: fastrand::f64() })
}
