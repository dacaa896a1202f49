//! A site is registered in a frontier of several partitions: its unit lies in one of them, the directory in another.

use serde_json::json;

use super::partitions::DIRECTORY;
use super::{Shared, wire};
use crate::frontier::FrontierError;
use crate::frontier::step::{Registered, Registration};
use crate::frontier::table::Step;

impl Shared {
    /// Books a site in the directory, registers it, and then frees what it no longer has.
    ///
    /// No step spans two partitions, and whoever does these may die after each. So booking only adds, and takes nothing away
    /// until the site is known to be registered: at any time the directory holds for it what its rules in force name. What it
    /// holds beyond that, after a crash or a refusal at the last moment, is nobody else's until the site is registered again.
    /// What is known to be refused is asked about first and books nothing.
    ///
    /// Two may do this for one site at the same time, with different files. What was booked last is what the directory keeps
    /// in the end, so it must be in force in the end: who comes later than that begins again.
    pub(super) async fn register(&self, new: Registration) -> Result<Registered, FrontierError> {
        let unit = new.group.as_ref().map_or(&new.name, |(group, _)| group);
        let partition = self.partition_of_unit(unit);
        let before = self.partition_of_site(&new.name).await?;
        if before.is_some_and(|before| before != partition) {
            return Ok(Registered::Refused(format!(
                "site `{}` can't move to the group `{unit}`, which lies in another partition; give it another name",
                new.name
            )));
        }
        let step = Step::Register { new: new.clone() };
        let bar: Option<String> = match before {
            Some(_) => self.ask_for(partition, &step, json!(["view.bar", new.name, unit])).await?,
            None => None,
        };
        if let Some(why) = bar {
            return Ok(Registered::Refused(why));
        }
        loop {
            let booked =
                self.ask_for(DIRECTORY, &step, json!(["directory.book", wire::booked(&new)])).await?;
            let (refusal, number, is_all): (Option<String>, i64, bool) = booked;
            if let Some(why) = refusal {
                return Ok(Registered::Refused(why));
            }
            let admission = json!(["sites.admit", wire::registration(&new), number]);
            let registered = self.ask_for(partition, &step, admission).await?;
            self.look_into(partition);
            if matches!(registered, Some(Registered::Version(_))) && !is_all {
                let confirmation = json!(["directory.confirm", wire::booked(&new), number]);
                self.ask(DIRECTORY, &step, confirmation).await?;
            }
            if let Some(registered) = registered {
                return Ok(registered);
            }
        }
    }
}
