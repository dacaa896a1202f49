//! The specification: every step of the frontier as a pure function of a store and the time.
//! A step reads the time once; nothing here knows how a store keeps its records.

pub(super) mod claim;
pub(super) mod feed;
mod forget;
pub(super) mod lease;
mod letters;
pub(super) mod lock;
pub(super) mod places;
mod put;
pub(super) mod reasons;
mod rename;
pub(super) mod settle;
pub(super) mod site;
mod view;

use super::shelf::Shelf;
use super::table::{Reply, Step};

/// Does one step at `now`, in ms.
pub(crate) fn apply<S: Shelf>(shelf: &mut S, step: Step, now: i64) -> Result<Reply, S::Error> {
    Ok(match step {
        Step::Register { new } => Reply::Register(site::register(shelf, &new, now)?),
        Step::BeginRun { site, seeds, fresh } => {
            Reply::BeginRun(site::begin_run(shelf, &site, seeds, fresh, now)?)
        }
        Step::GiveUp { site } => Reply::GiveUp(site::give_up(shelf, &site)?),
        Step::Sweep { site } => Reply::Sweep(site::sweep(shelf, &site)?),
        Step::Forget { site } => Reply::Forget(forget::forget(shelf, &site, now)?),
        Step::Rename { site, to } => Reply::Rename(rename::rename(shelf, &site, &to, now)?),
        // What a partition books of another's sites; a store in one piece has no such book.
        Step::Unbook { .. } => Reply::Unbook(()),
        Step::Rebook { .. } => Reply::Rebook(()),
        Step::Tune { site, tuning } => Reply::Tune(site::tune(shelf, &site, tuning, now)?),
        Step::Block { site, wait, why } => Reply::Block(site::block(shelf, &site, wait, why, now)?),
        Step::Put { site, puts } => Reply::Put(put::put(shelf, &site, puts, now)?),
        Step::ParseAgain { site, url } => Reply::ParseAgain(put::parse_again(shelf, &site, url, now)?),
        Step::Feed { most } => Reply::Feed(feed::feed(shelf, most, now)?),
        Step::Claim { claim } => Reply::Claim(claim::claim(shelf, &claim, now)?),
        Step::Rearm { lease } => Reply::Rearm(lease::rearm(shelf, &lease, now)?),
        Step::Landed { lease, block } => Reply::Landed(lease::landed(shelf, &lease, block, now)?),
        Step::Back { lease, unused } => Reply::Back(lease::back(shelf, &lease, unused, now)?),
        Step::Extend { leases } => Reply::Extend(lease::extend(shelf, &leases, now)?),
        Step::Settle { owner, token, settlements } => {
            Reply::Settle(settle::settle(shelf, &owner, token, settlements, now)?)
        }
        Step::Enlist { owner, pid, scope } => {
            lease::enlist(shelf, &owner, pid, scope)?;
            Reply::Enlist(Vec::new())
        }
        Step::Bury { owner } => Reply::Bury(lease::bury(shelf, &owner)?),
        Step::Owners {} => Reply::Owners(view::owners(shelf)?),
        Step::TryLock { mutex, token, expire } => {
            Reply::TryLock(lock::try_lock(shelf, &mutex, token, expire, now)?)
        }
        Step::Unlock { mutex, token } => Reply::Unlock(lock::unlock(shelf, &mutex, &token, now)?),
        Step::ExtendLock { mutex, token, expire } => {
            Reply::ExtendLock(lock::extend(shelf, &mutex, &token, expire, now)?)
        }
        Step::HoldsLock { mutex, token } => Reply::HoldsLock(lock::holds(shelf, &mutex, &token, now)?),
        Step::LockLeft { mutex } => Reply::LockLeft(lock::left(shelf, &mutex, now)?),
        Step::Sites {} => Reply::Sites(shelf.site_names()?),
        Step::View { site } => Reply::View(view::view(shelf, &site, now)?.map(Box::new)),
        Step::Text { site } => Reply::Text(shelf.site_text(&site)?),
        Step::SiteOf { host } => Reply::SiteOf(shelf.sites_of(&host)?.into_iter().next()),
        Step::Robots { origin } => Reply::Robots(view::robots(shelf, &origin)?),
        Step::Stored { site, url } => Reply::Stored(view::latest(shelf, &site, &url)?),
        Step::UrlStatus { site, url } => Reply::UrlStatus(Box::new(view::whereabouts(shelf, &site, &url)?)),
        Step::Freshness { site } => Reply::Freshness(shelf.freshness(&site, now)?),
        Step::DeadLetters { site, most, after } => {
            Reply::DeadLetters(shelf.dead_letters(&site, after.as_ref(), most)?)
        }
        Step::DropLetters { site, letters } => {
            Reply::DropLetters(letters::drop_letters(shelf, &site, &letters)?)
        }
        Step::Inspect {} => Reply::Inspect(Box::new(shelf.inspect()?)),
    })
}
