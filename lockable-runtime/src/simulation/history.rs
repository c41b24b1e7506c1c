//! What happened in one seed, as far as it is recorded.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use crate::core::process::clock::{Moment, tokio_time};

/// How much of what happens is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The counts and the violations.
    Counts,
    /// Also a hash of all events.
    Hash,
    /// Also the events themselves.
    Trace,
}

pub(super) struct History {
    record: Record,
    start: Moment,
    hash: DefaultHasher,
    names: Names,
    pub(super) events: Vec<String>,
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) violations: Vec<String>,
}

impl History {
    pub(super) fn new(record: Record) -> Self {
        Self {
            record,
            start: tokio_time(),
            hash: DefaultHasher::new(),
            names: Names::default(),
            events: Vec::new(),
            counts: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// An event, in words that are made only where they are recorded.
    pub(super) fn note(&mut self, text: impl FnOnce(&mut Names) -> String) {
        if self.record == Record::Counts {
            return;
        }
        let millis = tokio_time().since(self.start).as_secs_f64() * 1e3;
        let event = format!("{millis:>10.3} {}", text(&mut self.names));
        self.hash.write(event.as_bytes());
        if self.record == Record::Trace {
            self.events.push(event);
        }
    }

    pub(super) fn violation(&mut self, text: impl FnOnce(&mut Names) -> String) {
        let text = text(&mut self.names);
        self.note(|_| format!("VIOLATION {text}"));
        self.violations.push(text);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }
}

/// Short names of owner tokens, in the order of their first use.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, usize>);

impl Names {
    /// With the mark of a lock that stays taken for a minimum hold, or that a ticket has.
    pub(super) fn of(&mut self, owner: &str) -> String {
        let token = owner.trim_start_matches(MARKS).trim_start_matches(TICKET);
        let next = self.0.len() + 1;
        let number = *self.0.entry(token.to_owned()).or_insert(next);
        format!("{}o{number}", owner.strip_suffix(token).unwrap_or_default())
    }

    pub(super) fn of_all(&mut self, owners: impl IntoIterator<Item = String>) -> String {
        let names: Vec<_> = owners.into_iter().map(|owner| self.of(&owner)).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(" ") }
    }
}

/// What is before the owner token of a lock that stays taken for a minimum hold.
pub(super) const MARKS: [char; 2] = ['~', '='];

/// What is before the owner token of a lock that a ticket has.
pub(super) const TICKET: char = '@';
