//! Public tables and real sites against the rules of this crate: each share has a floor, printed with what was reached.
//!
//! The data is read in place from `PACED_CORPORA` (default `../shared/corpora`). Absent, a table is skipped loudly on
//! a laptop and fails where `CI` is set. One module a subject; a new table is a new module here.

#[path = "corpora/encodings.rs"]
mod encodings;
#[path = "corpora/extraction.rs"]
mod extraction;
#[path = "corpora/rules.rs"]
mod rules;
#[path = "corpora/shops.rs"]
mod shops;
#[path = "corpora/table.rs"]
mod table;
#[path = "corpora/trees.rs"]
mod trees;
#[path = "corpora/urls.rs"]
mod urls;
#[path = "corpora/warc.rs"]
mod warc;
