//! The record of one seed.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use crate::core::process::clock::{Moment, tokio_time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Counts,
    Hash,
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

    /// An event, whose words are made only if they are recorded.
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

/// Short names of owner tokens, in the order of first use.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, usize>);

impl Names {
    /// With its mark.
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

/// Before the owner token of a lock that a minimum hold keeps.
pub(super) const MARKS: [char; 2] = ['~', '='];

pub(super) const TICKET: char = '@';
