//! Answers of a bucket that are to go: as one costs its whole object, those of an object are gathered and go together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::archive::Place;

/// So long answers of an object wait for others.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// What waits, by object.
#[derive(Debug, Default)]
pub(super) struct Drops(Mutex<HashMap<String, Waiting>>);

#[derive(Debug)]
struct Waiting {
    since: Instant,
    places: Vec<Place>,
}

impl Drops {
    pub(super) fn add(&self, places: impl IntoIterator<Item = Place>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for place in places {
            let of_object = waiting
                .entry(place.segment().to_owned())
                .or_insert_with(|| Waiting { since: Instant::now(), places: Vec::new() });
            of_object.places.push(place);
        }
    }

    /// Takes those of each object whose first has waited so long.
    pub(super) fn take(&self, wait: Duration) -> Vec<(String, Vec<Place>)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = waiting.extract_if(|_, waiting| waiting.since.elapsed() >= wait);
        due.map(|(object, waiting)| (object, waiting.places)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_an_object_go_together_when_the_first_has_waited() {
        let drops = Drops::default();
        let place = |text: &str| text.parse::<Place>().expect("a place");
        drops.add([place("a.warc.gz:0:9"), place("b.warc.gz:0:9"), place("a.warc.gz:9:9")]);
        assert!(drops.take(WAIT).is_empty());
        let mut due = drops.take(Duration::ZERO);
        due.sort();
        let of =
            |name: &str, places: &[&str]| (name.to_owned(), places.iter().map(|text| place(text)).collect());
        assert_eq!(
            due,
            [of("a.warc.gz", &["a.warc.gz:0:9", "a.warc.gz:9:9"]), of("b.warc.gz", &["b.warc.gz:0:9"])]
        );
        assert!(drops.take(Duration::ZERO).is_empty());
    }
}
