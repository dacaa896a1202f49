//! frontier
pub mod permit;
