//! The one script: the files of `lua/`, joined in the order in which they use each other.

use redis::Script;

/// The whole of it.
const SOURCE: &str = concat!(
    include_str!("lua/asked.lua"),
    include_str!("lua/store.lua"),
    include_str!("lua/tasks.lua"),
    include_str!("lua/records.lua"),
    include_str!("lua/pages.lua"),
    include_str!("lua/places.lua"),
    include_str!("lua/put.lua"),
    include_str!("lua/lease.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/feed.lua"),
    include_str!("lua/wake.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/lock.lua"),
    include_str!("lua/site.lua"),
    include_str!("lua/owners.lua"),
    include_str!("lua/view.lua"),
    include_str!("lua/run.lua"),
);

/// The script as it is called: by its hash, loaded anew where a server doesn't know it.
pub(super) fn script() -> Script {
    Script::new(SOURCE)
}
