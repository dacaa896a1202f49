//! Pages to keep: what a visit looks like.

use bytes::Bytes;
use paced::internals::archive::{Archive, Location, writer_name};
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::page::Page;

use crate::answered::answer;
pub use crate::answered::answered as visit;

pub const START: i64 = 1_795_165_200_123;

/// Opens a place as a writer of its own.
pub async fn open(location: &Location) -> Archive {
    let clock = Clock::fake(Timestamp::from_millis(START));
    Archive::open_at(location, &writer_name(), clock).await.expect("a page store")
}

/// An answer that was sent `ms` after the start.
pub fn page(path: &str, body: &str, ms: i64) -> Page {
    let body = Bytes::copy_from_slice(body.as_bytes());
    answer(&format!("http://shop.example/{path}"), Timestamp::from_millis(START + ms), body)
}
