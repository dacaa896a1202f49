//! What a user of the server must be allowed to do, and the line that allows it.

use std::collections::BTreeSet;

use redis::RedisResult;

use super::address::Address;
use super::client::RedisClient;
use super::prelude::CHANNEL;
use super::program::{FILES, Function, call};
use crate::frontier::FrontierErrorKind;

/// What all keys of a frontier begin with.
const KEYS: &str = "{paced:";
/// A key of it.
const KEY: &str = "{paced:0}";
/// Commands beside those of the program: those of this side, and of the crate that connects.
const CONNECTING: [&str; 7] =
    ["cluster|slots", "fcall", "function|load", "get", "ping", "select", "subscribe"];
/// While a slot moves from one server of a cluster to another.
const OF_A_CLUSTER: &str = "asking";

/// The commands that a frontier uses, as access lists name them.
fn commands(address: &Address) -> BTreeSet<String> {
    let called = FILES.iter().flat_map(|file| file.split("call('").skip(1));
    let called = called.filter_map(|rest| rest.split('\'').next()).map(str::to_lowercase);
    let of_a_cluster = address.cluster.then_some(OF_A_CLUSTER);
    called.chain(CONNECTING.into_iter().chain(of_a_cluster).map(str::to_owned)).collect()
}

/// The line that gives a user what it lacks.
fn line(address: &Address) -> String {
    let allowed: Vec<String> = commands(address).iter().map(|command| format!("+{command}")).collect();
    let user = address.user();
    format!("ACL SETUSER {user} ~{KEYS}* &{CHANNEL} {}", allowed.join(" "))
}

/// The commands that the user of this connection may not give.
pub(super) async fn lacking(server: &mut RedisClient, address: &Address) -> RedisResult<BTreeSet<String>> {
    let mut commands = commands(address);
    let asked: Vec<String> = commands.iter().map(|command| example_of(command)).collect();
    let asked: Vec<&[u8]> = asked.iter().map(String::as_bytes).collect();
    let lacking: Vec<String> = call(server, Function::Lacking, KEY, &asked).await?;
    commands.retain(|command| lacking.contains(&example_of(command)));
    Ok(commands)
}

/// Words of the command by which the server tells whether it may be given.
fn example_of(command: &str) -> String {
    let about = if matches!(command, "publish" | "subscribe") { CHANNEL } else { KEY };
    format!("{} {about}", command.replace('|', " "))
}

/// A user that may not do all that is refused, with the way to mend it.
pub(super) fn refusal(address: &Address) -> FrontierErrorKind {
    FrontierErrorKind::Unfit(format!(
        "its user may not do what a frontier needs; allow it with: {}",
        line(address)
    ))
}
