//! One page looked at by a site's rules: what `robots.txt` says, which rule takes it, what is on it. Asked for, it pays the
//! site's pace and is kept as any other request; nothing comes into a queue, and no item is written.

use bytes::Bytes;
use tracing::info;

use super::ask::{Asker, PaidRequest};
use super::robots::verdict;
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::fetch::FetchedPage;
use crate::manners::{MOST_REDIRECTS, Signal};
use crate::page::Headers;
use crate::robots::{Verdict, Verdicts};
use crate::run::RunError;
use crate::site::{Refusal, Site};

/// A page's content, wherever it comes from.
#[derive(Clone, Debug)]
pub struct Content {
    /// Its URL.
    pub url: CanonicalUrl,
    /// When it was fetched, or last confirmed.
    pub fetched_at: Timestamp,
    /// Its status, where it was asked for.
    pub status: Option<u16>,
    /// The header fields that it came with.
    pub headers: Headers,
    /// The body, decompressed.
    pub body: Bytes,
}

/// One URL on the way to a page: the one that was named, or where a redirect led.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The URL, as the site stores it.
    pub url: CanonicalUrl,
    /// The rule that takes it, or why it is not for this crawl.
    pub taken: Result<String, Refusal>,
    /// What `robots.txt` says of it, where it was looked at.
    pub robots: Option<Verdict>,
    /// Why there is no content here, although it was asked for: a redirect, a status, a failure.
    pub ended: Option<String>,
}

/// What came of asking for a page.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// The URLs on the way, the last one being the page where there is content.
    pub hops: Vec<Hop>,
    /// Every request that was sent, in order.
    pub sent: Vec<PaidRequest>,
    /// What was brought.
    pub content: Option<Content>,
}

/// Judges a URL by the site's file alone.
pub fn judge(site: &Site, url: CanonicalUrl, depth: u32) -> Hop {
    let taken = site.takes(&url, depth).map(|rule| rule.name.clone());
    Hop { url, taken, robots: None, ended: None }
}

/// Asks for a page and follows its redirects as far as a crawl would.
pub async fn walk(
    asker: &mut Asker<'_>,
    verdicts: &Verdicts,
    url: CanonicalUrl,
    depth: u32,
) -> Result<Walk, RunError> {
    let mut walk = Walk::default();
    let mut next = Some(url);
    while let Some(url) = next.take() {
        let mut hop = judge(asker.site, url, depth);
        next = step(asker, verdicts, &mut walk, &mut hop).await?;
        if next.is_some() && walk.hops.len() >= MOST_REDIRECTS as usize {
            hop.ended = Some(format!("redirected more than {MOST_REDIRECTS} times"));
            next = None;
        }
        walk.hops.push(hop);
    }
    walk.sent.clone_from(&asker.sent);
    Ok(walk)
}

/// Asks for one hop, if it is to be asked for; where it is redirected to.
async fn step(
    asker: &mut Asker<'_>,
    verdicts: &Verdicts,
    walk: &mut Walk,
    hop: &mut Hop,
) -> Result<Option<CanonicalUrl>, RunError> {
    if hop.taken.is_err() {
        return Ok(None);
    }
    let verdict = verdict(asker, verdicts, &hop.url).await?;
    let allowed = verdict.allowed;
    hop.robots = Some(verdict);
    if !allowed {
        return Ok(None);
    }
    info!(url = hop.url.as_str(), "asking for the page when its turn comes");
    let answer = asker.exchange(&hop.url, false).await?;
    match answer.and_then(|exchange| exchange.answer.map_err(|error| error.reason())) {
        Ok(fetched) => Ok(take(asker, walk, hop, fetched)),
        Err(why) => {
            hop.ended = Some(why);
            Ok(None)
        }
    }
}

fn take(asker: &Asker<'_>, walk: &mut Walk, hop: &mut Hop, fetched: FetchedPage) -> Option<CanonicalUrl> {
    let page = &fetched.page;
    let (ended, to) = match Signal::of(page, &asker.site.pace, asker.frontier.clock().now()) {
        Signal::Fine => {
            walk.content = Some(Content {
                url: hop.url.clone(),
                fetched_at: page.sent_at,
                status: Some(page.status),
                headers: page.headers.clone(),
                body: fetched.decoded,
            });
            return None;
        }
        Signal::Redirect(to) => {
            let ended = format!("HTTP {}, redirected to {to}", page.status);
            let to = asker.site.canonical(to).ok();
            (ended, to.filter(|to| *to != hop.url || asker.site.fetch.cookies))
        }
        Signal::NotModified => {
            ("HTTP 304 Not Modified, though nothing was asked to compare".to_owned(), None)
        }
        Signal::Dead(why) => (why.reason, None),
        Signal::Retry { why, block } => (block.map_or(why.reason, |(_, asked)| asked), None),
    };
    hop.ended = Some(ended);
    to
}
