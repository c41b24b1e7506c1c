//! What is counted.

use std::fmt;

use crate::contender::Contender;

/// How many tasks of a contender acquire and release which keys.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) contender: Contender,
    pub(crate) tasks: usize,
    keys: Keys,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// 64 in rotation.
    Few,
    NeverRepeating,
}

/// Whether keys repeat makes no difference to those without fence counters, but *bare* is what ours is
/// compared with.
pub(crate) fn all() -> impl Iterator<Item = Case> {
    TASKS.into_iter().flat_map(|tasks| {
        let few = Contender::ALL.iter();
        let few = few.map(move |contender| Case { contender: *contender, tasks, keys: Keys::Few });
        let never = [Contender::Bare, Contender::Attribute].map(|contender| Case {
            contender,
            tasks,
            keys: Keys::NeverRepeating,
        });
        few.chain(never)
    })
}

impl Case {
    /// The order to a worker, which knows the signs in the key.
    pub(crate) fn order(&self, pairs: usize) -> String {
        let key = match (self.keys, self.tasks) {
            (Keys::Few, 1) => "order-#64",
            (Keys::Few, _) => "order-*",
            (Keys::NeverRepeating, _) => "order-*.#",
        };
        format!("pairs {key} {} {} {NO_LIMIT}", self.tasks, pairs / self.tasks)
    }
}

/// The name of a row of the table.
impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = if self.tasks == 1 { "1 task" } else { &format!("{} tasks", self.tasks) };
        let keys = match self.keys {
            Keys::Few => "64 keys",
            Keys::NeverRepeating => "keys never repeat",
        };
        write!(formatter, "{tasks}, {keys}, {}", self.contender.name())
    }
}

const TASKS: [usize; 2] = [1, 64];

/// Milliseconds.
const NO_LIMIT: u64 = 600_000;
