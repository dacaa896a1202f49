//! Bad answers of the network, from end to end: what a person is told, what the books and the archive hold afterwards.

mod answers;
mod bad_site;
mod connections;
mod frames;
#[path = "../crawl/ground.rs"]
mod ground;
mod hosts;
mod http2;
mod late;
mod memory;
mod outage;
mod proxies;
#[path = "../support/mod.rs"]
mod support;
mod tls_server;
