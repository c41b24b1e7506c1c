//! How this process ends.

/// How this process ends, where nothing went wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(u8),
    /// As its command did: a shell ends a script only if what it runs has died by Ctrl-C, and did not just end.
    Signal(i32),
}
