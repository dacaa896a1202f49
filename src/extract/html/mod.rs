//! A page's bytes as elements and text: its encoding, its tokens, its tree. What they mean is found in the rooms beside.

mod base;
pub mod charset;
mod content_type;
mod gathered;
mod guard;
mod names;
mod prescan;
pub(super) mod text;
mod tokens;
mod tree;

pub use base::Base;
pub use tree::Tree;
