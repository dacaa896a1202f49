//! Books of batches of the model.

use super::{Model, Sure};
use crate::frontier::shelf::BatchShelf;
use crate::frontier::state::BatchCounts;

impl BatchShelf for Model {
    fn batch(&mut self, site: &str, name: &str) -> Sure<Option<BatchCounts>> {
        Ok(self.batches.get(&(site.to_owned(), name.to_owned())).cloned())
    }

    fn save_batch(&mut self, site: &str, name: &str, batch: &BatchCounts) -> Sure<()> {
        self.batches.insert((site.to_owned(), name.to_owned()), batch.clone());
        Ok(())
    }

    fn remove_batch(&mut self, site: &str, name: &str) -> Sure<()> {
        self.batches.remove(&(site.to_owned(), name.to_owned()));
        Ok(())
    }

    fn count_ended_batches(&mut self, site: &str) -> Sure<u64> {
        Ok(self.batches_ended(site).len() as u64)
    }

    fn ended_batches(&mut self, site: &str, most: u32) -> Sure<Vec<(i64, String)>> {
        let mut ended = self.batches_ended(site);
        ended.truncate(most as usize);
        Ok(ended)
    }
}

impl Model {
    fn batches_ended(&self, site: &str) -> Vec<(i64, String)> {
        let of_site = self.batches.iter().filter(|((owner, _), _)| owner == site);
        let mut ended: Vec<_> =
            of_site.filter_map(|((_, name), batch)| Some((batch.ended_at?, name.clone()))).collect();
        ended.sort();
        ended
    }
}
