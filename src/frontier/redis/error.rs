//! A Redis error as a `FrontierError`.

use redis::{ErrorKind, RedisError};

use super::address::Address;
use super::rights;
use crate::frontier::{FrontierError, FrontierErrorKind};

/// The same error as a `FrontierError`.
pub(super) fn from_redis(address: &Address, error: &RedisError) -> FrontierError {
    FrontierError::new(kind_of(address, error), address.shown.clone()).because(first_line(&error.to_string()))
}

fn kind_of(address: &Address, error: &RedisError) -> FrontierErrorKind {
    if error.to_string().contains("cluster support disabled") {
        let why = "it is no cluster; write redis://host:port/db".to_owned();
        return FrontierErrorKind::Unfit(why);
    }
    let refused = matches!(error.kind(), ErrorKind::AuthenticationFailed);
    match error.code().unwrap_or_default() {
        "WRONGPASS" | "NOAUTH" => FrontierErrorKind::Password,
        "NOPERM" => rights::refusal(address),
        "OOM" => FrontierErrorKind::MemoryFull,
        "READONLY" => FrontierErrorKind::ReadOnly,
        "LOADING" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "BUSY" | "MISCONF" | "MOVED" | "ASK"
        | "NOREPLICAS" | "UNBLOCKED" | "NOTJOINED" | "OVERTAKEN" => FrontierErrorKind::Away,
        _ if refused => FrontierErrorKind::Password,
        _ if is_lost(error) => FrontierErrorKind::Away,
        _ => FrontierErrorKind::Broken,
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
