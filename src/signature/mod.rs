//! Signatures of requests, by which a site knows its crawler: HTTP Message Signatures (RFC 9421) with the tag `web-bot-auth`. To
//! whom they are sent is decided in `fetch/head`.

mod folder;
mod key;
mod made;

pub use folder::KeyFolder;
pub use key::SigningKey;
pub use made::read;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::quantity::spoken;

/// What tells the agent's site, where the keys are published.
pub const AGENT: &str = "signature-agent";
/// What is signed, since when and until when, and with which key.
pub const INPUT: &str = "signature-input";
/// The signature itself.
pub const SIGNATURE: &str = "signature";

/// Where the agent's site publishes its keys.
pub const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";

/// It is said for so long before that a signature ends.
const SOON: Duration = Duration::from_hours(7 * 24);

/// What helps where one ends.
pub const ASK: &str = "ask the site's owner for another";

/// That a signature which a site's owner made ends soon, or has ended, in words.
pub fn soon(ends: Timestamp, now: Timestamp) -> Option<String> {
    match ends.since(now) {
        Duration::ZERO => Some(format!("its signature ended at {ends}")),
        left if left <= SOON => Some(format!("its signature ends at {ends}, in {}", spoken(left))),
        _ => None,
    }
}

/// The header fields that sign a request, and whose they are.
pub struct SignatureFields {
    /// Name and value, in the order in which they are sent.
    pub fields: Vec<(&'static str, String)>,
    /// The key, by its thumbprint (RFC 7638).
    pub key_id: String,
    /// When they are worth nothing any more, where that is said.
    pub ends: Option<Timestamp>,
}
