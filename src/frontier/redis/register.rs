//! A site is registered in a frontier of several partitions: its unit lies in one of them, the directory in another.

use super::partitions::DIRECTORY;
use super::wire::{Admitted, Booked};
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
        if before.is_some() {
            let bar = self.ask(partition, &step, wire::bar(&new.name, unit)).await?;
            if let Some(why) = wire::refusal(&bar) {
                return Ok(Registered::Refused(why));
            }
        }
        self.book_and_admit(partition, &step, &new).await
    }

    /// Two may do this for one site at the same time, with different files. What was booked last is what the directory keeps
    /// in the end, so it must be in force in the end: who comes later than that begins again.
    async fn book_and_admit(
        &self,
        partition: usize,
        step: &Step,
        new: &Registration,
    ) -> Result<Registered, FrontierError> {
        loop {
            let booked = self.ask(DIRECTORY, step, wire::booking(new)).await?;
            let (number, is_all) = match wire::booked(&booked).map_err(|odd| self.broken(&odd))? {
                Booked::Refused(why) => return Ok(Registered::Refused(why)),
                Booked::Under { number, is_all } => (number, is_all),
            };
            let admitted = self.ask(partition, step, wire::admission(new, number)).await?;
            self.look_into(partition);
            match wire::admitted(&admitted).map_err(|odd| self.broken(&odd))? {
                Admitted::Late => {}
                Admitted::As(registered) => {
                    if matches!(registered, Registered::Version(_)) && !is_all {
                        self.ask(DIRECTORY, step, wire::confirmation(new, number)).await?;
                    }
                    return Ok(registered);
                }
            }
        }
    }
}
