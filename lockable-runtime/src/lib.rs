#![doc = include_str!("../README.md")]

mod acquire;
mod attribute;
mod backend;
mod background;
mod clock;
mod error;
mod global;
mod guard;
mod hold;
mod key;
mod lease;
mod locker;
mod options;
mod releaser;
mod telemetry;
mod testing;
mod token;

pub use error::{LockError, LockErrorKind};
pub use global::install;
pub use guard::LockGuard;
pub use key::LockKey;
pub use lease::Lease;
pub use locker::{LockRequest, Locker, LockerBuilder};
pub use releaser::shutdown;
pub use token::FencingToken;

#[cfg(feature = "macros")]
pub use lockable_macros::distributed_lock;

#[doc(hidden)]
pub mod __private {
    pub use crate::attribute::{
        Body, Call, FromLockError, IntoExpire, IntoLockKey, Lease, Part, Refused, Skip, hold,
    };
}

#[doc(hidden)]
pub mod __testing {
    pub use crate::testing::MemoryStore;
}
