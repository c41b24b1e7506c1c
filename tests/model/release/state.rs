//! All that there is at one moment, and how one thing after the other changes it.

use crate::release::call::{Answer, Call, Kind, Step};
use crate::release::rules::{Rule, Rules};
use crate::release::server::{Form, Server};
use crate::release::world::Budget;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) calls: [Call; 3],
    /// A call as it was when it sent a request that has not arrived yet, and that it has repeated.
    pub(crate) late: Option<Call>,
    /// A call that has just begun to send a request. What else happens before that arrives could as well happen
    /// before it is sent, which leaves fewer orders.
    pub(crate) sends: Option<usize>,
    pub(crate) left: Budget,
    /// Whether a call was told that the lock is not its own, although it was.
    pub(crate) was_wrong: bool,
    /// Whether a native delete has removed the lock of another.
    pub(crate) took_others: bool,
}

impl State {
    pub(crate) fn new(rules: Rules, kinds: [Kind; 3], budget: Budget) -> Self {
        Self {
            server: Server { lock: None, queue: Vec::new(), rules },
            calls: [0, 1, 2].map(|number| Call::new(number, kinds[number])),
            late: None,
            sends: None,
            left: budget,
            was_wrong: false,
            took_others: false,
        }
    }

    pub(crate) fn begin(&mut self, call: usize, form: Form) {
        self.left.tries -= 1;
        self.calls[call].begin(form);
        self.sends = Some(call);
    }

    pub(crate) fn run(&mut self, call: usize) {
        self.sends = None;
        let answer = self.calls[call].run(&mut self.server, true);
        self.note(answer);
        self.calls[call].hear(answer.is_yes, self.server.rules);
    }

    pub(crate) fn run_unheard(&mut self, call: usize) {
        self.left.lost_answers -= 1;
        self.sends = None;
        let answer = self.calls[call].run(&mut self.server, true);
        self.note(answer);
    }

    pub(crate) fn delay(&mut self, call: usize) {
        self.left.delays -= 1;
        self.sends = None;
        self.late = Some(self.calls[call]);
    }

    pub(crate) fn arrive(&mut self) {
        let Some(late) = self.late.take() else { return };
        let is_wanted = self.calls.contains(&late);
        let answer = late.run(&mut self.server, is_wanted);
        self.took_others |= answer.takes_others;
    }

    fn note(&mut self, answer: Answer) {
        self.was_wrong |= answer.is_wrong;
        self.took_others |= answer.takes_others;
    }

    /// Whether the lock is one that its holder has done with.
    pub(crate) fn is_left_behind(&self) -> bool {
        let lock = self.server.lock.filter(|lock| lock.is_wanted);
        lock.is_some_and(|lock| self.calls[lock.owner.call].owner != lock.owner)
    }

    /// Whether a waiter may send `enqueue.lua` now.
    pub(crate) fn may_ask(&self, call: &Call) -> bool {
        let is_queued = self.server.queue.iter().any(|entry| entry.owner == call.owner);
        call.step == Step::Waiting && (!is_queued || self.server.rules.has(Rule::WaitersAskAgain))
    }

    pub(crate) fn end(&mut self, call: usize) {
        self.calls[call].end();
        self.sends = Some(call);
    }

    pub(crate) fn leave(&mut self, call: usize) {
        self.server.leave(self.calls[call].owner);
        self.calls[call].finish();
    }

    /// The lease is over, which its holder knows.
    pub(crate) fn expire(&mut self) {
        self.left.expiries -= 1;
        let Some(lock) = self.server.lock else { return };
        self.server.expire();
        let call = &mut self.calls[lock.owner.call];
        if call.owner == lock.owner && call.step == Step::Holding {
            call.end();
        }
    }
}
