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

/// Runs every call of a function, in every process, under one lock: the body runs only while its
/// lease is held.
///
/// The lock is not acquired: the body does not start. The lease is lost: the body stops. Whatever
/// happens, the lock is released, and the body's own value or error passes through unchanged.
///
/// Put it on an `async fn`, on a function that returns a [boxed future](#boxed-futures), or on a
/// [sync function](#sync-functions); free, in an `impl` or in a trait.
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
/// A key that has the name of a parameter in doubled braces, `"order:{{id}}"`, gives a warning: every
/// call would share one lock. Where the text is meant, say so by `key("order:{{id}}")`.
///
/// # One example for each option
///
/// ```
/// use std::time::Duration;
/// use lockable_runtime::{LockError, LockKey, Locker, distributed_lock};
///
/// const NIGHTLY: LockKey = LockKey::from_static("nightly");
/// const LEASE: Duration = Duration::from_secs(90);
/// # struct Stock { region: String, locks: Locker }
/// # struct Item { sku: String }
///
/// #[distributed_lock(key = "order:{id}", expire = 30)]
/// async fn settle(id: u64) {}
///
/// #[distributed_lock(key = NIGHTLY, prefix = "jobs:", expire = "1m30s", on_busy = skip)]
/// async fn nightly() -> Result<(), LockError> {
///     Ok(())
/// }
///
/// #[distributed_lock(key = "visits", expire = LEASE, on_busy = 0, on_error = |_| 0)]
/// async fn visits() -> u64 {
///     7
/// }
///
/// impl Stock {
///     #[distributed_lock(key("stock:{}:{}", item.sku, self.region), locker = self.locks, guard = lock)]
///     async fn sell(&self, item: &Item) -> Result<u64, LockError> {
///         // What the lock protects refuses a smaller token than it has seen.
///         Ok(lock.fencing_token().into())
///     }
/// }
///
/// // For a crate that re-exports this one: `crate = ::shop::locks`.
/// #[distributed_lock(key = "elsewhere", crate = ::lockable_runtime)]
/// async fn elsewhere() {}
/// ```
///
/// # Sync functions
///
/// The calling thread waits for the lock and, at the end, for its release. The requests themselves
/// run on a thread of this crate, so such a function can be called anywhere: outside of any runtime,
/// in `spawn_blocking`, and inside a runtime of either kind, where it blocks its thread as every sync
/// function does.
///
/// Nothing can stop a sync body. When its lease is lost, the call gives an error for which both
/// [`is_lost`](LockError::is_lost) and [`is_completed`](LockError::is_completed) hold, after the body
/// has ended; until then [`is_held`](Lease::is_held) of the guard tells. Ask it before each step that
/// matters, or take a long `expire`.
///
/// ```
/// # use lockable_runtime::{LockError, Locker, distributed_lock};
/// #[distributed_lock(key = "rebuild:{name}", locker = locks, guard = lock)]
/// fn rebuild(locks: &Locker, name: &str) -> Result<usize, LockError> {
///     let built = name.len();
///     if !lock.is_held() {
///         return Ok(0);
///     }
///     Ok(built)
/// }
///
/// let locks = Locker::builder().url("memory://").connect_lazy()?;
/// assert_eq!(rebuild(&locks, "menu")?, 4);
/// # Ok::<(), LockError>(())
/// ```
///
/// A sync function that returns a future is a compile error, whatever the type is called: its body
/// would run after the release. Write it as an `async fn`, or return a boxed future. A `const fn` is
/// refused too.
///
/// # Boxed futures
///
/// A function that returns `Pin<Box<dyn Future<Output = T>>>`, with or without `Send` and a lifetime,
/// `BoxFuture<'_, T>` or `LocalBoxFuture<'_, T>` is locked like an `async fn` that returns `T`: nothing
/// happens before the first poll, not even the function's own statements, and the future is dropped
/// before the lock is released. `T` is what `on_busy` and `on_error` give.
///
/// ```
/// # use std::{future::Future, pin::Pin};
/// # use lockable_runtime::distributed_lock;
/// #[distributed_lock(key = "order:{id}")]
/// fn settle<'a>(id: &'a str) -> Pin<Box<dyn Future<Output = Option<usize>> + Send + 'a>> {
///     Box::pin(async move { Some(id.len()) })
/// }
/// ```
///
/// The attribute therefore works inside `#[async_trait]`, on methods of the trait and of the impl:
///
/// ```
/// # use async_trait::async_trait;
/// # use lockable_runtime::{LockError, Locker, distributed_lock};
/// # struct Nightly { name: String, locks: Locker }
/// # #[async_trait]
/// # trait Job { async fn run(&self, day: u32) -> Result<u32, LockError>; }
/// #[async_trait]
/// impl Job for Nightly {
///     #[distributed_lock(key("job:{}:{day}", self.name), locker = self.locks)]
///     async fn run(&self, day: u32) -> Result<u32, LockError> {
///         Ok(day)
///     }
/// }
/// ```
///
/// There a key cannot name a part of a destructured parameter; give the parameter a name.
///
/// # What it becomes
///
/// ```text
/// let call = Call::new(key).expire(…);
/// match run(call, async move { body }).await {   // reads the clock before every poll of the body
///     Ok(value) => value,
///     Err(error) => …,                           // by return type, on_busy, on_error
/// }
/// ```
///
/// The body is dropped before the lock is released. Parameters that the body does not use, other
/// than those named `_x`, are dropped after that.
///
/// # With other attributes
///
/// Attributes are expanded from the top, so what an attribute wraps around the body ends up inside of
/// what the ones below it wrap. Two `#[distributed_lock]` on one function are refused. Commit a
/// database transaction inside the body, so that the next holder sees what it changed.
///
/// | attribute | above this one | below this one |
/// |---|---|---|
/// | `#[tracing::instrument]` | the span is only the body | the span includes acquiring |
/// | `#[tokio::main]`, `#[tokio::test]` | a sync function is left, which holds the lock around the whole runtime | an async body under its lock, inside the runtime |
/// | `#[test]` | works | works |
/// | `#[rstest]` | the lock moves to the single cases, which have no parameters: `key` and `guard` cannot name any | works, keys name the parameters |
/// | `#[axum::debug_handler]` | works | works |
/// | `#[async_recursion]` | works | works |
/// | `#[async_trait]` | on the `impl` or the trait | not on an `impl`: this attribute is for functions |
/// | `#[serial]` | the body moves into a function of its own, where `guard` has no name | works |
/// | `#[cached]` | does not work: it puts this attribute on two functions, one inside the other | a hit takes no lock |
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
        Call, FromLockError, Granted, IntoExpire, IntoLockKey, Lease, Part, Refused, Returned, Run,
        RunsUnderTheLock, Skip, Value, absent, run, run_blocking, run_blocking_even_when_busy,
        start, value,
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
