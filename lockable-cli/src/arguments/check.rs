//! The arguments of `lockable check`.

use clap::{Args, ValueEnum};

/// Checks whether locks can work on the server, and what endangers them there.
///
/// All that is done with a lock is done once, with a lock of the check's own. Nothing is left behind. Rights that are
/// missing are named in one line that grants them.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Ends with 1 for a warning too, and not only for an error.
    #[arg(long)]
    pub(crate) strict: bool,
    /// What the user of the URL does with locks, and so which rights are looked at. A reader is asked for no more.
    #[arg(long = "as", value_name = "ROLE", default_value = "app")]
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Looks at locks: `ls` and `show`.
    Reader,
    /// Asks holders to stop and takes locks away too: `release`.
    Operator,
    /// A program that locks, and `run`.
    App,
}

impl From<Role> for lockable_runtime::check::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Reader => Self::Reader,
            Role::Operator => Self::Operator,
            Role::App => Self::App,
        }
    }
}
