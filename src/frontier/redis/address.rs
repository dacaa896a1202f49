//! Where a Redis is: the URL that names it, read once; and how it may be shown.

use redis::{ConnectionInfo, IntoConnectionInfo, RedisError};

/// How to write one.
const FORMS: &str = "write redis://host:port/db, rediss://user:password@host:port/db, unix:/path/to.sock?db=0, or \
                     redis+cluster://host:port,host:port";

/// Partitions of a cluster's frontier, set when it is made: pace units are spread over them.
const PARTITIONS_OF_A_CLUSTER: usize = 16;

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

    /// How many partitions a frontier has there.
    pub(super) fn partitions(&self) -> usize {
        if self.cluster { PARTITIONS_OF_A_CLUSTER } else { 1 }
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
            is_heeded(&url)?;
            let node =
                url.as_str().into_connection_info().map_err(|why| format!("{}; {FORMS}", bare(&why)))?;
            // Telling the server a library's name would be one more right.
            let settings = node.redis_settings().clone().set_skip_set_lib_name();
            Ok(node.set_redis_settings(settings))
        };
        let nodes = urls.into_iter().map(read).collect::<Result<Vec<_>, String>>()?;
        if let Some(database) =
            nodes.iter().map(|node| node.redis_settings().db()).find(|db| cluster && *db != 0)
        {
            return Err(format!("a cluster has no databases; leave /{database} out of the URL"));
        }
        Ok(Self { shown: without_password(url), nodes, cluster })
    }
}

/// The library passes over what it doesn't know in a query: a database named there would be another one.
fn is_heeded(url: &str) -> Result<(), String> {
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut keys = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
    let (known, database) = if url.starts_with("redis+unix:") {
        (&["db", "user", "pass", "protocol"][..], "?db=3, in unix:/path/to.sock?db=3")
    } else {
        (&["protocol"][..], "/3, in redis://host:port/3")
    };
    if keys.all(|key| key.is_empty() || known.contains(&key)) {
        return Ok(());
    }
    Err(format!("behind `?` there can be {} alone; write the database as {database}", known.join(", ")))
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

/// What is wrong, without the part of the URL that the library quotes.
fn bare(why: &RedisError) -> String {
    let text = why.to_string();
    let quoted = why.detail().and_then(|detail| text.strip_suffix(detail));
    quoted.unwrap_or(&text).trim_end_matches([' ', ':']).to_owned()
}

/// A URL as it may be shown and logged, whatever is wrong with it: nothing is shown but what can't be a password.
pub fn without_password(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let (scheme, rest) = match url.split_once(':') {
        Some((scheme, rest)) if rest.starts_with("//") || is_redis(url) => (format!("{scheme}:"), rest),
        _ => (String::new(), url),
    };
    let place = rest.trim_start_matches('/');
    let slashes = &rest[..rest.len() - place.len()];
    let (user, place) = match place.rsplit_once('@') {
        Some((_, place)) => ("…@", place),
        None => ("", place),
    };
    let end = place.find(['?', '#']).unwrap_or(place.len());
    let (place, query) = place.split_at(end);
    let is_path = scheme.contains("unix") && user.is_empty();
    // A word by itself may be the password that the file of a secret holds.
    let is_word = slashes.is_empty() && user.is_empty() && !place.contains(':');
    let place = match (is_path, is_word) {
        (true, _) => place.to_owned(),
        (false, true) => "…".to_owned(),
        (false, false) => shown_hosts(place),
    };
    let pairs: Vec<String> = query.split_inclusive(['?', '#', '&', ';']).map(shown_pair).collect();
    format!("{scheme}{slashes}{user}{place}{}", pairs.concat())
}

/// `host:port,host:port/db`: a port and a database are numbers, a host is a name or an address.
fn shown_hosts(place: &str) -> String {
    let (hosts, database) = match place.split_once('/') {
        Some((hosts, database)) => (hosts, format!("/{}", number(database))),
        None => (place, String::new()),
    };
    let host = |host: &str| {
        let of_address = host.rfind(']').map_or(0, |end| end + 1);
        let port = host[of_address..].find(':').map(|at| of_address + at);
        let (name, port) = host.split_at(port.unwrap_or(host.len()));
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-._[]:".contains(c));
        let port = port.strip_prefix(':').map(|port| format!(":{}", number(port))).unwrap_or_default();
        format!("{}{port}", if is_name { name } else { "…" })
    };
    let hosts: Vec<String> = hosts.split(',').map(host).collect();
    format!("{}{database}", hosts.join(","))
}

/// One piece of a query with the mark that ends it: its key, and its value where that is a number.
fn shown_pair(pair: &str) -> String {
    let text = pair.trim_end_matches(['?', '#', '&', ';']);
    let end = &pair[text.len()..];
    match text.split_once('=') {
        Some((key, value)) if ["db", "protocol"].contains(&key) => format!("{key}={}{end}", number(value)),
        Some((key, _)) if ["user", "pass"].contains(&key) => format!("{key}=…{end}"),
        _ if text.is_empty() => end.to_owned(),
        _ => format!("…{end}"),
    }
}

/// A small number as it is, anything else hidden.
fn number(text: &str) -> &str {
    let is_one = text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    if is_one { text } else { "…" }
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
        let said = Address::parse("redis+cluster://a:1,b:2/3").expect_err("refused");
        assert_eq!(said, "a cluster has no databases; leave /3 out of the URL");
        assert!(Address::parse("redis+cluster://a:1,b:2/0").is_ok());
        assert!(Address::parse("redis://host:port").is_err());
    }

    #[test]
    fn a_query_that_the_library_passes_over_is_refused() {
        for (url, is_read) in [
            ("redis://h:1?db=3", false),
            ("redis://h:1/?db=3", false),
            ("rediss://h:1/0?protocol=3&db=3", false),
            ("valkey://h:1?database=3", false),
            ("redis+cluster://a:1,b:2?db=0", false),
            ("unix:/r.sock?database=3", false),
            ("redis://h:1/3?protocol=3", true),
            ("rediss://h:1/3?protocol=3#insecure", true),
            ("redis://h:1/3?", true),
            ("unix:/r.sock?db=3&user=me&pass=secret&protocol=3", true),
        ] {
            assert_eq!(Address::parse(url).is_ok(), is_read, "{url}");
        }
        let said = Address::parse("redis://h:1?db=3").expect_err("refused");
        assert!(said.contains("write the database as /3"), "{said}");
    }

    #[test]
    fn a_malformed_url_shows_no_password_either() {
        for (url, shown) in [
            ("redis://me:hunter@h:port/0", "redis://…@h:…/0"),
            ("redis:/me:hunter@h:1/0", "redis:/…@h:1/0"),
            ("redis:me:hunter@h", "redis:…@h"),
            ("redis:hunter", "redis:…"),
            ("hunter", "…"),
            ("me:hunter@h:1", "…@h:1"),
            ("me:hunter", "me:…"),
            ("h:6379", "h:6379"),
            ("redis//me:hunter@h", "…@h"),
            ("redis://me:hunter", "redis://me:…"),
            ("redis://:hunter/0", "redis://:…/0"),
            ("redis://me:hunter%40h:1/0", "redis://me:…/0"),
            ("redis://me:%68unter%40h", "redis://me:…"),
            ("redis://me:1234567890/0", "redis://me:…/0"),
            ("redis://me:a@hunter/b@h:1/0", "redis://…@h:1/0"),
            ("redis://me:1@h/hunter", "redis://…@h/…"),
            ("redis://me:12?hunter@h", "redis://…@h"),
            ("redis://h/0?password=hunter", "redis://h/0?…"),
            ("redis://h/0?db=1;pass=hunter&x#hunter", "redis://h/0?db=1;pass=…&…#…"),
            ("redis://h/0?protocol=hunter", "redis://h/0?protocol=…"),
            ("unix:/r.sock?db=hunter&user=hunter", "unix:/r.sock?db=…&user=…"),
            ("unix:me:hunter@/r.sock", "unix:…@/…"),
            ("redis+cluster://a:1,me:hunter%40b:2", "redis+cluster://a:1,me:…"),
            ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
            ("redis://[::1/0", "redis://[:…/0"),
            ("sqlite:/data/me@home/frontier.db", "sqlite:/data/me@home/frontier.db"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
            // A host's name alone is one, and may be shown.
            let said = Address::parse(url).err().unwrap_or_default();
            assert!(!said.contains("hunter"), "{url}: {said}");
        }
    }
}
