//! For what may only be done to a site while nobody works on it: workers remember names and rules.

use super::Trouble;
use crate::frontier::{Claim, Frontier, TOKENS, WorkScope};

/// Lost leases are freed a hundred a step; a site whose leases take more steps than this is asked about again later.
const FREEING_STEPS: u32 = 100;

/// Refuses while a process works on the site. What those that died had in hand goes back first.
pub(in crate::cli) async fn refuse_while_worked_on(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let member = frontier.join(WorkScope::of([name.to_owned()])).await?;
    let owners = frontier.owners().await?;
    let working = owners.iter().find(|owner| owner.name != member.name && owner.works_on(name));
    if working.is_none() {
        free_lost_leases(name, &member.name, frontier).await?;
    }
    frontier.leave(member).await?;
    match working {
        Some(owner) => Err(Trouble::failed(format!(
            "site `{name}` is being worked on by {} (process {}); stop it first",
            owner.name, owner.pid
        ))),
        None => Ok(()),
    }
}

async fn free_lost_leases(name: &str, owner: &str, frontier: &Frontier) -> Result<(), Trouble> {
    for _ in 0..FREEING_STEPS {
        let view = frontier.view(name).await?;
        if view.is_none_or(|view| view.download.leased + view.parse.leased == 0) {
            break;
        }
        frontier.claim(nothing(owner)).await?;
    }
    Ok(())
}

/// A claim of nothing: it tidies up.
fn nothing(owner: &str) -> Claim {
    let token = fastrand::u64(1..TOKENS);
    Claim { owner: owner.to_owned(), token, download: 0, parse: 0, dice: Vec::new() }
}
