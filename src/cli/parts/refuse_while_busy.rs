//! For what may only be done to a site while nobody works on it: workers remember names and rules.

use super::Trouble;
use crate::frontier::{Claim, Frontier, TOKENS, WorkScope};

/// Lost leases are freed a hundred a step; a site whose leases take more steps than this is asked about again later.
const FREEING_STEPS: u32 = 100;

/// Refuses while a process works on the site. What those that died had in hand goes back first.
pub(in crate::cli) async fn refuse_while_worked_on(name: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let member = frontier.join(WorkScope::of([])).await?;
    let owners = frontier.owners().await?;
    let working = owners.iter().find(|owner| owner.works_on(name));
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
        // A claim of nothing: it tidies up.
        let (owner, token) = (owner.to_owned(), fastrand::u64(1..TOKENS));
        frontier.claim(Claim { owner, token, download: 0, parse: 0, dice: Vec::new(), lead: 0 }).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_that_only_look_whether_a_site_is_worked_on_do_not_refuse_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("frontier.db").display());
        let frontier = Frontier::open(&url).expect("a frontier");
        let look = || refuse_while_worked_on("shop", &frontier);
        let (one, other) = tokio::join!(look(), look());
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    }
}
