//! `paced queue`: pages that wait to be downloaded are listed, dropped, raised or lowered, or moved to another lane (N5).

use clap::{Args, Subcommand, value_parser};
use serde_json::{Value, json};

use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::account::counted;
use crate::cli::parts::ask::is_wanted;
use crate::cli::parts::consent::Consent;
use crate::cli::parts::lanes::must_be_there;
use crate::cli::parts::results::Results;
use crate::cli::parts::sessions::session_name;
use crate::cli::parts::waiting::{PageFilter, WaitingFilter, WaitingPages, gone, lane_of, tenant_of};
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::frontier::{Frontier, QueueChange, Queued};
use crate::site::Site;
use crate::task::Priority;

/// Pages changed in one step.
const CHANGED: usize = 1_000;
/// Pages shown before a change.
const SAMPLES: usize = 5;
/// From one level of priority to the next.
const LEVEL: i16 = 100;
const NOTHING: &str = "no waiting pages match";

/// Options of `paced queue`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced queue books list --match '/catalogue/**'
  paced queue books drop --match '/old/**'
  paced queue books drop --batch spring
  paced queue books raise user:high --tenant acme
  paced queue books move --lane slow --tenant acme")]
pub(in crate::cli) struct QueueArgs {
    /// The site: a name, or its file
    site: String,
    #[command(subcommand)]
    verb: QueueVerb,
}

// The usage is clap's own, which the manual would have without SITE.
#[derive(Clone, Debug, Subcommand)]
enum QueueVerb {
    /// List waiting pages in the order in which they go: priority, when put, lane, tenant, URL
    #[command(
        override_usage = "paced queue <SITE> list [OPTIONS]",
        after_help = "Examples:
  paced queue books list --lane slow --most 1000
  paced queue books list --match '/catalogue/**' --json | jq -r .url"
    )]
    List {
        #[command(flatten)]
        filter: WaitingFilter,
        /// So many pages at most
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
        most: u32,
        /// One JSON object a page
        #[arg(long)]
        json: bool,
    },
    /// Drop them, as if nobody had asked for them
    #[command(
        override_usage = "paced queue <SITE> drop [OPTIONS]",
        after_help = "Example:\n  paced queue books drop --match '/old/**' --why 'the shop was rebuilt'"
    )]
    Drop {
        /// All steps of this session that nobody works on, those that wait behind others too
        #[arg(long, value_name = "NAME", value_parser = session_name, conflicts_with_all = ["lane", "pattern", "tenant", "batch", "priority"])]
        session: Option<String>,
        #[command(flatten)]
        filter: WaitingFilter,
        #[command(flatten)]
        consent: Consent,
    },
    /// Make them more urgent, by a level or to a priority; those that are so already stay
    #[command(
        override_usage = "paced queue <SITE> raise [OPTIONS] [PRIORITY]",
        after_help = "Examples:
  paced queue books raise --match '/sale/**'
  paced queue books raise user:high --tenant acme --yes"
    )]
    Raise {
        /// operator|user|system[:high|middle|low][±2] [default: one level up]
        #[arg(value_name = "PRIORITY")]
        to: Option<Priority>,
        #[command(flatten)]
        filter: WaitingFilter,
        #[command(flatten)]
        consent: Consent,
    },
    /// Make them less urgent, by a level or to a priority; those that are so already stay
    #[command(
        override_usage = "paced queue <SITE> lower [OPTIONS] [PRIORITY]",
        after_help = "Examples:
  paced queue books lower --tenant acme
  paced queue books lower system:low --match '/archive/**' --yes"
    )]
    Lower {
        /// operator|user|system[:high|middle|low][±2] [default: one level down]
        #[arg(value_name = "PRIORITY")]
        to: Option<Priority>,
        #[command(flatten)]
        filter: WaitingFilter,
        #[command(flatten)]
        consent: Consent,
    },
    /// Move them to another lane
    #[command(
        override_usage = "paced queue <SITE> move [OPTIONS] --lane <LANE>",
        after_help = "Examples:
  paced queue books move --lane slow --tenant acme
  paced queue books move --lane general --from gone --yes"
    )]
    Move {
        /// The lane to wait in
        #[arg(long, value_name = "LANE")]
        lane: String,
        /// Those of this lane
        #[arg(long, value_name = "LANE")]
        from: Option<String>,
        #[command(flatten)]
        page: PageFilter,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Lists or changes what waits.
pub(super) async fn run(options: QueueArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let site = sites::known_site(&frontier, &options.site, globals).await?;
    let (filter, change, consent) = match options.verb {
        QueueVerb::List { filter, most, json } => return list(&filter, most, json, &site, &frontier).await,
        QueueVerb::Drop { session: Some(session), consent, .. } => {
            return drop_session(&session, &consent, &site.name, &frontier).await;
        }
        QueueVerb::Drop { filter, consent, .. } => (filter, PageChange::Drop, consent),
        QueueVerb::Raise { to, filter, consent } => (filter, PageChange::Raise(to), consent),
        QueueVerb::Lower { to, filter, consent } => (filter, PageChange::Lower(to), consent),
        QueueVerb::Move { lane, from, page, consent } => {
            must_be_there(&lane, &frontier).await?;
            (WaitingFilter { lane: from, page }, PageChange::Move(lane), consent)
        }
    };
    change_those(&filter, &change, &consent, &site, &frontier).await
}

async fn list(
    filter: &WaitingFilter,
    most: u32,
    as_json: bool,
    site: &Site,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let mut waiting = WaitingPages::of(filter.lane.as_deref(), &site.name, frontier).await?;
    let (all, takes_all) = (waiting.count(), filter.page.takes_all());
    if takes_all {
        waiting.read_at_most(most);
    }
    let (mut results, mut shown, mut more) = (Results::default(), 0, 0);
    while let Some(pages) = waiting.next().await? {
        for page in pages.iter().filter(|page| filter.page.takes(page, site)) {
            if shown == most {
                more += 1;
                continue;
            }
            shown += 1;
            if as_json { results.json(object(page, site))? } else { results.line(line(page, site))? }
        }
        if results.is_closed() {
            return Ok(Exit::Done);
        }
        // How many there are of all is known without reading them.
        if takes_all && shown == most {
            more = all.saturating_sub(u64::from(shown));
            break;
        }
    }
    if more > 0 {
        say(format_args!("… and {more} more; --most shows more"));
    } else if shown == 0 && !as_json {
        say(nothing(site, frontier).await?);
    }
    Ok(Exit::Done)
}

/// That no page matches, and how many wait where no lane has them.
async fn nothing(site: &Site, frontier: &Frontier) -> Result<String, Trouble> {
    let parked = frontier.view(&site.name).await?.map_or(0, |view| view.download.parked);
    if parked == 0 {
        return Ok(NOTHING.to_owned());
    }
    let (name, parked) = (&site.name, counted(parked, "page"));
    Ok(format!(
        "{NOTHING} in any lane: {parked} of {name} must wait for a host's robots.txt, see `paced explain {name}`"
    ))
}

fn line(page: &Queued, site: &Site) -> String {
    let Queued { url, priority, put_at, .. } = page;
    let (lane, tenant) = (lane_of(page), tenant_of(page, site).unwrap_or("-"));
    format!("{priority}\t{put_at}\t{lane}\t{tenant}\t{url}")
}

fn object(page: &Queued, site: &Site) -> Value {
    json!({
        "url": page.url, "priority": page.priority.to_string(), "put_at": page.put_at, "depth": page.depth,
        "lane": lane_of(page), "tenant": tenant_of(page, site), "batches": page.batches,
    })
}

/// What is done to waiting pages.
#[derive(Clone, Debug)]
enum PageChange {
    Drop,
    Raise(Option<Priority>),
    Lower(Option<Priority>),
    Move(String),
}

impl PageChange {
    /// What that is for one page; none if it stays as it is.
    fn of(&self, page: &Queued) -> Option<QueueChange> {
        let own = page.priority;
        match self {
            Self::Drop => Some(QueueChange::Drop),
            Self::Raise(to) => {
                let to = to.or_else(|| levels_away(own, -LEVEL)).filter(|to| *to < own);
                to.map(|to| QueueChange::Priority { from: own, to })
            }
            Self::Lower(to) => {
                let to = to.or_else(|| levels_away(own, LEVEL)).filter(|to| *to > own);
                to.map(|to| QueueChange::Priority { from: own, to })
            }
            Self::Move(lane) => {
                let from = lane_of(page);
                (from != lane).then(|| QueueChange::Lane { from: from.to_owned(), to: lane.clone() })
            }
        }
    }

    /// What is asked for, what was done, and where to.
    fn told(&self) -> (&'static str, &'static str, String) {
        let to = |to: Option<Priority>| to.map(|to| format!(" to {to}")).unwrap_or_default();
        match self {
            Self::Drop => ("drop", "dropped", String::new()),
            Self::Raise(priority) => ("raise", "raised", to(*priority)),
            Self::Lower(priority) => ("lower", "lowered", to(*priority)),
            Self::Move(lane) => ("move", "moved", format!(" to lane {lane}")),
        }
    }

    /// Why it changes none of the pages that match.
    fn why_none(&self) -> String {
        match self {
            Self::Drop => NOTHING.to_owned(),
            Self::Raise(_) => "all waiting pages that match are as urgent already".to_owned(),
            Self::Lower(_) => "all waiting pages that match are as little urgent already".to_owned(),
            Self::Move(lane) => format!("all waiting pages that match are in lane {lane} already"),
        }
    }
}

/// A priority so far away; none outside the table.
fn levels_away(priority: Priority, by: i16) -> Option<Priority> {
    let value = priority.value().checked_add_signed(by)?;
    Some(Priority::from_value(value)).filter(|there| there.value() == value)
}

/// The pages to be changed, by what becomes of them.
#[derive(Debug, Default)]
struct ChangePlan {
    /// Pages that wait in the lanes that are meant.
    seen: u64,
    /// Those of them that the filter takes.
    taken: u64,
    /// The first of those that are changed.
    samples: Vec<CanonicalUrl>,
    changes: Vec<(QueueChange, Vec<CanonicalUrl>)>,
}

impl ChangePlan {
    /// All are found before the first is changed: a page that gets another place might be met twice.
    async fn of(
        change: &PageChange,
        filter: &WaitingFilter,
        site: &Site,
        frontier: &Frontier,
    ) -> Result<Self, Trouble> {
        let mut plan = Self::default();
        let mut waiting = WaitingPages::of(filter.lane.as_deref(), &site.name, frontier).await?;
        while let Some(pages) = waiting.next().await? {
            plan.seen += pages.len() as u64;
            for page in pages.into_iter().filter(|page| filter.page.takes(page, site)) {
                plan.taken += 1;
                if let Some(change) = change.of(&page) {
                    plan.add(page.url, change);
                }
            }
        }
        Ok(plan)
    }

    fn add(&mut self, url: CanonicalUrl, change: QueueChange) {
        if self.samples.len() < SAMPLES {
            self.samples.push(url.clone());
        }
        match self.changes.iter_mut().find(|(same, _)| *same == change) {
            Some((_, urls)) => urls.push(url),
            None => self.changes.push((change, vec![url])),
        }
    }

    /// Shows the first of the pages.
    fn show(&self, found: &str) {
        say(format_args!("{found}{}", if self.count() > self.samples.len() { ", such as:" } else { ":" }));
        self.samples.iter().for_each(|url| say(format_args!("  {url}")));
    }

    fn count(&self) -> usize {
        self.changes.iter().map(|(_, urls)| urls.len()).sum()
    }
}

async fn drop_session(
    session: &str,
    consent: &Consent,
    site: &str,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let left = frontier.session(site, session).await?.map_or(0, |status| status.session.left());
    if left == 0 {
        say(format_args!("session `{session}` of {site} has no steps left"));
        return Ok(Exit::Done);
    }
    let steps = counted(left, "step");
    let found = format!("{site}: {steps} of session `{session}` would be dropped");
    if !consent.is_given(&found, || is_wanted(format_args!("{found}: drop them?")))? {
        return Ok(Exit::Failed);
    }
    frontier.note(site, consent.act(&format!("queue drop --session {session}: {steps}"))).await?;
    let mut dropped: u64 = 0;
    loop {
        match frontier.drop_steps(site, session).await? {
            0 => break,
            some => dropped += u64::from(some),
        }
    }
    Results::default().line(format_args!("{site}: {dropped} of {steps} dropped"))?;
    Ok(Exit::Done)
}

async fn change_those(
    filter: &WaitingFilter,
    change: &PageChange,
    consent: &Consent,
    site: &Site,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let (name, (verb, done, to)) = (&site.name, change.told());
    let plan = ChangePlan::of(change, filter, site, frontier).await?;
    let count = plan.count();
    if count == 0 {
        say(if plan.taken == 0 { nothing(site, frontier).await? } else { change.why_none() });
        return Ok(Exit::Done);
    }
    let waiting = format!("{} waiting pages{}", plan.seen, filter.in_lane());
    let found = format!("{name}: {count} of {waiting} would be {done}{to}");
    let asks = || {
        plan.show(&found);
        is_wanted(format_args!("{verb} them{to}?"))
    };
    if !consent.is_given(&found, asks)? {
        return Ok(Exit::Failed);
    }
    let did = format!("queue {verb}{to}{}{}", filter.in_lane(), filter.page);
    let did = format!("{did}: {}", counted(count as u64, "page"));
    // Before the first is changed: what is killed half way is told too.
    frontier.note(name, consent.act(&did)).await?;
    let changed = apply(plan.changes, name, frontier).await?;
    Results::default().line(format_args!("{name}: {changed} of {waiting} {done}{to}"))?;
    Ok(Exit::Done)
}

/// Changes those that still wait; how many they were.
async fn apply(
    changes: Vec<(QueueChange, Vec<CanonicalUrl>)>,
    site: &str,
    frontier: &Frontier,
) -> Result<u64, Trouble> {
    let mut changed = 0;
    for (change, urls) in changes {
        for portion in urls.chunks(CHANGED) {
            match frontier.requeue(site, portion.to_vec(), change.clone()).await {
                Ok(count) => changed += u64::from(count.ok_or_else(|| gone(site))?),
                Err(error) => {
                    let so_far = counted(changed, "page");
                    say(format_args!("{so_far} changed before this; the others wait as they did"));
                    return Err(error.into());
                }
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::task::{BatchNames, LANE};

    fn page(priority: u16) -> Queued {
        Queued {
            url: CanonicalUrl::parse("https://shop.example/p/1").expect("a URL"),
            priority: Priority::from_value(priority),
            put_at: Timestamp::from_millis(0),
            depth: 0,
            lane: None,
            tenant: None,
            batches: BatchNames::default(),
        }
    }

    #[test]
    fn n5_a_level_up_or_down_stays_in_the_table() {
        let to = |change: &PageChange, own| match change.of(&page(own)) {
            Some(QueueChange::Priority { to, .. }) => Some(to.value()),
            None => None,
            other => panic!("{other:?}"),
        };
        for (own, raised, lowered) in [
            (118, None, Some(218)),
            (162, None, Some(262)),
            (218, Some(118), Some(318)),
            (240, Some(140), Some(340)),
            (262, Some(162), Some(362)),
            (318, Some(218), None),
            (362, Some(262), None),
        ] {
            assert_eq!(to(&PageChange::Raise(None), own), raised, "{own}");
            assert_eq!(to(&PageChange::Lower(None), own), lowered, "{own}");
        }
    }

    #[test]
    fn n5_a_priority_that_is_named_changes_only_what_it_makes_more_or_less_urgent() {
        let user = Some(Priority::from_value(240));
        for (own, raised, lowered) in [(220, false, true), (240, false, false), (260, true, false)] {
            let [from, to] = [own, 240].map(Priority::from_value);
            let set = Some(QueueChange::Priority { from, to });
            let of = |change: &PageChange| change.of(&page(own));
            assert_eq!(of(&PageChange::Raise(user)), set.clone().filter(|_| raised), "{own}");
            assert_eq!(of(&PageChange::Lower(user)), set.filter(|_| lowered), "{own}");
        }
    }

    #[test]
    fn n5_only_what_is_in_another_lane_is_moved() {
        let to = |lane: &str| PageChange::Move(lane.to_owned()).of(&page(240));
        let [from, there] = [LANE, "slow"].map(str::to_owned);
        assert_eq!(to("slow"), Some(QueueChange::Lane { from, to: there }));
        assert_eq!(to(LANE), None);
    }
}
