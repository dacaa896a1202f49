//! Batches as people name them and look at them, and how one is waited for (N4).

use std::time::Duration;

use serde_json::json;

use super::account::Account;
use super::results::Results;
use super::signals::await_signals;
use super::unserved::Unserved;
use super::when::When;
use super::{Exit, Trouble, say};
use crate::clock::{self, Timestamp};
use crate::frontier::{BatchCounts, Frontier};
use crate::task::BatchNames;

/// The time between two looks at a batch that is waited for.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the name of a batch.
pub(in crate::cli) fn batch_name(text: &str) -> Result<String, String> {
    let why = || format!("`{text}` is no batch; write up to 64 letters, digits, `-`, `_`, `.` and `:`");
    BatchNames::is_name(text).then(|| text.to_owned()).ok_or_else(why)
}

/// What is to be shown of a batch, and until when.
pub(in crate::cli) struct BatchWait {
    /// Until all of it has ended.
    pub waits: bool,
    /// But no longer than until then.
    pub deadline: Option<When>,
    pub as_json: bool,
}

/// How a batch stands, site by site.
struct BatchStand {
    name: String,
    sites: Vec<(String, BatchCounts)>,
    /// Open pages were not found again where they were.
    is_unsure: bool,
}

/// Shows how a batch stands, now or when all of its pages have ended: with 3 if some are dead, or the time is over before.
pub(in crate::cli) async fn show_batch(
    name: &str,
    wait: &BatchWait,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let now = frontier.clock().now();
    let deadline = wait.deadline.map(|deadline| deadline.at(now));
    let mut stand = BatchStand::of(name, frontier).await?;
    if !wait.waits {
        return stand.show(wait.as_json);
    }
    stand.tell_idle(frontier).await?;
    let stop = await_signals()?.token;
    while !stand.has_ended(frontier).await? {
        let now = frontier.clock().now();
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= now) {
            stand.show(wait.as_json)?;
            let open = stand.sum(BatchCounts::open);
            say(format_args!("paced: it is past {deadline}; open pages of batch `{name}`: {open}"));
            return Ok(Exit::Early);
        }
        let pause = deadline.map_or(LOOK, |deadline| LOOK.min(deadline.since(now)));
        if stop.run_until_cancelled(clock::wait(pause)).await.is_none() {
            stand.show(wait.as_json)?;
            return Ok(Exit::Interrupted);
        }
        stand.look_again(frontier).await?;
    }
    stand.show(wait.as_json)
}

impl BatchStand {
    /// Every site is looked at: a redirect may have led to any of them.
    async fn of(name: &str, frontier: &Frontier) -> Result<Self, Trouble> {
        let sites = frontier.batch_on_each(&frontier.sites().await?, name).await?;
        let stand = Self { name: name.to_owned(), sites, is_unsure: false };
        stand.must_be_there()?;
        Ok(stand)
    }

    fn must_be_there(&self) -> Result<(), Trouble> {
        if !self.sites.is_empty() {
            return Ok(());
        }
        let name = &self.name;
        Err(Trouble::failed(format!(
            "there is no batch `{name}`: no page was put with it, or its last one ended more than a week ago"
        )))
    }

    /// The sites that have pages of it, once more.
    async fn look_again(&mut self, frontier: &Frontier) -> Result<(), Trouble> {
        let names: Vec<String> = self.sites.iter().map(|(site, _)| site.clone()).collect();
        self.saw(frontier.batch_on_each(&names, &self.name).await?);
        Ok(())
    }

    /// What was found now. Books that weren't found count as they were: they may have been swept, or are on their way to another
    /// name.
    fn saw(&mut self, found: Vec<(String, BatchCounts)>) {
        let mut gone = std::mem::replace(&mut self.sites, found);
        gone.retain(|(site, _)| self.sites.iter().all(|(seen, _)| seen != site));
        self.is_unsure = gone.iter().any(|(_, batch)| batch.open() > 0);
        self.sites.extend(gone);
        self.sites.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    fn sum(&self, count: impl Fn(&BatchCounts) -> u64) -> u64 {
        self.sites.iter().map(|(_, batch)| count(batch)).sum()
    }

    /// Whether nothing of it is open on any site. A page that went to another site between two reads shows in the next ones.
    async fn has_ended(&mut self, frontier: &Frontier) -> Result<bool, Trouble> {
        if self.sum(BatchCounts::open) > 0 && !self.is_unsure {
            return Ok(false);
        }
        let names = frontier.sites().await?;
        self.saw(frontier.batch_on_each(&names, &self.name).await?);
        // One that was forgotten counts no more, and one that has another name counts there.
        self.sites.retain(|(site, _)| names.contains(site));
        self.must_be_there()?;
        Ok(self.sum(BatchCounts::open) == 0)
    }

    /// Says where pages are open and nobody works on their site.
    async fn tell_idle(&self, frontier: &Frontier) -> Result<(), Trouble> {
        let at_work = frontier.at_work().await?;
        let open = self.sites.iter().filter(|(_, batch)| batch.open() > 0);
        let names: Vec<String> = open.clone().map(|(site, _)| site.clone()).collect();
        for view in frontier.views(&names).await? {
            for told in Unserved::of(&view, &at_work).told() {
                say(format_args!("paced: on {}, {told}", view.site));
            }
        }
        for (site, batch) in open {
            if !at_work.iter().any(|owner| owner.works_on(site)) {
                let (open, name) = (batch.open(), &self.name);
                say(format_args!(
                    "paced: no process works on {site} now; open pages of `{name}` there: {open}"
                ));
            }
        }
        Ok(())
    }

    fn show(&self, as_json: bool) -> Result<Exit, Trouble> {
        let all = Told::of(&self.sites.iter().map(|(_, batch)| batch).collect::<Vec<_>>());
        let began = self.sites.iter().map(|(_, batch)| batch.began_at).min().map(Timestamp::from_millis);
        let ended =
            self.sites.iter().filter_map(|(_, batch)| batch.ended_at).max().map(Timestamp::from_millis);
        let ended = ended.filter(|_| all.open == 0);
        let name = &self.name;
        if as_json {
            let sites: Vec<_> =
                self.sites.iter().map(|(site, batch)| Told::of(&[batch]).object(site)).collect();
            let mut object = all.object("");
            object["site"].take();
            object["batch"] = json!(name);
            object["state"] = json!(if all.open == 0 { "ended" } else { "open" });
            (object["began_at"], object["ended_at"]) = (json!(began), json!(ended));
            object["sites"] = json!(sites);
            if let Some(members) = object.as_object_mut() {
                members.remove("site");
            }
            Results::default().json(object)?;
        } else {
            let state = ended.map_or_else(|| "under way".to_owned(), |at| format!("ended {at}"));
            let mut account = Account::new(format!("batch `{name}`: {state}"));
            let since = began.map(|began| format!(" since {began}")).unwrap_or_default();
            account.tell("pages", format!("{} joined{since}: {}", all.joined, all.came_to()));
            account.tell("put", all.how());
            for (site, batch) in self.sites.iter().filter(|_| self.sites.len() > 1) {
                let told = Told::of(&[batch]);
                account.tell("on site", format!("{site}: {} joined, {}", told.joined, told.came_to()));
            }
            if all.dead > 0 {
                account.tell(
                    "helps",
                    "`paced dead list SITE` says why; `paced dead revive SITE` asks for them again",
                );
            }
            account.print(false)?;
        }
        Ok(if all.dead > 0 { Exit::Early } else { Exit::Done })
    }
}

/// What is told of a batch, on one site or on all of its own.
struct Told {
    joined: u64,
    open: u64,
    done: u64,
    dead: u64,
    excluded: u64,
    dropped: u64,
    how: [u64; 5],
}

impl Told {
    /// Where a redirect led stands in place of where it began, which may be on another site.
    fn of(batches: &[&BatchCounts]) -> Self {
        let sum = |count: fn(&BatchCounts) -> u64| batches.iter().map(|batch| count(batch)).sum::<u64>();
        let (targets, merged) = (sum(|batch| batch.targets), sum(|batch| batch.merged));
        let how = [
            sum(|batch| batch.created),
            sum(|batch| batch.coalesced),
            sum(|batch| batch.deferred),
            sum(|batch| batch.revived),
            sum(|batch| batch.known),
        ];
        Self {
            joined: how[..4].iter().sum::<u64>().saturating_sub(merged),
            open: sum(BatchCounts::open),
            done: sum(|batch| batch.done).saturating_sub(targets),
            dead: sum(|batch| batch.dead),
            excluded: sum(|batch| batch.excluded),
            dropped: sum(|batch| batch.dropped),
            how,
        }
    }

    fn came_to(&self) -> String {
        let Self { open, done, dead, excluded, dropped, .. } = self;
        format!("{open} open, {done} done, {dead} dead, {excluded} excluded, {dropped} dropped")
    }

    fn how(&self) -> String {
        let [created, coalesced, deferred, revived, known] = self.how;
        format!(
            "{created} created, {coalesced} coalesced, {deferred} deferred, {revived} revived; {known} known, which did not join"
        )
    }

    fn object(&self, site: &str) -> serde_json::Value {
        let Self {
            joined,
            open,
            done,
            dead,
            excluded,
            dropped,
            how: [created, coalesced, deferred, revived, known],
        } = self;
        json!({
            "site": site, "joined": joined, "open": open, "done": done, "dead": dead, "excluded": excluded, "dropped": dropped,
            "created": created, "coalesced": coalesced, "deferred": deferred, "revived": revived, "known": known,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(dead: u64) -> BatchCounts {
        BatchCounts { created: 3, done: 3 - dead, dead, ended_at: Some(1), ..BatchCounts::default() }
    }

    #[test]
    fn n4_books_that_were_swept_while_others_are_waited_for_still_tell_of_their_dead_pages() {
        let open = BatchCounts { created: 2, ..BatchCounts::default() };
        let sites = [("a", ended(1)), ("b", open.clone()), ("c", open)];
        let sites = sites.map(|(site, batch)| (site.to_owned(), batch)).to_vec();
        let mut stand = BatchStand { name: "spring".to_owned(), sites, is_unsure: false };
        stand.saw(vec![("b".to_owned(), ended(0)), ("d".to_owned(), ended(0))]);
        let names: Vec<&str> = stand.sites.iter().map(|(site, _)| site.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert!(stand.is_unsure, "c had open pages: where these are is to be looked up");
        assert_eq!(stand.sum(|batch| batch.dead), 1);
        stand.saw(vec![("a".to_owned(), ended(2)), ("c".to_owned(), ended(0))]);
        assert_eq!(stand.sum(|batch| batch.dead), 2, "a newer look counts");
        assert!(!stand.is_unsure);
    }
}
