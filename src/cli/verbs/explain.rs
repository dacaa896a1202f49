//! `paced explain`: why a site isn't moving, and what became of a URL. It only looks.

use clap::Args;
use serde_json::json;

use crate::cli::parts::account::Account;
use crate::cli::parts::{Exit, Globals, Trouble, explain_url, sites};
use crate::clock::Timestamp;
use crate::frontier::{Frontier, Says, View};
use crate::monitor::why;
use crate::quantity::spoken;
use crate::site::Site;
use crate::task::RobotsAccess;

/// Options of `paced explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced explain books                                       why isn't it moving, and whose is each value in force
  paced explain https://books.toscrape.com/index.html       what became of this page")]
pub(in crate::cli) struct Options {
    /// A site, by name or file, or a URL
    #[arg(value_name = "SITE|URL")]
    what: String,
    /// The site of the URL, where it isn't the one that has its host
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Explains a site or a URL.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let account = if options.what.contains("://") {
        explain_url::account(&options.what, options.site.as_deref(), &frontier, globals).await?
    } else {
        let name = sites::known(&frontier, std::slice::from_ref(&options.what), globals).await?.remove(0);
        of_site(&name, &frontier).await?
    };
    account.print(options.json)
}

async fn of_site(name: &str, frontier: &Frontier) -> Result<Account, Trouble> {
    let view = frontier.view(name).await?.ok_or_else(|| Trouble::failed(format!("site `{name}` is gone")))?;
    let owners = frontier.owners().await?;
    let has_workers = owners.iter().any(|owner| owner.works_on(name));
    let site = sites::registered(name, frontier).await?;
    let robots = match &site {
        Some(site) => robots_of(site, frontier).await?,
        None => Vec::new(),
    };
    let unreachable = robots.iter().find(|host| host.unreachable_at(view.at)).map(|host| host.said.clone());
    let headline = why(&view, has_workers, unreachable.as_deref());
    let mut account = Account::new(format!("{name}: {headline}"));
    account.keep("site", name);
    account.keep("why", headline);
    tell_books(&mut account, &view);
    tell_pace(&mut account, &view);
    for host in &robots {
        account.tell("robots.txt", host.said.clone());
    }
    let said: Vec<&String> = robots.iter().map(|host| &host.said).collect();
    account.keep("robots", json!(said));
    if let Some(site) = &site {
        account.tell("rules", format!("version {}, {} page rules", view.version, site.pages.len()));
    }
    Ok(account)
}

fn tell_books(account: &mut Account, view: &View) {
    let (download, parse) = (&view.download, &view.parse);
    account.tell(
        "downloads",
        format!(
            "{} waiting, {} running, {} delayed, {} for later, {} dead, {} done",
            download.waiting,
            download.leased,
            download.delayed,
            download.scheduled,
            download.letters,
            download.done
        ),
    );
    account.tell(
        "parses",
        format!(
            "{} waiting, {} running, {} dead, {} done",
            parse.waiting, parse.leased, parse.letters, parse.done
        ),
    );
    for (stage, counts) in [("download", download), ("parse", parse)] {
        for (reason, count) in &counts.excluded {
            account.tell("left out", format!("{count} in the {stage} stage: {reason}"));
        }
    }
    account.keep("run", view.run);
    account.keep("download", json!(download));
    account.keep("parse", json!(parse));
}

fn tell_pace(account: &mut Account, view: &View) {
    let interval = spoken_ms(view.interval);
    account.tell("interval", format!("{interval}: {}", whose_interval(view)));
    account.tell("parallel", format!("{}: {}", view.parallel, whose_parallel(&view.says)));
    account.tell("in flight", view.in_flight.to_string());
    if let Some(response) = view.response {
        account.tell("response", format!("{}: measured", spoken_ms(response)));
    }
    if let Some(last) = view.last_start {
        account.tell("last start", format!("{last}, {} ago", spoken(view.at.since(last))));
    }
    account.tell("pace unit", view.unit.clone());
    account.keep("interval_ms", view.interval);
    account.keep("interval_of", whose_interval(view));
    account.keep("parallel", view.parallel);
    account.keep("parallel_of", whose_parallel(&view.says));
    account.keep("in_flight", view.in_flight);
    account.keep("response_ms", view.response);
    account.keep("last_start", json!(view.last_start));
    account.keep("next_start", json!(view.due));
    account.keep("blocked_until", json!(view.blocked_until));
    account.keep("unit", view.unit.clone());
}

/// Whose the interval in force is, and what the others would be that it overrules.
fn whose_interval(view: &View) -> String {
    let says = &view.says;
    let file = format!("the site's file ({})", spoken_ms(says.interval));
    let tuned = says.tuned_interval.map(|tuned| format!("set while it runs ({})", spoken_ms(tuned)));
    let robots = says.robots.as_ref().map(|(floor, origin)| (*floor, format!("robots.txt of {origin}")));
    let group = says.group.map(|floor| (floor, format!("the group {}", view.unit)));
    let wanted = says.tuned_interval.unwrap_or(says.interval);
    let own = tuned.unwrap_or_else(|| file.clone());
    let floor = robots.into_iter().chain(group).filter(|(floor, _)| *floor > wanted).max();
    match floor {
        Some((_, whose)) => format!("{whose}, over {own}"),
        None if says.tuned_interval.is_some() => format!("{own}, over {file}"),
        None => "the site's file".to_owned(),
    }
}

fn whose_parallel(says: &Says) -> String {
    match says.tuned_parallel {
        Some(_) => format!("set while it runs, over the site's file ({})", says.parallel),
        None => "the site's file".to_owned(),
    }
}

/// What is known of one host's `robots.txt`.
struct HostRobots {
    said: String,
    /// Until when it counts as unreachable.
    unreachable_until: Option<Timestamp>,
}

impl HostRobots {
    fn unreachable_at(&self, now: Timestamp) -> bool {
        self.unreachable_until.is_some_and(|until| until > now)
    }
}

async fn robots_of(site: &Site, frontier: &Frontier) -> Result<Vec<HostRobots>, Trouble> {
    let mut found = Vec::new();
    for host in &site.scope.hosts {
        for scheme in ["https", "http"] {
            let origin = format!("{scheme}://{host}");
            let Some(known) = frontier.robots(&origin).await? else { continue };
            let until = known.until;
            let (said, unreachable_until) = match &known.record.access {
                RobotsAccess::Rules(text) => {
                    (format!("{origin}: {} lines, holds until {until}", text.lines().count()), None)
                }
                RobotsAccess::Absent => (format!("{origin}: there is none, holds until {until}"), None),
                RobotsAccess::Unreachable(why) => {
                    (format!("{origin}: {why}; asked again after {until}"), Some(until))
                }
            };
            found.push(HostRobots { said, unreachable_until });
        }
    }
    Ok(found)
}

fn spoken_ms(ms: i64) -> String {
    spoken(std::time::Duration::from_millis(ms.unsigned_abs()))
}
