//! From a name to addresses that may be asked. A literal address never comes by here: it is checked before a request.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{is_metadata, is_public};

/// The resolver of one client.
#[derive(Clone, Debug)]
pub enum Resolver {
    /// Asks the system. Private addresses are left out unless allowed, or unless they are those of the `trusted` name: the proxy
    /// that a site's file names. Those of a cloud's metadata always are.
    System { allow_private: bool, trusted: Option<String> },
    /// Answers every name with one address; port 0 stands for the port that is asked for.
    Fixed(SocketAddr),
}

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Every address it has is private, or a cloud's metadata.
    #[error("{name} is at the private address {address}")]
    Private {
        /// The name.
        name: String,
        /// One of its addresses.
        address: IpAddr,
    },
    /// The name isn't known, or there is nobody to ask.
    #[error("{name} can't be resolved")]
    Lookup {
        /// The name.
        name: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The name is known and has no address.
    #[error("{0} has no address")]
    Nowhere(String),
}

impl Resolver {
    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        match self {
            Self::Fixed(address) => Ok(vec![*address]),
            Self::System { allow_private, trusted } => {
                let all = lookup(name).await?;
                let any = *allow_private || trusted.as_deref() == Some(name);
                let found = dialled(name, all, any)?;
                if found.is_empty() { Err(ResolveError::Nowhere(name.to_owned())) } else { Ok(found) }
            }
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

async fn lookup(name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|source| ResolveError::Lookup { name: name.to_owned(), source })?;
    Ok(found.collect())
}

/// Only what is left is ever dialled, so a second, different answer has no chance.
fn dialled(
    name: &str,
    mut all: Vec<SocketAddr>,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let first = all.first().map(SocketAddr::ip);
    all.retain(|address| !is_metadata(address.ip()) && (allow_private || is_public(address.ip())));
    match first {
        Some(address) if all.is_empty() => Err(ResolveError::Private { name: name.to_owned(), address }),
        _ => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_mixed_answer_only_the_public_addresses_are_left() {
        let address = |text: &str| SocketAddr::new(text.parse().expect("an address"), 0);
        let mixed = vec![address("10.0.0.7"), address("93.184.216.34"), address("::1")];
        assert_eq!(dialled("a.example", mixed, false).ok(), Some(vec![address("93.184.216.34")]));
        let private = dialled("a.example", vec![address("10.0.0.7")], false);
        assert!(matches!(private, Err(ResolveError::Private { .. })));
    }

    #[test]
    fn no_name_leads_to_a_cloud_s_metadata_though_private_addresses_are_allowed() {
        let address = |text: &str| SocketAddr::new(text.parse().expect("an address"), 0);
        let mixed = vec![address("169.254.169.254"), address("10.0.0.7"), address("fd00:ec2::254")];
        assert_eq!(dialled("a.example", mixed, true).ok(), Some(vec![address("10.0.0.7")]));
        let hidden = dialled("a.example", vec![address("168.63.129.16")], true);
        assert!(matches!(hidden, Err(ResolveError::Private { .. })));
    }
}
