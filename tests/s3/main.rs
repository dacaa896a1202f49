//! Pages in a bucket, against a server that speaks S3 and checks signatures.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/answered.rs"]
mod answered;
mod crawls;
mod gate;
mod pages;
mod server;
mod storing;
mod trouble;
