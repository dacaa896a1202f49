//! `Fetcher`: one request with a permit, and the answer as it came. When to ask, whether to try again and where a
//! redirect leads is decided elsewhere.

mod address;
mod body;
mod ceiling;
mod client;
mod connect_to;
mod connection;
mod cookies;
mod dial;
mod error;
mod head;
mod http2;
mod pool;
mod resolve;
mod webhook;
mod wire;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, PROXY_AUTHORIZATION, SET_COOKIE};
use tokio::sync::Semaphore;
use tracing::warn;

pub use ceiling::Ceiling;
pub use client::install_tls;
pub use connect_to::{ConnectTo, ConnectToError};
pub use error::{FetchError, FetchErrorKind, Wait};
pub use head::{lacking, signature_end};
pub use webhook::Webhook;

use crate::canonical_url::CanonicalUrl;
use crate::clock::{Clock, Timestamp};
use crate::frontier::permit::{NotNow, Permit};
use crate::page::{Page, Validators};
use crate::recent::Recent;
use crate::signature::{self, KeyFolder};
use crate::site::Site;
use client::{Chosen, Clients, Reach};
use cookies::Cookies;
use head::Head;
use pool::Need;
use wire::{Started, Unstarted};

/// The most sites whose cookies are kept.
const MOST_SITES: usize = 16_384;
/// A day, in ms.
const DAY: i64 = 24 * 3_600_000;
/// The most origins of a site of which it is known that they want HTTP/1.1.
const MOST_ORIGINS: usize = 256;

/// Settings of a `Fetcher`, the same for all sites.
#[derive(Debug, Default)]
pub struct FetcherOptions {
    /// Where requests go instead; the first that takes a URL counts.
    pub connect_to: Vec<ConnectTo>,
    /// Certificates in PEM to trust besides the system's.
    pub cacert: Option<Vec<u8>>,
    /// The keys to sign with.
    pub keys: KeyFolder,
}

/// Why no `Fetcher` could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetcherError {
    /// The certificates can't be used.
    #[error("the file of --cacert can't be used: {0}")]
    Certificate(String),
    /// A client can't be made.
    #[error("no HTTP client: {0}")]
    Client(String),
    /// A literal address over TLS has no name that a certificate could be checked for elsewhere.
    #[error("--connect-to can't lead https://{0} elsewhere, as it has no name")]
    NoName(String),
}

/// Asks sites. Cheap to share; one does for a process.
#[derive(Debug)]
pub struct Fetcher {
    clients: Clients,
    keys: KeyFolder,
    sites: Mutex<Recent<String, SiteConnections, MOST_SITES>>,
}

/// What is kept of a site from one request to the next.
#[derive(Clone, Debug)]
struct SiteConnections {
    cold: Arc<Semaphore>,
    cookies: Arc<Cookies>,
    /// Origins that asked for HTTP/1.1 where HTTP/2 was agreed on.
    http1_only: Arc<Mutex<Recent<url::Origin, (), MOST_ORIGINS>>>,
    /// The day on which it was last said that its signature ends soon.
    warned: Arc<AtomicI64>,
}

impl SiteConnections {
    /// Says once a day that the site's signature ends soon.
    fn warn_of_end(&self, site: &Site) {
        let now = Clock::wall().now();
        if let Some(soon) = signature_end(site).and_then(|ends| signature::soon(ends, now)) {
            let day = now.as_millis() / DAY;
            if self.warned.swap(day, Ordering::Relaxed) != day {
                warn!(site = site.name, "{soon}; {}", signature::ASK);
            }
        }
    }

    fn http1_only(&self) -> MutexGuard<'_, Recent<url::Origin, (), MOST_ORIGINS>> {
        self.http1_only.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The site that the URL belongs to.
    pub site: &'a Site,
    /// The page.
    pub url: &'a CanonicalUrl,
    /// What the site gave with the page as it is stored, so that it can answer 304.
    pub validators: Option<&'a Validators>,
    /// It is a `robots.txt`: any media type will do, no validators are sent, and it is cut after 500 KiB
    /// (RFC 9309 section 2.5).
    pub robots: bool,
}

impl Request<'_> {
    /// Whether a `robots.txt` was redirected to a host that isn't the site's: that one is a public one, or it isn't asked, and what
    /// the site's file adds isn't for it.
    fn is_elsewhere(&self) -> bool {
        self.robots && !self.site.scope.owns(self.url)
    }
}

/// A request that was sent, and what came of it.
#[derive(Debug)]
pub struct Exchange {
    /// The request as sent.
    pub sent: Sent,
    /// The answer.
    pub answer: Result<FetchedPage, FetchError>,
}

/// A request as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The stamp of its permit: when it was sent.
    pub at: Timestamp,
    /// The method.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// The header fields, names in lower case, `host` first. Secrets and cookies are left out.
    pub headers: Vec<(String, String)>,
    /// The key that signed it, by its thumbprint.
    pub signed_by: Option<String>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct FetchedPage {
    /// The answer as it came.
    pub page: Page,
    /// The body, decompressed. Empty where the status isn't 2xx.
    pub decoded: Bytes,
}

/// Why no request was sent.
#[derive(Debug, thiserror::Error)]
pub enum Unsent {
    /// The permit no longer held: the task goes back, no attempt is counted.
    #[error(transparent)]
    NotNow(NotNow),
    /// Name, address, connection or settings stood in the way.
    #[error(transparent)]
    Failed(FetchError),
}

impl Fetcher {
    /// A fetcher for all sites of a process.
    pub fn new(options: FetcherOptions) -> Result<Self, FetcherError> {
        let clients = Clients::new(options.connect_to, options.cacert.as_deref())?;
        Ok(Self { clients, keys: options.keys, sites: Mutex::default() })
    }

    /// Sends one GET while the permit holds and reads the answer, following nothing.
    ///
    /// `Ok` means that a request went out, whatever came of it; `Err` that none did.
    pub async fn get(&self, request: Request<'_>, permit: Permit) -> Result<Exchange, Unsent> {
        if let Some(lacking) = lacking(request.site, &self.keys) {
            return Err(Unsent::Failed(FetchError::new(request.url, FetchErrorKind::Lacking(lacking))));
        }
        let state = self.state_of(request.site);
        state.warn_of_end(request.site);
        let chosen = self.choose(&request, &state, permit.departure().wait())?;
        let cookies = request.site.fetch.cookies.then(|| state.cookies.of(request.url.url())).flatten();
        let head = head::head(&request, cookies, &self.keys).map_err(Unsent::Failed)?;
        let outgoing = outgoing(&request, &chosen, &head.fields).map_err(Unsent::Failed)?;
        let started = send(&request, &chosen, outgoing, &state, &permit).await?;
        let sent = sent(&request, head, started.sent_at);
        let answer = answer(&request, started, &state, chosen.through_proxy).await;
        if answer.as_ref().is_err_and(FetchError::wants_http1) {
            state.http1_only().put(request.url.url().origin(), ());
        }
        Ok(Exchange { sent, answer })
    }

    /// The connections that are kept for longer than `wait`, the time between two starts as in force.
    fn choose(
        &self,
        request: &Request<'_>,
        state: &SiteConnections,
        wait: Duration,
    ) -> Result<Chosen, Unsent> {
        let failed = |kind| Unsent::Failed(FetchError::new(request.url, kind));
        if request.is_elsewhere() && is_of_proxy(request) {
            let why = "robots.txt was redirected to the site's own proxy".to_owned();
            return Err(failed(FetchErrorKind::Settings(why)));
        }
        let http1_only = state.http1_only().get(&request.url.url().origin()).is_some();
        let allow_private = request.site.fetch.allow_private && !request.is_elsewhere();
        let way = Reach { allow_private, http1_only };
        let chosen = self.clients.choose(request.site, request.url.url(), way, wait);
        let chosen = chosen.map_err(|error| failed(FetchErrorKind::Settings(error.to_string())))?;
        let guarded = !chosen.led_elsewhere && !allow_private;
        let is_named = request.site.scope.owns(request.url);
        // A literal address never reaches the resolver, so it is checked here.
        let private = address::literal(request.url.url()).filter(|ip| {
            guarded && !address::is_public(*ip)
                || !chosen.led_elsewhere && !is_named && address::is_metadata(*ip)
        });
        private.map_or(Ok(chosen), |ip| Err(failed(FetchErrorKind::Private(ip))))
    }

    fn state_of(&self, site: &Site) -> SiteConnections {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || SiteConnections {
            cold: Arc::new(Semaphore::new(1)),
            cookies: Arc::default(),
            http1_only: Arc::default(),
            warned: Arc::default(),
        };
        sites.get_or(site.name.clone(), new).clone()
    }
}

/// Whether a request is for the host of its site's proxy, which may be at a private address.
fn is_of_proxy(request: &Request<'_>) -> bool {
    let proxy = head::proxy_of(request.site).ok().flatten();
    proxy.is_some_and(|proxy| proxy.host_str() == request.url.url().host_str())
}

/// The request with its header.
fn outgoing(
    request: &Request<'_>,
    chosen: &Chosen,
    head: &HeaderMap,
) -> Result<http::Request<()>, FetchError> {
    let unaskable =
        |why: http::uri::InvalidUri| FetchError::new(request.url, FetchErrorKind::Unaskable(why.to_string()));
    let mut outgoing = http::Request::new(());
    *outgoing.uri_mut() = chosen.url.as_str().parse().map_err(unaskable)?;
    *outgoing.headers_mut() = head.clone();
    if chosen.url != *request.url.url() && !head.contains_key("host") {
        let no_field = |_| head::settings(request, "the host makes no header field");
        let host = request.url.host().as_str().parse().map_err(no_field)?;
        outgoing.headers_mut().insert("host", host);
    }
    if let Some(password) = &chosen.proxy_password {
        outgoing.headers_mut().entry(PROXY_AUTHORIZATION).or_insert(password.clone());
    }
    Ok(outgoing)
}

async fn send(
    request: &Request<'_>,
    chosen: &Chosen,
    outgoing: http::Request<()>,
    state: &SiteConnections,
    permit: &Permit,
) -> Result<Started, Unsent> {
    let connect_timeout = request.site.fetch.connect_timeout;
    let need = Need { url: &chosen.url, cold: &state.cold, patience: connect_timeout };
    let (patience, _) = body::patience(request, Duration::ZERO);
    let started =
        wire::send(&chosen.pool, need, &outgoing, || permit.start(), permit.leaves(), patience).await;
    started.map_err(|unstarted| match unstarted {
        Unstarted::NotNow(why) => Unsent::NotNow(why),
        Unstarted::Connect(error) => {
            Unsent::Failed(FetchError::of_request(request.url, error, chosen.through_proxy, connect_timeout))
        }
    })
}

async fn answer(
    request: &Request<'_>,
    started: Started,
    state: &SiteConnections,
    through_proxy: bool,
) -> Result<FetchedPage, FetchError> {
    let (_, wait) = body::patience(request, Duration::ZERO);
    let answer = started.answer.ok_or_else(|| body::timed_out(request, wait))?;
    let mut response =
        answer.map_err(|error| FetchError::of_answer(request.url, error, FetchErrorKind::NoAnswer))?;
    // The site hasn't said a word: this is no answer of its.
    if through_proxy && response.head.status == http::StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(FetchError::new(request.url, FetchErrorKind::ProxyPassword));
    }
    if request.site.fetch.cookies {
        state.cookies.take(response.head.headers.get_all(SET_COOKIE).iter(), request.url.url());
    }
    mask_cookies(&mut response.head.headers);
    body::read(request, response, started.sent_at, started.sent).await
}

/// A cookie may be the key to an account: its value is kept nowhere but, where it is sent back, in memory.
fn mask_cookies(headers: &mut HeaderMap) {
    let masked = |value: &http::HeaderValue| {
        let name = value.as_bytes().split(|byte| matches!(byte, b'=' | b';')).next().unwrap_or_default();
        http::HeaderValue::from_bytes(&[name, b"=***"].concat()).ok()
    };
    let kept: Vec<_> = headers.get_all(SET_COOKIE).iter().filter_map(masked).collect();
    headers.remove(SET_COOKIE);
    for value in kept {
        headers.append(SET_COOKIE, value);
    }
}

fn sent(request: &Request<'_>, head: Head, at: Timestamp) -> Sent {
    let url = request.url.url();
    let shown = |value: &http::HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match text.split_once(' ') {
            _ if !value.is_sensitive() => text,
            Some((scheme @ "Basic", _)) => format!("{scheme} ***"),
            _ => "***".to_owned(),
        }
    };
    let Head { fields: head, signed_by } = head;
    let host = (!head.contains_key("host")).then(|| ("host".to_owned(), request.url.host().to_string()));
    let fields = head.iter().map(|(name, value)| (name.as_str().to_owned(), shown(value)));
    Sent {
        at,
        method: "GET",
        target: url[url::Position::BeforePath..url::Position::AfterQuery].to_owned(),
        headers: host.into_iter().chain(fields).collect(),
        signed_by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i17_of_many_sites_the_cookies_of_the_last_ones_stay() {
        let fetcher = Fetcher::new(FetcherOptions::default()).expect("a fetcher");
        let text = "seeds = [\"https://shop.example/\"]\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n";
        let mut site = crate::site::parse(text, "shop.toml").expect("a good site");
        let mut state_of = |n: usize| {
            site.name = format!("s{n}");
            fetcher.state_of(&site)
        };
        let first = state_of(0);
        assert!(Arc::ptr_eq(&first.cookies, &state_of(0).cookies));
        (1..2 * MOST_SITES).for_each(|n| drop(state_of(n)));
        assert!(fetcher.sites.lock().expect("whole").len() <= MOST_SITES);
        assert!(!Arc::ptr_eq(&first.cookies, &state_of(0).cookies), "they were forgotten");
    }
}
