//! How fast a site may be asked, and how one request is made.

use std::time::Duration;

use url::Url;

use crate::secret::SecretName;

/// The `[pace]` table of a site file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The least time between the starts of two requests.
    pub interval: Duration,
    /// The most requests in flight at once.
    pub parallel: u32,
    /// The least interval that `paced tune` may set; without it, `interval`.
    pub min_interval: Option<Duration>,
    /// The most requests in flight that `paced tune` may set; without it, four times `parallel`, up to 256.
    pub max_parallel: Option<u32>,
    /// Whether `robots.txt` is obeyed.
    pub robots: RobotsPolicy,
    /// Whether `nofollow`, `noindex` and `noarchive` on a page are obeyed.
    pub meta_robots: MetaRobots,
    /// Who runs the crawl, as part of the user agent.
    pub contact: Option<String>,
    /// A `Crawl-delay` above this blocks the site instead of slowing it.
    pub max_crawl_delay: Duration,
    /// The longest that a `Retry-After` is followed.
    pub max_retry_after: Duration,
}

impl Pace {
    /// `interval` where the file names none.
    pub const INTERVAL: Duration = Duration::from_secs(1);
    /// `parallel` where the file names none.
    pub const PARALLEL: u32 = 8;
    /// `max_crawl_delay` where the file names none.
    pub const MAX_CRAWL_DELAY: Duration = Duration::from_secs(30);
    /// `max_retry_after` where the file names none.
    pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

    /// The `User-Agent` that this site sees.
    pub fn user_agent(&self) -> String {
        let product = concat!("paced/", env!("CARGO_PKG_VERSION"));
        match &self.contact {
            Some(contact) => format!("{product} (+{contact})"),
            None => product.to_owned(),
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            interval: Self::INTERVAL,
            parallel: Self::PARALLEL,
            min_interval: None,
            max_parallel: None,
            robots: RobotsPolicy::Obey,
            meta_robots: MetaRobots::Obey,
            contact: None,
            max_crawl_delay: Self::MAX_CRAWL_DELAY,
            max_retry_after: Self::MAX_RETRY_AFTER,
        }
    }
}

/// `robots = "obey" | "ignore"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsPolicy {
    /// `robots.txt` is fetched and followed.
    Obey,
    /// `robots.txt` is not asked for; said in the log at every start.
    Ignore,
}

impl RobotsPolicy {
    /// The words of `robots`, the default first.
    pub(super) const WORDS: [(&str, Self); 2] = [("obey", Self::Obey), ("ignore", Self::Ignore)];
}

/// `meta_robots = "obey" | "ignore"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaRobots {
    /// What a page says of itself is followed.
    Obey,
    /// What a page says of itself is not looked at.
    Ignore,
}

impl MetaRobots {
    /// The words of `meta_robots`, the default first.
    pub(super) const WORDS: [(&str, Self); 2] = [("obey", Self::Obey), ("ignore", Self::Ignore)];
}

/// `proxy` in `[fetch]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRule {
    /// Its URL, without a password.
    Open(Url),
    /// The environment variable that holds its URL.
    Secret(SecretName),
}

/// `signature` in `[fetch]`: how requests are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureRule {
    /// The environment variable that holds the header lines which the site's owner made.
    Made(SecretName),
    /// With a key of our own.
    Key {
        /// Its name in the folder of keys.
        name: String,
        /// The origin that publishes it, as in `https://bots.example`.
        agent: String,
    },
}

/// The `[fetch]` table of a site file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRules {
    /// For a whole request, from its send to the last byte.
    pub timeout: Duration,
    /// For a connection to be up, TLS included.
    pub connect_timeout: Duration,
    /// The longest silence while the answer is read.
    pub read_timeout: Duration,
    /// The largest body, in bytes after decompression.
    pub max_body: u64,
    /// Time on a processor that the parse of one page may take.
    pub parse_budget: Duration,
    /// The media types that are kept; others are excluded by type.
    pub accept_types: Vec<String>,
    /// How often a page is tried before it is dead.
    pub attempts: u32,
    /// Further header fields of each request.
    pub headers: Vec<(String, String)>,
    /// Whether cookies are kept and sent back.
    pub cookies: bool,
    /// The environment variable that holds `user:password` for basic authentication.
    pub auth_env: Option<SecretName>,
    /// Header fields whose values are secrets.
    pub secret_headers: Vec<(String, SecretName)>,
    /// How requests are signed.
    pub signature: Option<SignatureRule>,
    /// The proxy; the environment's is never used.
    pub proxy: Option<ProxyRule>,
    /// Whether loopback and private addresses may be crawled.
    pub allow_private: bool,
}

impl FetchRules {
    /// `timeout` where the file names none.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// `connect_timeout` where the file names none.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// `read_timeout` where the file names none.
    pub const READ_TIMEOUT: Duration = Duration::from_secs(15);
    /// `max_body` where the file names none.
    pub const MAX_BODY: u64 = 8 * 1024 * 1024;
    /// `parse_budget` where the file names none: thirty times what the dearest real pages take.
    pub const PARSE_BUDGET: Duration = Duration::from_secs(2);
    /// `accept_types` where the file names none.
    pub const ACCEPT_TYPES: [&'static str; 4] =
        ["text/html", "application/xhtml+xml", "application/xml", "text/xml"];
    /// `attempts` where the file names none.
    pub const ATTEMPTS: u32 = 5;
}

impl Default for FetchRules {
    fn default() -> Self {
        Self {
            timeout: Self::TIMEOUT,
            connect_timeout: Self::CONNECT_TIMEOUT,
            read_timeout: Self::READ_TIMEOUT,
            max_body: Self::MAX_BODY,
            parse_budget: Self::PARSE_BUDGET,
            accept_types: Self::ACCEPT_TYPES.iter().map(ToString::to_string).collect(),
            attempts: Self::ATTEMPTS,
            headers: Vec::new(),
            cookies: false,
            auth_env: None,
            secret_headers: Vec::new(),
            signature: None,
            proxy: None,
            allow_private: false,
        }
    }
}
