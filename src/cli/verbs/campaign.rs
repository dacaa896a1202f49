//! `paced campaign`: a long list of URLs of a site, put into its queue portion by portion (C12-C16).

use clap::{Args, Subcommand};

use crate::cli::parts::act::Why;
use crate::cli::parts::batches::batch_name;
use crate::cli::parts::campaigns::{self, HEADS, campaign_name, object, portion, row, spoken_ms, tick, told};
use crate::cli::parts::lanes::{must_be_there, tenant};
use crate::cli::parts::results::Results;
use crate::cli::parts::table::table;
use crate::cli::parts::url_list::CheckedList;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::frontier::campaigns::{CampaignStarted, CampaignTuned};
use crate::frontier::state::{CAMPAIGNS_KEPT, CampaignTuning};
use crate::frontier::{Act, Frontier};
use crate::task::{CampaignPlan, CampaignPortion, Priority};

/// The first column of numbers.
const FIRST_NUMBER: usize = 3;

/// Options of `paced campaign`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced campaign start --name autumn --site books --urls autumn.txt.gz
  paced campaign list
  paced campaign tune autumn portion=500 tick=30s
  paced campaign stop autumn --why 'their sale is over'")]
pub(in crate::cli) struct CampaignArgs {
    #[command(subcommand)]
    verb: CampaignVerb,
}

#[derive(Clone, Debug, Subcommand)]
enum CampaignVerb {
    /// Start one: the whole list is checked first, then lies in the frontier; `paced work` feeds it
    #[command(after_help = "Examples:
  paced campaign start --name autumn --site books --urls autumn.txt.gz
  my-sitemap-reader | paced campaign start --name all --site books --urls - --skip-bad --portion 200 --tick 1min")]
    Start(StartArgs),
    /// List them: how much is fed, done, dead and left, and when each would end
    #[command(after_help = "Examples:
  paced campaign list
  paced campaign list --json | jq -r 'select(.state == \"running\") | .left'")]
    List {
        /// One JSON object a campaign
        #[arg(long)]
        json: bool,
    },
    /// Set portion, tick or priority of one that runs; in force at its next tick
    #[command(after_help = "Examples:
  paced campaign tune autumn portion=500
  paced campaign tune autumn tick=30s priority=user:high --why 'it must be done by Friday'")]
    Tune {
        /// The campaign
        name: String,
        /// `portion=N` or `portion=Nx`; `tick=DURATION`, 1s to 1h; `priority=PRIORITY`, of pages that are put from then on
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = setting)]
        values: Vec<CampaignSetting>,
        #[command(flatten)]
        why: Why,
    },
    /// Put no further page of it until it is resumed; what waits of it goes on
    #[command(after_help = "Example:\n  paced campaign pause autumn --why 'their mail of this morning'")]
    Pause(NamedCampaign),
    /// Go on with one that was paused
    #[command(after_help = "Example:\n  paced campaign resume autumn")]
    Resume(NamedCampaign),
    /// Put no further page of it any more, and drop what still waits of it
    #[command(after_help = "Examples:
  paced campaign stop autumn --why 'their sale is over'
  paced campaign stop autumn --keep        # what waits of it is still fetched")]
    Stop {
        #[command(flatten)]
        named: NamedCampaign,
        /// Let end what waits of it
        #[arg(long)]
        keep: bool,
    },
}

#[derive(Clone, Debug, Args)]
struct StartArgs {
    /// Its name: letters, digits, `-`, `_`, `.` and `:`; that of one that ended may be taken again
    #[arg(long, value_parser = campaign_name)]
    name: String,
    /// The site of all its pages: a name, or its file
    #[arg(long)]
    site: String,
    /// One URL a line, gzipped or plain; blank lines and those with `#` are passed over; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    urls: String,
    /// How many of its pages wait or run at once, 1 to 100000, or `2x`: what the pace allows in 2 ticks, and 16 at the least
    #[arg(long, value_name = "N", default_value_t, value_parser = portion)]
    portion: CampaignPortion,
    /// From one top-up to the next, 1s to 1h; where less than half of a portion is left, it is topped up before
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = tick)]
    tick: i64,
    /// operator|user|system[:high|middle|low][±2]
    #[arg(long, value_name = "PRIORITY", default_value = "user:middle")]
    priority: Priority,
    /// Wait in this lane, whatever the fairness rules say
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Whom the pages are for, where that isn't the site's own tenant
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<String>,
    /// The batch that the pages belong to as well
    #[arg(long, value_name = "NAME", value_parser = batch_name)]
    batch: Option<String>,
    /// Go without lines that name no page of the site; otherwise one of them is enough that nothing starts
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    why: Why,
}

#[derive(Clone, Debug, Args)]
struct NamedCampaign {
    /// The campaign
    name: String,
    #[command(flatten)]
    why: Why,
}

/// A key and its new value, as it was written.
#[derive(Clone, Debug)]
struct CampaignSetting {
    written: String,
    tuning: CampaignTuning,
}

fn setting(text: &str) -> Result<CampaignSetting, String> {
    let (key, value) =
        text.split_once('=').ok_or("write it as portion=500, tick=30s or priority=user:high")?;
    let (key, value) = (key.trim(), value.trim());
    let tuning = match key {
        "portion" => CampaignTuning::Portion(portion(value)?),
        "tick" => CampaignTuning::Tick(tick(value)?),
        "priority" => CampaignTuning::Priority(value.parse::<Priority>().map_err(|e| e.to_string())?),
        other => return Err(format!("`{other}` can't be set of a campaign; portion, tick and priority can")),
    };
    Ok(CampaignSetting { written: format!("{key}={value}"), tuning })
}

/// Starts, lists or changes campaigns.
pub(super) async fn run(options: CampaignArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    match options.verb {
        CampaignVerb::Start(start) => self::start(start, &frontier, globals).await,
        CampaignVerb::List { json } => list(json, &frontier).await,
        CampaignVerb::Tune { name, values, why } => {
            let written: Vec<&str> = values.iter().map(|value| value.written.as_str()).collect();
            let act = why.act(&format!("campaign tune {name} {}", written.join(" ")));
            let tunings = values.into_iter().map(|value| value.tuning).collect();
            tuned(&name, tunings, act, &frontier).await
        }
        CampaignVerb::Pause(NamedCampaign { name, why }) => {
            let act = why.act(&format!("campaign pause {name}"));
            tuned(&name, vec![CampaignTuning::Paused(true)], act, &frontier).await
        }
        CampaignVerb::Resume(NamedCampaign { name, why }) => {
            let act = why.act(&format!("campaign resume {name}"));
            tuned(&name, vec![CampaignTuning::Paused(false)], act, &frontier).await
        }
        CampaignVerb::Stop { named, keep } => stop(&named, keep, &frontier).await,
    }
}

/// Checks the whole list, then starts: a bad line is told before anything is done.
async fn start(options: StartArgs, frontier: &Frontier, globals: &Globals) -> Result<Exit, Trouble> {
    let StartArgs { name, site, urls, portion, tick, priority, lane, tenant, batch, skip_bad, why } = options;
    let site = sites::known_site(frontier, &site, globals).await?;
    if let Some(lane) = &lane {
        must_be_there(lane, frontier).await?;
    }
    let mut checked = CheckedList::read(&urls, &site)?;
    checked.tell_bad(&urls, skip_bad)?;
    let plan = CampaignPlan { portion, tick, priority, lane, tenant, batch };
    let act = why.act(&format!("campaign start {name}, {}", checked.told()));
    let started = frontier.start_campaign(&site.name, &name, &plan, &mut checked.list, act).await?;
    if let Some(why) = refusal(&name, started) {
        return Err(Trouble::usage(format!("{why}: nothing was started")));
    }
    let (_, status) = campaigns::known(&name, frontier).await?;
    let mut results = Results::default();
    let ends = status.paced_eta().map(|ms| format!("; the pace allows all in {}", spoken_ms(ms)));
    let ends = ends.unwrap_or_default();
    results.line(format_args!(
        "{name}: started on {} with {}; {}{ends}",
        site.name,
        checked.told(),
        campaigns::fed_so(&status)
    ))?;
    Ok(Exit::Done)
}

/// Why it didn't start.
fn refusal(name: &str, started: CampaignStarted) -> Option<String> {
    Some(match started {
        CampaignStarted::Done => return None,
        CampaignStarted::Running(site) => {
            format!("campaign `{name}` of {site} is under way; take another name, or stop that one first")
        }
        CampaignStarted::Full => format!(
            "there are {CAMPAIGNS_KEPT} campaigns, and none of them has ended; stop one (`paced campaign list`)"
        ),
        CampaignStarted::NoSite => format!("the site of campaign `{name}` is gone"),
        CampaignStarted::Replaced => {
            format!("another list was put under the name `{name}` at the same time; take another name")
        }
    })
}

async fn list(as_json: bool, frontier: &Frontier) -> Result<Exit, Trouble> {
    let all = frontier.campaigns().await?;
    let mut results = Results::default();
    if as_json {
        all.iter().try_for_each(|(name, status)| results.json(object(name, status)))?;
    } else if all.is_empty() {
        say("there are no campaigns");
    } else {
        let rows = all.iter().map(row).collect();
        results.ours(&(table(HEADS, rows, FIRST_NUMBER) + "\n"))?;
    }
    Ok(Exit::Done)
}

/// Sets values, and tells how it stands then.
async fn tuned(
    name: &str,
    tunings: Vec<CampaignTuning>,
    act: Act,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let (known, _) = campaigns::known(name, frontier).await?;
    set(&known.site, name, tunings, act, frontier).await?;
    let (_, status) = campaigns::known(name, frontier).await?;
    Results::default().line(told(name, &status))?;
    Ok(Exit::Done)
}

async fn set(
    site: &str,
    name: &str,
    tunings: Vec<CampaignTuning>,
    act: Act,
    frontier: &Frontier,
) -> Result<(), Trouble> {
    match frontier.tune_campaign(act, site, name, tunings).await? {
        CampaignTuned::Done => Ok(()),
        CampaignTuned::Over => Err(Trouble::failed(format!("campaign `{name}` has ended, or was stopped"))),
        CampaignTuned::Unknown => Err(Trouble::failed(format!(
            "campaign `{name}` has not begun: its list isn't whole; start it again with the same list"
        ))),
    }
}

/// Puts no further page; what waits is dropped in small steps, or let end.
async fn stop(named: &NamedCampaign, keep: bool, frontier: &Frontier) -> Result<Exit, Trouble> {
    let NamedCampaign { name, why } = named;
    let (known, _) = campaigns::known(name, frontier).await?;
    let act = why.act(&format!("campaign stop {name}{}", if keep { " --keep" } else { "" }));
    set(&known.site, name, vec![CampaignTuning::Stopped { keep }], act, frontier).await?;
    let dropped = if keep { 0 } else { frontier.drop_of_campaign(&known.site, name).await? };
    let (_, status) = campaigns::known(name, frontier).await?;
    let dropped = if keep { String::new() } else { format!("{dropped} waiting pages dropped; ") };
    Results::default().line(format_args!("{dropped}{}", told(name, &status)))?;
    Ok(Exit::Done)
}
