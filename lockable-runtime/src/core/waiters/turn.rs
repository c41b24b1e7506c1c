use std::mem;
use std::sync::Arc;

use super::line::{Actions, Granted, Line, TurnEnd};
use super::lines::{Answer, Lines};
use crate::core::backend::{Attempt, Fault, Release};
use crate::core::process::clock::Moment;

/// A held lock that came from a queue.
///
/// One of its methods ends it. A turn that is dropped before is passed to the next call, or released.
pub(crate) struct Turn {
    lines: Arc<Lines>,
    pub(crate) granted: Granted,
    /// What is released in the end: the attempt that was granted, or the permit that it was granted.
    held: Arc<Attempt>,
    is_over: bool,
}

impl Turn {
    pub(super) fn new(lines: Arc<Lines>, granted: Granted) -> Self {
        let permit =
            granted.grant.permit().cloned().map(|permit| granted.attempt.with_permit(permit));
        let held = permit.unwrap_or_else(|| Arc::clone(&granted.attempt));
        Self { lines, granted, held, is_over: false }
    }

    pub(crate) fn held(&self) -> &Arc<Attempt> {
        &self.held
    }

    /// Passes the lock to the next waiter of this process, if it may; returns whether it did.
    pub(crate) fn pass(&mut self) -> bool {
        let attempt = &self.granted.attempt;
        let line = attempt.line();
        let actions = self.lines.on(&line, |line, now| line.passed(attempt, now));
        self.is_over = actions.deliver.is_some();
        self.lines.perform_all(&line, actions);
        self.is_over
    }

    pub(crate) fn lose(self) {
        self.end(Line::lost);
    }

    pub(crate) fn defer(self) {
        self.end(Line::deferred);
    }

    fn end(mut self, event: fn(&mut Line<Answer>, &Arc<Attempt>, Moment) -> Actions<Answer>) {
        self.is_over = true;
        let attempt = &self.granted.attempt;
        self.lines.act(&attempt.line(), |line, now| event(line, attempt, now));
    }

    /// Releases the lock, and queues the calls that wait behind the other processes.
    ///
    /// # Cancel safety
    /// The waiting calls query again.
    pub(crate) async fn release(mut self) -> Result<Release, Fault> {
        self.is_over = true;
        let lines = &self.lines;
        let attempt = &self.granted.attempt;
        let line_key = attempt.line();
        let make = lines.attempt_for(&line_key).ok();
        let turn_end = lines.on(&line_key, |line, now| line.releasing(attempt, make, now));
        let next = turn_end.next.clone();
        let mut releasing = Releasing { lines, attempt, turn_end };
        let context = &lines.context;
        let slot = attempt.slot;
        let ended = Arc::clone(&self.held);
        let (found, grant) = match next {
            None => (context.request(slot, context.backend.release(ended)).await?, None),
            Some(next) => context.request(slot, context.backend.release_to(ended, next)).await?,
        };
        (releasing.turn_end.is_answered, releasing.turn_end.grant) = (true, grant);
        Ok(found)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            let attempt = &self.granted.attempt;
            self.lines.act(&attempt.line(), |line, now| line.returned(attempt, now));
        }
    }
}

/// The release of a turn; notifies its line when this is dropped.
struct Releasing<'a> {
    lines: &'a Arc<Lines>,
    attempt: &'a Arc<Attempt>,
    turn_end: TurnEnd,
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        let turn_end = mem::take(&mut self.turn_end);
        self.lines
            .act(&self.attempt.line(), |line, now| line.released(self.attempt, turn_end, now));
    }
}
