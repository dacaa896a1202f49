//! Why a step refuses, or gives a task up, in words: the same of every backend. The program on Redis is given them with
//! placeholders for what they name (`redis/prelude.rs`).

use crate::manners::MOST_ROBOTS_REDIRECTS;

/// Of a task whose lease was lost too often.
pub(in crate::frontier) const WORKER_DIED: &str = "its worker died each time";
/// Of a `robots.txt` that ended as an ordinary page.
pub(in crate::frontier) const NO_RECORD: &str = "no record was left";

/// Of a `robots.txt` that is never there.
pub(in crate::frontier) fn robots_moved_on(to: &str) -> String {
    format!("robots.txt redirected more than {MOST_ROBOTS_REDIRECTS} times, last to {to}")
}

/// Two files would double a shop's load.
pub(in crate::frontier) fn foreign_host(host: &str, owner: &str) -> String {
    format!(
        "host {host} belongs to site `{owner}` already; take it out of one of the two, or give both one group"
    )
}

/// Some of what a site has still lies under its old name.
pub(in crate::frontier) fn being_renamed(site: &str, to: &str) -> String {
    format!(
        "site `{site}` is being renamed to `{to}`; finish that first: paced forget {site} --rename-to {to}"
    )
}

/// Requests in flight belong to the pace of the group that they began in.
pub(in crate::frontier) fn requests_in_flight(site: &str) -> String {
    format!("site `{site}` has requests in flight, its group can't change now; stop its crawl first")
}
