//! What is on a page. Pure.
pub mod base;
pub mod charset;
pub mod currency;
pub mod date;
pub mod directives;
pub mod fields;
pub mod links;
pub mod number;
pub mod prescan;
pub mod price;
pub mod text;
pub mod tree;
