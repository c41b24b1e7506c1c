//! A process: the line of its calls for the lock, as `waiters/line` keeps it, and those that hold the lock.

use std::mem;

use crate::queue::rules::{Rule, Rules};
use crate::queue::server::{Answer, Fence, Owner, PASSES, Request};

/// A request, and what the process does with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Letter {
    pub(crate) request: Request,
    pub(crate) purpose: Purpose,
    /// Whether it has run before, on a connection that broke.
    pub(crate) has_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Try,
    // A query of the line, which may have counted as failed already.
    Query { has_failed: bool },
    // The release of a turn, which a query about the same attempt may overtake.
    TurnsEnd { may_land_late: bool },
    // That of another lock, from whose answer nothing follows.
    End,
    // The background leaves, or releases. It repeats that until it is answered.
    Background,
    // It was given up, and still lands.
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    pub(crate) queries: u8,
    is_unsure: bool,
    /// Whether a wake-up has made the line ask, and no query has ended since.
    is_woken: bool,
    /// Whether another came meanwhile.
    is_woken_again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    pub(crate) fence: Fence,
    pub(crate) passes: u8,
}

/// A call that has the lock, as far as it knows, or is about to receive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    pub(crate) fence: Fence,
    pub(crate) has_turn: bool,
    /// Whether its deadline is over.
    pub(crate) is_lost: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) number: u8,
    /// The calls that have not begun.
    pub(crate) calls: u8,
    attempts: u8,
    pub(crate) trying: Option<Owner>,
    pub(crate) waiting: u8,
    pub(crate) place: Option<Place>,
    pub(crate) turn: Option<Turn>,
    pub(crate) leftovers: Vec<Place>,
    /// The turns that their calls have not received yet.
    pub(crate) given: Vec<Hold>,
    pub(crate) holds: Vec<Hold>,
    was_answered: bool,
    rules: Rules,
}

/// What it sends.
pub(crate) type Outbox = Vec<Letter>;

impl Process {
    pub(crate) fn new(number: u8, calls: u8, rules: Rules) -> Self {
        Self { number, calls, rules, ..Self::default() }
    }

    /// A call comes: it tries, or joins those that wait.
    pub(crate) fn start(&mut self, out: &mut Outbox) {
        self.calls -= 1;
        let holds = self.holds.iter().any(|hold| !hold.is_lost);
        if self.waiting > 0 || self.trying.is_some() || holds {
            self.waiting += 1;
            return;
        }
        let owner = self.draw();
        self.trying = Some(owner);
        out.push(letter(Request::Try(owner), Purpose::Try));
    }

    fn draw(&mut self) -> Owner {
        let attempt = self.attempts;
        self.attempts += u8::from(self.rules.has(Rule::TokenIsNew));
        Owner { process: self.number, attempt }
    }

    /// The try was answered, or not.
    pub(crate) fn tried(
        &mut self,
        owner: Owner,
        answer: Option<Answer>,
        lapsed: Fence,
        out: &mut Outbox,
    ) {
        let is_wanted = self.trying.take_if(|trying| *trying == owner).is_some();
        match answer {
            Some(Answer::Granted(fence)) if is_wanted && self.lasts(fence, lapsed) => {
                self.holds.push(Hold { owner, fence, has_turn: false, is_lost: false });
            }
            Some(Answer::Granted(_)) | None
                if is_wanted || self.rules.has(Rule::TryIsGivenBack) =>
            {
                out.push(release(owner));
            }
            Some(Answer::Busy) if is_wanted => {
                self.waiting += 1;
                self.was_answered = true;
            }
            _ => {}
        }
    }

    /// Whether a lease lasts still when its call receives it.
    fn lasts(&self, fence: Fence, lapsed: Fence) -> bool {
        fence > lapsed || !self.rules.has(Rule::CountsFromSending)
    }

    /// The line asks, for a new place if it has none.
    pub(crate) fn ask(&mut self, out: &mut Outbox) {
        out.extend(self.came_due().map(query));
    }

    fn came_due(&mut self) -> Option<Owner> {
        if self.waiting == 0 {
            return None;
        }
        if self.place.is_none() {
            let owner = self.draw();
            self.place = Some(Place {
                owner,
                queries: 0,
                is_unsure: false,
                is_woken: false,
                is_woken_again: false,
            });
        }
        let place = self.place.as_mut()?;
        place.queries += 1;
        Some(place.owner)
    }

    /// A wake-up came, of the server or forged: the line asks, unless it has been woken and waits for the answer.
    pub(crate) fn woken(&mut self, owner: Owner, out: &mut Outbox) {
        let place = self.place.as_mut().filter(|place| place.owner == owner);
        let is_first = place.is_some_and(|place| {
            place.is_woken_again |= place.is_woken;
            !mem::replace(&mut place.is_woken, true)
        });
        if is_first && !self.rules.has(Rule::MessageGrantsNothing) {
            self.begin(owner, Fence::MAX - PASSES, out);
        } else if is_first && self.rules.has(Rule::WokenAsks) {
            self.ask(out);
        }
    }

    /// A query was answered.
    pub(crate) fn answered(&mut self, owner: Owner, answer: Answer, out: &mut Outbox) {
        let is_leftover = self.query_ends(owner, true);
        let gives_back = is_leftover && self.rules.has(Rule::LeftoverIsGivenBack);
        match answer {
            Answer::Granted(_) if gives_back => out.push(release(owner)),
            Answer::Granted(fence) => self.begin(owner, fence, out),
            _ if gives_back => out.push(leave(owner)),
            _ => {}
        }
        self.was_answered = true;
        let place = self.place.as_mut().filter(|place| place.owner == owner);
        if place.is_some_and(|place| mem::take(&mut place.is_woken_again)) {
            self.ask(out);
        }
        self.forget();
    }

    /// The first call that waits has the turn of this attempt, unless another answer has begun that already.
    fn begin(&mut self, owner: Owner, fence: Fence, out: &mut Outbox) {
        let Some(place) = self.place.take_if(|place| place.owner == owner) else {
            if !self.rules.has(Rule::RepeatedIsKnown) {
                out.push(release(owner));
            }
            return;
        };
        let former = self.turn.replace(Turn { place, fence, passes: 0 });
        let former = former.map(|turn| turn.place);
        let lost = former.filter(|_| self.rules.has(Rule::FormerLeaves));
        out.extend(lost.map(|place| leave(place.owner)));
        self.give();
        self.keep_leftover(former);
    }

    /// A call receives its turn: it holds the lock, or waits again because its lease is over.
    pub(crate) fn receive(&mut self, given: Hold, lapsed: Fence, out: &mut Outbox) {
        self.given.retain(|other| *other != given);
        if self.lasts(given.fence, lapsed) {
            self.holds.push(given);
        } else {
            self.lost(given.owner, out);
            self.forget();
            self.waiting += 1;
        }
    }

    /// The first call that waits has the turn now.
    fn give(&mut self) {
        let Some(turn) = self.turn else { return };
        self.waiting -= 1;
        let (owner, fence) = (turn.place.owner, turn.fence + turn.passes);
        self.given.push(Hold { owner, fence, has_turn: true, is_lost: false });
    }

    /// A query brought no answer in time.
    pub(crate) fn failed(&mut self, owner: Owner, out: &mut Outbox) {
        let is_leftover = self.is_leftover(owner);
        if is_leftover {
            out.push(leave(owner));
        } else if !self.was_answered {
            self.waiting = 0;
        }
        self.close(out);
    }

    /// Nothing waits for the answer of a query any more.
    pub(crate) fn gave_up(&mut self, owner: Owner) {
        self.query_ends(owner, false);
        self.forget();
    }

    /// The first call that waits is gone.
    pub(crate) fn left(&mut self, out: &mut Outbox) {
        self.waiting -= 1;
        self.close(out);
    }

    /// A call is gone that has not received its turn.
    pub(crate) fn left_with(&mut self, given: Hold, lapsed: Fence, out: &mut Outbox) {
        self.given.retain(|other| *other != given);
        let owner = given.owner;
        if self.turn.is_none_or(|turn| turn.place.owner != owner) {
            return;
        }
        if self.rules.has(Rule::ReturnedLeaves) && !self.may_pass(owner, lapsed) {
            out.push(leave(owner));
        }
        self.dropped(owner, lapsed, out);
    }

    /// A call drops its guard.
    pub(crate) fn dropped(&mut self, owner: Owner, lapsed: Fence, out: &mut Outbox) {
        if self.may_pass(owner, lapsed) {
            return self.pass(out);
        }
        self.end_turn(owner);
        out.push(release(owner));
        self.forget();
    }

    pub(crate) fn may_pass(&self, owner: Owner, lapsed: Fence) -> bool {
        let turn = self.turn.filter(|turn| turn.place.owner == owner && turn.fence > lapsed);
        let has_token = |turn: Turn| turn.passes < PASSES || !self.rules.has(Rule::PassesEnd);
        self.waiting > 0 && turn.is_some_and(has_token)
    }

    /// The turn is the next call's.
    fn pass(&mut self, out: &mut Outbox) {
        let Some(turn) = &mut self.turn else { return };
        turn.passes += 1;
        self.give();
        self.close(out);
    }

    /// A body has ended, and its turn is passed on.
    pub(crate) fn end_and_pass(&mut self, hold: Hold, out: &mut Outbox) {
        self.holds.retain(|other| *other != hold);
        self.pass(out);
    }

    /// The background releases the lock of a guard that was dropped, if no other call may have its turn.
    pub(crate) fn end_by_drop(&mut self, hold: Hold, lapsed: Fence, out: &mut Outbox) {
        self.holds.retain(|other| *other != hold);
        self.dropped(hold.owner, lapsed, out);
    }

    /// A body has ended, and its lock is released.
    pub(crate) fn end(&mut self, hold: Hold, out: &mut Outbox) {
        self.holds.retain(|other| *other != hold);
        let Hold { owner, has_turn, is_lost, .. } = hold;
        if !is_lost {
            return self.end_by_release(owner, out);
        }
        if has_turn {
            self.lost(owner, out);
        }
        out.push(release(owner));
        self.forget();
    }

    fn end_by_release(&mut self, owner: Owner, out: &mut Outbox) {
        let Some(turn) = self.turn.filter(|turn| turn.place.owner == owner) else {
            return out.push(letter(Request::Release { owner, next: None }, Purpose::End));
        };
        let is_open = turn.place.queries > 0 || turn.place.is_unsure;
        let may_land_late = is_open && self.rules.has(Rule::OvertakenLeaves);
        let request = Request::Release { owner, next: self.came_due() };
        if !self.rules.has(Rule::TurnLastsToAnswer) {
            self.end_turn(owner);
        }
        out.push(letter(request, Purpose::TurnsEnd { may_land_late }));
    }

    /// The release of a turn was answered, or not.
    pub(crate) fn released(
        &mut self,
        (owner, next): (Owner, Option<Owner>),
        may_land_late: bool,
        answer: Option<Answer>,
        out: &mut Outbox,
    ) {
        self.end_turn(owner);
        match (next, answer) {
            (Some(next), Some(answer @ Answer::Granted(_))) => self.answered(next, answer, out),
            (Some(next), answer) => {
                let is_leftover = self.query_ends(next, answer.is_some());
                let gives_back = is_leftover && self.rules.has(Rule::LeftoverIsGivenBack);
                out.extend(gives_back.then(|| leave(next)));
            }
            (None, _) => {}
        }
        out.extend(answer.is_none().then(|| release(owner)));
        let leaves = answer.is_some() || self.rules.has(Rule::UnansweredLeaves);
        out.extend((may_land_late && leaves).then(|| leave(owner)));
        self.forget();
    }

    fn lost(&mut self, owner: Owner, out: &mut Outbox) {
        self.end_turn(owner);
        if self.rules.has(Rule::LostLeaves) {
            out.push(leave(owner));
        }
    }

    fn end_turn(&mut self, owner: Owner) {
        let turn = self.turn.take_if(|turn| turn.place.owner == owner);
        self.keep_leftover(turn.map(|turn| turn.place));
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.waiting == 0
            && let Some(place) = self.place.take()
        {
            if self.rules.has(Rule::LastCallLeaves) {
                out.push(leave(place.owner));
            }
            self.keep_leftover(Some(place));
        }
        self.forget();
    }

    fn keep_leftover(&mut self, place: Option<Place>) {
        self.leftovers.extend(place.filter(|place| place.queries > 0));
    }

    fn is_leftover(&self, owner: Owner) -> bool {
        self.leftovers.iter().any(|place| place.owner == owner)
    }

    /// Says whether the attempt is a leftover.
    fn query_ends(&mut self, owner: Owner, is_answered: bool) -> bool {
        let is_leftover = self.is_leftover(owner);
        let turn = self.turn.as_mut().map(|turn| &mut turn.place);
        let mut places = self.place.iter_mut().chain(turn).chain(&mut self.leftovers);
        if let Some(place) = places.find(|place| place.owner == owner) {
            place.queries = place.queries.saturating_sub(1);
            place.is_unsure |= !is_answered;
            place.is_woken = false;
        }
        self.leftovers.retain(|place| place.queries > 0);
        is_leftover
    }

    /// A line that is over is given up.
    fn forget(&mut self) {
        if self.waiting == 0 && self.turn.is_none() && self.leftovers.is_empty() {
            self.was_answered = false;
        }
    }
}

fn letter(request: Request, purpose: Purpose) -> Letter {
    Letter { request, purpose, has_run: false }
}

fn query(owner: Owner) -> Letter {
    letter(Request::Enqueue(owner), Purpose::Query { has_failed: false })
}

pub(crate) fn release(owner: Owner) -> Letter {
    letter(Request::Release { owner, next: None }, Purpose::Background)
}

fn leave(owner: Owner) -> Letter {
    letter(Request::Leave(owner), Purpose::Background)
}
