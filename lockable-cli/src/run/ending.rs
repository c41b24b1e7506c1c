//! When a command is asked to end, and when it is ended: the decision, without clock or processes.

use std::time::Duration;

use crate::clock::Moment;

/// The lease of a command as its watcher knows it, and `lockable`, which sees to it that the watcher acts.
#[derive(Debug)]
pub(crate) struct Ending {
    deadline: Moment,
    kill_after: Duration,
    asked_at: Option<Moment>,
}

/// What has to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The command is asked to end.
    Ask,
    /// The command is ended.
    Kill,
}

impl Ending {
    pub(crate) fn new(deadline: Moment, kill_after: Duration) -> Self {
        Self { deadline, kill_after, asked_at: None }
    }

    /// The lease was renewed, or it is known better when it ends.
    pub(crate) fn set_deadline(&mut self, deadline: Moment) {
        self.deadline = deadline;
    }

    /// The command is asked to end now; once is enough.
    pub(crate) fn ask(&mut self, now: Moment) -> bool {
        let is_first = self.asked_at.is_none();
        self.asked_at.get_or_insert(now);
        is_first
    }

    /// The command is ended now.
    pub(crate) fn kill(&mut self, now: Moment) {
        self.deadline = self.deadline.min(now);
    }

    pub(crate) fn due(&self, now: Moment) -> Due {
        match self.asked_at {
            _ if now >= self.kill_at() => Due::Kill,
            None if now >= self.ask_at() => Due::Ask,
            _ => Due::Nothing,
        }
    }

    /// When something is due next, unless an order changes it.
    pub(crate) fn next(&self) -> Moment {
        if self.asked_at.is_some() { self.kill_at() } else { self.ask_at() }
    }

    fn ask_at(&self) -> Moment {
        self.deadline.before(self.kill_after)
    }

    /// A command that was asked has its time, but never more than the lease.
    pub(crate) fn kill_at(&self) -> Moment {
        let patience = self.asked_at.map(|asked| asked.after(self.kill_after));
        patience.map_or(self.deadline, |end| end.min(self.deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn ending() -> Ending {
        Ending::new(at(30), Duration::from_secs(5))
    }

    #[test]
    fn a_lease_that_runs_out_asks_first_and_kills_at_its_end() {
        let mut ending = ending();
        assert_eq!((ending.due(at(24)), ending.next()), (Due::Nothing, at(25)));
        assert_eq!(ending.due(at(25)), Due::Ask);
        assert!(ending.ask(at(25)) && !ending.ask(at(26)));
        assert_eq!((ending.due(at(29)), ending.next()), (Due::Nothing, at(30)));
        assert_eq!(ending.due(at(30)), Due::Kill);
    }

    #[test]
    fn a_renewal_moves_both() {
        let mut ending = ending();
        ending.set_deadline(at(40));
        assert_eq!((ending.due(at(30)), ending.next()), (Due::Nothing, at(35)));
    }

    #[test]
    fn a_command_that_was_asked_is_killed_though_the_lease_lasts() {
        let mut ending = ending();
        ending.ask(at(3));
        ending.set_deadline(at(40));
        assert_eq!((ending.due(at(7)), ending.next()), (Due::Nothing, at(8)));
        assert_eq!(ending.due(at(8)), Due::Kill);
    }

    #[test]
    fn a_command_that_was_asked_late_has_no_more_than_the_lease() {
        let mut ending = ending();
        ending.ask(at(28));
        assert_eq!(ending.next(), at(30));
    }

    #[test]
    fn a_process_that_slept_through_all_of_it_kills_at_once() {
        assert_eq!(ending().due(at(31)), Due::Kill);
    }
}
