//! Why a command did not do what it was asked, and the exit code that says so.

use lockable_runtime::admin::HeldLock;
use lockable_runtime::{LockError, LockErrorKind};
use serde::Serialize;

use crate::output::escape::printable;
use crate::output::json;
use crate::output::times::milliseconds;
use crate::words;

/// The exit codes that are not a command's own.
pub(crate) mod code {
    /// `check` found something wrong.
    pub(crate) const WRONG: u8 = 1;
    /// The arguments cannot be used.
    pub(crate) const USAGE: u8 = 2;
    /// No one has the lock.
    pub(crate) const FREE: u8 = 3;
    /// The holder was asked and has not released the lock.
    pub(crate) const UNANSWERED: u8 = 4;
    /// Redis gives no answer, or refuses.
    pub(crate) const UNAVAILABLE: u8 = 69;
    /// Another holder has the lock.
    pub(crate) const BUSY: u8 = 75;
    /// The lock ended before the command did, or an operator stopped the call.
    pub(crate) const LOST: u8 = 124;
    /// `lockable` itself failed.
    pub(crate) const INTERNAL: u8 = 125;
    /// The command cannot be run.
    pub(crate) const CANNOT_RUN: u8 = 126;
    /// The command was not found.
    pub(crate) const NOT_FOUND: u8 = 127;
    /// What a shell adds to the number of the signal that ended a command.
    pub(crate) const SIGNAL: u8 = 128;
}

/// A failure in one line, with what to do next.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    error: &'static str,
    message: String,
    exit_code: u8,
    #[serde(flatten)]
    hold: Option<Box<Hold>>,
}

/// The hold that a failure is about, for programs.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Hold {
    key: String,
    name: String,
    id: String,
    remaining_ms: Option<u64>,
    /// Whether it was renewed while it was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed: Option<bool>,
}

impl Failure {
    pub(crate) fn new(error: &'static str, exit_code: u8, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), exit_code, hold: None }
    }

    /// Adds the hold that the failure is about.
    pub(crate) fn about(mut self, held: &HeldLock) -> Self {
        self.hold = Some(Box::new(Hold {
            key: held.key().as_str().to_owned(),
            name: held.name().to_owned(),
            id: held.holder().id().to_string(),
            remaining_ms: held.holder().remaining().map(milliseconds),
            renewed: None,
        }));
        self
    }

    /// Adds whether the hold was renewed between two looks at it.
    pub(crate) fn renewed(mut self, renewed: Option<bool>) -> Self {
        if let Some(hold) = &mut self.hold {
            hold.renewed = renewed;
        }
        self
    }

    /// Puts the name of the lock before the message.
    pub(crate) fn of_lock(mut self, name: &str) -> Self {
        self.message = format!("lock `{name}`: {}", self.message);
        self
    }

    /// Puts what comes of the failure behind the message.
    pub(crate) fn followed_by(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", code::USAGE, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", code::INTERNAL, message)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn code(&self) -> u8 {
        self.exit_code
    }

    /// What is written to standard error: a line of text, or of JSON.
    pub(crate) fn line(&self, json: bool) -> String {
        let object = json.then(|| json::line(self).ok()).flatten();
        object.unwrap_or_else(|| format!("lockable: {}", printable(&self.message)))
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let (name, exit_code) = meaning(&error);
        Self::new(name, exit_code, words::of_error(&error))
    }
}

/// The name for programs, and the exit code.
fn meaning(error: &LockError) -> (&'static str, u8) {
    let code = match error.kind() {
        LockErrorKind::Busy | LockErrorKind::WaitLimitReached => code::BUSY,
        LockErrorKind::Unavailable | LockErrorKind::Refused => code::UNAVAILABLE,
        LockErrorKind::InvalidUrl
        | LockErrorKind::InvalidKey
        | LockErrorKind::InvalidOption
        | LockErrorKind::WrongType => code::USAGE,
        LockErrorKind::Revoked => code::LOST,
        _ if error.is_lost() => return ("lost", code::LOST),
        _ => return ("internal", code::INTERNAL),
    };
    (error.kind().name(), code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_of_a_message_reaches_the_terminal() {
        let line = Failure::internal("a\u{1b}[31mb\nc").line(false);
        assert_eq!(line, "lockable: a\\u{1b}[31mb\\u{a}c");
    }

    #[test]
    fn a_failure_as_json_has_stable_names() {
        let line = Failure::new("busy", 75, "another \u{1b}").line(true);
        let json = r#"{"schema":1,"error":"busy","message":"another \u001b","exit_code":75}"#;
        assert_eq!(line, json);
    }
}
