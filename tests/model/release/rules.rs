//! The rules of releasing. A model leaves out one of them, to show what it is for.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// A waiter that queues behind a native token marks it, in the same step.
    WaitersMark,
    /// So does a waiter whose user may not run the native command.
    EveryWaiterMarks,
    /// It marks no plain token: who has that may not know the mark.
    PlainIsUnmarked,
    /// The mark keeps the end of the lease.
    MarkKeepsEnd,
    /// A waiter asks again, and marks what it finds then.
    WaitersAskAgain,
    /// A token that comes from the queue is plain.
    QueuedIsPlain,
    /// The native delete compares before it deletes.
    DeleteCompares,
    /// What is compared is the whole value, with the mark.
    DeleteComparesMark,
    /// If the native delete has not deleted, or was refused, the script decides.
    ScriptDecides,
    /// `release.lua` takes a marked token for the token.
    ReleaseKnowsMark,
    /// So do renewals and looks.
    RenewalKnowsMark,
    /// So does a call that reads the answer to its `SET NX GET`.
    TryKnowsMark,
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
