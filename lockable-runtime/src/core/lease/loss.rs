//! Why a lease was lost.

use std::borrow::Cow;

use crate::core::types::error::LockError;
use crate::core::types::reason::Reason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Deadline,
    Absent,
    Taken,
    Forced,
    /// The process was forked, and the lock is its parent's. No state has this: it is known without one.
    Forked,
}

impl Loss {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Absent => "absent",
            Self::Taken => "taken",
            Self::Forced => "forced",
            Self::Forked => "forked",
        }
    }

    /// Explains the loss, with what the holder can do about it.
    ///
    /// `unrenewed` is why the last renewal failed, and `reason` the operator's.
    pub(super) fn why(
        self,
        renews: bool,
        unrenewed: Option<&LockError>,
        reason: Option<&Reason>,
    ) -> Cow<'static, str> {
        let why = match (self, unrenewed) {
            (Self::Deadline, Some(cause)) => {
                return format!("its lease ended, because it could not be renewed: {cause}").into();
            }
            (Self::Deadline, None) if reason.is_some() => {
                let what = "its lease ended, because it was not released when an operator asked";
                return reason.map_or_else(|| what.into(), |reason| reason.after(what).into());
            }
            (Self::Deadline, None) if renews => {
                "its lease ended before a renewal had a reply, as when the process was paused"
            }
            (Self::Deadline, None) => {
                "its lease ended; give it a longer `expire`, or `renew` it while the body runs"
            }
            (Self::Absent, _) => {
                "it has no holder any more, because it was deleted or evicted, or its server lost it"
            }
            (Self::Taken, _) => "another holder has it",
            (Self::Forced, _) => {
                let what = "an operator took it away";
                return reason.map_or_else(|| what.into(), |reason| reason.after(what).into());
            }
            (Self::Forked, _) => {
                "the process was forked while it was held, and the lock is its parent's"
            }
        };
        why.into()
    }
}
