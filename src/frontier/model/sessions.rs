//! Sessions of the model.

use super::{Model, Sure};
use crate::frontier::shelf::SessionShelf;
use crate::frontier::state::{Place, SessionPlace, SessionState, Task};

impl SessionShelf for Model {
    fn session(&mut self, site: &str, name: &str) -> Sure<Option<SessionState>> {
        Ok(self.sessions.get(&(site.to_owned(), name.to_owned())).cloned())
    }

    fn save_session(&mut self, site: &str, name: &str, session: &SessionState) -> Sure<()> {
        self.sessions.insert((site.to_owned(), name.to_owned()), session.clone());
        Ok(())
    }

    fn remove_session(&mut self, site: &str, name: &str) -> Sure<()> {
        self.sessions.remove(&(site.to_owned(), name.to_owned()));
        Ok(())
    }

    fn steps_behind(&mut self, site: &str, name: &str, most: u32) -> Sure<Vec<Task>> {
        let is_it = |task: &&Task| {
            task.site == site && task.place == Place::Behind && task.rare.session.as_deref() == Some(name)
        };
        let mut steps: Vec<Task> = self.tasks.values().filter(is_it).cloned().collect();
        steps.sort_by_key(Task::step);
        steps.truncate(most as usize);
        Ok(steps)
    }

    fn held_sessions(&mut self, site: &str, most: u32) -> Sure<Vec<String>> {
        let held = self.of_site(site).filter(|(_, place)| *place == SessionPlace::Held);
        Ok(held.map(|(name, _)| name.to_owned()).take(most as usize).collect())
    }

    fn count_ended(&mut self, site: &str) -> Sure<u64> {
        Ok(self.ended(site).count() as u64)
    }

    fn ended_sessions(&mut self, site: &str, most: u32) -> Sure<Vec<(i64, String)>> {
        let mut ended: Vec<(i64, String)> =
            self.ended(site).map(|(at, name)| (at, name.to_owned())).collect();
        ended.sort();
        ended.truncate(most as usize);
        Ok(ended)
    }
}

impl Model {
    fn of_site<'a>(&'a self, site: &'a str) -> impl Iterator<Item = (&'a str, SessionPlace)> {
        let of_site = self.sessions.iter().filter(move |((owner, _), _)| owner == site);
        of_site.map(|((_, name), session)| (name.as_str(), session.place()))
    }

    fn ended<'a>(&'a self, site: &'a str) -> impl Iterator<Item = (i64, &'a str)> {
        self.of_site(site).filter_map(|(name, place)| match place {
            SessionPlace::Ended(at) => Some((at, name)),
            _ => None,
        })
    }
}
