use std::fmt;

use super::{Lease, Status};

impl Lease {
    /// Writes the lock in one line, for [`Debug`](fmt::Debug).
    ///
    /// All is read before anything is written, so a slow writer holds up no renewal. A deadline that has passed is not
    /// noted: the event of that loss could be written inside of another one.
    ///
    /// See "Why does `Debug` of a guard show so little?" in DESIGN.md.
    pub(crate) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = || self.state().look(self.context().backend.now());
        let is_held = !self.context().is_inherited() && matches!(status(), Status::Held(_));
        f.debug_struct(name)
            .field("key", &self.shown_key().text())
            .field("fencing_token", &u64::from(self.fencing_token()))
            .field("is_held", &is_held)
            .finish()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("Lease", f)
    }
}
