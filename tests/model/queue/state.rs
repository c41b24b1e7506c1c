//! All that there is at one moment, and how one thing after the other changes it.

use std::mem;

use crate::queue::process::{Given, Hold, Letter, Outbox, Process, Purpose};
use crate::queue::rules::{Rule, Rules};
use crate::queue::server::{Answer, Fence, Grant, Owner, Request, Server};
use crate::queue::world::Budget;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) processes: Vec<Process>,
    /// What is under way, and arrives in any order. It is sorted, so that equal states are one.
    pub(crate) net: Vec<Packet>,
    /// The grants up to this one are over. A process that hears of one knows that by the time.
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
    Message(Grant),
}

impl State {
    pub(crate) fn new(rules: Rules, processes: u8, calls: u8, budget: Budget) -> Self {
        Self {
            server: Server::new(rules),
            processes: (0..processes).map(|number| Process::new(number, calls, rules)).collect(),
            net: Vec::new(),
            lapsed: 0,
            left: budget,
            highest: 0,
            went_back: false,
            was_gone: false,
        }
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
        self.net.extend(out.into_iter().map(Packet::Request));
        self.net.sort_unstable();
        result
    }

    pub(crate) fn take(&mut self, packet: Packet) {
        if let Some(place) = self.net.iter().position(|other| *other == packet) {
            self.net.remove(place);
        }
    }

    fn send(&mut self, packet: Packet) {
        self.net.push(packet);
        self.net.sort_unstable();
    }

    pub(crate) fn arrive(&mut self, packet: Packet) {
        self.take(packet);
        match packet {
            Packet::Request(letter) => self.run(letter),
            Packet::Answer(letter, answer) => self.answer(letter, Some(answer)),
            Packet::Message(grant) => {
                self.on(grant.owner.process, |process, _, out| process.granted(grant, out));
            }
        }
    }

    fn run(&mut self, letter: Letter) {
        let (answer, message) = self.server.run(letter.request);
        let message = message.filter(|grant| self.server.listens(grant.owner.process));
        let ends = matches!(letter.purpose, Purpose::TurnsEnd { .. } | Purpose::End);
        self.was_gone |= ends && answer == Answer::Gone;
        let is_awaited =
            !matches!(letter.purpose, Purpose::End | Purpose::Background | Purpose::GivenUp);
        let answer = is_awaited.then_some(Packet::Answer(letter, answer));
        self.net.extend(message.map(Packet::Message).into_iter().chain(answer));
        self.net.sort_unstable();
    }

    /// The answer arrives, or it is certain that none does.
    fn answer(&mut self, Letter { request, purpose }: Letter, answer: Option<Answer>) {
        let owner = request.owner();
        self.on(owner.process, |process, lapsed, out| match (purpose, request, answer) {
            (Purpose::Try, ..) => process.tried(owner, answer, lapsed, out),
            (Purpose::Question { .. }, _, Some(answer)) => process.answered(owner, answer, out),
            (Purpose::Question { has_failed }, _, None) => {
                if !has_failed {
                    process.failed(owner, out);
                }
                process.gave_up(owner);
            }
            (Purpose::TurnsEnd { may_overtake }, Request::Release { next, .. }, _) => {
                process.released((owner, next), may_overtake, answer, out);
            }
            (Purpose::End | Purpose::Background, _, None) => {
                let request = Request::Release { owner, next: None };
                out.push(Letter { request, purpose: Purpose::Background });
            }
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
        self.send(Packet::Request(Letter { purpose: Purpose::GivenUp, ..letter }));
        self.answer(letter, None);
    }

    /// A question has no answer in time, and may have one later.
    pub(crate) fn time_out(&mut self, packet: Packet) {
        self.left.timeouts -= 1;
        self.take(packet);
        let failed = |letter| Letter { purpose: Purpose::Question { has_failed: true }, ..letter };
        let (packet, letter) = match packet {
            Packet::Request(letter) => (Packet::Request(failed(letter)), letter),
            Packet::Answer(letter, answer) => (Packet::Answer(failed(letter), answer), letter),
            Packet::Message(_) => return,
        };
        self.send(packet);
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

    pub(crate) fn end(&mut self, number: u8, hold: Hold) {
        self.on(number, |process, _, out| {
            process.holds.retain(|other| *other != hold);
            process.end(hold, out);
        });
    }

    pub(crate) fn pass(&mut self, number: u8, hold: Hold) {
        self.on(number, |process, _, out| {
            process.holds.retain(|other| *other != hold);
            process.pass(out);
        });
    }

    /// A call that waits is gone, or one that tries or has its turn.
    pub(crate) fn cancel(&mut self, number: u8, call: Cancelled) {
        self.left.cancels -= 1;
        self.on(number, |process, lapsed, out| match call {
            Cancelled::Waiting => process.left(out),
            Cancelled::Trying => process.trying = None,
            Cancelled::Given(given) => process.left_with(given, lapsed, out),
            Cancelled::Holding(hold) => {
                process.holds.retain(|other| *other != hold);
                process.dropped(hold.owner, lapsed, out);
            }
        });
    }

    /// The deadline of a holder is over.
    pub(crate) fn lapse(&mut self, number: u8, hold: Hold) {
        self.left.expiries -= 1;
        self.lapsed = self.lapsed.max(hold.fence);
        let holds = &mut self.processes[usize::from(number)].holds;
        holds.iter_mut().filter(|other| **other == hold).for_each(|hold| hold.is_lost = true);
    }

    /// The lock ends at the server, after the deadline of its holder.
    pub(crate) fn expire(&mut self) {
        self.left.expiries -= 1;
        self.lapsed = self.server.fence;
        self.server.lock = None;
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
            Packet::Message(grant) if grant.owner.process == number => None,
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

    /// Whether a call waits with this attempt, has its lock, or is about to receive it.
    pub(crate) fn is_known(&self, owner: Owner) -> bool {
        let process = &self.processes[usize::from(owner.process)];
        let given = process.given.iter().map(|given| given.owner);
        let owners = process.place.map(|place| place.owner).into_iter().chain(given);
        let mut owners = owners.chain(process.holds.iter().map(|hold| hold.owner));
        owners.any(|other| other == owner)
    }
}

/// A call that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Waiting,
    Trying,
    Given(Given),
    Holding(Hold),
}
