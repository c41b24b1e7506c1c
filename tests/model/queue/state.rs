//! All that there is at one moment, and how one thing after the other changes it.

use std::mem;

use crate::queue::process::{Hold, Letter, Outbox, Process, Purpose, release};
use crate::queue::rules::{Rule, Rules};
use crate::queue::server::{Answer, Fence, Owner, Request, Server};
use crate::queue::world::Budget;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) processes: Vec<Process>,
    /// What is under way, and arrives in any order. It is sorted, so that equal states are one.
    pub(crate) net: Vec<Packet>,
    /// The leases up to this one are over. A process that is granted one knows that by when it asked.
    pub(crate) lapsed: Fence,
    pub(crate) left: Budget,
    /// The highest fencing token that a holder had.
    pub(crate) highest: Fence,
    /// Whether a later holder had none above that.
    pub(crate) went_back: bool,
    /// Whether the release of a lock that was not lost has not found it.
    pub(crate) was_gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Packet {
    Request(Letter),
    Answer(Letter, Answer),
    // A wake-up of the line that waits with this attempt.
    WakeUp(Owner),
}

impl State {
    pub(crate) fn new(rules: Rules, processes: u8, calls: u8, budget: Budget) -> Self {
        let processes = (0..processes).map(|number| Process::new(number, calls, rules)).collect();
        Self { server: Server::new(rules), processes, left: budget, ..Self::default() }
    }

    /// Something happens in a process, which may send requests.
    pub(crate) fn on<R>(
        &mut self,
        number: u8,
        event: impl FnOnce(&mut Process, Fence, &mut Outbox) -> R,
    ) -> R {
        let process = &mut self.processes[usize::from(number)];
        let (mut out, holds) = (Outbox::new(), process.holds.len());
        let result = event(process, self.lapsed, &mut out);
        if let Some(hold) = process.holds.get(holds) {
            self.went_back |= hold.fence <= self.highest;
            self.highest = self.highest.max(hold.fence);
        }
        self.send(out.into_iter().map(Packet::Request));
        result
    }

    pub(crate) fn take(&mut self, packet: Packet) {
        if let Some(place) = self.net.iter().position(|other| *other == packet) {
            self.net.remove(place);
        }
    }

    fn send(&mut self, packets: impl IntoIterator<Item = Packet>) {
        self.net.extend(packets);
        self.net.sort_unstable();
    }

    pub(crate) fn arrive(&mut self, packet: Packet) {
        self.take(packet);
        match packet {
            Packet::Request(letter) => {
                let answer = self.run(letter);
                self.send(answer);
            }
            Packet::Answer(letter, answer) => self.answer(letter, Some(answer)),
            Packet::WakeUp(owner) => {
                self.on(owner.process, |process, _, out| process.woken(owner, out));
            }
        }
    }

    pub(crate) fn forge(&mut self, owner: Owner) {
        self.left.forgeries -= 1;
        self.on(owner.process, |process, _, out| process.woken(owner, out));
    }

    fn run(&mut self, letter: Letter) -> Option<Packet> {
        let (answer, woken) = self.server.run(letter.request);
        let woken = woken.filter(|owner| self.server.listens(owner.process));
        self.net.extend(woken.map(Packet::WakeUp));
        let ends = matches!(letter.purpose, Purpose::TurnsEnd { .. } | Purpose::End);
        self.was_gone |= ends && answer == Answer::Gone && !letter.has_run;
        let is_awaited =
            !matches!(letter.purpose, Purpose::End | Purpose::Background | Purpose::GivenUp);
        is_awaited.then_some(Packet::Answer(letter, answer))
    }

    /// A request runs, and is sent again because its connection broke before the answer came.
    pub(crate) fn rerun(&mut self, letter: Letter) {
        self.left.reruns -= 1;
        self.take(Packet::Request(letter));
        self.run(letter);
        self.send([Packet::Request(Letter { has_run: true, ..letter })]);
    }

    /// The answer arrives, or it is certain that none does.
    fn answer(&mut self, letter: Letter, answer: Option<Answer>) {
        let Letter { request, purpose, has_run } = letter;
        let owner = request.owner();
        // The first of two releases may have found it.
        let answer = answer.filter(|answer| !has_run || *answer != Answer::Gone);
        self.on(owner.process, |process, lapsed, out| match (purpose, request, answer) {
            (Purpose::Try, ..) => process.tried(owner, answer, lapsed, out),
            (Purpose::Query { .. }, _, Some(answer)) => process.answered(owner, answer, out),
            (Purpose::Query { has_failed }, _, None) => {
                if !has_failed {
                    process.failed(owner, out);
                }
                process.gave_up(owner);
            }
            (Purpose::TurnsEnd { may_land_late }, Request::Release { next, .. }, _) => {
                process.released((owner, next), may_land_late, answer, out);
            }
            (Purpose::End | Purpose::Background, _, None) => out.push(release(owner)),
            _ => {}
        });
    }

    pub(crate) fn lose(&mut self, packet: Packet) {
        self.left.losses -= 1;
        self.take(packet);
        if let Packet::Request(letter) | Packet::Answer(letter, _) = packet {
            self.answer(letter, None);
        }
    }

    /// A request counts as lost, and lands later.
    pub(crate) fn delay(&mut self, letter: Letter) {
        self.left.delays -= 1;
        self.take(Packet::Request(letter));
        self.send([Packet::Request(Letter { purpose: Purpose::GivenUp, ..letter })]);
        self.answer(letter, None);
    }

    /// A query has no answer in time, and may have one later.
    pub(crate) fn time_out(&mut self, packet: Packet) {
        self.left.timeouts -= 1;
        self.take(packet);
        let (Packet::Request(letter) | Packet::Answer(letter, _)) = packet else { return };
        let failed = Letter { purpose: Purpose::Query { has_failed: true }, ..letter };
        self.send([match packet {
            Packet::Answer(_, answer) => Packet::Answer(failed, answer),
            _ => Packet::Request(failed),
        }]);
        let owner = letter.request.owner();
        self.on(owner.process, |process, _, out| process.failed(owner, out));
    }

    /// The line asks; what it would not do yet, if nothing was lost, is one of few.
    pub(crate) fn ask(&mut self, number: u8) {
        let process = &self.processes[usize::from(number)];
        let is_again = process.place.is_some() || process.turn.is_some();
        self.left.repetitions -= u8::from(is_again);
        self.on(number, |process, _, out| process.ask(out));
    }

    /// A call that waits is gone, or one that tries or has its turn.
    pub(crate) fn cancel(&mut self, number: u8, call: Cancelled) {
        self.left.cancels -= 1;
        self.on(number, |process, lapsed, out| match call {
            Cancelled::Waiting => process.left(out),
            Cancelled::Trying => process.trying = None,
            Cancelled::Given(given) => process.left_with(given, lapsed, out),
            Cancelled::Holding(hold) => process.end_by_drop(hold, lapsed, out),
        });
    }

    /// All leases are over that were granted so far, for their holders and not yet at the server.
    pub(crate) fn lapse(&mut self) {
        self.left.expiries -= 1;
        self.lapsed = self.server.fence;
        let holds = self.processes.iter_mut().flat_map(|process| &mut process.holds);
        holds.for_each(|hold| hold.is_lost = true);
    }

    /// The lock ends at the server. One that was granted does so after the deadlines of all holders so far.
    pub(crate) fn expire(&mut self) {
        self.left.expiries -= 1;
        if self.server.lock.take().is_some_and(|lock| !lock.is_kept) {
            self.lapsed = self.server.fence;
        }
    }

    pub(crate) fn kill(&mut self, number: u8) {
        self.left.kills -= 1;
        self.server.kill(number);
        self.processes[usize::from(number)] = Process::new(number, 0, self.server.rules);
        let net = mem::take(&mut self.net).into_iter().filter_map(|packet| match packet {
            Packet::Request(letter) if letter.request.owner().process == number => {
                Some(Packet::Request(Letter { purpose: Purpose::GivenUp, ..letter }))
            }
            Packet::Answer(letter, _) if letter.request.owner().process == number => None,
            Packet::WakeUp(owner) if owner.process == number => None,
            packet => Some(packet),
        });
        self.net = net.collect();
        self.net.sort_unstable();
    }

    /// Whether the body of a holder runs.
    pub(crate) fn runs(&self, hold: Hold) -> bool {
        !hold.is_lost || !self.server.rules.has(Rule::LossEndsBody)
    }

    /// All holds whose bodies run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Hold> {
        self.processes.iter().flat_map(|process| &process.holds).filter(|hold| self.runs(**hold))
    }

    /// Whether a call waits with this attempt, has its lock, or is about to receive it, or its process has died.
    pub(crate) fn is_known(&self, owner: Owner) -> bool {
        let process = &self.processes[usize::from(owner.process)];
        let holds = process.given.iter().chain(&process.holds).map(|hold| hold.owner);
        let mut owners = process.place.map(|place| place.owner).into_iter().chain(holds);
        owners.any(|other| other == owner) || !self.server.listens(owner.process)
    }
}

/// A call that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Waiting,
    Trying,
    Given(Hold),
    Holding(Hold),
}
