//! Who has which lock, as both lockers believe.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockable_runtime::{FencingToken, Lease};
use lockable_tests::Admin;

/// Everyone writes down what it holds, from its grant until it releases it.
#[derive(Debug)]
pub(crate) struct Board {
    holds: Mutex<Holds>,
    /// Whether no reply is garbled, which may be taken for another number.
    is_calm: bool,
}

#[derive(Debug, Default)]
struct Holds {
    held: HashMap<String, Vec<(u64, Lease)>>,
    number: u64,
    /// The latest fencing token of each lock.
    tokens: HashMap<String, FencingToken>,
    /// What no lock allows.
    wrongs: Vec<String>,
}

/// An entry on the board, until it is dropped.
pub(crate) struct Entry<'a> {
    board: &'a Board,
    key: String,
    number: u64,
}

impl Board {
    pub(crate) fn new(is_calm: bool) -> Self {
        Self { holds: Mutex::default(), is_calm }
    }

    /// A lock was granted, of which there may be this number.
    pub(crate) fn enter(&self, admin: &Admin, lease: &Lease, most: usize) -> Entry<'_> {
        let key = lease.key().to_string();
        let group = group(&key);
        let mut holds = self.holds();
        holds.number += 1;
        let number = holds.number;
        let others = holds.held.entry(group.clone()).or_default();
        others.push((number, lease.clone()));
        let held = others.iter().filter(|(_, lease)| lease.is_held()).count();
        if held > most && lease.is_held() {
            holds.wrongs.push(format!("{held} hold {group}"));
        }
        let token = lease.fencing_token();
        let before = holds.tokens.insert(key.clone(), token);
        let has_fallen = before.is_some_and(|before| token < before) && lease.is_held();
        if has_fallen && self.is_calm {
            holds.wrongs.push(format!("a fencing token of {key} has fallen"));
        }
        drop(holds);
        // What the lease says is read behind what the server has.
        if admin.get(&key).is_none() && lease.is_held() {
            self.wrong(format!("no one has {key} at the server"));
        }
        Entry { board: self, key: group, number }
    }

    /// Something happened that must not.
    pub(crate) fn wrong(&self, what: String) {
        self.holds().wrongs.push(what);
    }

    pub(crate) fn wrongs(&self) -> Vec<String> {
        self.holds().wrongs.clone()
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut holds = self.board.holds();
        let held = holds.held.get_mut(&self.key).expect("it was entered");
        held.retain(|(number, _)| *number != self.number);
    }
}

/// The permits of a key are counted together.
fn group(key: &str) -> String {
    key.split_once('#').map_or(key, |(family, _)| family).to_owned()
}
