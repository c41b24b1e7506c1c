//! What a test has a stub node answer, and to which commands.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time;

use super::garble::Garble;

/// Which commands are meant, and how often.
#[derive(Clone, Debug)]
pub struct Cue {
    names: Vec<String>,
    word: Option<String>,
    /// How many are meant.
    times: usize,
}

/// What a stub node answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An error, and the server does not get the command.
    Error(String),
    /// The same once this is notified; until then nothing passes on the connection.
    LateError(String, Arc<Notify>),
    /// What a broken server, or something before it, makes of the server's reply.
    Garbled(Garble),
    /// A number, and the server does not get the command.
    Number(i64),
    /// These bytes, and the server does not get the command.
    Bytes(String),
    /// A list of numbers, as a script's, and the server does not get the command.
    Numbers(Vec<i64>),
    /// The connection ends before the command has come to the server.
    BreakBefore,
    /// The connection ends when the server has run the command.
    BreakAfter,
    /// The connection stays, and nothing passes on it any more, from this command on.
    Silence,
    /// The server gets the command when the test lets it go, and nothing behind it passes before.
    Held(Hold),
}

/// Holds a command back at its stub node.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    has_come: Notify,
    may_go: Notify,
}

/// How a node names its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// By its address.
    Address,
    /// By an empty text.
    Empty,
    /// A null, in `CLUSTER SLOTS`.
    Nil,
    /// A query mark.
    Unknown,
}

impl Cue {
    /// All commands.
    pub fn all() -> Self {
        Self { names: Vec::new(), word: None, times: usize::MAX }
    }

    /// All commands of these names, and subcommands where a name has two words.
    pub fn of<const N: usize>(names: [&str; N]) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        Self { names, word: None, times: usize::MAX }
    }

    /// Only those with this word among their keys and arguments.
    #[must_use]
    pub fn about(mut self, word: impl Into<String>) -> Self {
        self.word = Some(word.into());
        self
    }

    /// Only this number of them, the first ones.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.times = count;
        self
    }

    /// Whether the command is meant, the number of which counts not.
    pub(super) fn is_of(&self, command: &[String]) -> bool {
        let has_name = |name: &String| {
            let mut words = name.split(' ').zip(command);
            words.all(|(name, word)| name.eq_ignore_ascii_case(word))
        };
        let has_word = |word: &String| command.contains(word);
        let has_one = self.names.is_empty() || self.names.iter().any(has_name);
        has_one && self.word.as_ref().is_none_or(has_word)
    }

    /// Whether this command is meant; if so, there is one less.
    pub(super) fn takes(&mut self, command: &[String]) -> bool {
        if self.times == 0 || !self.is_of(command) {
            return false;
        }
        self.times -= 1;
        true
    }
}

impl Hold {
    /// Waits until the command has come to the stub node.
    pub async fn wait_held(&self, limit: Duration) {
        let has_come = time::timeout(limit, self.0.has_come.notified()).await;
        assert!(has_come.is_ok(), "no such command has come within {limit:?}");
    }

    /// Lets the command go.
    pub fn end(&self) {
        self.0.may_go.notify_one();
    }

    /// The command has come; waits until it may go.
    pub(super) async fn pass(&self) {
        self.0.has_come.notify_one();
        self.0.may_go.notified().await;
    }
}

impl Answer {
    /// An error in the words of the protocol, without the dash.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }
}
