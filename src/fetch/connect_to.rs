//! `ConnectTo`: send what is meant for one host to an address of our own, to try a site's file against a copy.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use regex::Regex;
use url::{Host, Url};

use super::FetcherError;
use super::address::literal;

/// Four parts; a colon inside brackets parts nothing.
const PARTS: &str = r"^((?:\[.*?\]|[^:])*):([^:]*):((?:\[.*?\]|[^:])*):([^:]*)$";

/// `HOST:PORT:ADDR:PORT`, with curl's meaning: requests for the first pair go to the second, while name, certificate and
/// `Host` stay those of the first. An empty HOST or first PORT is any; an empty second PORT is the one asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    address: IpAddr,
    to_port: Option<u16>,
}

/// Why a text is no `ConnectTo`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {why}; write HOST:PORT:ADDR:PORT, as in shop.example:443:127.0.0.1:8443")]
pub struct ConnectToError {
    text: String,
    why: &'static str,
}

impl ConnectTo {
    /// Whether requests for the URL go elsewhere by this.
    pub fn takes(&self, url: &Url) -> bool {
        let host = self.host.as_deref().is_none_or(|host| url.host_str() == Some(host));
        host && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }

    /// The URL as the client must see it: a port or a literal address in it would go before what the resolver says.
    ///
    /// # Errors
    /// `NoName`, where the host is a literal address and TLS would have no name to check.
    pub(super) fn without_address(&self, url: &Url) -> Result<Url, FetcherError> {
        let mut bare = url.clone();
        if let Some(literal) = literal(url).map(|address| address.to_string()) {
            let name = format!("{}.invalid", literal.replace([':', '.'], "-").trim_matches('-'));
            let renamed = url.scheme() == "http" && bare.set_host(Some(&name)).is_ok();
            if !renamed {
                return Err(FetcherError::NoName(literal));
            }
        }
        if self.to_port.is_some() {
            // It fails only for URLs without a host.
            let _ = bare.set_port(None);
        }
        Ok(bare)
    }

    /// Where they go; port 0 stands for the one asked for. It may be a private address: whoever runs the crawl said so.
    pub fn target(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.to_port.unwrap_or(0))
    }
}

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<Self, ConnectToError> {
        let bad = |why| ConnectToError { text: text.to_owned(), why };
        let parts = Regex::new(PARTS).expect("a tested expression").captures(text);
        let (_, [host, port, address, to_port]) =
            parts.as_ref().ok_or_else(|| bad("it has not four parts"))?.extract();
        let host =
            (!host.is_empty()).then(|| Host::parse(host).map_err(|_| bad("the first part is no host")));
        let number = |part: &str| {
            (!part.is_empty()).then(|| part.parse::<u16>().map_err(|_| bad("a port is a number"))).transpose()
        };
        let address = address.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.transpose()?.map(|host| host.to_string()),
            port: number(port)?,
            address: address.parse().map_err(|_| bad("the third part is no IP address"))?,
            to_port: number(to_port)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(rule: &str, url: &str) -> bool {
        rule.parse::<ConnectTo>().expect("a rule").takes(&Url::parse(url).expect("a URL"))
    }

    #[test]
    fn it_takes_its_host_and_port_and_an_empty_one_is_any() {
        for (rule, url, taken) in [
            ("shop.example:443:127.0.0.1:8443", "https://shop.example/a", true),
            ("Shop.Example:443:127.0.0.1:8443", "https://shop.example/a", true),
            ("shop.example:443:127.0.0.1:8443", "http://shop.example/a", false),
            ("shop.example:443:127.0.0.1:8443", "https://www.shop.example/a", false),
            ("shop.example::127.0.0.1:8443", "http://shop.example:99/a", true),
            ("::[::1]:8443", "http://other.example/", true),
            ("[::2]:80:[::1]:8443", "http://[::2]/", true),
            ("10.0.0.1::127.0.0.1:", "http://10.0.0.1:8080/", true),
            ("bücher.example:80:127.0.0.1:1", "http://xn--bcher-kva.example/", true),
        ] {
            assert_eq!(takes(rule, url), taken, "{rule} {url}");
        }
    }

    #[test]
    fn what_has_not_four_parts_or_no_address_is_refused() {
        for text in [
            "",
            "a:1:127.0.0.1",
            "a:1:127.0.0.1:2:3",
            "a:x:127.0.0.1:2",
            "a:1:b:2",
            "a:1::2",
            "a b:1:127.0.0.1:2",
        ] {
            assert!(text.parse::<ConnectTo>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_port_asked_for_stays_where_none_is_named() {
        let rule: ConnectTo = "::[::1]:".parse().expect("a rule");
        assert_eq!(rule.target().to_string(), "[::1]:0");
    }
}
