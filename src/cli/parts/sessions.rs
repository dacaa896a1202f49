//! Sessions as people name them and look at them.

use serde_json::{Value, json};

use super::account::Account;
use super::{Exit, Trouble};
use crate::clock::Timestamp;
use crate::frontier::{Frontier, HeldSession, SessionStatus, View};
use crate::task::{OnFailure, SessionWish};

/// Reads the name of a session.
pub(in crate::cli) fn session_name(text: &str) -> Result<String, String> {
    let why = || format!("`{text}` is no session; write up to 64 letters, digits, `-`, `_`, `.` and `:`");
    SessionWish::is_name(text).then(|| text.to_owned()).ok_or_else(why)
}

/// Reads what a dead step does to its session.
pub(in crate::cli) fn on_failure(text: &str) -> Result<OnFailure, String> {
    match text {
        "block" => Ok(OnFailure::Block),
        "skip" => Ok(OnFailure::Skip),
        _ => Err("write block or skip".to_owned()),
    }
}

/// What holds a session, and what helps: that page alone is named, as other letters are none of its matter.
pub(in crate::cli) fn told_held(site: &str, HeldSession { name, url }: &HeldSession) -> String {
    let path = &url.url()[url::Position::BeforePath..];
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._~%=&?+,:;@-".contains(&byte));
    let only = if is_plain { format!(" --url '{path}'") } else { " --url with its path".to_owned() };
    format!(
        "session `{name}` is held by a dead step, {url}: `paced dead revive {site}{only}` goes on with it, `paced dead drop \
         {site}{only}` without it"
    )
}

/// The first sessions of a site that are held, a line each, and how many more there are.
pub(in crate::cli) fn all_told_held(view: &View) -> Vec<String> {
    let more = view.held_in_all.saturating_sub(view.held.len() as u64);
    let more = (more > 0).then(|| format!("{more} more sessions are held by dead steps"));
    view.held.iter().map(|held| told_held(&view.site, held)).chain(more).collect()
}

/// Shows how a session of a site stands.
pub(in crate::cli) async fn show_session(
    site: &str,
    name: &str,
    as_json: bool,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let Some(SessionStatus { session, next }) = frontier.session(site, name).await? else {
        return Err(Trouble::failed(format!(
            "site `{site}` has no session `{name}`: none was put, or it ended more than a day ago"
        )));
    };
    let (head, place) = match session.head.as_ref().filter(|_| session.ended_at.is_none()) {
        Some(url) if session.held => (Some(url), "dead".to_owned()),
        Some(url) => {
            let tasks = frontier.whereabouts(site, url).await?.tasks;
            (Some(url), tasks.first().map_or_else(|| "ended".to_owned(), |task| task.place.clone()))
        }
        None => (None, String::new()),
    };
    let state = match (session.ended_at, session.held) {
        (Some(at), _) => format!("ended {}", Timestamp::from_millis(at)),
        (None, true) => "held by a dead step".to_owned(),
        (None, false) => "under way".to_owned(),
    };
    let mut account = Account::new(format!("session `{name}` of {site}: {state}"));
    let (left, begun) = (session.left(), Timestamp::from_millis(session.began_at));
    let (created, done, dead, dropped) = (session.created, session.done, session.dead, session.dropped);
    account.tell(
        "steps",
        format!("{created} put since {begun}: {done} done, {dead} dead, {dropped} dropped, {left} left"),
    );
    let on_failure = match session.on_failure {
        OnFailure::Block => "a step that dies holds the others (block)",
        OnFailure::Skip => "the next step goes on after one that died (skip)",
    };
    account.tell("on failure", on_failure);
    if let Some(url) = head {
        account.tell("now", format!("{url}: {place}"));
        if session.held {
            account.tell("helps", told_held(site, &HeldSession { name: name.to_owned(), url: url.clone() }));
        }
    }
    for step in &next {
        account.tell("then", format!("{}, priority {}", step.url, step.priority));
    }
    let next: Vec<Value> =
        next.iter().map(|step| json!({ "url": step.url, "priority": step.priority.to_string() })).collect();
    account.keep(json!({
        "site": site, "session": name, "state": state_word(session.ended_at.is_some(), session.held),
        "on_failure": session.on_failure, "began_at": begun,
        "ended_at": session.ended_at.map(Timestamp::from_millis),
        "created": created, "done": done, "dead": dead, "dropped": dropped, "left": left,
        "head": head, "head_place": head.map(|_| place), "next": next,
    }));
    account.print(as_json)
}

fn state_word(has_ended: bool, is_held: bool) -> &'static str {
    match (has_ended, is_held) {
        (true, _) => "ended",
        (false, true) => "held",
        (false, false) => "open",
    }
}
