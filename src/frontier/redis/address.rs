//! Where a Redis is: the URL that names it, read once; and how it may be shown.

use redis::{ConnectionInfo, IntoConnectionInfo};

/// How to write one.
const FORMS: &str = "write redis://host:port/db, rediss://user:password@host:port/db, unix:/path/to.sock?db=0, or \
                     redis+cluster://host:port,host:port";

/// One server, or a cluster.
#[derive(Clone)]
pub(super) struct Address {
    /// The URL without its password.
    pub(super) shown: String,
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) cluster: bool,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Whether a URL names a frontier on Redis.
pub(in crate::frontier) fn is_redis(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let schemes =
        ["redis", "rediss", "valkey", "valkeys", "unix", "redis+unix", "redis+cluster", "rediss+cluster"];
    schemes.contains(&scheme)
}

impl Address {
    /// Whom the server knows us as.
    pub(super) fn user(&self) -> &str {
        self.nodes.first().and_then(|node| node.redis_settings().username()).unwrap_or("default")
    }

    /// Reads a URL; else what is wrong with it.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        let (urls, cluster) = match scheme {
            "redis+cluster" => (nodes("redis", rest)?, true),
            "rediss+cluster" => (nodes("rediss", rest)?, true),
            "unix" | "redis+unix" => (vec![format!("redis+unix://{}", rest.trim_start_matches("//"))], false),
            _ => (vec![url.to_owned()], false),
        };
        let read = |url: String| {
            let node = url.as_str().into_connection_info().map_err(|why| format!("{why}; {FORMS}"))?;
            // Telling the server a library's name would be one more right.
            let settings = node.redis_settings().clone().set_skip_set_lib_name();
            Ok(node.set_redis_settings(settings))
        };
        let nodes = urls.into_iter().map(read).collect::<Result<_, String>>()?;
        Ok(Self { shown: without_password(url), nodes, cluster })
    }
}

/// The URLs of a cluster's nodes, each with the user and password that are written once.
fn nodes(scheme: &str, rest: &str) -> Result<Vec<String>, String> {
    let rest = rest.trim_start_matches("//");
    let (user, hosts) = rest.rsplit_once('@').map_or(("", rest), |(user, hosts)| (user, hosts));
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let hosts: Vec<&str> = hosts.trim_end_matches('/').split(',').filter(|host| !host.is_empty()).collect();
    if hosts.is_empty() {
        return Err(format!("no node is named; {FORMS}"));
    }
    Ok(hosts.iter().map(|host| format!("{scheme}://{user}{host}")).collect())
}

/// A URL as it may be shown and logged.
pub fn without_password(url: &str) -> String {
    let hidden = |(scheme, rest): (&str, &str)| Some(format!("{scheme}://…@{}", rest.rsplit_once('@')?.1));
    let shown = url.split_once("://").and_then(hidden).unwrap_or_else(|| url.to_owned());
    let Some((place, query)) = shown.split_once('?') else { return shown };
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((key, _)) if key.starts_with("pass") => format!("{key}=…"),
        _ => pair.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').map(hidden).collect();
    format!("{place}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_none_shows_its_password() {
        for (url, shown, nodes, cluster) in [
            ("redis://localhost:6379/0", "redis://localhost:6379/0", 1, false),
            ("redis://me:secret@h:1/2", "redis://…@h:1/2", 1, false),
            ("rediss://:s@cret@h:1", "rediss://…@h:1", 1, false),
            ("unix:/run/redis.sock?db=3", "unix:/run/redis.sock?db=3", 1, false),
            ("unix:/r.sock?db=3&pass=secret", "unix:/r.sock?db=3&pass=…", 1, false),
            ("unix:///run/redis.sock", "unix:///run/redis.sock", 1, false),
            ("redis+cluster://:secret@a:1,b:2", "redis+cluster://…@a:1,b:2", 2, true),
        ] {
            let address = Address::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
            assert_eq!((&*address.shown, address.nodes.len(), address.cluster), (shown, nodes, cluster));
            assert!(!format!("{address:?}").contains("secret"));
        }
        assert!(Address::parse("redis+cluster://").is_err());
        assert!(Address::parse("redis://host:port").is_err());
    }
}
