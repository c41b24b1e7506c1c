//! The turn of a call: a held lock that came from a queue.

use std::sync::Arc;

use super::line::{Actions, Ending, Granted, Line};
use super::lines::{Call, Lines};
use crate::backend::{Attempt, Fault, Grant, Release};
use crate::types::clock::Moment;

/// A held lock that came from a queue.
///
/// One of its methods ends it. A turn that is dropped before is passed to the next call, or released.
pub(crate) struct Turn {
    lines: Arc<Lines>,
    pub(crate) granted: Granted,
    is_over: bool,
}

impl Turn {
    pub(super) fn new(lines: Arc<Lines>, granted: Granted) -> Self {
        Self { lines, granted, is_over: false }
    }

    /// Passes the lock to the next waiter of this process, if it may; returns whether it did.
    pub(crate) fn pass(&mut self) -> bool {
        let attempt = &self.granted.attempt;
        let passed = self.lines.on(&attempt.key, |line, now| line.passed(attempt, now));
        let Some(actions) = passed else { return false };
        self.is_over = actions.deliver.is_some();
        self.lines.perform_all(&attempt.key, actions);
        self.is_over
    }

    /// Asks again for the call, which has joined the line again: the grant cannot be relied on.
    pub(super) fn doubt(self) {
        self.end(Line::doubted);
    }

    /// The lock was lost.
    pub(crate) fn lose(self) {
        self.end(Line::lost);
    }

    /// The background releases the lock.
    pub(crate) fn defer(self) {
        self.end(Line::deferred);
    }

    fn end(mut self, event: fn(&mut Line<Call>, &Arc<Attempt>, Moment) -> Actions<Call>) {
        self.is_over = true;
        let attempt = &self.granted.attempt;
        self.lines.act(&attempt.key, |line, now| event(line, attempt, now));
    }

    /// Releases the lock, and queues the calls that wait behind the other processes.
    ///
    /// # Cancel safety
    /// The calls that wait ask again.
    pub(crate) async fn release(mut self) -> Result<Release, Fault> {
        self.is_over = true;
        let (lines, attempt) = (&self.lines, &self.granted.attempt);
        let make = lines.attempt_for(&attempt.key).ok();
        let ending = lines.on(&attempt.key, |line, now| line.ending(attempt, make, now));
        let ending = ending.unwrap_or_default();
        let mut releasing = Releasing { lines, attempt, ending, is_answered: false, grant: None };
        let backend = &lines.link.backend;
        let found = match releasing.ending.next.clone() {
            None => lines.link.ask(backend.release(Arc::clone(attempt))).await?,
            Some(next) => {
                let reply = backend.release_to(Arc::clone(attempt), next);
                let (found, grant) = lines.link.ask(reply).await?;
                releasing.grant = grant;
                found
            }
        };
        releasing.is_answered = true;
        Ok(found)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            let attempt = &self.granted.attempt;
            self.lines.act(&attempt.key, |line, now| line.returned(attempt, now));
        }
    }
}

/// The release of a turn; its line hears how it ended when this is dropped.
struct Releasing<'a> {
    lines: &'a Arc<Lines>,
    attempt: &'a Arc<Attempt>,
    ending: Ending,
    is_answered: bool,
    grant: Option<Grant>,
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        let Self { attempt, ending, is_answered, grant, .. } = self;
        self.lines.act(&attempt.key, |line, now| {
            line.released(attempt, ending, *is_answered, grant.take(), now)
        });
    }
}
