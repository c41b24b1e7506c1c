//! Which process this is: a forked child has a copy of all that its parent made, and none of the
//! parent's threads.
//!
//! See "How does a process detect a fork?" in DESIGN.md.

use once_cell::race::OnceBox;

pub(crate) mod clock;
pub(crate) mod generation;
pub(crate) mod mutex;
#[cfg(test)]
pub(crate) mod seeded;
pub(crate) mod together;
pub(crate) mod utc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u64);

impl Process {
    pub(crate) fn current() -> Self {
        Self(generation::current())
    }

    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// A value for each process: a child starts with a new one, and leaves its parent's alone.
///
/// No call here waits for another thread: in a child that thread may not exist.
pub(crate) struct PerProcess<T>(OnceBox<ProcessSlot<T>>);

struct ProcessSlot<T> {
    process: Process,
    value: T,
    next: PerProcess<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceBox::new())
    }

    /// The values of the processes that this one was forked from, the parent's last.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = &T> {
        let process = Process::current();
        let slots = std::iter::successors(self.0.get(), |slot| slot.next.0.get());
        slots.filter(move |slot| slot.process != process).map(|slot| &slot.value)
    }
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn get(&self) -> &T {
        let process = Process::current();
        let make = || {
            let value = T::default();
            let next = PerProcess::new();
            Box::new(ProcessSlot { process, value, next })
        };
        let mut slot = self.0.get_or_init(make);
        while slot.process != process {
            slot = slot.next.0.get_or_init(make);
        }
        &slot.value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_process_keeps_its_value() {
        let values = PerProcess::<AtomicU32>::new();
        values.get().store(7, Ordering::Relaxed);
        assert_eq!(values.get().load(Ordering::Relaxed), 7);
        assert_eq!(values.inherited().count(), 0);
    }

    /// Method: the first value is that of another process.
    #[test]
    fn a_forked_process_has_a_value_of_its_own() {
        let values = PerProcess::<AtomicU32>::new();
        let next = PerProcess::new();
        let parent = ProcessSlot { process: Process(0), value: AtomicU32::new(7), next };
        assert!(values.0.set(Box::new(parent)).is_ok());
        assert_eq!(values.get().load(Ordering::Relaxed), 0);
        values.get().store(8, Ordering::Relaxed);
        assert_eq!(values.get().load(Ordering::Relaxed), 8);
        let inherited: Vec<_> = values.inherited().map(|one| one.load(Ordering::Relaxed)).collect();
        assert_eq!(inherited, [7]);
    }
}
