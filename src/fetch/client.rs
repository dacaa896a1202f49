//! Pools of connections: one for most sites, further ones for those whose file or whose pace asks for another.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::HeaderValue;
use reqwest::{Certificate, ClientBuilder, Proxy, redirect, retry};
use url::Url;

use super::FetcherError;
use super::connect_to::ConnectTo;
use super::dial::Dialer;
use super::head::proxy_of;
use super::pool::ConnectionPool;
use super::resolve::Resolver;
use crate::site::Site;

/// How long an idle connection is kept at least; a site's is kept for longer than its interval as in force.
const IDLE: Duration = Duration::from_secs(90);

/// Installs the cryptography that TLS uses, once a process; further calls do nothing.
pub fn install_tls() {
    // It fails only where a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The pools of a process.
pub struct Clients {
    connect_to: Vec<ConnectTo>,
    roots: Vec<Certificate>,
    made: Mutex<HashMap<PoolKey, Arc<ConnectionPool>>>,
}

/// What the connections of one pool have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    way: Way,
    /// HTTP/2 isn't offered.
    http1_only: bool,
    /// How long an idle one is kept.
    keep: Duration,
}

/// How connections are made. Not to be printed: a proxy's URL may have a password.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Way {
    /// To where a `ConnectTo`, by its place among all, leads.
    To(usize),
    /// Through a proxy.
    Proxy { proxy: Url, allow_private: bool },
    /// Straight.
    Straight { allow_private: bool },
}

/// A pool, and what to ask on its connections.
#[derive(Debug)]
pub struct Chosen {
    /// The pool.
    pub pool: Arc<ConnectionPool>,
    /// The URL asked for, less what a `ConnectTo` must not see.
    pub url: Url,
    /// A literal address in the URL needs no check: a `ConnectTo` leads elsewhere.
    pub led_elsewhere: bool,
    /// A proxy stands between.
    pub through_proxy: bool,
    /// The password for the proxy, where that reads the request itself.
    pub proxy_password: Option<HeaderValue>,
}

/// How far a request may reach.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Private addresses are allowed.
    pub allow_private: bool,
    /// Its server wants no HTTP/2.
    pub http1_only: bool,
}

/// Without what its pools lead through.
impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("connect_to", &self.connect_to).finish_non_exhaustive()
    }
}

impl Clients {
    /// Clients that obey `connect_to` and trust the certificates of `cacert` (PEM) besides the system's.
    pub fn new(connect_to: Vec<ConnectTo>, cacert: Option<&[u8]>) -> Result<Self, FetcherError> {
        install_tls();
        let roots = cacert.map(Certificate::from_pem_bundle).transpose();
        let roots = roots.map_err(|error| FetcherError::Certificate(error.to_string()))?.unwrap_or_default();
        if cacert.is_some() && roots.is_empty() {
            return Err(FetcherError::Certificate("it holds none".to_owned()));
        }
        Ok(Self { connect_to, roots, made: Mutex::default() })
    }

    /// The pool for a URL that a site asks for, so long after the request before.
    pub fn choose(
        &self,
        site: &Site,
        url: &Url,
        reach: Reach,
        wait: Duration,
    ) -> Result<Chosen, FetcherError> {
        let Reach { allow_private, http1_only } = reach;
        let rule = self.connect_to.iter().position(|rule| rule.takes(url));
        let way = match (rule, proxy_of(site).map_err(FetcherError::Client)?) {
            (Some(rule), _) => Way::To(rule),
            (None, Some(proxy)) => Way::Proxy { proxy, allow_private },
            (None, None) => Way::Straight { allow_private },
        };
        let through_proxy = matches!(way, Way::Proxy { .. });
        let proxy_password = proxy_password(&way, url);
        let url = rule.map_or_else(|| Ok(url.clone()), |rule| self.connect_to[rule].without_address(url))?;
        let keep = idle(site.pace.interval.max(wait));
        let pool = self.pool(PoolKey { way, http1_only, keep })?;
        Ok(Chosen { pool, url, led_elsewhere: rule.is_some(), through_proxy, proxy_password })
    }

    fn pool(&self, key: PoolKey) -> Result<Arc<ConnectionPool>, FetcherError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = made.get(&key) {
            return Ok(Arc::clone(pool));
        }
        // An older pool goes once nobody holds it and no connection of its is up: a proxy, or a pace, that is no site's any more.
        made.retain(|_, pool| Arc::strong_count(pool) > 1 || pool.has_servers());
        let pool = ConnectionPool::new(self.dialer(&key)?, key.keep);
        made.insert(key, Arc::clone(&pool));
        Ok(pool)
    }

    fn dialer(&self, key: &PoolKey) -> Result<Dialer, FetcherError> {
        let failed = |error: reqwest::Error| FetcherError::Client(super::error::root(&error).to_string());
        match Dialer::new(self.builder(key)?.tls_certs_merge(self.roots.clone())) {
            Ok(dialer) => Ok(dialer),
            // Sites without TLS can be crawled on a machine that trusts nobody.
            Err(error) => {
                tracing::warn!(error = %super::error::root(&error), "the system's certificates can't be read; https works only with --cacert");
                Dialer::new(self.builder(key)?.tls_certs_only(self.roots.clone())).map_err(failed)
            }
        }
    }

    fn builder(&self, key: &PoolKey) -> Result<ClientBuilder, FetcherError> {
        let builder =
            ClientBuilder::new().no_proxy().redirect(redirect::Policy::none()).retry(retry::never());
        let builder = if key.http1_only { builder.http1_only() } else { builder };
        Ok(match &key.way {
            Way::Straight { allow_private } => {
                builder.dns_resolver(Resolver::System { allow_private: *allow_private, trusted: None })
            }
            Way::Proxy { proxy, allow_private } => {
                let trusted = proxy.host_str().map(str::to_owned);
                let all =
                    Proxy::all(proxy.clone()).map_err(|error| FetcherError::Client(error.to_string()))?;
                builder.dns_resolver(Resolver::System { allow_private: *allow_private, trusted }).proxy(all)
            }
            Way::To(rule) => builder.dns_resolver(Resolver::Fixed(self.connect_to[*rule].target())),
        })
    }
}

/// What a proxy wants with a request that it reads itself; through a tunnel the client tells it.
fn proxy_password(way: &Way, url: &Url) -> Option<HeaderValue> {
    let Way::Proxy { proxy, .. } = way else { return None };
    let uri = url.as_str().parse().ok().filter(|_| url.scheme() == "http")?;
    Matcher::builder().all(proxy.as_str()).build().intercept(&uri)?.basic_auth().cloned()
}

/// 90 s, or the next power of two from twice the interval: so few pools do for many intervals.
fn idle(interval: Duration) -> Duration {
    let twice = interval.saturating_mul(2);
    if twice <= IDLE { IDLE } else { Duration::from_secs((twice.as_secs() + 1).next_power_of_two()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_is_kept_for_longer_than_the_wait_in_force_whatever_the_file_says() {
        let clients = Clients::new(Vec::new(), None).expect("clients");
        let text = "seeds = [\"http://shop.example/\"]\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n";
        let site = crate::site::parse(text, "shop.toml").expect("a good site");
        let url = Url::parse("http://shop.example/").expect("a URL");
        let kept = |wait| {
            let reach = Reach { allow_private: false, http1_only: false };
            let chosen = clients.choose(&site, &url, reach, Duration::from_secs(wait)).expect("a pool");
            chosen.pool.keeps_for().as_secs()
        };
        assert_eq!((kept(0), kept(1), kept(60), kept(3600)), (90, 90, 128, 8192));
    }

    #[tokio::test]
    async fn i17_pools_that_no_site_uses_any_more_go() {
        let clients = Clients::new(Vec::new(), None).expect("clients");
        let pool = |n: u64| {
            let proxy = Url::parse(&format!("http://10.0.0.1:{}/", 1_000 + n)).expect("a URL");
            let way = Way::Proxy { proxy, allow_private: false };
            clients.pool(PoolKey { way, http1_only: false, keep: IDLE }).expect("a pool")
        };
        let held = pool(0);
        for n in 1..20 {
            drop(pool(n));
        }
        assert_eq!(clients.made.lock().expect("whole").len(), 2, "one that is used, and the last one");
        assert!(Arc::ptr_eq(&held, &pool(0)));
    }

    #[test]
    fn an_idle_connection_outlives_the_interval() {
        for (interval, kept) in [(0, 90), (45, 90), (46, 128), (60, 128), (3600, 8192)] {
            assert_eq!(idle(Duration::from_secs(interval)), Duration::from_secs(kept), "{interval} s");
        }
    }
}
