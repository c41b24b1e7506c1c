//! The arguments of `lockable check`.

use clap::Args;

/// Checks whether locks can work on the server, and what endangers them there.
///
/// All that is done with a lock is done once, with a lock of the check's own. Nothing is left behind.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Ends with 1 for a warning too, and not only for an error.
    #[arg(long)]
    pub(crate) strict: bool,
}
