//! `Budget`: what one page may cost, in time on a processor and in memory. Each loop that grows with a page asks it, so that
//! no page holds a thread for longer than its site's file allows.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::clock::thread_time;
use crate::quantity::spoken;

/// Memory for what is made of a page's tree: its values and links. The tree itself has a limit of nodes.
pub const MOST_MEMORY: usize = 48 << 20;
/// Steps between two looks at the clock, which are system calls: a few milliseconds of the dearest ones.
const LOOK: u64 = 32_768;

/// What one page may cost. A page is worked at by one thread; clones share what is left.
///
/// What is spent stays spent: loops end early, and who began the work throws away what they made.
#[derive(Clone, Debug)]
pub struct Budget(Rc<BudgetUse>);

#[derive(Debug)]
struct BudgetUse {
    /// When its time ends, by the thread's clock, and how much it was.
    time: Option<(Duration, Duration)>,
    most_steps: u64,
    steps: Cell<u64>,
    look_at: Cell<u64>,
    bytes: Cell<usize>,
    at_once: Cell<u64>,
    doing: Cell<&'static str>,
    left_out: RefCell<Vec<&'static str>>,
    spent: Cell<Option<Spent>>,
}

/// A budget that is spent, and what on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Spent {
    /// What was being done, as in `its selectors`.
    pub doing: &'static str,
    /// What there was too little of.
    pub of: Scarce,
}

/// What there may be too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// Time on a processor.
    Time(Duration),
    /// Steps.
    Steps(u64),
    /// Memory, in bytes.
    Memory(usize),
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { doing, of } = self;
        match of {
            Scarce::Time(most) => write!(f, "the parse took more than {} of a processor", spoken(*most)),
            Scarce::Steps(most) => write!(f, "the parse took more than {most} steps"),
            Scarce::Memory(most) => write!(f, "the parse took more than {} MiB of memory", most >> 20),
        }?;
        write!(f, ", at {doing}")
    }
}

impl Budget {
    /// So much time on a processor from now on, for this thread.
    pub fn of_time(most: Duration) -> Self {
        Self::of_both(most, u64::MAX)
    }

    /// So many steps, whatever time they take.
    pub fn of_steps(most: u64) -> Self {
        Self::new(None, most)
    }

    /// So much time and so many steps: whichever is over first.
    pub fn of_both(time: Duration, steps: u64) -> Self {
        Self::new(Some((thread_time().saturating_add(time), time)), steps)
    }

    /// As much as is wanted, but for memory.
    pub fn without_end() -> Self {
        Self::of_steps(u64::MAX)
    }

    fn new(time: Option<(Duration, Duration)>, most_steps: u64) -> Self {
        Self(Rc::new(BudgetUse {
            time,
            most_steps,
            steps: Cell::new(0),
            look_at: Cell::new(0),
            bytes: Cell::new(0),
            at_once: Cell::new(0),
            doing: Cell::new("its tree"),
            left_out: RefCell::default(),
            spent: Cell::new(None),
        }))
    }

    /// What is done from now on, in words that follow "at".
    pub fn begin(&self, doing: &'static str) {
        self.0.doing.set(doing);
    }

    /// Takes so many steps; false once the budget is spent. A step is about a node, a comparison or 16 bytes looked at.
    #[inline]
    pub fn pays(&self, steps: usize) -> bool {
        let steps = steps as u64;
        let all = self.0.steps.get().saturating_add(steps);
        self.0.steps.set(all);
        if steps > self.0.at_once.get() {
            self.0.at_once.set(steps);
        }
        if all < self.0.look_at.get() {
            return true;
        }
        self.look(all)
    }

    /// Takes steps for so many bytes that are looked at.
    #[inline]
    pub fn reads(&self, bytes: usize) -> bool {
        self.pays(1 + bytes / 16)
    }

    /// Takes so many bytes of memory; false once the budget is spent.
    pub fn takes(&self, bytes: usize) -> bool {
        let all = self.0.bytes.get().saturating_add(bytes);
        self.0.bytes.set(all);
        if all > MOST_MEMORY {
            self.end(Scarce::Memory(MOST_MEMORY));
        }
        self.0.spent.get().is_none()
    }

    /// Gives memory back that was taken.
    pub fn frees(&self, bytes: usize) {
        self.0.bytes.set(self.0.bytes.get().saturating_sub(bytes));
    }

    /// Notes what of the page is left out, as it is too much; the rest of the page is read without it.
    pub fn leaves_out(&self, what: &'static str) {
        let mut left_out = self.0.left_out.borrow_mut();
        if !left_out.contains(&what) {
            left_out.push(what);
        }
    }

    /// What was left out so far, each kind once.
    pub fn left_out(&self) -> Vec<&'static str> {
        self.0.left_out.borrow().clone()
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.0.spent.get().is_some()
    }

    /// Whether nothing is left, and what it was spent on.
    pub fn spent(&self) -> Option<Spent> {
        self.0.spent.get()
    }

    /// What was made, unless the budget was spent on the way: then it is incomplete.
    pub fn whole<T>(&self, made: T) -> Result<T, Spent> {
        self.0.spent.get().map_or(Ok(made), Err)
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.0.steps.get()
    }

    /// The most steps that were taken at once, without a look in between.
    pub fn most_at_once(&self) -> u64 {
        self.0.at_once.get()
    }

    #[cold]
    fn look(&self, all: u64) -> bool {
        if self.0.spent.get().is_some() {
            return false;
        }
        let BudgetUse { time, most_steps, look_at, .. } = &*self.0;
        if all > *most_steps {
            self.end(Scarce::Steps(*most_steps));
        } else if let Some((_, most)) = time.filter(|(ends, _)| thread_time() > *ends) {
            self.end(Scarce::Time(most));
        } else {
            let next = if time.is_some() { all.saturating_add(LOOK) } else { u64::MAX };
            look_at.set(next.min(most_steps.saturating_add(1)));
        }
        self.0.spent.get().is_none()
    }

    fn end(&self, of: Scarce) {
        // Each further loop asks again and learns it at its first step.
        self.0.look_at.set(0);
        if self.0.spent.get().is_none() {
            self.0.spent.set(Some(Spent { doing: self.0.doing.get(), of }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_until_none_is_left() {
        let budget = Budget::of_steps(10);
        budget.begin("its links");
        assert!(budget.pays(4) && budget.pays(6));
        assert!(!budget.pays(1) && !budget.pays(0), "what is spent stays spent");
        let spent = budget.spent().expect("spent");
        assert_eq!(spent.to_string(), "the parse took more than 10 steps, at its links");
        assert_eq!((budget.steps(), budget.most_at_once()), (11, 6));
        assert_eq!(budget.whole(1), Err(spent));
    }

    #[test]
    fn memory_is_taken_until_none_is_left() {
        let budget = Budget::without_end();
        assert!(budget.takes(MOST_MEMORY) && budget.pays(1));
        assert!(!budget.takes(1) && !budget.pays(1));
        budget.begin("its links");
        let spent = budget.spent().expect("spent").to_string();
        assert_eq!(spent, "the parse took more than 48 MiB of memory, at its tree");
    }

    #[test]
    fn time_is_this_threads_own_on_a_processor() {
        let budget = Budget::of_time(Duration::from_millis(20));
        while budget.pays(100) {}
        let spent = budget.spent().expect("spent").to_string();
        assert_eq!(spent, "the parse took more than 20 ms of a processor, at its tree");
        assert!(Budget::of_time(Duration::from_hours(1)).pays(1));
    }

    #[test]
    fn of_time_and_steps_whichever_is_over_first_counts() {
        let budget = Budget::of_both(Duration::from_hours(1), 100_000);
        while budget.pays(1) {}
        assert_eq!(
            (budget.steps(), budget.spent().map(|spent| spent.of)),
            (100_001, Some(Scarce::Steps(100_000)))
        );
        let budget = Budget::of_both(Duration::from_millis(20), u64::MAX);
        while budget.pays(1) {}
        assert!(matches!(budget.spent().map(|spent| spent.of), Some(Scarce::Time(_))));
    }
}
