#![doc = include_str!("../README.md")]

mod acquire;
mod attribute;
mod backend;
mod background;
mod blocking;
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

/// Runs every call of an async function, in every process, under one lock: the body runs only
/// while its lease is held.
///
/// The lock is not acquired: the body does not start. The lease is lost: the body stops. Whatever
/// happens, the lock is released, and the body's own value or error passes through unchanged.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = "…{name}…"`, `key("…{}…", expr, …)` | the key template, checked at compile time; rendered once a call, before the body and before anything is moved | required |
/// | `key = expr` | exactly a [`LockKey`]; text is never converted into one | |
/// | `prefix = "…"` | replaces the locker's prefix, which is put before every key | the locker's, itself `"disLock:"` |
/// | `expire = 10`, `"1500ms"`, `"1m30s"`, or a [`Duration`](std::time::Duration) expression | how long the lease is; an integer is seconds, the least is 10 ms; an expression is evaluated once a call | the locker's, itself 10 s |
/// | `on_busy = expr`, `on_busy = skip` | the value when another holder has the lock; `expr` sees all parameters, `skip` is `()`, `None`, `Ok(())` or `Ok(None)` | by return type |
/// | `on_error = \|err\| expr` | the value for every other way of not finishing under the lock; sees its argument, statics and `Copy` parameters | by return type |
/// | `guard = name` | binds `name` in the body to its [`Lease`]: key, fencing token, remaining time | |
/// | `locker = expr` | which [`Locker`], such as `self.locks`; cloned, never borrowed across the body | the process-wide one, see [`install`] |
/// | `crate = ::path` | where `lockable_runtime` lives, for re-exports | `::lockable_runtime` |
///
/// # Return types
///
/// A call whose body did not run, or was stopped, still has to return something:
///
/// | the function returns | it gives |
/// |---|---|
/// | `()` | nothing; an event tells why |
/// | `Option<T>` | `None`; an event tells why |
/// | `Result<T, E>` where `E: From<LockError>` | `Err` |
/// | anything else | what `on_busy` and `on_error` say; both are required |
///
/// A busy lock is an info event that names the key. A failure that the return type has no place for
/// is an error event: nothing is ever run unlocked, and nothing fails in silence.
///
/// ```
/// # use lockable_runtime::{LockError, distributed_lock};
/// #[distributed_lock(key = "count:{name}", on_busy = 0, on_error = |_| 0)]
/// async fn count(name: &str) -> usize {
///     name.len()
/// }
///
/// #[distributed_lock(key = "nightly", expire = "5m", on_busy = skip)]
/// async fn nightly() -> Result<(), LockError> {
///     Ok(())
/// }
/// ```
///
/// # Keys
///
/// A hole `{name}` takes a parameter, `{self}` or a constant by its [`Display`](std::fmt::Display);
/// anything else is an argument of `key("…", …)`. For one template, different values give different
/// keys, whatever they contain: in an inserted value `%`, `:`, `{`, `}`, white space and control
/// characters are percent-encoded, and so is the first character of the text after the hole when
/// another hole follows. Ordinary ids are unchanged. Therefore two holes with nothing between them, a
/// `%` in the template and format specs such as `{id:?}` are compile errors. `{{` and `}}` stand for
/// braces, which a key may have only as a hash tag: `"{{user}}:{id}"`.
///
/// A value that displays as nothing, or a whole key over 1 KiB, is an
/// [invalid key](LockError::is_invalid_key) at run time.
///
/// ```
/// # use lockable_runtime::{LockError, LockKey, distributed_lock};
/// # struct Item { sku: String }
/// const NIGHTLY: LockKey = LockKey::from_static("job:nightly");
///
/// #[distributed_lock(key("stock:{}:{region}", item.sku))]
/// async fn sell(item: &Item, region: &str) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// #[distributed_lock(key = NIGHTLY, prefix = "jobs:")]
/// async fn clean_up() -> Option<()> {
///     Some(())
/// }
/// ```
///
/// # What it becomes
///
/// ```text
/// let call = Call::new(key).expire(…);
/// match call.acquire().await {
///     Ok(guard) => hold(guard, body).await,   // reads the clock before every poll of the body
///     Err(error) => …,                        // by return type, on_busy, on_error
/// }
/// ```
///
/// The body is dropped before the lock is released. Parameters that the body does not use, other
/// than those named `_x`, are dropped after that.
///
/// # With other attributes
///
/// Attributes are expanded from the top, so what an attribute wraps around the body ends up inside of
/// what the ones below it wrap. With `#[tracing::instrument]` below this attribute the span includes
/// acquiring; above it, only the body. Two `#[distributed_lock]` on one function are refused. Commit a
/// database transaction inside the body, so that the next holder sees what it changed.
///
/// # What this does not guarantee
///
/// A body longer than `expire` is stopped midway. What it spawned is not stopped. Over a network no
/// lease can exclude two holders in every case; see the front page, and [`FencingToken`].
#[cfg(feature = "macros")]
pub use lockable_macros::distributed_lock;

#[doc(hidden)]
pub mod __private {
    pub use crate::attribute::{
        Body, Call, FromLockError, IntoExpire, IntoLockKey, Lease, Part, Refused, Skip, hold,
        hold_blocking,
    };
}

#[doc(hidden)]
pub mod __testing {
    pub use crate::testing::MemoryStore;
}

/// Longer texts about this crate.
pub mod _documentation {
    #[doc = include_str!("../DESIGN.md")]
    pub mod design {}
    #[doc = include_str!("../CHANGELOG.md")]
    pub mod changelog {}
}
