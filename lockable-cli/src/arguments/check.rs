//! The arguments of `lockable check`.

use clap::{Args, ValueEnum};

use super::help::{examples, guide};

/// Checks whether locks can work on the server, and what endangers them there.
///
/// The check performs every operation of a lock once, with a lock of its own, and leaves nothing behind. For missing
/// rights it prints one line that grants them.
#[derive(Args, Clone, Copy, Debug)]
#[command(before_help = examples(EXAMPLES), after_help = guide("", "which_redis/"))]
pub(crate) struct Check {
    /// Exits with 1 for a warning too, and not only for an error.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The role of the URL's user, which decides which rights are checked; for a reader, nothing else is.
    #[arg(long = "as", value_name = "ROLE", default_value = "app")]
    pub(crate) role: Role,
}

const EXAMPLES: [&str; 2] = [
    "lockable check --url rediss://app@redis.internal:6379 --password-file /run/secrets/redis",
    "lockable check --strict --as reader",
];

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Role {
    /// Looks at locks: `ls`, `show` and `wait`.
    Reader,
    /// Asks holders to stop, takes locks away and pauses them too: `release`, `pause` and `resume`.
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
