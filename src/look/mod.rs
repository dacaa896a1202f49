//! A look at pages outside of all queues: one page tried by a site's rules, or all stored pages of a site parsed again.

mod ask;
mod finding;
mod page;
mod reparse;
mod robots;
mod stored;
mod try_page;

pub use ask::{Asker, PaidRequest};
pub use finding::{Change, Finding};
pub use page::{Field, FollowedLink, Look, RefusedLink, look};
pub use reparse::{Portion, Reparse, ReparseParts};
pub use try_page::{Content, Hop, Walk, judge, walk};
