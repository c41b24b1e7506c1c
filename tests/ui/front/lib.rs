//! A crate that re-exports the runtime by one line, and offers an attribute of its own by another, as the guide shows.

pub use lockable_runtime::*;

/// `#[distributed_lock]` for crates that depend on this one alone.
#[macro_export]
macro_rules! locked {
    (($($option:tt)*) $($function:tt)*) => {
        #[$crate::distributed_lock(crate = $crate, $($option)*)] $($function)*
    };
}
