//! The rules of queueing. A model leaves out one of them, to show what it is for.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    // Of the scripts.
    /// A release ends its own hold, and no other's.
    ReleaseCompares,
    /// An attempt is in the queue once.
    JoinsOnce,
    /// An attempt that leaves, and was granted the lock meanwhile, has that handed off.
    LeaveEndsHold,
    /// What is handed the lock is taken out of the queue.
    HandOffTakesOut,
    /// A lock is handed off to a process that listens.
    HandOffIsHeard,
    /// It is handed off to the first in the queue.
    HeadIsFirst,
    /// A free lock that has a queue is for the first in it, and not for the attempt that asks.
    FreeLockIsTheHeads,
    /// What a release queues is behind all others.
    NextIsBehind,
    /// An attempt that asks finds its own lock.
    OwnLockIsFound,
    /// It makes a lock that was reserved for it last for the whole lease.
    QueryLengthens,
    /// So does a release that queues an attempt, and finds the lock reserved for that.
    ReleaseLengthens,
    /// Who finds the lock reserved is granted it with new fencing tokens.
    KeptTurnReserves,
    /// A grant reserves fencing tokens for the passes.
    ReservesPasses,
    // Of the line.
    /// A message makes no holder: it only wakes.
    MessageGrantsNothing,
    /// A line that is woken asks.
    WokenAsks,
    /// A lease counts from the sending of its request, and not from the answer.
    CountsFromSending,
    /// A grant that is answered once more does not end the turn that it began.
    RepeatedIsKnown,
    /// What a query finds that was under way when its place or turn ended is given back.
    LeftoverIsGivenBack,
    /// A turn is over when its release was answered, and not before.
    TurnLastsToAnswer,
    /// If a query may land behind the release, its attempt leaves once that was answered,
    OvertakenLeaves,
    /// or was given up.
    UnansweredLeaves,
    /// A lost attempt leaves, which an earlier query may have queued again.
    LostLeaves,
    /// So does one that its call does not want,
    ReturnedLeaves,
    /// and one whose turn a later grant of the lock has replaced.
    FormerLeaves,
    /// A turn is passed on as often as tokens are reserved.
    PassesEnd,
    /// A place leaves with the last call that waits.
    LastCallLeaves,
    /// Each attempt has a token of its own.
    TokenIsNew,
    /// The body ends with its lease.
    LossEndsBody,
    /// A try whose call has gone is released.
    TryIsGivenBack,
}

/// All rules but one, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) without: Option<Rule>,
}

impl Rules {
    pub(crate) const ALL: Self = Self { without: None };

    pub(crate) fn has(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
