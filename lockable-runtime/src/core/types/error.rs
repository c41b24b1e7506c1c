//! The one error of the crate.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::core::labels::label::Label;
use crate::core::types::reason::Reason;
use crate::core::types::redact::DisplayKey;
use crate::core::types::remedy::{Advice, Remedy};

/// A foreign cause, for [`Error::source`].
pub(crate) type Cause = Arc<dyn Error + Send + Sync + 'static>;

/// The error of a lock that was not acquired, not held to the end or not released.
///
/// Each predicate says what the caller can do next; [`kind`](LockError::kind) is for metrics and logs.
///
/// - [`Display`](fmt::Display) writes the [message](LockError::message), and behind a semicolon what to do, if more is
///   known than the [advice of the kind](LockErrorKind::advice).
/// - The message names the key, unless [`redact_keys`](crate::LockerBuilder::redact_keys) redacts it, and never shows a
///   password or an owner token.
/// - [`source`](Error::source) is the cause in the client library, for logs: its type may change in any version. If the
///   lease of a renewed lock ended, it is the `LockError` of the last failed renewal.
/// - Message and source omit what a server quotes of a command.
/// - `{:?}` prints the message with its sources in one line, `{:#?}` the kind and the other parts.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let _held = locker.lock("order:7").acquire().await?;
///
/// let request = locker.lock("order:7").wait(std::time::Duration::ZERO);
/// let error = request.acquire().await.unwrap_err();
/// assert!(error.is_busy());
/// assert!(error.to_string().contains("order:7"));
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub struct LockError(Box<Inner>);

struct Inner {
    kind: LockErrorKind,
    key: Option<String>,
    redacts_key: bool,
    message: Cow<'static, str>,
    advice: Advice,
    completed: bool,
    taken: bool,
    source: Option<Cause>,
    label: &'static Label,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal: $advice:literal,)*) => {
        /// The kind of a [`LockError`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum LockErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl LockErrorKind {
            /// Its stable name for programs: a label of the metrics, and in the JSON of the command line.
            #[doc(hidden)]
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns what to do next about any error of this kind.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Self::$kind => $advice,)* }
            }
        }
    };
}

kinds! {
    /// Another holder has the lock.
    Busy = "busy": "skip the work, come back later, or give the call a `wait`",
    /// Another holder still had the lock when the wait limit was reached.
    WaitLimitReached = "busy": "come back later, wait longer, or make the key finer",
    /// A call with `once` has ended well, and its period is not over: no call is at work.
    Done = "done": "nothing: the work is done",
    /// The calling body holds the lock itself, and would wait for its own end.
    HeldByCaller = "held-by-caller": "call it after the body, or give the two different keys",
    /// The lease ended before the work did.
    Lost = "lost": "see whether the work is half done; then choose another `expire`, or `renew`",
    /// The lock was held for as long as `max_hold` allows, and its body was stopped.
    MaxHoldReached = "max-hold-reached": "find out why the work takes so long",
    /// An operator asked the holder to stop, and its body was stopped under the lock.
    Revoked = "revoked":
        "do not simply repeat the work: ask the operator, or come back when the reason in the message is over",
    /// The backend did not reply in time, or cannot serve now.
    Unavailable = "unavailable": "try again later, with a pause; the next call connects again",
    /// The backend refused, or is not trusted: a wrong password, a missing right, a version too old, a certificate that
    /// one side does not accept, or no [secret](crate::Secret) for a connection.
    Refused = "refused": "mend what the message names; trying again does not help",
    /// The key holds data that is no lock; it was not changed.
    WrongType = "wrong-type": "choose another key or prefix",
    /// The text cannot be a lock key.
    InvalidKey = "invalid-key": "check the value at its source",
    /// An option has an invalid value, or is used where it has no effect.
    InvalidOption = "invalid-option":
        "mend the option; `LockRequest::check` finds it when the program starts",
    /// The URL does not name a backend.
    InvalidUrl = "invalid-url": "mend the URL, or enable the feature that it needs",
    /// No locker is installed and the environment names no backend, or the locker was made before a fork of the
    /// process.
    NotConfigured = "not-configured": "call `install` at the start, or set `LOCKABLE_URL`",
    /// A process-wide locker exists already.
    AlreadyInstalled = "already-installed": "call `install` once, before the first call",
}

impl LockError {
    pub(crate) fn new(kind: LockErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        let key = None;
        let redacts_key = false;
        let completed = false;
        let taken = false;
        let source = None;
        let label = Default::default();
        let advice = Advice::default();
        let all =
            Inner { kind, key, redacts_key, message, advice, completed, taken, source, label };
        Self(Box::new(all))
    }

    /// Takes the advice from behind the semicolon: a flaw is one text, because the compiler may show it too.
    pub(crate) fn of_flaw(kind: LockErrorKind, flaw: impl Into<Cow<'static, str>>) -> Self {
        let flaw = flaw.into();
        let (problem, advice) = flaw.split_once("; ").unwrap_or((&flaw, ""));
        Self::new(kind, problem.to_owned()).advise(advice.to_owned())
    }

    pub(crate) fn advise(mut self, advice: impl Into<Advice>) -> Self {
        self.0.advice = advice.into();
        self
    }

    pub(crate) fn with_key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into());
        self
    }

    pub(crate) fn redacting_key(mut self, redacts_key: bool) -> Self {
        self.0.redacts_key = redacts_key;
        self
    }

    pub(crate) fn labeled(mut self, label: &'static Label) -> Self {
        self.0.label = label;
        self
    }

    pub(crate) fn label(&self) -> &'static Label {
        self.0.label
    }

    pub(crate) fn with_source(mut self, source: Option<Cause>) -> Self {
        self.0.source = source;
        self
    }

    pub(crate) fn busy(key: &str) -> Self {
        Self::new(LockErrorKind::Busy, Self::BUSY).with_key(key)
    }

    const BUSY: &str = "another holder has the lock";

    pub(crate) fn drained(key: &str) -> Self {
        let message = "this process acquires no lock any more, because `Locker::drain` was called; what holds one \
                       ends as it would";
        Self::new(LockErrorKind::Unavailable, message).with_key(key)
    }

    pub(crate) fn done(key: &str, begin: &str, end: &str) -> Self {
        Self::new(LockErrorKind::Done, Self::run_is_done(begin, end)).with_key(key)
    }

    pub(crate) fn run_is_done(begin: &str, end: &str) -> String {
        format!("its run is done: a call with `once`{begin} ended well, and no other one runs{end}")
    }

    pub(crate) fn invalid_key(key: &str, flaw: impl Into<Cow<'static, str>>) -> Self {
        Self::of_flaw(LockErrorKind::InvalidKey, flaw).with_key(key)
    }

    pub(crate) fn wait_limit_reached(key: &str, limit: Duration, waited: Duration) -> Self {
        let words =
            format!("another holder still has the lock after {waited:.0?} of at most {limit:?}");
        Self::at_limit(key, if limit.is_zero() { Self::BUSY.to_owned() } else { words })
    }

    pub(crate) fn at_limit(key: &str, words: String) -> Self {
        Self::new(LockErrorKind::WaitLimitReached, words).with_key(key)
    }

    pub(crate) fn forked() -> Self {
        let message = "this locker was made before the process was forked";
        Self::new(LockErrorKind::NotConfigured, message)
            .advise("make another one in the child, and `install` it there")
    }

    pub(crate) fn would_block_runtime(key: &str) -> Self {
        let message = "a sync function with `wait` would block the only thread of this runtime, \
                       and the holder with it";
        let advice = "call it in `spawn_blocking` and give it the option `blocking`, or make it an `async fn`";
        Self::new(LockErrorKind::InvalidOption, message).advise(advice).with_key(key)
    }

    pub(crate) fn held_by_caller(key: &str) -> Self {
        let message =
            "the body that calls this holds the lock itself, and would wait for its own end";
        let kind = LockErrorKind::HeldByCaller;
        Self::new(kind, message).advise(kind.advice()).with_key(key)
    }

    pub(crate) fn lost(key: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(LockErrorKind::Lost, message).with_key(key)
    }

    pub(crate) fn max_hold_reached(key: &str) -> Self {
        let message = "the lock was held for as long as `max_hold` allows";
        Self::new(LockErrorKind::MaxHoldReached, message).with_key(key)
    }

    pub(crate) fn revoked(key: &str, reason: &Reason) -> Self {
        let message = reason.after("an operator asked the holder to stop");
        Self::new(LockErrorKind::Revoked, message).with_key(key)
    }

    pub(crate) fn with_completed(mut self, completed: bool) -> Self {
        self.0.completed = completed;
        self
    }

    pub(crate) fn with_taken(mut self, taken: bool) -> Self {
        self.0.taken = taken;
        self
    }

    pub(crate) fn too_late(key: &str) -> Self {
        Self::new(LockErrorKind::Unavailable, Self::TOO_LATE).advise(Self::LONGER).with_key(key)
    }

    pub(crate) const TOO_LATE: &'static str =
        "the reply came after the lease's own deadline, and the lock was released";

    pub(crate) const LONGER: &'static str = "give it a longer `expire`";

    pub(crate) fn lost_each_time(lost: Self) -> Self {
        let message = "the lock was lost while the call waited for others, five times in a row";
        let key = lost.key().unwrap_or_default().to_owned();
        Self::new(LockErrorKind::Unavailable, message)
            .advise(Self::LONGER)
            .with_key(key)
            .with_source(Some(Arc::new(lost)))
    }

    pub(crate) fn released_too_late(key: &str, taken: bool) -> Self {
        let message = if taken {
            "the lock was lost before its release: another holder has it, and keeps it"
        } else {
            "the lock was lost before its release: it had expired, or was deleted or evicted"
        };
        Self::lost(key, message).with_taken(taken)
    }

    /// Returns the kind of the error, for metrics and logs.
    #[must_use]
    pub fn kind(&self) -> LockErrorKind {
        self.0.kind
    }

    /// Returns the whole name of the lock, if the error is about one; the message may redact it.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Returns what happened, with the key but without advice.
    ///
    /// # Examples
    /// ```
    /// # async fn example() {
    /// let url = "radish://127.0.0.1";
    /// let error = lockable_runtime::Locker::connect(url).await.unwrap_err();
    /// assert_eq!(error.message(), "unknown scheme `radish://`");
    /// assert!(error.advice().starts_with("write one of `redis://`"));
    /// assert_eq!(error.to_string(), format!("{}; {}", error.message(), error.advice()));
    /// assert_eq!(error.remedy(), Some(lockable_runtime::Remedy::UrlScheme));
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
    /// ```
    #[must_use]
    pub fn message(&self) -> String {
        match self.shown_key() {
            Some(key) => format!("lock `{}`: {}", key.text().escape_debug(), self.0.message),
            None => self.0.message.to_string(),
        }
    }

    /// Returns what to do next about this error, or else [about its kind](LockErrorKind::advice).
    #[must_use]
    pub fn advice(&self) -> &str {
        if self.0.advice.is_empty() { self.kind().advice() } else { &self.0.advice.text }
    }

    /// Returns the remedy behind the [`advice`](LockError::advice), for a program that writes its own; `None` if
    /// programs need no other words.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        self.0.advice.remedy
    }

    pub(crate) fn problem(&self) -> &str {
        &self.0.message
    }

    pub(crate) fn as_value(&self) -> &(dyn Error + 'static) {
        self
    }

    fn in_one_line(&self) -> String {
        let mut line = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            let text = error.to_string().replace(['\n', '\r'], " ");
            if !line.contains(&text) {
                line = line + ": " + &text;
            }
            source = error.source();
        }
        line
    }

    pub(crate) fn shown_key(&self) -> Option<DisplayKey<'_>> {
        self.key().map(|key| DisplayKey::new(key, self.0.redacts_key))
    }

    /// Returns whether another holder has the lock: skip the work, or try again later.
    ///
    /// It also holds at the [wait limit](LockError::is_wait_limit_reached), and if the run [is
    /// done](LockError::is_done).
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(
            self.0.kind,
            LockErrorKind::Busy | LockErrorKind::WaitLimitReached | LockErrorKind::Done
        )
    }

    /// Returns whether a call with `once` has ended well, and its period is not over: there is nothing to do.
    ///
    /// No call is at work, and the lock stays taken until the end of the period. [`is_busy`](LockError::is_busy) holds
    /// too.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.kind == LockErrorKind::Done
    }

    /// Returns whether another holder still had the lock at the end of `wait`: try again later, or wait longer.
    #[must_use]
    pub fn is_wait_limit_reached(&self) -> bool {
        self.0.kind == LockErrorKind::WaitLimitReached
    }

    /// Returns whether the calling body holds the lock itself: call this after the body, or with another key.
    ///
    /// It holds inside of a body that `run` or the attribute holds the lock around, but not in tasks that the body
    /// spawned, or under a guard that is held by hand: there the call waits.
    #[must_use]
    pub fn is_held_by_caller(&self) -> bool {
        self.0.kind == LockErrorKind::HeldByCaller
    }

    /// Returns whether the body was stopped because `max_hold` was over: the work is too long, or hangs.
    ///
    /// The lock was held until then, so the work does not overlap with the next holder's.
    #[must_use]
    pub fn is_max_hold_reached(&self) -> bool {
        self.0.kind == LockErrorKind::MaxHoldReached
    }

    /// Returns whether an operator asked the holder to stop, and the body was stopped: do not simply repeat it.
    ///
    /// The message has the operator's reason. The work does not overlap with the next holder's.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.0.kind == LockErrorKind::Revoked
    }

    /// Returns whether the lease ended before the work did: the work may overlap with the next holder's.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.kind == LockErrorKind::Lost
    }

    /// Returns whether the lock was lost to another holder: leave the rest of the work to that one, but [keep the
    /// message](crate::Locker::redeem) of a ticket, because the holder may die.
    ///
    /// If only [`is_lost`](LockError::is_lost) holds, the lock had expired or was deleted, and may be acquired again.
    /// Only the data show whether the work is done, also when a [ticket](crate::Ticket) was not redeemed.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.taken
    }

    /// Returns whether the body ran to its end although the lock was lost: do not simply repeat it.
    #[must_use]
    pub fn is_body_finished(&self) -> bool {
        self.0.completed
    }

    /// Returns whether the backend could not be used: it is down, slow or refuses, and the lock may or may not be free.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self.0.kind, LockErrorKind::Unavailable | LockErrorKind::Refused)
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        if self.0.advice.is_empty() { Ok(()) } else { write!(f, "; {}", self.advice()) }
    }
}

impl fmt::Debug for LockError {
    /// The message with its sources in one line, as logs and `unwrap` show it; all parts with `{:#?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&self.in_one_line());
        }
        f.debug_struct("LockError")
            .field("kind", &self.0.kind)
            .field("key", &self.shown_key().map(DisplayKey::text))
            .field("message", &self.0.message)
            .field("advice", &self.advice())
            .field("completed", &self.0.completed)
            .field("taken", &self.0.taken)
            .field("source", &self.0.source)
            .finish()
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<LockError>();
        assert_eq!(size_of::<LockError>(), size_of::<usize>());
    }

    #[test]
    fn messages_name_the_key_and_keep_to_one_line() {
        let error = LockError::busy("disLock:order:\n7");
        assert_eq!(error.to_string(), "lock `disLock:order:\\n7`: another holder has the lock");
    }

    #[test]
    fn a_message_redacts_its_key_where_that_is_wanted() {
        let error = LockError::busy("disLock:mail:a").redacting_key(true);
        for text in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
            assert!(text.contains("redacted:") && !text.contains("mail"), "{text}");
        }
        assert_eq!(error.key(), Some("disLock:mail:a"));
    }

    #[test]
    fn an_error_is_debugged_as_its_message_and_sources() {
        let foreign = std::io::Error::other("no\nanswer");
        let renewal = LockError::new(LockErrorKind::Unavailable, "the server is away");
        let renewal = renewal.with_source(Some(Arc::new(foreign)));
        let lost =
            LockError::lost("disLock:k", "the lease ended").with_source(Some(Arc::new(renewal)));
        let line = "lock `disLock:k`: the lease ended: the server is away: no answer";
        assert_eq!(format!("{lost:?}"), line);
        let parts = format!("{lost:#?}");
        let parts = ["LockError {", "kind: Lost", "kind: Unavailable", "completed: false"]
            .map(|part| parts.contains(part));
        assert_eq!(parts, [true; 4]);
    }

    #[test]
    fn a_source_that_the_message_quotes_is_named_once() {
        let error = LockError::new(LockErrorKind::Unavailable, "redis://a: it is away");
        let error = error.with_source(Some(Arc::new(std::io::Error::other("it is away"))));
        assert_eq!(format!("{error:?}"), "redis://a: it is away");
    }

    #[test]
    fn a_refusal_is_a_kind_of_unavailability() {
        let error = LockError::new(LockErrorKind::Refused, "no");
        assert!(error.kind() == LockErrorKind::Refused && error.is_unavailable());
        assert!(LockError::new(LockErrorKind::Unavailable, "no").kind() != LockErrorKind::Refused);
    }
}
