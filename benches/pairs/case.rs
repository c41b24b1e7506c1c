//! What the contenders are put through.

/// How many tasks acquire and release which keys.
#[derive(Clone, Copy)]
pub(crate) struct Case {
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
    let keys = [Keys::Few, Keys::First, Keys::NeverRepeating];
    keys.into_iter().flat_map(|keys| [1, MANY].map(|tasks| Case { tasks, keys })).collect()
}

/// Tasks of a busy process.
pub(crate) const MANY: usize = 64;
