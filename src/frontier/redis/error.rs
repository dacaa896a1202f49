//! A Redis error as a `FrontierError`.

use redis::{ErrorKind, RedisError};

use super::address::Address;
use super::rights;
use crate::frontier::{FrontierError, FrontierErrorKind};

/// What to do about a node of a cluster that was taken for a server by itself.
pub(super) const NODE: &str = "it is a node of a cluster; write redis+cluster://host:port,host:port";

/// The same error as a `FrontierError`.
pub(super) fn from_redis(address: &Address, error: &RedisError) -> FrontierError {
    FrontierError::new(kind_of(address, error), address.shown.clone()).because(first_line(&error.to_string()))
}

fn kind_of(address: &Address, error: &RedisError) -> FrontierErrorKind {
    if let Some(kind) = kind_by_text(address, &error.to_string()) {
        return kind;
    }
    match error.code().unwrap_or_default() {
        "WRONGPASS" | "NOAUTH" => FrontierErrorKind::Password,
        "NOPERM" => rights::refusal(address),
        "OOM" => FrontierErrorKind::MemoryFull,
        "READONLY" => FrontierErrorKind::ReadOnly,
        "LOADING" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "BUSY" | "MISCONF" | "MOVED" | "ASK"
        | "NOREPLICAS" | "UNBLOCKED" | "NOTJOINED" | "OVERTAKEN" => FrontierErrorKind::Away,
        _ if error.kind() == ErrorKind::AuthenticationFailed => FrontierErrorKind::Password,
        _ if is_lost(error) => FrontierErrorKind::Away,
        _ => FrontierErrorKind::Broken,
    }
}

/// What the library tells in words alone: why a connection can't be made, to a node of a cluster too.
fn kind_by_text(address: &Address, text: &str) -> Option<FrontierErrorKind> {
    let unfit = |why: &str| Some(FrontierErrorKind::Unfit(why.to_owned()));
    let says = |words: &str| text.contains(words);
    let is_refused = says("Failed to create initial connections") || says("refused to switch database");
    match () {
        () if says("cluster support disabled") => unfit("it is no cluster; write redis://host:port/db"),
        () if says("Password authentication failed") => Some(FrontierErrorKind::Password),
        () if is_refused && (says("NOAUTH") || says("WRONGPASS")) => Some(FrontierErrorKind::Password),
        () if is_refused && says("no permissions") => Some(rights::refusal(address)),
        () if says("not allowed in cluster mode") => unfit(NODE),
        () if says("refused to switch database") => unfit(
            "it has no database of that number; write a smaller one, as in redis://host:port/0 (there are 16 unless its \
             `databases` says otherwise)",
        ),
        () => None,
    }
}

fn is_lost(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.is_connection_refusal()
        || error.is_unrecoverable_error()
        || matches!(error.kind(), ErrorKind::ClusterConnectionNotFound)
}

/// Errors of scripts come with a stack; its first line says what happened.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
