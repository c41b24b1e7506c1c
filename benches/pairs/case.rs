//! What the contenders are put through.

use lockable_benches::worker::Flavour;

/// How many tasks acquire and release which keys.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) flavour: Flavour,
    pub(crate) tasks: usize,
    pub(crate) keys: Keys,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// One for each task, again and again.
    Few,
    /// Each is used once; the connection has been used for as many as make no difference any more.
    NeverRepeating,
    /// The same, for the first pairs of a new connection of a new process.
    First,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        format!("{}, {} runtime", self.pattern(), self.flavour.name())
    }

    /// Without the runtime.
    pub(crate) fn pattern(&self) -> String {
        let tasks = if self.tasks == 1 { "1 task" } else { &format!("{} tasks", self.tasks) };
        let keys = match self.keys {
            Keys::Few => "few keys",
            Keys::NeverRepeating => "keys never repeat: steady state",
            Keys::First => "keys never repeat: first pairs of a connection",
        };
        format!("{tasks}, {keys}")
    }
}

pub(crate) fn all() -> Vec<Case> {
    let flavours = [Flavour::CurrentThread, Flavour::MultiThread];
    let mut cases = Vec::new();
    for keys in [Keys::Few, Keys::First, Keys::NeverRepeating] {
        for tasks in [1, MANY] {
            cases.extend(flavours.map(|flavour| Case { flavour, tasks, keys }));
        }
    }
    cases
}

/// Tasks of a busy process.
pub(crate) const MANY: usize = 64;
