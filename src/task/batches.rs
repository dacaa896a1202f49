//! Batches: pages of any sites that somebody wants to hear of together (N4). A task says of which ones it is.

use serde::{Deserialize, Serialize};

use super::SessionWish;

/// Batches that a task is of at the same time, at most.
pub const MOST_BATCHES: usize = 8;
/// What the names of campaigns begin with: no name that somebody gives does. They don't count among the [`MOST_BATCHES`].
pub const OF_CAMPAIGN: &str = "campaign/";

/// The names of the batches that a page is of; none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchNames(Vec<String>);

impl BatchNames {
    /// One name.
    pub fn of(name: impl Into<String>) -> Self {
        Self(vec![name.into()])
    }

    /// Whether a batch can have this name.
    pub fn is_name(name: &str) -> bool {
        SessionWish::is_name(name)
    }

    /// The name under which the tasks of a campaign are counted.
    pub fn of_campaign(name: &str) -> String {
        format!("{OF_CAMPAIGN}{name}")
    }

    /// Whether a name is a campaign's.
    pub fn is_of_campaign(name: &str) -> bool {
        name.starts_with(OF_CAMPAIGN)
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, String> {
        self.0.iter()
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a batch is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|own| own == name)
    }

    /// Whether there is room for one more.
    pub fn has_room_for(&self, name: &str) -> bool {
        let counts = |name: &str| !name.starts_with(OF_CAMPAIGN);
        !counts(name) || self.0.iter().filter(|own| counts(own)).count() < MOST_BATCHES
    }

    /// Adds one that isn't there.
    pub fn add(&mut self, name: String) {
        if !self.contains(&name) {
            self.0.push(name);
        }
    }

    /// All of both; whether all of them have room together.
    pub fn have_room(all: [&Self; 3]) -> bool {
        let mut together = Self::default();
        all.into_iter().flat_map(|names| &names.0).all(|name| {
            let fits = together.contains(name) || together.has_room_for(name);
            together.add(name.clone());
            fits
        })
    }
}

impl IntoIterator for BatchNames {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<String> for BatchNames {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.add(name));
        all
    }
}

impl<'a> IntoIterator for &'a BatchNames {
    type Item = &'a String;
    type IntoIter = std::slice::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> BatchNames {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn n4_a_page_is_of_eight_batches_at_most_and_a_campaign_is_none_of_them() {
        let none = BatchNames::default();
        assert!(BatchNames::have_room([&names(8), &names(8), &names(3)]));
        assert!(BatchNames::have_room([&names(7), &none, &BatchNames::of("more")]));
        assert!(!BatchNames::have_room([&names(8), &none, &BatchNames::of("more")]));
        assert!(!BatchNames::have_room([&names(4), &names(8), &BatchNames::of("more")]));
        let campaign = BatchNames::of(BatchNames::of_campaign("shoes"));
        assert!(BatchNames::have_room([&names(8), &campaign, &none]));
        assert!(BatchNames::have_room([&campaign, &names(8), &none]));
        assert!(!BatchNames::is_name(&BatchNames::of_campaign("shoes")));
    }
}
