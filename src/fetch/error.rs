//! Why a page could not be fetched, and whether trying again may help.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustls::CertificateError;

use super::address;
use super::dial::BoxError;
use super::pool::ConnectTimeout;
use super::resolve::ResolveError;
use crate::canonical_url::CanonicalUrl;
use crate::content_coding::CodingError;
use crate::manners::Health;
use crate::quantity::spoken;

/// A page that could not be fetched.
#[derive(Debug)]
pub struct FetchError {
    /// What went wrong.
    pub kind: FetchErrorKind,
    /// The page.
    pub url: Box<CanonicalUrl>,
    /// What the layer below says.
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What went wrong with a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchErrorKind {
    /// The name can't be resolved.
    Dns,
    /// Its address is private, and the site's file doesn't allow that.
    Private(IpAddr),
    /// No connection came about.
    Connect,
    /// The certificate isn't to be trusted.
    Certificate,
    /// TLS failed otherwise.
    Tls,
    /// The site's proxy is no help.
    Proxy,
    /// The site's proxy wants a name and a password, or others.
    ProxyPassword,
    /// It took too long.
    Timeout(Wait, Duration),
    /// The body is over this many bytes.
    TooLarge(u64),
    /// Its media type isn't among `accept_types`.
    Type(String),
    /// Its `Content-Encoding` is one that can't be undone.
    UnknownCoding(String),
    /// The body isn't what its `Content-Encoding` says.
    BrokenCoding,
    /// The connection ended before the answer's head was whole.
    NoAnswer,
    /// The body ended early.
    Truncated,
    /// What came isn't HTTP, or the connection broke.
    Protocol,
    /// The URL makes no request.
    Unaskable(String),
    /// The site's file asks for what can't be done.
    Settings(String),
    /// This process lacks what the site's file asks for; another one may have it.
    Lacking(String),
}

impl FetchErrorKind {
    /// Whether the site answered, where that is known, and whether another attempt may succeed.
    fn tells(&self) -> (Option<bool>, bool) {
        match self {
            Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Proxy
            | Self::ProxyPassword
            | Self::Timeout(..)
            | Self::NoAnswer => (Some(false), true),
            Self::Certificate => (Some(false), false),
            Self::BrokenCoding | Self::Truncated | Self::Protocol => (Some(true), true),
            Self::TooLarge(_) | Self::Type(_) | Self::UnknownCoding(_) => (Some(true), false),
            Self::Private(_) | Self::Unaskable(_) | Self::Settings(_) | Self::Lacking(_) => (None, false),
        }
    }
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A connection, `connect_timeout`.
    Connect,
    /// The next piece of the answer, `read_timeout`.
    Read,
    /// The whole answer, `timeout`.
    Total,
}

impl FetchError {
    /// An error that nothing below explains.
    pub(super) fn new(url: &CanonicalUrl, kind: FetchErrorKind) -> Self {
        Self { kind, url: Box::new(url.clone()), source: None }
    }

    fn of(url: &CanonicalUrl, kind: FetchErrorKind, source: impl Into<BoxError>) -> Self {
        Self { source: Some(source.into()), ..Self::new(url, kind) }
    }

    /// An error before the request was sent; `through_proxy` says whose fault it is.
    pub(super) fn of_request(
        url: &CanonicalUrl,
        error: BoxError,
        through_proxy: bool,
        connect: Duration,
    ) -> Self {
        let kind = kind_of(error.as_ref(), url, through_proxy, connect);
        Self::of(url, kind, error)
    }

    /// An error after the request was sent; `ended` is what it means that the connection ended early.
    pub(super) fn of_answer(url: &CanonicalUrl, error: BoxError, ended: FetchErrorKind) -> Self {
        let kind = if ends_early(error.as_ref()) { ended } else { FetchErrorKind::Protocol };
        Self::of(url, kind, error)
    }

    /// The server wants HTTP/1.1 for this (RFC 9113 section 7).
    pub(super) fn wants_http1(&self) -> bool {
        let reasons =
            self.source().into_iter().flat_map(chain).filter_map(|cause| cause.downcast_ref::<h2::Error>());
        reasons.map(h2::Error::reason).any(|reason| reason == Some(h2::Reason::HTTP_1_1_REQUIRED))
    }

    /// An error of decompression.
    pub(super) fn of_coding(url: &CanonicalUrl, error: CodingError) -> Self {
        let kind = match &error {
            CodingError::TooLarge { limit } => FetchErrorKind::TooLarge(*limit),
            CodingError::Unknown(coding) => FetchErrorKind::UnknownCoding(coding.clone()),
            CodingError::Broken(..) => FetchErrorKind::BrokenCoding,
        };
        Self::of(url, kind, error)
    }

    /// What it tells of the site: whether anybody is there who could answer.
    pub fn health(&self) -> Health {
        match self.kind.tells() {
            (Some(true), _) => Health::Answers,
            (Some(false), _) => Health::Away(self.reason()),
            (None, _) => Health::Unknown,
        }
    }

    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        self.kind.tells().1
    }

    /// What happened, in one line without the URL, and what to do where that helps.
    pub fn reason(&self) -> String {
        use FetchErrorKind as Kind;
        let cause = || self.root_cause().map(|cause| format!(": {cause}")).unwrap_or_default();
        let host = self.url.host();
        match &self.kind {
            Kind::Dns => format!("the name {host} can't be resolved{}", cause()),
            Kind::Private(ip) if address::is_metadata(*ip) => {
                format!(
                    "{host} is at {ip}, where a cloud tells a machine its passwords; never asked for by a name"
                )
            }
            Kind::Private(ip) => {
                format!(
                    "{host} is at the private address {ip}; set allow_private = true in [fetch] if it is yours"
                )
            }
            Kind::Connect => format!("no connection to {host}{}", cause()),
            Kind::Certificate => format!("the certificate of {host} {}", self.certificate_fault()),
            Kind::Tls => format!("TLS with {host} failed{}", cause()),
            Kind::Proxy => format!("the proxy of the site's file is no help{}", cause()),
            Kind::ProxyPassword => {
                "the proxy of the site's file wants a password; write proxy = { env = … }, and its whole URL there"
                    .to_owned()
            }
            Kind::Timeout(wait, most) => format!("{wait} within {}", spoken(*most)),
            Kind::TooLarge(limit) => {
                format!("the body is over {limit} bytes; raise max_body in [fetch] if it is wanted")
            }
            Kind::Type(media) => format!("`{media}` isn't among accept_types"),
            Kind::UnknownCoding(coding) => format!("the body has the unknown Content-Encoding `{coding}`"),
            Kind::BrokenCoding => self.root_cause().map(ToString::to_string).unwrap_or_default(),
            Kind::NoAnswer => "the connection was closed before an answer came".to_owned(),
            Kind::Truncated => "the body ended early".to_owned(),
            Kind::Protocol => format!("the answer broke off or isn't HTTP{}", cause()),
            Kind::Unaskable(why) => format!("no request can be made of the URL: {why}"),
            Kind::Settings(what) | Kind::Lacking(what) => what.clone(),
        }
    }

    /// What is wrong with the certificate, without what changes from one look to the next.
    fn certificate_fault(&self) -> Cow<'static, str> {
        use CertificateError as Fault;
        let tls = self.source().into_iter().flat_map(chain).find_map(|cause| cause.downcast_ref());
        let Some(rustls::Error::InvalidCertificate(fault)) = tls else { return "isn't trusted".into() };
        match fault {
            Fault::Expired | Fault::ExpiredContext { .. } => {
                "has expired; if it is good, see whether this machine's clock is right".into()
            }
            Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
                "isn't valid yet; if it is good, see whether this machine's clock is right".into()
            }
            Fault::NotValidForName | Fault::NotValidForNameContext { .. } => "is for other names".into(),
            Fault::UnknownIssuer => {
                "is of nobody who is trusted here; --cacert FILE trusts further ones".into()
            }
            other => format!("isn't trusted: {other}").into(),
        }
    }

    fn root_cause(&self) -> Option<&(dyn Error + 'static)> {
        self.source().map(root)
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.url, self.reason())
    }
}

impl Error for FetchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::Read => "nothing further came",
            Self::Total => "the answer did not end",
        })
    }
}

fn kind_of(
    error: &(dyn Error + 'static),
    url: &CanonicalUrl,
    through_proxy: bool,
    connect: Duration,
) -> FetchErrorKind {
    for cause in chain(error) {
        if cause.is::<ConnectTimeout>() {
            return FetchErrorKind::Timeout(Wait::Connect, connect);
        }
        match cause.downcast_ref() {
            Some(ResolveError::Private { address, .. }) => return FetchErrorKind::Private(*address),
            // Behind a proxy it may be the proxy's name.
            Some(ResolveError::Lookup { name, .. } | ResolveError::Nowhere(name))
                if url.url().host_str() == Some(name) =>
            {
                return FetchErrorKind::Dns;
            }
            _ => {}
        }
        match cause.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(_)) => return FetchErrorKind::Certificate,
            Some(_) => return FetchErrorKind::Tls,
            None => {}
        }
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_builder() => {
            FetchErrorKind::Settings(format!("the request can't be made: {error}"))
        }
        _ if through_proxy => FetchErrorKind::Proxy,
        Some(error) if error.is_dns() => FetchErrorKind::Dns,
        _ => FetchErrorKind::Connect,
    }
}

fn ends_early(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|cause| {
        let http = cause.downcast_ref::<hyper::Error>();
        let http = http.is_some_and(|error| error.is_incomplete_message() || error.is_canceled());
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        http || matches!(io, Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset))
    })
}

/// What is at the bottom of an error.
pub(super) fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

/// The error and all that is below it. An `io::Error` hides what it wraps from `source`, so that is looked into.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
    })
}
