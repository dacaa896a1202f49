//! `paced put`: asks for pages, from the command line or from any program's output.

use std::io::{self, BufReader};

use clap::Args;
use serde_json::json;

use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::batches::batch_name;
use crate::cli::parts::lanes::{must_be_there, tenant};
use crate::cli::parts::lines::Lines;
use crate::cli::parts::results::Results;
use crate::cli::parts::sessions::{on_failure, session_name};
use crate::cli::parts::site_urls::page_of;
use crate::cli::parts::when::When;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::clock::Timestamp;
use crate::frontier::{Frontier, MOST_NOW};
use crate::site::Site;
use crate::task::{FleetRules, HighWater, LaneWish, NOW, OnFailure, Priority, Put, PutReply, SessionWish};

/// URLs put in one step.
const PORTION: usize = 500;
/// Why a page can't be a step of a session now.
const BUSY: &str = "it is a step of another session, or runs outside of this one: this page was not put; put it again once that is done";
/// Bytes read from stdin at once.
const ROOM: usize = 64 * 1024;

/// Options of `paced put`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced put books https://books.toscrape.com/catalogue/page-2.html
  my-feed-reader | paced put books - --priority user
  paced put books https://books.toscrape.com/sale.html --at 08:00 --expires 6h
  my-feed-reader | paced put books - --tenant acme --lane slow
  paced put books - --session roll-out < steps.txt
  paced put books - --batch spring < pages.txt")]
pub(in crate::cli) struct PutArgs {
    /// The site: a name, or its file
    site: String,
    /// Pages of the site; `-` reads them from stdin, one a line
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// operator|user|system[:high|middle|low][±2]
    #[arg(long, default_value = "operator:middle", value_name = "PRIORITY")]
    priority: Priority,
    /// Not before this time: 2026-11-20T09:00:00Z, the next 14:05 of this machine, or a duration (2h)
    #[arg(long, value_name = "TIME", value_parser = When::read)]
    at: Option<When>,
    /// Not after this time: a page that no request was sent for by then is left out
    #[arg(long, value_name = "TIME", value_parser = When::read)]
    expires: Option<When>,
    /// Ask nothing of pages that were fetched since this time, or that long ago (1h)
    #[arg(long, value_name = "TIME", value_parser = When::read)]
    unless_newer: Option<When>,
    /// Pull pages that wait for their time to now
    #[arg(long, conflicts_with = "at")]
    again: bool,
    /// Wait in this lane, whatever the fairness rules say [default: the site's; `now` for an operator's first 100 pages]
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Whom the pages are for, where that isn't the site's own tenant
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<String>,
    /// Fetch the pages one after the other, as steps of this session of the site: each once those before it ended
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    session: Option<String>,
    /// What a step that dies does to its session: `block` it until the step is revived or dropped, or `skip` to the next [default:
    /// as it is, block at first]
    #[arg(long, value_name = "WHAT", value_parser = on_failure, requires = "session")]
    on_failure: Option<OnFailure>,
    /// Count the pages as those of this batch, which may have pages of other sites: `paced status --batch NAME --wait`
    #[arg(long, value_name = "NAME", value_parser = batch_name)]
    batch: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Puts each page that a rule takes, and says what became of each.
pub(super) async fn run(options: PutArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let site = sites::known_site(&frontier, &options.site, globals).await?;
    let results = Results::default();
    let now = frontier.clock().now();
    let [at, expires] = [options.at, options.expires].map(|when| when.map(|when| when.at(now)));
    if let Some(expires) = expires.filter(|expires| *expires <= at.unwrap_or(now)) {
        return Err(Trouble::usage(format!(
            "{expires} is over before a page may be asked for: nothing was put"
        )));
    }
    let unless_newer = options.unless_newer.map(|when| when.since(now));
    if let Some(since) = unless_newer.filter(|since| *since > now) {
        return Err(Trouble::usage(format!("{since} is still to come: nothing was fetched since then")));
    }
    let lanes = PutLanes::of(&options, &frontier).await?;
    let (portion, refused) = (Vec::new(), 0);
    let mut intake = Intake {
        options: &options,
        at,
        expires,
        unless_newer,
        lanes,
        frontier,
        site,
        portion,
        refused,
        full: Vec::new(),
        results,
    };
    for url in &options.urls {
        if url == "-" {
            intake.take_lines(Lines::new(BufReader::with_capacity(ROOM, io::stdin().lock()))).await?;
        } else {
            intake.take(url).await?;
        }
    }
    intake.hand_in().await?;
    Ok(if intake.refused > 0 { Exit::Failed } else { Exit::Done })
}

/// Where the pages wait, and for whom they are.
struct PutLanes {
    wish: LaneWish,
    /// So many more go before all others, as far as is known.
    room: u64,
    is_full: bool,
}

impl PutLanes {
    /// Pages that an operator asks for go before all others, unless their lane or their tenant is named: a team's pages are to be
    /// fair to other teams.
    async fn of(options: &PutArgs, frontier: &Frontier) -> Result<Self, Trouble> {
        let PutArgs { lane, tenant, priority, at, .. } = options;
        if let Some(lane) = lane {
            must_be_there(lane, frontier).await?;
        }
        let urgent = lane.is_none() && tenant.is_none() && at.is_none() && priority.is_urgent();
        Ok(Self {
            wish: LaneWish { lane: lane.clone(), urgent, tenant: tenant.clone() },
            room: 0,
            is_full: false,
        })
    }

    /// Says once that so many pages more may not all go before the others.
    async fn tell_if_full(&mut self, pages: u64, frontier: &Frontier, site: &str) -> Result<(), Trouble> {
        if !self.wish.urgent || self.is_full {
            return Ok(());
        }
        if self.room < pages {
            let view = frontier.view(site).await?;
            let waiting = view.and_then(|view| view.download.lanes.get(NOW).copied()).unwrap_or(0);
            self.room = MOST_NOW.saturating_sub(waiting);
        }
        self.is_full = self.room < pages;
        self.room = self.room.saturating_sub(pages);
        if self.is_full {
            say(format_args!(
                "paced: `{NOW}` holds {MOST_NOW} pages of a site: further ones may wait in other lanes; --lane {NOW} takes all"
            ));
        }
        Ok(())
    }
}

/// Takes URLs in and hands them in by portions.
struct Intake<'a> {
    options: &'a PutArgs,
    at: Option<Timestamp>,
    expires: Option<Timestamp>,
    unless_newer: Option<Timestamp>,
    lanes: PutLanes,
    frontier: Frontier,
    site: Site,
    portion: Vec<Put>,
    refused: u64,
    /// Marks that were told.
    full: Vec<HighWater>,
    results: Results,
}

impl Intake<'_> {
    /// Takes line after line; what a feed has written so far is handed in before more is waited for.
    async fn take_lines(&mut self, mut lines: Lines<BufReader<impl io::Read>>) -> Result<(), Trouble> {
        while let Some(line) = lines.next_line()? {
            match line.text() {
                Ok(text) => self.take(text).await?,
                Err(why) => self.refuse(&line.shown(), &why)?,
            }
            if lines.may_wait() {
                self.hand_in().await?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, text: &str) -> Result<(), Trouble> {
        if text.trim().is_empty() {
            return Ok(());
        }
        if self.options.session.is_some() && self.refused > 0 {
            return self.refuse(text, &format!("{}: a step before it was not put", text.trim()));
        }
        match self.as_put(text) {
            Ok(put) => self.portion.push(put),
            Err(why) => self.refuse(text, &why)?,
        }
        // A chain has no holes: what comes after a step that isn't taken in isn't put.
        let most = if self.options.session.is_some() { 1 } else { PORTION };
        if self.portion.len() >= most { self.hand_in().await } else { Ok(()) }
    }

    fn refuse(&mut self, text: &str, why: &str) -> Result<(), Trouble> {
        self.refused += 1;
        if self.options.json {
            return self.results.json(json!({ "url": text.trim(), "reply": "refused", "why": why }));
        }
        say(format_args!("paced: {why}"));
        Ok(())
    }

    fn as_put(&self, text: &str) -> Result<Put, String> {
        let (url, rule) = page_of(&self.site, text)?;
        let (again, rule) = (self.options.again, Some(rule.name.clone()));
        let Self { at, expires, unless_newer, .. } = *self;
        let wish = self.lanes.wish.clone();
        let on_failure = self.options.on_failure;
        let session = self.options.session.clone().map(|name| SessionWish { name, on_failure });
        let batches = self.options.batch.iter().cloned().collect();
        let put = Put::request(url, self.options.priority);
        Ok(Put { at, expires, unless_newer, again, rule, wish, session, batches, ..put })
    }

    async fn hand_in(&mut self) -> Result<(), Trouble> {
        let puts = std::mem::take(&mut self.portion);
        if puts.is_empty() {
            return Ok(());
        }
        self.lanes.tell_if_full(puts.len() as u64, &self.frontier, &self.site.name).await?;
        let urls: Vec<CanonicalUrl> = puts.iter().map(|put| put.url.clone()).collect();
        let replies = self.frontier.put(&self.site.name, puts).await?;
        let is_full = replies.iter().any(|reply| matches!(reply, PutReply::Refused(_)));
        let fleet = if is_full { self.frontier.fleet_rules().await? } else { FleetRules::default() };
        urls.iter().zip(replies).try_for_each(|(url, reply)| self.tell(url, reply, &fleet))
    }

    /// Says of each mark once that nothing more is taken in for now.
    fn say_full(&mut self, mark: HighWater, told: &str) {
        if !self.options.json && !self.full.contains(&mark) {
            self.full.push(mark);
            say(format_args!("paced: {told}: put what is refused again later"));
        }
    }

    /// Pages are put also where nobody reads the answers any more.
    fn tell(&mut self, url: &CanonicalUrl, reply: PutReply, fleet: &FleetRules) -> Result<(), Trouble> {
        let why = match reply {
            PutReply::Refused(mark) => {
                let told = fleet.told_full(&self.site.name, mark);
                self.say_full(mark, &told);
                Some(told)
            }
            PutReply::Busy => Some(BUSY.to_owned()),
            _ => None,
        };
        if reply == PutReply::Busy && !self.options.json {
            say(format_args!("paced: {url}: {BUSY}"));
        }
        self.refused += u64::from(why.is_some());
        let mark = if let PutReply::Refused(mark) = reply { Some(mark) } else { None };
        let reply = if mark.is_some() { json!("refused") } else { json!(reply) };
        if self.options.json {
            let mut told = json!({ "url": url, "reply": reply });
            for (key, value) in [("mark", mark.map(|mark| json!(mark))), ("why", why.map(|why| json!(why)))] {
                if let Some(value) = value {
                    told[key] = value;
                }
            }
            return self.results.json(told);
        }
        self.results.line(format_args!("{}\t{url}", reply.as_str().unwrap_or("put")))
    }
}
