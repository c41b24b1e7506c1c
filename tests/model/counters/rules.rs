//! The rules that keep fencing tokens rising. A model leaves out one of them, to show what it is for.

/// What `design/fencing.md` says of fence counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// The seeding script raises the counter to the server's time.
    SeedReadsTime,
    /// It counts up where the counter is ahead of that.
    SeedNeverLowers,
    /// It leaves a TTL that is longer than its own.
    SeedNeverShortens,
    /// It raises the neighbour of the counter to the time as well, and no further.
    NeighbourIsNotAhead,
    /// It leaves a neighbour that is ahead of that.
    NeighbourIsNotLowered,
    /// The connection knows of the neighbour that it has come to that time.
    NeighbourIsCompared,
    /// It does not compare the neighbour with its own token, which may be ahead of the time.
    NeighbourIsComparedWithTime,
    /// A connection trusts the counters that it has seeded itself, and no other.
    EachConnectionSeeds,
    /// It trusts no counter for a lease that needs a longer TTL than it was seeded with.
    LongerLeaseSeeds,
    /// It trusts no counter for as long as that lives.
    MemoryEndsFirst,
    /// A new connection trusts no counter.
    NewConnectionForgets,
    /// A count that is not above what the connection had seen shows that the counter was lost.
    CountIsCompared,
    /// What counts is what it had seen when the request was sent.
    CountIsComparedAsSent,
    /// The second request, which seeds a lost counter, looks whether the lock was lost as well.
    SecondRequestLooks,
    /// A script reserves one token where the counter is ahead of the time.
    ReservesOneIfAhead,
    /// A script that passes over waiters who are gone reserves once.
    ReservesOncePerScript,
}

/// All rules but one, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) without: Option<Rule>,
}

impl Rules {
    pub(crate) const ALL: Self = Self { without: None };

    pub(crate) fn has(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
