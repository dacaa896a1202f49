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
use super::step::{Reply, Step};

/// Does one step at `now`, in ms.
pub(crate) fn apply<S: Shelf>(shelf: &mut S, step: Step, now: i64) -> Result<Reply, S::Error> {
    Ok(match step {
        Step::Register(registration) => Reply::Registered(site::register(shelf, &registration, now)?),
        Step::BeginRun { site, seeds, fresh } => {
            Reply::Run(site::begin_run(shelf, &site, seeds, fresh, now)?)
        }
        Step::GiveUp { site } => Reply::More(site::give_up(shelf, &site)?),
        Step::Forget { site } => Reply::Forgotten(forget::forget(shelf, &site, now)?),
        Step::Rename { site, to } => Reply::Renamed(rename::rename(shelf, &site, &to, now)?),
        // What a partition books of another's sites; a store in one piece has no such book.
        Step::Unbook { .. } | Step::Rebook { .. } => Reply::Nothing,
        Step::Sweep { site } => Reply::More(site::sweep(shelf, &site)?),
        Step::Put { site, puts } => Reply::Puts(put::put(shelf, &site, puts, now)?),
        Step::ParseAgain { site, url } => Reply::Done(put::parse_again(shelf, &site, url, now)?),
        Step::Feed { most } => Reply::Fed(feed::feed(shelf, most, now)?),
        Step::Claim(claim) => Reply::Grant(claim::claim(shelf, &claim, now)?),
        Step::Rearm { lease } => Reply::Rearm(lease::rearm(shelf, &lease, now)?),
        Step::Landed { lease, block } => Reply::Done(lease::landed(shelf, &lease, block, now)?),
        Step::Back { lease, unused } => Reply::Done(lease::back(shelf, &lease, unused, now)?),
        Step::Block { site, wait, why } => Reply::Done(site::block(shelf, &site, wait, why, now)?),
        Step::Extend { leases } => Reply::Alive(lease::extend(shelf, &leases, now)?),
        Step::Settle { owner, token, settlements } => {
            Reply::Settled(settle::settle(shelf, &owner, token, settlements, now)?)
        }
        Step::Tune { site, tuning } => Reply::Done(site::tune(shelf, &site, tuning, now)?),
        Step::SetGroupInterval { unit, interval } => {
            site::set_group_interval(shelf, &unit, interval, now)?;
            Reply::Nothing
        }
        Step::Enlist { owner, pid, scope } => {
            lease::enlist(shelf, &owner, pid, scope)?;
            Reply::Nothing
        }
        Step::Bury { owner } => Reply::Done(lease::bury(shelf, &owner)?),
        Step::Owners => Reply::Owners(view::owners(shelf)?),
        Step::TryLock { mutex, token, expire } => {
            Reply::Lock(lock::try_lock(shelf, &mutex, token, expire, now)?)
        }
        Step::Unlock { mutex, token } => Reply::Done(lock::unlock(shelf, &mutex, &token, now)?),
        Step::ExtendLock { mutex, token, expire } => {
            Reply::Done(lock::extend(shelf, &mutex, &token, expire, now)?)
        }
        Step::HoldsLock { mutex, token } => Reply::Done(lock::holds(shelf, &mutex, &token, now)?),
        Step::LockLeft { mutex } => Reply::Left(lock::left(shelf, &mutex, now)?),
        Step::Sites => Reply::Names(shelf.site_names()?),
        Step::View { site } => Reply::View(view::view(shelf, &site, now)?.map(Box::new)),
        Step::Text { site } => Reply::Text(shelf.site_text(&site)?),
        Step::SiteOf { host } => Reply::Text(shelf.sites_of(&host)?.into_iter().next()),
        Step::Robots { origin } => Reply::Robots(view::robots(shelf, &origin)?),
        Step::Stored { site, url } => Reply::Latest(view::latest(shelf, &site, &url)?),
        Step::Whereabouts { site, url } => {
            Reply::Whereabouts(Box::new(view::whereabouts(shelf, &site, &url)?))
        }
        Step::Freshness { site } => Reply::Freshness(shelf.freshness(&site, now)?),
        Step::DeadLetters { site, after, most } => {
            Reply::Letters(shelf.dead_letters(&site, after.as_ref(), most)?)
        }
        Step::DropLetters { site, letters } => Reply::Alive(letters::drop_letters(shelf, &site, &letters)?),
        Step::Inspect => Reply::Inspection(Box::new(shelf.inspect()?)),
    })
}
