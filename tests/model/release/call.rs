//! The client: a call that acquires the lock and releases it, again and again.

use crate::release::rules::{Rule, Rules};
use crate::release::server::{Form, Owner, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Ours,
    // Its user may not run the native command.
    Unentitled,
    // Of a version that does not know the mark, or another program. It tries with plain tokens, and does not wait.
    Older,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    /// The token of the present attempt.
    pub(crate) owner: Owner,
    pub(crate) step: Step,
}

/// What a call is at. A request is repeated until its answer arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Idle,
    // It sends `SET NX GET`.
    Trying,
    // It sends `enqueue.lua`.
    Waiting,
    Holding,
    // It sends the native delete.
    Deleting,
    // It sends `release.lua`.
    Releasing,
}

/// What the server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) is_yes: bool,
    /// Whether the call learned that the lock is not its own, although it is.
    pub(crate) is_wrong: bool,
    /// Whether a native delete has removed the lock of another.
    pub(crate) takes_others: bool,
}

impl Call {
    pub(crate) fn new(number: usize, kind: Kind) -> Self {
        let owner = Owner { call: number, attempt: 0, form: Form::Plain };
        Self { kind, owner, step: Step::Idle }
    }

    pub(crate) fn knows_mark(&self) -> bool {
        self.kind != Kind::Older
    }

    pub(crate) fn begin(&mut self, form: Form) {
        self.owner.form = form;
        self.step = Step::Trying;
    }

    /// The request that it sends runs at the server.
    pub(crate) fn run(&self, server: &mut Server, is_wanted: bool) -> Answer {
        let Self { owner, step, .. } = *self;
        let (former, was_its_own) = (server.lock, server.has(owner));
        let is_yes = match step {
            Step::Trying => server.set(owner, is_wanted),
            Step::Waiting => server.enqueue(owner, is_wanted, self.marks(server.rules)),
            Step::Holding => server.shows(owner, self.sees_mark(Rule::RenewalKnowsMark, server)),
            Step::Deleting => self.kind != Kind::Unentitled && server.delete(owner),
            Step::Releasing => {
                server.release(owner, self.sees_mark(Rule::ReleaseKnowsMark, server))
            }
            Step::Idle => false,
        };
        let is_wrong = was_its_own && !is_yes && step != Step::Deleting;
        let takes_others = step == Step::Deleting && former.is_some() && !was_its_own && is_yes;
        Answer { is_yes, is_wrong, takes_others }
    }

    fn marks(&self, rules: Rules) -> bool {
        let may = self.kind != Kind::Unentitled || rules.has(Rule::EveryWaiterMarks);
        may && rules.has(Rule::WaitersMark)
    }

    fn sees_mark(&self, rule: Rule, server: &Server) -> bool {
        self.knows_mark() && server.rules.has(rule)
    }

    /// The answer arrives.
    pub(crate) fn hear(&mut self, is_yes: bool, rules: Rules) {
        match self.step {
            Step::Trying | Step::Waiting if is_yes => self.step = Step::Holding,
            Step::Trying if self.kind != Kind::Older => {
                let is_plain = rules.has(Rule::QueuedIsPlain);
                self.finish();
                self.owner.form = if is_plain { Form::Plain } else { Form::Native };
                self.step = Step::Waiting;
            }
            Step::Deleting if !is_yes && rules.has(Rule::ScriptDecides) => {
                self.step = Step::Releasing;
            }
            Step::Trying | Step::Deleting | Step::Releasing => self.finish(),
            Step::Holding if !is_yes => self.finish(),
            Step::Idle | Step::Waiting | Step::Holding => {}
        }
    }

    /// The body ends, or the lease does.
    pub(crate) fn end(&mut self) {
        let is_native = self.owner.form == Form::Native;
        self.step = if is_native { Step::Deleting } else { Step::Releasing };
    }

    /// The next attempt has another token.
    pub(crate) fn finish(&mut self) {
        self.owner = Owner { attempt: self.owner.attempt + 1, form: Form::Plain, ..self.owner };
        self.step = Step::Idle;
    }
}
