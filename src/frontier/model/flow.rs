//! What flowed through the queues of the model's sites.

use super::{Model, Sure};
use crate::frontier::shelf::FlowShelf;
use crate::frontier::state::{QueueBooks, RUN_SLOT, WAIT_ONE, WaitKey};

impl FlowShelf for Model {
    fn open_slot(&mut self, site: &str, slot: i64, books: QueueBooks) -> Sure<()> {
        self.books.entry((site.to_owned(), slot)).or_insert(books);
        Ok(())
    }

    fn open_run(&mut self, site: &str, books: QueueBooks) -> Sure<()> {
        self.books.insert((site.to_owned(), RUN_SLOT), books);
        Ok(())
    }

    fn books(&mut self, site: &str) -> Sure<Vec<(i64, QueueBooks)>> {
        let of_site = self.books.iter().filter(|((name, _), _)| name == site);
        Ok(of_site.map(|((_, slot), books)| (*slot, *books)).collect())
    }

    fn waits_slot(&mut self, site: &str) -> Sure<Option<i64>> {
        Ok(self.waits.get(site).map(|(slot, _)| *slot))
    }

    fn halve_waits(&mut self, site: &str, halvings: i64, slot: i64) -> Sure<()> {
        let (kept, waits) = self.waits.entry(site.to_owned()).or_default();
        *kept = slot;
        for count in waits.values_mut() {
            *count >>= halvings.min(63);
        }
        waits.retain(|_, count| *count > 0);
        Ok(())
    }

    fn add_wait(&mut self, site: &str, wait: &WaitKey, most: u32) -> Sure<()> {
        let (_, waits) = self.waits.entry(site.to_owned()).or_default();
        let is_full = waits.len() >= most as usize && !waits.contains_key(wait);
        let wait = if is_full { WaitKey { tenant: None, ..wait.clone() } } else { wait.clone() };
        *waits.entry(wait).or_default() += WAIT_ONE;
        Ok(())
    }

    fn waits(&mut self, site: &str) -> Sure<Vec<(WaitKey, u64)>> {
        let waits = self.waits.get(site).into_iter().flat_map(|(_, waits)| waits);
        Ok(waits.map(|(wait, count)| (wait.clone(), *count)).collect())
    }
}
