//! What is on a page. Pure.
pub mod base;
pub mod charset;
pub mod directives;
pub mod links;
pub mod prescan;
pub mod tree;
