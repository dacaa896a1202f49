//! What became of one URL: where it stands, when it was fetched, what its item is or why there is none.

use serde_json::{Value, json};

use super::account::{Account, attempts};
use super::{Globals, Trouble, sites};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::{Frontier, UnitStatus, UrlStatus};
use crate::item::Item;
use crate::quantity::spoken;
use crate::robots::Verdicts;
use crate::sink::LastLines;
use crate::site::Site;
use crate::task::Stage;

/// Tells what became of a URL.
pub(in crate::cli) async fn account(
    text: &str,
    site: Option<&str>,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Account, Trouble> {
    let url = CanonicalUrl::parse(text).map_err(Trouble::usage)?;
    let site = owner(site, &url, frontier, globals).await?;
    let url = site.canonical(url.url().clone()).map_err(Trouble::usage)?;
    let found = frontier.whereabouts(&site.name, &url).await?;
    let now = frontier.clock().now();
    let refusal = site.takes(&url, found.depth().unwrap_or(0)).err().map(|refusal| refusal.to_string());
    let robots = Verdicts::new(Some(frontier)).explain(&site, &url).await?;
    let answer = answer_of(&found, frontier, globals).await;
    let item = LastLines::of_site(&globals.data.join("items"), &site.name)
        .and_then(|lines| lines.of_page(url.as_str()))
        .map_err(Trouble::failed)?;

    let state = state(&found, now);
    let mut account = Account::new(format!("{url}: {state}"));
    account.tell("site", site.name.clone());
    account.keep("url", url.as_str());
    account.keep("site", site.name.clone());
    account.keep("state", state);
    let rule = site.rule_for(&url).filter(|_| refusal.is_none());
    match (&refusal, rule) {
        (Some(refusal), _) => account.tell("rule", format!("not asked for: {refusal}")),
        (None, Some(rule)) => account.tell("rule", format!("taken by the page rule `{}`", rule.name)),
        (None, None) => {}
    }
    account.keep("rule", rule.map(|rule| rule.name.clone()));
    account.keep("refused", refusal.clone());
    account.tell("robots.txt", robots.why.clone());
    account.keep("allowed", robots.allowed);
    account.keep("robots", robots.why.clone());
    tell_tasks(&mut account, &found, now);
    tell_page(&mut account, &found, answer, now);
    let blocked = refusal.or_else(|| (!robots.allowed).then(|| robots.why.clone()));
    tell_item(&mut account, item.as_ref(), &why_no_item(&site, &url, &found, blocked));
    Ok(account)
}

async fn owner(
    given: Option<&str>,
    url: &CanonicalUrl,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Site, Trouble> {
    let name = match given {
        Some(given) => sites::known(frontier, &[given.to_owned()], globals).await?.remove(0),
        None => frontier.site_of(&url.host()).await?.ok_or_else(|| {
            Trouble::usage(format!(
                "no site of {} has the host {}; name one with --site",
                globals.shown_frontier(),
                url.host()
            ))
        })?,
    };
    sites::registered(&name, frontier)
        .await?
        .ok_or_else(|| Trouble::usage(format!("there is no site `{name}` in {}", globals.shown_frontier())))
}

/// The answer whose body is stored.
#[derive(Clone, Copy)]
struct Answer {
    status: u16,
    at: Timestamp,
}

/// The answer as it is stored; none where it can't be read.
async fn answer_of(found: &UrlStatus, frontier: &Frontier, globals: &Globals) -> Option<Answer> {
    let place = found.stored()?.place.parse().ok()?;
    let archive = globals.stored_pages(frontier.clock()).await.ok()?;
    let read = tokio::task::spawn_blocking(move || archive.read(&place)).await.ok()?;
    read.ok().map(|stored| Answer { status: stored.status, at: stored.fetched_at })
}

fn state(found: &UrlStatus, now: Timestamp) -> String {
    if let Some(task) = found.tasks.first() {
        let stage = task.stage;
        return match (task.place.as_str(), task.until) {
            ("waiting", _) => format!("waiting for its {stage}, for {}", spoken(now.since(task.put_at))),
            ("running", _) => {
                format!("running in {}: its {stage}", task.owner.as_deref().unwrap_or("a worker"))
            }
            (place, Some(until)) => format!("{place} until {until}: its {stage}"),
            (place, None) => format!("{place}: its {stage}"),
        };
    }
    match (found.letters.first(), found.stored(), found.is_known) {
        (Some(letter), ..) => format!("dead letter of the {} stage since {}", letter.stage, letter.died_at),
        (None, Some(_), _) => "done".to_owned(),
        (None, None, true) => "met in this run and done without being kept".to_owned(),
        (None, None, false) => "never met".to_owned(),
    }
}

fn tell_tasks(account: &mut Account, found: &UrlStatus, now: Timestamp) {
    for task in &found.tasks {
        account.tell("task", said(task, now));
    }
    for letter in &found.letters {
        let status = letter.why.status.map(|status| format!(", status {status}")).unwrap_or_default();
        account.tell(
            "died",
            format!("{} after {}, {}{status}", letter.stage, attempts(letter.attempts), letter.why.reason),
        );
    }
    let tasks: Vec<Value> = found.tasks.iter().map(object).collect();
    let letters: Vec<Value> = found
        .letters
        .iter()
        .map(|letter| {
            json!({
                "stage": letter.stage.to_string(), "reason": letter.why.reason, "status": letter.why.status,
                "attempts": letter.attempts, "died_at": letter.died_at,
            })
        })
        .collect();
    account.keep("tasks", tasks);
    account.keep("dead_letters", letters);
}

fn said(task: &UnitStatus, now: Timestamp) -> String {
    let mut said = vec![format!(
        "{}: {}, put {} ago, priority {}, {} links from a seed",
        task.stage,
        task.place,
        spoken(now.since(task.put_at)),
        task.priority,
        task.depth
    )];
    if task.attempts + task.losses > 0 {
        said.push(format!("{} attempts failed, {} leases lost", task.attempts, task.losses));
    }
    if let Some(failure) = &task.failure {
        said.push(format!("last: {}", failure.reason));
    }
    said.join(", ")
}

fn object(task: &UnitStatus) -> Value {
    json!({
        "stage": task.stage.to_string(), "place": task.place, "until": task.until, "worker": task.owner,
        "priority": task.priority.to_string(), "put_at": task.put_at, "depth": task.depth,
        "attempts": task.attempts, "losses": task.losses,
        "last_failure": task.failure.as_ref().map(|failure| &failure.reason),
    })
}

fn tell_page(account: &mut Account, found: &UrlStatus, answer: Option<Answer>, now: Timestamp) {
    let stored = found.stored();
    if let Some(stored) = stored {
        let ago = spoken(now.since(stored.fetched_at));
        let said = said_by(stored.fetched_at, answer);
        account.tell("fetched", format!("{} ({ago} ago), {said}", stored.fetched_at));
        account.tell("archive", stored.place.clone());
    }
    if let Some(again) = found.recrawl_at {
        account.tell("again", format!("{again}, in {}", spoken(again.since(now))));
    }
    let fetched_at = stored.map(|stored| stored.fetched_at);
    let status = answer.map(|answer| if is_confirmed(fetched_at, answer) { 304 } else { answer.status });
    account.keep("fetched_at", json!(fetched_at));
    account.keep("status", status);
    account.keep("stored_at", json!(answer.map(|answer| answer.at)));
    account.keep("stored_status", answer.map(|answer| answer.status));
    account.keep("archive", stored.map(|stored| stored.place.clone()));
    account.keep("recrawl_at", json!(found.recrawl_at));
}

/// Whether the last fetch brought a 304, so that an older answer stands.
fn is_confirmed(fetched_at: Option<Timestamp>, answer: Answer) -> bool {
    fetched_at.is_some_and(|at| at > answer.at)
}

/// What the last fetch brought.
fn said_by(fetched_at: Timestamp, answer: Option<Answer>) -> String {
    match answer {
        None => "which can't be read".to_owned(),
        Some(answer) if is_confirmed(Some(fetched_at), answer) => {
            format!("304: the page of {} stands, status {}", answer.at, answer.status)
        }
        Some(answer) => format!("status {}", answer.status),
    }
}

fn why_no_item(site: &Site, url: &CanonicalUrl, found: &UrlStatus, blocked: Option<String>) -> String {
    let letter = |stage| found.letters.iter().find(|letter| letter.stage == stage);
    if let Some(letter) = letter(Stage::Parse).or_else(|| letter(Stage::Download)) {
        return format!("none: {}", letter.why.reason);
    }
    if let Some(blocked) = blocked {
        return format!("none: {blocked}");
    }
    match site.rule_for(url) {
        Some(rule) if !rule.item => format!("none: the page rule `{}` makes no items", rule.name),
        _ if found.stored().is_none() => "none: the page was not fetched".to_owned(),
        _ if found.tasks.iter().any(|task| task.stage == Stage::Parse) => {
            "none yet: it is to be parsed".to_owned()
        }
        _ => "none in the items folder of this data folder".to_owned(),
    }
}

fn tell_item(account: &mut Account, item: Option<&Item>, why_none: &str) {
    match item {
        Some(item) => account.tell("item", serde_json::to_string(&item.fields).unwrap_or_default()),
        None => account.tell("item", why_none),
    }
    account.keep("item", json!(item));
    account.keep("no_item", item.is_none().then(|| why_none.to_owned()));
}
