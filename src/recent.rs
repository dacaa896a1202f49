//! A map of no more than so many entries, for what a process keeps as long as it lives: those not used for longest go.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Entries by key. Where there would be more than `MOST`, the half that was not used for longest goes.
#[derive(Debug)]
pub(crate) struct Recent<K, V, const MOST: usize> {
    /// Rises with each use.
    turn: u64,
    entries: HashMap<K, Used<V>>,
}

#[derive(Debug)]
struct Used<V> {
    turn: u64,
    value: V,
}

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self { turn: 0, entries: HashMap::new() }
    }
}

impl<K: Eq + Hash, V, const MOST: usize> Recent<K, V, MOST> {
    /// An entry, which is used with that.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let used = self.entries.get_mut(key)?;
        self.turn += 1;
        used.turn = self.turn;
        Some(&mut used.value)
    }

    /// An entry as it stands; it is not used with that.
    pub(crate) fn peek<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|used| &used.value)
    }

    /// An entry, a new one if there is none.
    pub(crate) fn get_or(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            self.forget_half();
        }
        self.turn += 1;
        let turn = self.turn;
        let used = self.entries.entry(key).or_insert_with(|| Used { turn, value: new() });
        used.turn = turn;
        &mut used.value
    }

    /// Puts an entry in the place of the one that was there; that one.
    pub(crate) fn put(&mut self, key: K, value: V) -> Option<V> {
        let mut value = Some(value);
        let entry = self.get_or(key, || value.take().expect("it is taken once"));
        value.map(|value| std::mem::replace(entry, value))
    }

    /// Forgets an entry.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key).map(|used| used.value)
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, used)| (key, &used.value))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the half that was not used for longest.
    pub(crate) fn forget_half(&mut self) {
        let mut turns: Vec<u64> = self.entries.values().map(|used| used.turn).collect();
        let half = turns.len() / 2;
        let (_, since, _) = turns.select_nth_unstable(half);
        let since = *since;
        self.entries.retain(|_, used| used.turn > since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i17_of_many_entries_those_stay_that_were_used_lately() {
        let mut recent = Recent::<i32, i32, 100>::default();
        for n in 0..10_000 {
            assert_eq!(recent.put(n, n), None);
            assert_eq!(recent.get(&0), Some(&mut 0), "used again and again");
            assert!(recent.len() <= 100, "{}", recent.len());
        }
        let kept = |n: &i32| recent.peek(n).is_some();
        assert!((9_960..10_000).all(|n| kept(&n)), "{recent:?}");
        assert!(!kept(&1) && !kept(&9_000));
    }

    #[test]
    fn an_entry_is_replaced_changed_and_removed() {
        let mut recent = Recent::<&str, i32, 1>::default();
        assert_eq!((recent.put("a", 1), recent.put("a", 2)), (None, Some(1)));
        *recent.get_or("a", || 9) += 1;
        assert_eq!(recent.iter().collect::<Vec<_>>(), [(&"a", &3)]);
        assert_eq!((recent.remove("a"), recent.remove("a"), recent.len()), (Some(3), None, 0));
        recent.put("a", 1);
        recent.put("b", 1);
        assert!(recent.peek("a").is_none() && recent.peek("b").is_some(), "there is room for one");
    }
}
