//! Who waits in this process for one lock, in the order of arrival: bookkeeping alone.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::backend::{Attempt, Fault};
use crate::types::clock::Moment;
use crate::types::token::OwnerToken;

/// The waiters of one lock, their place in the backend's queue, and whether one of this process has
/// its turn.
pub(crate) struct Line<W> {
    waiting: VecDeque<(u64, W)>,
    /// The attempt that is queued in the backend, or that is being asked for.
    pub(super) entry: Option<Arc<Attempt>>,
    /// Whose turn it is, by the attempt that was granted.
    turn: Option<OwnerToken>,
    /// What the backend said last.
    pub(super) heard: Heard,
    /// Since when the backend has not answered.
    failing_since: Option<Moment>,
}

/// What is known of a lock that a line waits for.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// No answer has come yet.
    Nothing,
    /// Another holder has it, or this line was granted it.
    Busy,
    /// The last question brought no answer, or an error.
    Fault(Box<Fault>),
}

/// What a grant means to a line.
pub(crate) enum Begun {
    Turn(Arc<Attempt>),
    /// The answer and the message of one grant both came.
    Already,
    /// No call waits for it.
    Unwanted,
}

impl<W> Line<W> {
    /// Takes the place among the others that the number says; a new one is the last.
    pub(crate) fn join(&mut self, id: u64, waiting: W) {
        let place = self.waiting.partition_point(|(other, _)| *other < id);
        self.waiting.insert(place, (id, waiting));
    }

    /// Takes out a waiter that gives up; one that was served has left already.
    pub(crate) fn leave(&mut self, id: u64) {
        // Numbers rise along the line.
        if let Ok(place) = self.waiting.binary_search_by_key(&id, |(id, _)| *id) {
            drop(self.waiting.remove(place));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whose turn is next in this process.
    pub(crate) fn first(&self) -> Option<&W> {
        self.waiting.front().map(|(_, waiting)| waiting)
    }

    pub(crate) fn next(&mut self) -> Option<W> {
        self.waiting.pop_front().map(|(_, waiting)| waiting)
    }

    /// The attempt that is queued, made for the first of the line where there is none.
    pub(crate) fn entry_or(
        &mut self,
        make: impl FnOnce(&W) -> Arc<Attempt>,
    ) -> Option<Arc<Attempt>> {
        if self.entry.is_none() {
            self.entry = Some(make(self.first()?));
        }
        self.entry.clone()
    }

    pub(crate) fn is_queued_as(&self, attempt: &Attempt) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.owner == attempt.owner)
    }

    /// The turn begins that was granted to the place in the queue.
    pub(crate) fn begin_turn(&mut self, owner: &OwnerToken) -> Begun {
        if self.turn.as_ref() == Some(owner) {
            return Begun::Already;
        }
        let Some(entry) = self.entry.take_if(|entry| entry.owner == *owner) else {
            return Begun::Unwanted;
        };
        entry.mark_turn();
        self.turn = Some(owner.clone());
        self.answered();
        Begun::Turn(entry)
    }

    pub(crate) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Ends the turn of this attempt; a later turn continues, where the lock was taken from the earlier.
    pub(crate) fn end_turn(&mut self, attempt: &Attempt) {
        drop(self.turn.take_if(|owner| *owner == attempt.owner));
    }

    /// Whether this line has a use for what the backend knows of the attempt.
    pub(crate) fn knows(&self, attempt: &Attempt) -> bool {
        self.is_queued_as(attempt) || self.turn.as_ref() == Some(&attempt.owner)
    }

    /// The backend answered that another holder has the lock.
    pub(crate) fn answered(&mut self) {
        self.heard = Heard::Busy;
        self.failing_since = None;
    }

    /// Since when no answer came.
    pub(crate) fn failed(&mut self, now: Moment, fault: &Fault) -> Moment {
        self.heard = Heard::Fault(Box::new(fault.clone()));
        *self.failing_since.get_or_insert(now)
    }

    /// A call that joins has heard this of the lock, just now.
    pub(crate) fn learn(&mut self, heard: Heard) {
        match heard {
            Heard::Busy => self.answered(),
            Heard::Fault(_) => self.heard = heard,
            Heard::Nothing => {}
        }
    }
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            entry: None,
            turn: None,
            heard: Heard::Nothing,
            failing_since: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::key::LockKey;
    use crate::types::options::Ttl;

    fn attempt() -> Arc<Attempt> {
        Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT))
    }

    #[test]
    fn a_line_has_one_place_in_the_queue() {
        let mut line = Line::default();
        assert!(line.entry_or(|_: &u64| unreachable!("no call waits")).is_none());
        line.join(1, 1);
        let first = line.entry_or(|_| attempt()).unwrap();
        line.join(2, 2);
        let second = line.entry_or(|_| unreachable!("there is one")).unwrap();
        assert!(Arc::ptr_eq(&first, &second) && line.is_queued_as(&first));
    }

    #[test]
    fn a_turn_begins_once_and_only_for_the_place_in_the_queue() {
        let mut line = Line::default();
        line.join(1, ());
        let entry = line.entry_or(|()| attempt()).unwrap();
        assert!(matches!(line.begin_turn(&attempt().owner), Begun::Unwanted));
        assert!(matches!(line.begin_turn(&entry.owner), Begun::Turn(_)));
        assert!(matches!(line.begin_turn(&entry.owner), Begun::Already));
        assert!(line.has_turn() && !line.is_queued_as(&entry));
        line.end_turn(&entry);
        assert!(matches!(line.begin_turn(&entry.owner), Begun::Unwanted));
    }

    proptest! {
        #[test]
        fn waiters_are_served_in_the_order_of_arrival(
            events in proptest::collection::vec((0_u8..4, 0_usize..64), 0..200),
        ) {
            let (mut line, mut model) = (Line::default(), Vec::new());
            for (id, (event, which)) in (0_u64..).zip(events) {
                match (event, model.get(which).copied()) {
                    (0 | 1, _) => {
                        line.join(id, id);
                        model.push(id);
                    }
                    (2, _) if model.is_empty() => prop_assert_eq!(line.next(), None),
                    (2, _) => prop_assert_eq!(line.next(), Some(model.remove(0))),
                    (_, Some(gone)) => {
                        line.leave(gone);
                        model.retain(|other| *other != gone);
                    }
                    // A waiter that was served, or never came.
                    (_, None) => line.leave(id),
                }
                prop_assert_eq!(line.len(), model.len());
                prop_assert_eq!(line.first().copied(), model.first().copied());
            }
        }
    }

    #[test]
    fn a_waiter_that_comes_back_has_its_old_place() {
        let mut line = Line::default();
        for id in [1, 2, 3] {
            line.join(id, id);
        }
        assert_eq!(line.next(), Some(1));
        line.join(4, 4);
        line.join(1, 1);
        line.leave(3);
        assert_eq!(std::iter::from_fn(|| line.next()).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn the_end_of_an_earlier_turn_leaves_a_later_one_alone() {
        let (first, second) = (attempt(), attempt());
        let mut line = Line::default();
        line.join(1, ());
        for attempt in [&first, &second] {
            assert!(line.entry_or(|()| Arc::clone(attempt)).is_some());
            assert!(line.knows(attempt));
            assert!(matches!(line.begin_turn(&attempt.owner), Begun::Turn(_)));
        }
        line.end_turn(&first);
        assert!(line.has_turn() && line.knows(&second) && !line.knows(&first));
        line.end_turn(&second);
        assert!(!line.has_turn() && !line.knows(&second));
    }
}
