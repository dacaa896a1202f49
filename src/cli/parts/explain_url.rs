//! What became of one URL: where it stands, when it was fetched, what its item is or why there is none.

use std::fmt::Write;

use serde_json::{Value, json};

use super::account::{Account, counted};
use super::{Globals, Trouble, sites};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::{Frontier, UnitStatus, UrlStatus};
use crate::item::Item;
use crate::quantity::spoken;
use crate::robots::Verdicts;
use crate::sink::LastLines;
use crate::site::Site;
use crate::task::{DeadLetter, LANE, Stage, TaskOrder};

/// A URL as its site stores it, where it stands, and what there is to tell of it.
pub(in crate::cli) struct ExplainedUrl {
    pub url: CanonicalUrl,
    pub site: Site,
    pub status: UrlStatus,
    pub account: Account,
}

/// Tells what became of a URL.
pub(in crate::cli) async fn explain(
    text: &str,
    site: Option<&str>,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<ExplainedUrl, Trouble> {
    let url = CanonicalUrl::parse(text).map_err(Trouble::usage)?;
    let site = owner(site, &url, frontier, globals).await?;
    let url = site.canonical(url.url().clone()).map_err(Trouble::usage)?;
    let status = frontier.whereabouts(&site.name, &url).await?;
    let now = frontier.clock().now();
    let robots = Verdicts::new(Some(frontier)).explain(&site, &url).await?;
    let answer = stored_answer(&status, frontier, globals).await;
    let item = LastLines::of_site(&globals.data.join("items"), &site.name)
        .and_then(|lines| lines.of_page(url.as_str()))
        .map_err(Trouble::failed)?;

    let state = state(&status, now);
    let mut account = Account::new(format!("{url}: {state}"));
    account.tell("site", site.name.clone());
    let (rule, refused) = match site.takes(&url, status.depth().unwrap_or(0)) {
        Ok(rule) => {
            account.tell("rule", format!("taken by the page rule `{}`", rule.name));
            (Some(&rule.name), None)
        }
        Err(refusal) => {
            account.tell("rule", format!("not asked for: {refusal}"));
            (None, Some(refusal.to_string()))
        }
    };
    account.tell("robots.txt", robots.why.clone());
    account.keep(json!({
        "url": url, "site": site.name, "state": state, "rule": rule, "refused": refused, "allowed": robots.allowed,
        "robots": robots.why,
    }));
    let order = frontier.view(&site.name).await?.map(|view| view.order).unwrap_or_default();
    tell_tasks(&mut account, (&site, order), &status, now);
    tell_page(&mut account, &status, answer, now);
    let blocked = refused.or((!robots.allowed).then_some(robots.why));
    tell_item(&mut account, item.as_ref(), &why_no_item(&site, &url, &status, blocked));
    Ok(ExplainedUrl { url, site, status, account })
}

async fn owner(
    given: Option<&str>,
    url: &CanonicalUrl,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Site, Trouble> {
    let name = match given {
        Some(given) => given.to_owned(),
        None => match frontier.site_of(&url.host()).await? {
            Some(owner) => owner,
            None => return Err(nobody_has(url, globals)?),
        },
    };
    sites::known_site(frontier, &name, globals).await
}

fn nobody_has(url: &CanonicalUrl, globals: &Globals) -> Result<Trouble, Trouble> {
    let (frontier, host) = (globals.shown_frontier()?, url.host());
    Ok(Trouble::usage(format!("no site of {frontier} has the host {host}; name one with --site")))
}

/// The answer whose body is stored.
#[derive(Clone, Copy)]
struct StoredAnswer {
    status: u16,
    at: Timestamp,
}

/// The answer as it is stored; none where it can't be read.
async fn stored_answer(found: &UrlStatus, frontier: &Frontier, globals: &Globals) -> Option<StoredAnswer> {
    let place = found.stored()?.place.parse().ok()?;
    let archive = globals.stored_pages(frontier.clock()).await.ok()?;
    let read = tokio::task::spawn_blocking(move || archive.read(&place)).await.ok()?;
    read.ok().map(|stored| StoredAnswer { status: stored.status, at: stored.fetched_at })
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
            ("behind", _) => {
                let session = task.session.as_deref().unwrap_or("-");
                format!("behind other steps of session `{session}`: its {stage}")
            }
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

fn tell_tasks(account: &mut Account, (site, order): (&Site, TaskOrder), found: &UrlStatus, now: Timestamp) {
    let go_by = |task: &UnitStatus| (order == TaskOrder::Deadline).then(|| task.go_by()).flatten();
    for task in &found.tasks {
        let by = go_by(task).map(|by| format!(", to go by {by}")).unwrap_or_default();
        account.tell("task", said(task, site, now) + &by);
    }
    for DeadLetter { stage, attempts, why, session, tenant, .. } in &found.letters {
        let status = why.status.map(|status| format!(", status {status}")).unwrap_or_default();
        let holds = session.as_ref().map(|name| format!("; it holds session `{name}`")).unwrap_or_default();
        let tried = counted(*attempts, "attempt");
        let whose = tenant.as_ref().or(site.tenant.as_ref());
        let whose = whose.map(|name| format!("; it was for tenant {name}")).unwrap_or_default();
        account.tell("died", format!("{stage} after {tried}, {}{status}{whose}{holds}", why.reason));
    }
    let tasks: Vec<Value> = found.tasks.iter().map(|task| object(task, site, go_by(task))).collect();
    let letters: Vec<Value> = found.letters.iter().map(letter_object).collect();
    account.keep(json!({ "tasks": tasks, "dead_letters": letters }));
}

fn said(task: &UnitStatus, site: &Site, now: Timestamp) -> String {
    let UnitStatus { stage, place, priority, depth, .. } = task;
    let ago = spoken(now.since(task.put_at));
    let mut said = format!("{stage}: {place}, put {ago} ago, priority {priority}, {depth} links from a seed");
    if let Some(lane) = &task.lane {
        let _ = write!(said, ", lane {lane}");
    }
    if let Some(tenant) = tenant(task, site) {
        let _ = write!(said, ", tenant {tenant}");
    }
    if let Some(session) = &task.session {
        let _ = write!(said, ", session {session}");
    }
    for batch in &task.batches {
        let _ = write!(said, ", batch {batch}");
    }
    if task.attempts + task.losses > 0 {
        let _ = write!(said, ", {} attempts failed, {} leases lost", task.attempts, task.losses);
    }
    if let Some(failure) = &task.failure {
        let _ = write!(said, ", last: {}", failure.reason);
    }
    said
}

/// Whom a task is for: its own tenant, or else its site's.
fn tenant<'a>(task: &'a UnitStatus, site: &'a Site) -> Option<&'a str> {
    task.tenant.as_deref().or(site.tenant.as_deref())
}

fn object(task: &UnitStatus, site: &Site, go_by: Option<Timestamp>) -> Value {
    json!({
        "stage": task.stage.to_string(), "place": task.place, "until": task.until, "worker": task.owner,
        "priority": task.priority.to_string(), "put_at": task.put_at, "go_by": go_by, "depth": task.depth,
        "attempts": task.attempts, "losses": task.losses, "lane": task.lane.as_deref().unwrap_or(LANE),
        "tenant": tenant(task, site), "session": task.session, "batches": task.batches,
        "last_failure": task.failure.as_ref().map(|failure| &failure.reason),
    })
}

/// A dead letter for scripts.
pub(in crate::cli) fn letter_object(letter: &DeadLetter) -> Value {
    json!({
        "site": letter.site, "stage": letter.stage.to_string(), "url": letter.url, "status": letter.why.status,
        "reason": letter.why.reason, "attempts": letter.attempts, "died_at": letter.died_at, "depth": letter.depth,
        "history": letter.history, "session": letter.session, "batches": letter.batches, "tenant": letter.tenant,
    })
}

fn tell_page(account: &mut Account, found: &UrlStatus, answer: Option<StoredAnswer>, now: Timestamp) {
    let stored = found.stored();
    // An answer older than the last fetch was confirmed by it, with a 304.
    let is_confirmed = |answer: &StoredAnswer| stored.is_some_and(|stored| stored.fetched_at > answer.at);
    if let Some(stored) = stored {
        let said = match answer {
            None => "which can't be read".to_owned(),
            Some(answer) if is_confirmed(&answer) => {
                format!("304: the page of {} stands, status {}", answer.at, answer.status)
            }
            Some(answer) => format!("status {}", answer.status),
        };
        let ago = spoken(now.since(stored.fetched_at));
        account.tell("fetched", format!("{} ({ago} ago), {said}", stored.fetched_at));
        account.tell("archive", stored.place.clone());
    }
    if let Some(again) = found.recrawl_at {
        account.tell("again", format!("{again}, in {}", spoken(again.since(now))));
    }
    account.keep(json!({
        "fetched_at": stored.map(|stored| stored.fetched_at),
        "status": answer.map(|answer| if is_confirmed(&answer) { 304 } else { answer.status }),
        "stored_at": answer.map(|answer| answer.at),
        "stored_status": answer.map(|answer| answer.status),
        "archive": stored.map(|stored| &stored.place),
        "recrawl_at": found.recrawl_at,
    }));
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
    let fields = item.and_then(|item| serde_json::to_string(&item.fields).ok());
    account.tell("item", fields.unwrap_or_else(|| why_none.to_owned()));
    account.keep(json!({ "item": item, "no_item": item.is_none().then_some(why_none) }));
}
