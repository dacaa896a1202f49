//! Checks each new connection's server before anything is kept on it: version, eviction, rights, schema.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use redis::cmd;

use super::address::Address;
use super::client::RedisClient;
use super::connection::key_of;
use super::error::{NODE, from_redis};
use super::rights;
use super::upgrade::Upgrade;
use crate::clock::{self, Clock};
use crate::frontier::{FrontierError, FrontierErrorKind};

/// The schema's version: what the keys hold, and how.
const SCHEMA: i64 = 9;
/// The oldest schema that is brought up to date.
const OLDEST_SCHEMA: i64 = 3;
/// How long each server of a cluster has to tell of itself.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// The oldest Redis that keeps functions.
const OLDEST: u32 = 7;

/// Refuses a server that would lose tasks or can't be written; marks an empty one as ours. Whether it keeps no append-only
/// file.
pub(super) async fn check(
    server: &mut RedisClient,
    address: &Address,
    existing: bool,
    fake: Option<&Clock>,
) -> Result<bool, FrontierError> {
    let infos = infos(server, address).await?;
    if let Some(why) = infos.iter().find_map(|info| unfit(info, address.cluster)) {
        return Err(FrontierError::new(why, address.shown.clone()));
    }
    mark(server, address, existing, fake).await?;
    Ok(infos.iter().any(|info| field(info, "aof_enabled") == Some("0")))
}

/// What the server of each partition tells of itself. One of a cluster that is away, or has its replica answer, isn't checked by
/// this connection: the sites of the others don't wait for it.
async fn infos(server: &RedisClient, address: &Address) -> Result<Vec<String>, FrontierError> {
    let wait = if address.cluster { TOLD_WITHIN } else { Duration::MAX };
    let told = (0..address.partitions()).map(async |partition| {
        let (mut server, key) = (server.clone(), key_of(partition));
        clock::within(wait, server.info("default", &key)).await
    });
    let mut infos = Vec::new();
    for told in join_all(told).await.into_iter().flatten() {
        match told.map_err(|error| from_redis(address, &error)) {
            Ok(info) if address.cluster && field(&info, "role") == Some("slave") => {}
            Ok(info) => infos.push(info),
            Err(error) if address.cluster && error.is_away() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
}

fn unfit(info: &str, as_cluster: bool) -> Option<FrontierErrorKind> {
    let version = field(info, "redis_version").unwrap_or("0");
    if version.split('.').next().and_then(|major| major.parse().ok()) < Some(OLDEST) {
        let why = format!("it is Redis {version}; a frontier needs Redis {OLDEST}.0 or newer, or Valkey");
        return Some(FrontierErrorKind::Unfit(why));
    }
    if field(info, "redis_mode") == Some("cluster") && !as_cluster {
        return Some(FrontierErrorKind::Unfit(NODE.to_owned()));
    }
    if field(info, "role") == Some("slave") {
        return Some(FrontierErrorKind::ReadOnly);
    }
    match field(info, "maxmemory_policy") {
        Some("noeviction") | None => None,
        Some(policy) => Some(FrontierErrorKind::Unfit(format!(
            "its maxmemory-policy is {policy}: it would throw tasks away when its memory is full; set it to noeviction"
        ))),
    }
}

/// Writes the schema's version into an empty frontier, compares it in one that is there.
async fn mark(
    server: &mut RedisClient,
    address: &Address,
    existing: bool,
    fake: Option<&Clock>,
) -> Result<(), FrontierError> {
    let partitions = address.partitions();
    let (key, ours) = ("{paced:0}:schema", format!("{SCHEMA} {partitions}"));
    let broken = |error| from_redis(address, &error);
    let mut found: Option<String> = server.query(cmd("GET").arg(key)).await.map_err(broken)?;
    if found.is_none() && existing {
        return Err(FrontierError::new(FrontierErrorKind::Missing, address.shown.clone()));
    }
    let lacking = rights::lacking(server, address).await.map_err(broken)?;
    if !lacking.is_empty() {
        let lacking = lacking.into_iter().collect::<Vec<_>>().join(", ");
        return Err(FrontierError::new(rights::refusal(address), address.shown.clone())
            .because(format!("it may not: {lacking}")));
    }
    if found.is_none() {
        let _: Option<String> =
            server.query(cmd("SET").arg(key).arg(&ours).arg("NX")).await.map_err(broken)?;
        found = server.query(cmd("GET").arg(key)).await.map_err(broken)?;
    }
    match found {
        Some(found) if found == ours => Ok(()),
        Some(found) if let Some(from) = upgraded_from(&found, partitions) => {
            Upgrade { server, address, fake, from, to: SCHEMA, partitions, joined: BTreeMap::new() }
                .run()
                .await
        }
        found => Err(FrontierError::new(other_schema(&found.unwrap_or_default()), address.shown.clone())),
    }
}

/// The schema from which a frontier is to be brought up to date, or is being.
fn upgraded_from(found: &str, partitions: usize) -> Option<i64> {
    let words: Vec<i64> = found.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let from = match words[..] {
        [from, parts] if parts == i64::try_from(partitions).ok()? => from,
        [SCHEMA, parts, from] if parts == i64::try_from(partitions).ok()? => from,
        _ => return None,
    };
    (OLDEST_SCHEMA..SCHEMA).contains(&from).then_some(from)
}

fn other_schema(found: &str) -> FrontierErrorKind {
    match found.split(' ').next().and_then(|version| version.parse().ok()) {
        Some(version) if version > SCHEMA => FrontierErrorKind::Newer(version),
        Some(version) if version < SCHEMA => FrontierErrorKind::Older(version),
        Some(_) => FrontierErrorKind::Unfit(
            "its frontier was made with another number of partitions; use the URL that it was made with"
                .into(),
        ),
        None => FrontierErrorKind::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_would_lose_tasks_is_refused_with_the_reason() {
        let fit = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n";
        assert_eq!(unfit(fit, false), None);
        let told = |info: &str| unfit(info, false).map(|kind| format!("{kind:?}")).unwrap_or_default();
        assert!(told(&fit.replace("noeviction", "allkeys-lru")).contains("set it to noeviction"));
        assert!(told(&fit.replace("7.0.15", "6.2.14")).contains("Redis 7.0 or newer"));
        assert!(told(&fit.replace("master", "slave")).contains("ReadOnly"));
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.3\r\n";
        assert_eq!(unfit(valkey, false), None);
        let node = format!("{fit}redis_mode:cluster\r\n");
        assert!(told(&node).contains("redis+cluster://"));
        assert_eq!(unfit(&node, true), None);
    }

    #[test]
    fn another_schema_is_told_apart() {
        assert_eq!(other_schema("10 1"), FrontierErrorKind::Newer(10));
        assert_eq!(other_schema("1 1"), FrontierErrorKind::Older(1));
        assert_eq!(other_schema("hello"), FrontierErrorKind::Foreign);
        assert!(matches!(other_schema("9 16"), FrontierErrorKind::Unfit(_)));
    }
}
