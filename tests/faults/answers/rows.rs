//! What is expected of each answer.

use lockable_tests::Garble::{Cut, Huge, List, Many, Nested, Short, Text};
use lockable_tests::Host;

use super::given::Given::{
    self, Asks, AsksInVain, AsksSilence, BreakAfter, BreakBefore, Error, Garbled, Moved, Names,
    Split,
};
use super::given::TRYAGAIN;
use super::places::PLACES;
use super::places::Place::{
    self, Acquire, AskedRelease, AskedSet, Asking, Batch, Count, Enqueue, Inspect, Look, Release,
    ReleaseLost, Renew, Slots, Subscribe, Turn,
};

/// What is expected of an answer: in most places one thing, and in some another one.
pub(super) struct Row {
    pub(super) given: Given,
    pub(super) places: &'static [Place],
    most: &'static str,
    others: &'static [(&'static str, &'static [Place])],
}

impl Row {
    pub(super) fn expected(&self, place: Place) -> &'static str {
        let other = self.others.iter().find(|(_, places)| places.contains(&place));
        other.map_or(self.most, |(word, _)| word)
    }

    /// Whether the request is repeated until the command deadline, or until that of renewals.
    pub(super) fn is_long(&self, place: Place) -> bool {
        let ends_by_then = self.most == "late" && COUNTED.contains(&place);
        ends_by_then || self.expected(place) == "late" || self.given == AsksSilence
    }
}

/// `done` is what the verb is for, with a larger fencing token where it grants the lock. `fails` is an error at
/// once, and `late` one at the command deadline; both are of servers that are unavailable.
pub(super) const ROWS: [Row; 34] = [
    row(Moved(Host::Address), &PLACES, "done", &[]),
    row(Moved(Host::Empty), FEW, "done", &[]),
    row(Moved(Host::Nil), FEW, "done", &[]),
    row(Moved(Host::Unknown), FEW, "done", &[("fails", RENEWALS)]),
    row(Names("MOVED", 1), &PLACES, "done", &[]),
    // A new request seeds the counter of a slot that has moved.
    row(Names("MOVED", ALWAYS), &PLACES, "fails", &[("done", &[Count, Look, Subscribe, Slots])]),
    row(Error("MOVED 1 nowhere", 1), FEW, "done", &[("fails", &[Renew])]),
    row(Asks, &PLACES, "done", &[]),
    // One key is where the answer says; several may be apart.
    row(Names("ASK", 1), &PLACES, "done", &[("lost", &[Inspect])]),
    // The parts of those are other commands.
    row(AsksInVain, &PLACES, "fails", &[("done", &[Count, Enqueue, Subscribe, Slots])]),
    row(Split, &PLACES, "done", &[]),
    row(Error(TRYAGAIN, 1), &PLACES, "done", &[]),
    row(
        Error(TRYAGAIN, ALWAYS),
        &PLACES,
        "late",
        &[("done", &[Count, Enqueue, Subscribe, Slots]), ("fails", COUNTED)],
    ),
    row(Error(CLUSTERDOWN, 3), &PLACES, "done", &[("fails", RENEWALS)]),
    row(
        Error(CLUSTERDOWN, ALWAYS),
        &PLACES,
        "late",
        &[("done", &[Look, Subscribe, Slots]), ("fails", COUNTED)],
    ),
    row(Error(MASTERDOWN, 1), FEW, "done", &[("fails", RENEWALS)]),
    row(Error(MASTERDOWN, ALWAYS), FEW, "late", &[("done", &[Slots]), ("fails", COUNTED)]),
    row(Error(LOADING, 1), FEW, "done", &[("fails", RENEWALS)]),
    row(Error(LOADING, ALWAYS), FEW, "late", &[("done", &[Slots]), ("fails", COUNTED)]),
    row(Error(READONLY, 1), &PLACES, "done", &[("unsure", &[ReleaseLost]), ("fails", &[Batch])]),
    row(Error(READONLY, ALWAYS), FEW, "late", &[("done", &[Slots]), ("fails", COUNTED)]),
    row(Error(NOREPLICAS, 1), &PLACES, "fails", &[("done", &[Subscribe, Slots])]),
    row(Error(CROSSSLOT, 1), FEW, "fails", &[("done", &[Slots])]),
    row(BreakBefore(1), &PLACES, "done", &[("unsure", &[ReleaseLost])]),
    row(BreakAfter, &PLACES, "done", &[("unsure", &[Release, ReleaseLost, AskedRelease])]),
    row(
        BreakBefore(ALWAYS),
        &PLACES,
        "late",
        &[("done", &[Count, Look, Subscribe, Slots]), ("fails", COUNTED)],
    ),
    row(Garbled(Text), &PLACES, "done", ODD),
    row(Garbled(List), &PLACES, "done", ODD),
    row(Garbled(Short), LISTS, "done", &[("fails", &[Batch])]),
    row(Garbled(Cut), &PLACES, "done", NO_REPLY),
    row(Garbled(Huge), &PLACES, "done", NO_REPLY),
    row(Garbled(Many), &PLACES, "done", NO_REPLY),
    row(Garbled(Nested), &PLACES, "done", NO_REPLY),
    row(AsksSilence, RENEWALS, "fails", &[]),
];

const fn row(
    given: Given,
    places: &'static [Place],
    most: &'static str,
    others: &'static [(&'static str, &'static [Place])],
) -> Row {
    Row { given, places, most, others }
}

const ALWAYS: usize = usize::MAX;

/// Where an answer is given that means what another one means.
const FEW: &[Place] = &[Acquire, Release, Enqueue, Renew, AskedSet, Slots];

/// Where the reply is a list.
const LISTS: &[Place] = &[Turn, Enqueue, Renew, Batch, Inspect, Subscribe, Slots];

/// What is expected where the reply is of another kind: the request is sent again on another connection.
const ODD: &[(&str, &[Place])] =
    &[("unsure", &[Release, ReleaseLost, AskedRelease]), ("fails", &[Batch])];

/// What is expected where the server has done what was asked for, and its reply is none.
const NO_REPLY: &[(&str, &[Place])] = &[("unsure", &[Release, ReleaseLost, AskedRelease])];

/// They are not sent again within the deadline, because leases are renewed again anyway.
const RENEWALS: &[Place] = &[Renew, Batch];

/// Those, and requests that are redirected each time, which ends after a few: how long that takes says nothing.
pub(super) const COUNTED: &[Place] = &[Renew, Batch, AskedSet, AskedRelease, Asking];

const CLUSTERDOWN: &str = "CLUSTERDOWN The cluster is down";
const MASTERDOWN: &str = "MASTERDOWN Link with MASTER is down";
const LOADING: &str = "LOADING Redis is loading the dataset in memory";
const READONLY: &str = "READONLY You can't write against a read only replica.";
const NOREPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";
const CROSSSLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
