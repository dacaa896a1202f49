//! The specification: every step of the frontier as a pure function of a store and the time.
//! Nothing here knows how a store keeps its records.

pub(super) mod acts;
pub(super) mod away;
pub(super) mod batch;
mod campaign;
pub(super) mod claim;
mod events;
pub(super) mod feed;
mod fleet;
mod flow;
mod forget;
pub(super) mod gate;
pub(super) mod lease;
mod letters;
pub(super) mod lock;
mod order;
pub(super) mod pauses;
mod places;
mod put;
pub(super) mod queue;
pub(super) mod reasons;
mod rename;
pub(super) mod session;
pub(super) mod settle;
pub(super) mod site;
mod view;
mod wall;

use super::shelf::{Fallible, Shelf};
use super::table::{Reply, Step};
use crate::task::PageKey;

/// One step under way: a store, and the time in ms, which is read once. Each file here adds methods to it.
pub(crate) struct Moment<'a, S> {
    pub(crate) shelf: &'a mut S,
    pub(crate) now: i64,
}

/// What a part of a step comes to, unless the store fails.
type Done<S, T = ()> = Result<T, <S as Fallible>::Error>;

/// Tasks, pages or fingerprints removed in one step. A server takes about a millisecond for so many tasks, and claims wait for it.
pub(in crate::frontier) const REMOVED: u32 = 250;

/// Does one step at `now`, in ms.
#[expect(clippy::too_many_lines, reason = "a row a step, as in the table")]
pub(crate) fn apply<S: Shelf>(shelf: &mut S, step: Step, now: i64) -> Result<Reply, S::Error> {
    let mut at = Moment { shelf, now };
    Ok(match step {
        Step::Register { new } => Reply::Register(at.register(&new)?),
        Step::BeginRun { site, fresh, list, seeds } => {
            Reply::BeginRun(at.begin_run(&site, fresh, list, seeds)?)
        }
        Step::Seed { site, list, from, puts } => Reply::Seed(at.seed(&site, list, from, puts)?),
        Step::GiveUp { site, run, goes_on } => Reply::GiveUp(at.give_up(&site, run, goes_on)?),
        Step::Sweep { site } => Reply::Sweep(at.sweep(&site)?),
        Step::Forget { site } => Reply::Forget(at.forget(&site)?),
        Step::Rename { site, to } => Reply::Rename(at.rename(&site, &to)?),
        // What a partition books of another's sites; a store in one piece has no such book.
        Step::Unbook { .. } => Reply::Unbook(()),
        Step::Rebook { .. } => Reply::Rebook(()),
        Step::EndRename { .. } => Reply::EndRename(()),
        Step::Tune { site, tunings, act } => Reply::Tune(at.tune(&site, tunings, act)?),
        Step::TuneGroup { group, interval } => Reply::TuneGroup(at.tune_group(&group, interval)?),
        Step::TuneTenant { tenant, rules } => Reply::TuneTenant(at.tune_tenant(tenant, rules)?),
        Step::TellTuned { tuned } => Reply::TellTuned(at.tell_tuned(tuned)?),
        Step::TunedTenants {} => Reply::TunedTenants(at.shelf.fleet()?.tuned.clone()),
        Step::DropRequests { of } => Reply::DropRequests(at.drop_requests(of)?),
        Step::Drops {} => Reply::Drops(at.drops()?),
        Step::PauseGroup { group, stage, pause } => Reply::PauseGroup(at.pause_group(&group, stage, pause)?),
        Step::PauseAll { stage, pause } => Reply::PauseAll(at.pause_all(stage, pause)?),
        Step::TellPaused { of_all, after } => Reply::TellPaused(at.tell_paused(of_all, &after)?),
        Step::Note { site, act } => Reply::Note(at.note(&site, act)?),
        Step::Block { site, wait, why } => Reply::Block(at.block(&site, wait, why)?),
        Step::Put { site, puts, elsewhere, .. } => Reply::Put(at.put(&site, puts, elsewhere)?),
        Step::ParseAgain { site, url } => Reply::ParseAgain(at.parse_again(&site, url)?),
        Step::Feed { most } => Reply::Feed(at.feed(most)?),
        Step::Campaigns {} => Reply::Campaigns(at.shelf.campaign_names()?),
        Step::BookCampaign { name, site } => Reply::BookCampaign(at.book_campaign(name, site)?),
        Step::UnbookCampaign { name, number } => Reply::UnbookCampaign(at.unbook_campaign(&name, number)?),
        Step::MakeCampaign { site, name, list, plan } => {
            Reply::MakeCampaign(at.make_campaign(&site, &name, list, plan)?)
        }
        Step::AddChunk { site, name, mark, number, chunk } => {
            Reply::AddChunk(at.add_chunk(&site, &name, &mark, number, &chunk)?)
        }
        Step::BeginCampaign { site, name, mark, act } => {
            Reply::BeginCampaign(at.begin_campaign(&site, &name, &mark, act)?)
        }
        Step::FeedCampaign { site, name, mark, from, puts, elsewhere } => {
            Reply::FeedCampaign(at.feed_campaign(&site, (&name, &mark), from, puts, elsewhere)?)
        }
        Step::TuneCampaign { site, name, tunings, act } => {
            Reply::TuneCampaign(at.tune_campaign(&site, &name, tunings, act)?)
        }
        Step::DropOfCampaign { site, name, urls } => {
            Reply::DropOfCampaign(at.drop_of_campaign(&site, &name, &urls)?)
        }
        Step::ClearCampaign { site, name, wanted } => {
            Reply::ClearCampaign(at.clear_campaign(&site, &name, wanted)?)
        }
        Step::Campaign { site, name } => Reply::Campaign(at.campaign_status(&site, &name)?.map(Box::new)),
        Step::CampaignChunk { site, name, number } => {
            Reply::CampaignChunk(at.shelf.chunk(&site, &name, number)?)
        }
        Step::Claim { claim } => Reply::Claim(at.claim(&claim)?),
        Step::Rearm { lease, asked, lead } => Reply::Rearm(at.rearm(&lease, asked, lead)?),
        Step::Refuse { lease, refusal } => Reply::Refuse(at.refuse(&lease, &refusal)?),
        Step::Probed { site, url, refusal } => Reply::Probed(at.probed(&site, &url, refusal.as_ref())?),
        Step::Resume { site } => Reply::Resume(at.resume(&site)?),
        Step::Landed { lease, block, .. } => Reply::Landed(at.landed(&lease, block)?),
        Step::Back { lease, unused } => Reply::Back(at.back(&lease, unused)?),
        Step::Extend { leases } => Reply::Extend(at.extend(&leases)?),
        Step::Settle { owner, token, settlements, .. } => {
            Reply::Settle(at.settle(&owner, token, settlements)?)
        }
        Step::Enlist { owner, pid, scope, downloads, tells } => {
            Reply::Enlist(at.enlist(&owner, pid, scope, downloads, tells)?)
        }
        Step::Drain { owner } => Reply::Drain(at.drain(&owner)?),
        Step::Bury { owner } => Reply::Bury(at.bury(&owner)?),
        Step::Owners {} => Reply::Owners(at.owners()?),
        Step::TryLock { mutex, token, expire, lead } => {
            Reply::TryLock(at.try_lock(&mutex, token, expire, lead)?)
        }
        Step::Unlock { mutex, token } => Reply::Unlock(at.unlock(&mutex, &token)?),
        Step::ExtendLock { mutex, token, expire } => {
            Reply::ExtendLock(at.extend_lock(&mutex, &token, expire)?)
        }
        Step::HoldsLock { mutex, token } => Reply::HoldsLock(at.holds_lock(&mutex, &token)?),
        Step::LockLeft { mutex } => Reply::LockLeft(at.lock_left(&mutex)?),
        Step::Sites { from } => Reply::Sites(at.sites(&from)?),
        Step::View { site } => Reply::View(at.view(&site)?.map(Box::new)),
        Step::Text { site } => Reply::Text(at.shelf.site_text(&site)?),
        Step::SiteOf { host } => Reply::SiteOf(at.shelf.sites_of(&host, 1)?.into_iter().next()),
        Step::Robots { origin } => Reply::Robots(at.robots(&origin)?),
        Step::Stored { site, url } => Reply::Stored(at.latest(PageKey { site: &site, url: &url })?),
        Step::UrlStatus { site, url } => Reply::UrlStatus(Box::new(at.url_status(&site, &url)?)),
        Step::Flow { site } => Reply::Flow(at.flow(&site)?.map(Box::new)),
        Step::Freshness { site } => Reply::Freshness(at.shelf.freshness(&site, now)?),
        Step::DeadLetters { site, most, after } => {
            Reply::DeadLetters(at.shelf.letters(&site, after.as_ref(), most)?)
        }
        Step::DropSteps { site, session } => Reply::DropSteps(at.drop_steps(&site, &session)?),
        Step::Session { site, name } => Reply::Session(at.session_status(&site, &name)?),
        Step::Batch { site, name } => Reply::Batch(at.batch(&site, &name)?.map(Box::new)),
        Step::PostEvent { event } => Reply::PostEvent(at.post_event(event)?),
        Step::TakeEvent { kinds, token } => Reply::TakeEvent(at.take_event(&kinds, token)?),
        Step::EndEvent { kind, site, token, failed } => {
            Reply::EndEvent(at.end_event(kind, &site, token, failed)?)
        }
        Step::Events {} => Reply::Events(at.events_status()?),
        Step::Acts { site } => Reply::Acts(at.acts(&site)?),
        Step::Queue { site, lane, after, most } => Reply::Queue(at.queue(&site, &lane, after, most)?),
        Step::Requeue { site, urls, change } => Reply::Requeue(at.requeue(&site, urls, &change)?),
        Step::Agree { rules, mark, by_directory } => Reply::Agree(at.agree(rules, mark, by_directory)?),
        Step::IdleInAll {} => Reply::IdleInAll(at.shelf.idle_in_all()?),
        Step::Fleet {} => Reply::Fleet(Box::new(at.shelf.fleet()?.rules.clone())),
        Step::DropLetters { site, letters } => Reply::DropLetters(at.drop_letters(&site, &letters)?),
        Step::Inspect {} => Reply::Inspect(Box::new(at.shelf.inspect()?)),
    })
}
