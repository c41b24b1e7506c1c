//! The server: a lock and its queue, and the commands and scripts that change them. Each runs in one step.

use crate::release::rules::{Rule, Rules};

/// An owner token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) call: usize,
    pub(crate) attempt: u8,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    // `<16 hex>.<number>`, released by `release.lua`.
    Plain,
    // `<16 hex>-<number>`, released by a conditional delete. Waiters may mark it: `+<16 hex>-<number>`.
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lock {
    pub(crate) owner: Owner,
    pub(crate) is_marked: bool,
    pub(crate) has_end: bool,
    /// Whether the attempt was not over when the request arrived that took the lock, or queued for it.
    pub(crate) is_wanted: bool,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    pub(crate) is_wanted: bool,
    /// Whether the waiter has asked since a lease was last over.
    pub(crate) is_told: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) lock: Option<Lock>,
    pub(crate) queue: Vec<Entry>,
    pub(crate) rules: Rules,
}

impl Server {
    /// Whether the lock is this attempt's, marked or not.
    pub(crate) fn has(&self, owner: Owner) -> bool {
        self.lock.is_some_and(|lock| lock.owner == owner)
    }

    /// The same as one sees it who may not know the mark.
    pub(crate) fn shows(&self, owner: Owner, knows_mark: bool) -> bool {
        self.lock.is_some_and(|lock| lock.owner == owner && (knows_mark || !lock.is_marked))
    }

    /// `SET NX GET`: whether the answer says that the attempt has the lock.
    pub(crate) fn set(&mut self, owner: Owner, is_wanted: bool) -> bool {
        if self.lock.is_none() {
            self.give(owner, is_wanted);
        }
        self.shows(owner, self.rules.has(Rule::TryKnowsMark))
    }

    /// `enqueue.lua`: whether the attempt has the lock, or else is in the queue.
    pub(crate) fn enqueue(&mut self, owner: Owner, is_wanted: bool, marks: bool) -> bool {
        let is_first = self.queue.first().is_none_or(|entry| entry.owner == owner);
        if self.lock.is_none() && is_first {
            self.queue.retain(|entry| entry.owner != owner);
            self.give(owner, is_wanted);
        } else if self.lock.is_none() {
            self.hand_off();
        }
        if self.has(owner) {
            return true;
        }
        let entry = Entry { owner, is_wanted, is_told: true };
        match self.queue.iter_mut().find(|entry| entry.owner == owner) {
            Some(former) => *former = entry,
            None => self.queue.push(entry),
        }
        if marks {
            self.mark();
        }
        false
    }

    fn mark(&mut self) {
        let Some(lock) = &mut self.lock else { return };
        let may = lock.owner.form == Form::Native || !self.rules.has(Rule::PlainIsUnmarked);
        if may && !lock.is_marked {
            lock.is_marked = true;
            lock.has_end &= self.rules.has(Rule::MarkKeepsEnd);
        }
    }

    /// `DELEX` or `DELIFEQ`: whether it has deleted the lock.
    pub(crate) fn delete(&mut self, owner: Owner) -> bool {
        let ignores_mark = !self.rules.has(Rule::DeleteComparesMark);
        let deletes = self.shows(owner, ignores_mark) || !self.rules.has(Rule::DeleteCompares);
        self.lock.take_if(|_| deletes).is_some()
    }

    /// `release.lua`: whether it has ended the hold.
    pub(crate) fn release(&mut self, owner: Owner, knows_mark: bool) -> bool {
        let ends = self.shows(owner, knows_mark);
        if ends {
            self.hand_off();
        }
        ends
    }

    /// `leave.lua`.
    pub(crate) fn leave(&mut self, owner: Owner) {
        self.queue.retain(|entry| entry.owner != owner);
        if self.has(owner) {
            self.hand_off();
        }
    }

    /// The lease is over. So is what waiters were told of it.
    pub(crate) fn expire(&mut self) {
        self.lock = None;
        self.queue.iter_mut().for_each(|entry| entry.is_told = false);
    }

    fn hand_off(&mut self) {
        self.lock = None;
        if !self.queue.is_empty() {
            let Entry { owner, is_wanted, .. } = self.queue.remove(0);
            self.give(owner, is_wanted);
        }
    }

    fn give(&mut self, owner: Owner, is_wanted: bool) {
        self.lock = Some(Lock { owner, is_marked: false, has_end: true, is_wanted });
    }
}
