//! A process: the line of its calls for the lock, as `waiters/line` keeps it, and those that hold the lock.

use std::mem;

use crate::queue::rules::{Rule, Rules};
use crate::queue::server::{Answer, Fence, Grant, Owner, PASSES, Request};

/// A request, and what the process does with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Letter {
    pub(crate) request: Request,
    pub(crate) purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Try,
    // A question of the line, which may have counted as failed already.
    Question { has_failed: bool },
    // The release of a turn, or of a lock that a try has found.
    TurnsEnd { may_overtake: bool },
    End,
    // The background leaves, or releases. It repeats that until it is answered.
    Background,
    // It was given up, and still lands.
    GivenUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) owner: Owner,
    pub(crate) questions: u8,
    is_unsure: bool,
    /// Of its newest grant that was dated.
    fence: Fence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    pub(crate) fence: Fence,
    pub(crate) passes: u8,
    is_dated: bool,
}

/// A turn that its call has not received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Given {
    pub(crate) owner: Owner,
    fence: Fence,
    is_dated: bool,
    /// Whether that call has claimed the lock.
    is_claim: bool,
}

/// A call that has the lock, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    pub(crate) fence: Fence,
    pub(crate) has_turn: bool,
    /// Whether its deadline is over.
    pub(crate) is_lost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) number: u8,
    /// The calls that have not begun.
    pub(crate) calls: u8,
    attempts: u8,
    pub(crate) trying: Option<Owner>,
    pub(crate) waiting: u8,
    /// Whether the first of those claims the lock.
    pub(crate) claims: bool,
    pub(crate) place: Option<Place>,
    pub(crate) turn: Option<Turn>,
    pub(crate) leftovers: Vec<Place>,
    pub(crate) given: Vec<Given>,
    pub(crate) holds: Vec<Hold>,
    was_answered: bool,
    /// Whether an answer has told the time of the server, by which a message is dated.
    knows_time: bool,
    rules: Rules,
}

/// What it sends.
pub(crate) type Outbox = Vec<Letter>;

impl Process {
    pub(crate) fn new(number: u8, calls: u8, rules: Rules) -> Self {
        Self {
            number,
            calls,
            attempts: 0,
            trying: None,
            waiting: 0,
            claims: false,
            place: None,
            turn: None,
            leftovers: Vec::new(),
            given: Vec::new(),
            holds: Vec::new(),
            was_answered: false,
            knows_time: false,
            rules,
        }
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
        out.push(Letter { request: Request::Try(owner), purpose: Purpose::Try });
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
            Some(Answer::Granted(fence)) if is_wanted && fence > lapsed => {
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

    /// The line asks, for a new place if it has none.
    pub(crate) fn ask(&mut self, out: &mut Outbox) {
        if let Some(owner) = self.came_due() {
            out.push(question(owner));
        }
    }

    fn came_due(&mut self) -> Option<Owner> {
        if self.waiting == 0 {
            return None;
        }
        if self.place.is_none() {
            let owner = self.draw();
            self.place = Some(Place { owner, questions: 0, is_unsure: false, fence: 0 });
        }
        let place = self.place.as_mut()?;
        place.questions += 1;
        Some(place.owner)
    }

    /// A question was answered.
    pub(crate) fn answered(&mut self, owner: Owner, answer: Answer, out: &mut Outbox) {
        self.knows_time = true;
        let is_leftover = self.question_ends(owner, true);
        let gives_back = is_leftover && self.rules.has(Rule::LeftoverIsGivenBack);
        match answer {
            Answer::Granted(_) if gives_back => out.push(release(owner)),
            Answer::Granted(fence) => {
                self.begin_or_repeat(Grant { owner, fence }, out);
            }
            _ if gives_back => out.push(leave(owner)),
            _ => {}
        }
        self.was_answered = true;
        self.forget();
    }

    /// A message says that the lock was granted.
    pub(crate) fn granted(&mut self, grant: Grant, out: &mut Outbox) {
        let is_known = self.begin_or_repeat(grant, out);
        if !is_known && self.rules.has(Rule::UnwantedIsReleased) {
            out.push(release(grant.owner));
        }
    }

    fn begin_or_repeat(&mut self, grant: Grant, out: &mut Outbox) -> bool {
        let is_repeated = self.turn.is_some_and(|turn| turn.place.owner == grant.owner);
        if is_repeated && self.rules.has(Rule::RepeatedIsKnown) {
            return true;
        }
        let Some(mut place) = self.place.take_if(|place| place.owner == grant.owner) else {
            return false;
        };
        if grant.fence <= place.fence {
            if place.questions > 0 {
                self.place = Some(place);
            } else {
                out.push(leave(place.owner));
            }
            return true;
        }
        if self.knows_time {
            place.fence = grant.fence;
        }
        self.was_answered = true;
        let (fence, is_dated) = (grant.fence, self.knows_time);
        let former = self.turn.replace(Turn { place, fence, passes: 0, is_dated });
        let lost = former.filter(|turn| turn.fence < fence && self.rules.has(Rule::FormerLeaves));
        out.extend(lost.map(|turn| leave(turn.place.owner)));
        self.give();
        self.keep_leftover(former.map(|turn| turn.place));
        true
    }

    /// A call receives its turn: it holds the lock, or claims it first.
    pub(crate) fn receive(&mut self, given: Given, lapsed: Fence, out: &mut Outbox) {
        let Given { owner, fence, is_dated, is_claim } = given;
        self.given.retain(|other| *other != given);
        let is_over = is_dated && fence <= lapsed;
        if is_over && is_claim {
            self.lost(owner, out);
            self.waiting += 1;
        } else if (!is_dated && self.rules.has(Rule::UndatedIsClaimed))
            || (is_over && self.rules.has(Rule::OverdueIsClaimed))
        {
            self.waiting += 1;
            self.claim(owner, out);
        } else {
            self.holds.push(Hold { owner, fence, has_turn: true, is_lost: false });
        }
    }

    fn claim(&mut self, owner: Owner, out: &mut Outbox) {
        self.claims = true;
        let may_ask = self.place.is_none();
        let Some(turn) = self.turn.take_if(|turn| may_ask && turn.place.owner == owner) else {
            return self.lost(owner, out);
        };
        self.place = Some(turn.place);
        self.ask(out);
    }

    /// The first call that waits has the turn now.
    fn give(&mut self) {
        let Some(turn) = self.turn else { return };
        self.waiting -= 1;
        self.given.push(Given {
            owner: turn.place.owner,
            fence: turn.fence + turn.passes,
            is_dated: turn.is_dated,
            is_claim: mem::take(&mut self.claims),
        });
    }

    /// A question brought no answer in time.
    pub(crate) fn failed(&mut self, owner: Owner, out: &mut Outbox) {
        let is_leftover = self.is_leftover(owner);
        if is_leftover {
            out.push(leave(owner));
        } else if !self.was_answered {
            (self.waiting, self.claims) = (0, false);
        }
        self.close(out);
    }

    /// Nothing waits for the answer of a question any more.
    pub(crate) fn gave_up(&mut self, owner: Owner) {
        self.question_ends(owner, false);
        self.forget();
    }

    /// The first call that waits is gone.
    pub(crate) fn left(&mut self, out: &mut Outbox) {
        self.waiting -= 1;
        self.claims = false;
        self.close(out);
    }

    /// A call is gone that has not received its turn.
    pub(crate) fn left_with(&mut self, given: Given, lapsed: Fence, out: &mut Outbox) {
        self.given.retain(|other| *other != given);
        if self.turn.is_some_and(|turn| turn.place.owner == given.owner) {
            self.returned(given.owner, lapsed, out);
        }
    }

    /// A call does not want its turn.
    fn returned(&mut self, owner: Owner, lapsed: Fence, out: &mut Outbox) {
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
        let turn = self.turn.filter(|turn| turn.place.owner == owner);
        let has_token = |turn: &Turn| turn.passes < PASSES || !self.rules.has(Rule::PassesEnd);
        let is_held = |turn: &Turn| turn.is_dated && turn.fence > lapsed;
        self.waiting > 0 && turn.is_some_and(|turn| has_token(&turn) && is_held(&turn))
    }

    /// The turn is the next call's.
    pub(crate) fn pass(&mut self, out: &mut Outbox) {
        let Some(turn) = &mut self.turn else { return };
        turn.passes += 1;
        self.give();
        self.close(out);
    }

    /// A body has ended, and its lock is released.
    pub(crate) fn end(&mut self, hold: Hold, out: &mut Outbox) {
        let Hold { owner, has_turn, is_lost, .. } = hold;
        if is_lost {
            if has_turn {
                self.lost(owner, out);
            }
            out.push(release(owner));
        } else if has_turn {
            self.end_of_turn(owner, out);
        } else {
            let request = Request::Release { owner, next: None };
            out.push(Letter { request, purpose: Purpose::End });
        }
        self.forget();
    }

    fn end_of_turn(&mut self, owner: Owner, out: &mut Outbox) {
        let turn = self.turn.filter(|turn| turn.place.owner == owner);
        let is_open = |turn: Turn| turn.place.questions > 0 || turn.place.is_unsure;
        let may_overtake = turn.is_some_and(is_open) && self.rules.has(Rule::OvertakenLeaves);
        let next = turn.and_then(|_| self.came_due());
        if !self.rules.has(Rule::TurnLastsToAnswer) {
            self.end_turn(owner);
        }
        let request = Request::Release { owner, next };
        out.push(Letter { request, purpose: Purpose::TurnsEnd { may_overtake } });
    }

    /// The release of a turn was answered, or not.
    pub(crate) fn released(
        &mut self,
        (owner, next): (Owner, Option<Owner>),
        may_overtake: bool,
        answer: Option<Answer>,
        out: &mut Outbox,
    ) {
        self.end_turn(owner);
        match (next, answer) {
            (Some(next), Some(answer @ Answer::Granted(_))) => self.answered(next, answer, out),
            (Some(next), answer) => {
                if self.question_ends(next, answer.is_some())
                    && self.rules.has(Rule::LeftoverIsGivenBack)
                {
                    out.push(leave(next));
                }
            }
            (None, _) => {}
        }
        if answer.is_none() {
            out.push(release(owner));
        } else if may_overtake {
            out.push(leave(owner));
        }
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
        self.leftovers.extend(place.filter(|place| place.questions > 0));
    }

    fn is_leftover(&self, owner: Owner) -> bool {
        self.leftovers.iter().any(|place| place.owner == owner)
    }

    /// Says whether the attempt is a leftover.
    fn question_ends(&mut self, owner: Owner, is_answered: bool) -> bool {
        let is_leftover = self.is_leftover(owner);
        let turn = self.turn.as_mut().map(|turn| &mut turn.place);
        let mut places = self.place.iter_mut().chain(turn).chain(&mut self.leftovers);
        if let Some(place) = places.find(|place| place.owner == owner) {
            place.questions = place.questions.saturating_sub(1);
            place.is_unsure |= !is_answered;
        }
        self.leftovers.retain(|place| place.questions > 0);
        is_leftover
    }

    /// A line that is over is given up.
    fn forget(&mut self) {
        if self.waiting == 0 && self.turn.is_none() && self.leftovers.is_empty() {
            self.was_answered = false;
        }
    }
}

fn question(owner: Owner) -> Letter {
    Letter { request: Request::Enqueue(owner), purpose: Purpose::Question { has_failed: false } }
}

fn release(owner: Owner) -> Letter {
    Letter { request: Request::Release { owner, next: None }, purpose: Purpose::Background }
}

fn leave(owner: Owner) -> Letter {
    Letter { request: Request::Leave(owner), purpose: Purpose::Background }
}
