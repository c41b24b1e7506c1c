// The definitions come first and win: on GitHub and in the registry a link of the README leads to a page on
// the web, here to the item. `tests/documents` runs the code of the README.
#![cfg_attr(not(doctest), doc = include_str!("../links.md"))]
#![cfg_attr(not(doctest), doc = include_str!("../README.md"))]
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `macros` | the attribute | on |
//! | `redis` | `redis://`, `redis-sentinel://`, `redis-cluster://` and `redis+unix://`; without it there is `memory://` alone | on |
//! | `tls` | `rediss://`, `rediss-sentinel://` and `rediss-cluster://`, through rustls with ring and the system's root certificates, whatever TLS other crates enable | off |
//! | `tower` | `lockable_runtime::tower::RequestIdLayer`, for axum, tonic and others | off |
//! | `metrics` | metrics (counters and histograms) through the `metrics` facade; see [`telemetry`] | off |
//! | `admin` | `Locker::admin`: listing locks, and asking their holders to stop; every holder obeys without it | off |
//! | `serde` | keys, fencing tokens and request ids in serialized data, and the report of a check as JSON | off |
#![allow(
    rustdoc::redundant_explicit_links,
    reason = "the texts' links are needed outside of rustdoc"
)]
// What needs a feature shows it on its page, on docs.rs and in `cargo xtask lint`.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "admin")]
pub mod admin;
#[cfg(not(feature = "admin"))]
#[expect(dead_code, unused_imports, unreachable_pub, reason = "the feature `admin` shows it")]
mod admin;
mod attribute;
mod backend;
mod background;
pub mod check;
pub mod fencing;
// Text alone. `tests/documents` runs its code, and doctests would need lines that readers see elsewhere.
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod hold;
mod holder;
mod lease;
mod locker;
mod releaser;
mod request_id;
#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
#[cfg(feature = "redis")]
mod simulation;
pub mod telemetry;
pub mod testing;
mod types;
mod waiters;
mod worker;

pub use hold::guard::LockGuard;
pub use holder::{HeldSince, Holder, HolderKind};
pub use lease::Lease;
pub use locker::{Locker, LockerBuilder, global::install, request::LockRequest};
pub use releaser::shutdown;
pub use request_id::RequestId;
#[cfg(feature = "tower")]
pub use request_id::tower;
pub use types::credentials::Credentials;
pub use types::error::{LockError, LockErrorKind};
pub use types::token::{FencingToken, FencingTokenError};
pub use types::{key::LockKey, options::OnLost};

/// Runs every call of a function, in every process, under one lock: the body runs only while its
/// lease is held.
///
/// The lock is not acquired: the body does not start. The lease is lost: the body stops, unless it may
/// [finish](#what-becomes-of-the-lease). Whatever happens, the lock is released, and the body's own
/// value or error passes through unchanged.
///
/// Put it on an `async fn`, on a function that returns a [boxed future](#boxed-futures), or on a
/// [sync function](#sync-functions); free, in an `impl` or in a trait.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = "…{name}…"`, `key("…{}…", expr, …)` | the key template, checked at compile time; rendered once a call, before the body and before anything is moved; logs and metrics call the lock [by it](telemetry#which-lock) | required |
/// | `key = expr` | exactly a [`LockKey`]; text is never converted into one | |
/// | `prefix = "…"` | replaces the locker's prefix, which is put before every key; a text without holes | the locker's, itself `"disLock:"` |
/// | `expire = 10`, `"1500ms"`, `"1m30s"`, or a [`Duration`](std::time::Duration) expression | how long the lease is; an integer is seconds, with a [warning](#warnings) where it looks like milliseconds; the least is 10 ms; an expression is evaluated once a call | the locker's, itself 10 s |
/// | `wait`, `wait = "3s"`, a duration as `expire` takes it | waits for a lock that another holder has: without a limit, or at most this long; see [below](#waiting) | one try |
/// | `fair` | with `wait`: the lock passes to another process after each holder, where one waits | off |
/// | `blocking` | with `wait`, on a sync function: this runs where blocking is welcome, as in `spawn_blocking`; see [there](#sync-functions) | off |
/// | `renew` | keeps the lease alive while the body runs | off |
/// | `max_hold = "5m"`, a duration as `expire` takes it | with `renew`, the longest hold, counted from the grant: then the body is dropped and the lock released | none |
/// | `min_hold = "3s"`, a duration as `expire` takes it | the shortest hold, counted from the grant, at most `expire`: a call that ends earlier returns at once, whatever its outcome, and leaves the lock taken for the rest | none |
/// | `on_lost = cancel`, `on_lost = finish` | what becomes of the body when the lease is lost: it is stopped, or it completes and gives its value | `cancel` |
/// | `on_busy = expr`, `on_busy = skip` | the value when another holder has the lock, or still has it at the limit of `wait`; `expr` sees all parameters, `skip` is `()`, `None`, `Ok(())` or `Ok(None)` | by return type |
/// | `on_error = \|err\| expr` | the value for every other way of not finishing under the lock; sees its argument, statics and `Copy` parameters | by return type |
/// | `guard = name` | binds `name` in the body to its [`Lease`]: key, fencing token, remaining time, a [signal](Lease::ending_within) before its end | |
/// | `locker = expr` | which [`Locker`], such as `self.locks`; cloned, never borrowed across the body | the process-wide one, see [`install`] |
/// | `crate = ::path` | where `lockable_runtime` lives, for a crate that has it by a [re-export](#re-exports) | `::lockable_runtime` |
///
/// # Return types
///
/// A call whose body did not run, or was stopped, still has to return something:
///
/// | the function returns | it gives |
/// |---|---|
/// | `()` | nothing; an event says why |
/// | `Option<T>` | `None`; an event says why |
/// | `Result<T, E>` where `E: From<LockError>` | `Err` |
/// | anything else | what `on_busy` and `on_error` say; both are required, or `on_error` alone beside `wait` without a limit |
///
/// A busy lock is an info event that names the key; at the limit of `wait` it is a warning. A failure that the return type has no place for
/// is an error event: nothing fails in silence.
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
/// A hole `{name}` takes a parameter, `{self}` or a constant in capitals by its [`Display`](std::fmt::Display);
/// anything else is an argument of `key("…", …)`. For one template, different values give different
/// keys, whatever they contain: in an inserted value `%`, `:`, `{`, `}`, white space and control
/// characters are percent-encoded, and so is the first character of the text after the hole when
/// another hole follows. Ordinary ids are unchanged. Therefore two holes with nothing between them, a
/// `%` in the template and format specs such as `{id:?}` are compile errors. `{{` and `}}` stand for
/// braces, which a key may have only as a hash tag: `"{{user}}:{id}"`.
///
/// The arguments are computed at each call, before the lock is asked for. In an async function, or one that
/// returns a boxed future, they may await: the lock is not held meanwhile, its lease starts later, and what
/// they read can have changed when the body runs.
///
/// A value that displays as nothing, or a whole key over 1 KiB, is an
/// [invalid key](LockErrorKind::InvalidKey) at run time.
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
/// Some keys compile and are probably not what was meant. They give a warning, and `key("…")` says that the
/// text is meant:
///
/// | key | what is in it | what to write |
/// |---|---|---|
/// | `"order:{{id}}"` | `order:{id}`: every call shares one lock | `"order:{id}"`, or `key("order:{{id}}")` |
/// | `"order:id"`, with a parameter `id` | `order:id`: every call shares one lock | `"order:{id}"`, or `key("order:id")` |
/// | `"order:${id}"`, `"order:#{id}"` | the sign, then the value: `order:$7` | `"order:{id}"`, or `key("order:${id}")` |
///
/// # Warnings
///
/// Some options compile and are hardly what was meant. The warning is rustc's `deprecated`, at the value:
///
/// | written | what it does | the same without a warning |
/// |---|---|---|
/// | `expire = 60000`, or any option with a number of seconds that is a multiple of 1000 | a lease of 16 h 40 min | `expire = "60s"`, or `"60000s"` |
/// | `min_hold = "30s"` without `expire` | with a lease of 10 s, which is the default, every call fails | `expire = "30s", min_hold = "30s"` |
/// | `on_busy` beside `wait` without a limit | nothing: the call waits until the lock is free | no `on_busy`, or `wait = "3s"` |
///
/// # Waiting
///
/// The attribute tries once, unless it has `wait`; [`LockRequest::acquire`] always waits. With `wait`, the
/// call is in a queue until its turn comes, or until its limit, and nothing polls meanwhile. Calls of one process run in the order of arrival. Processes take
/// turns: a turn is one holder, and those of its process who get the lock from it, at most sixteen and within
/// five milliseconds; with `fair` it is one holder. A call whose future is dropped leaves the queue at once.
/// What bounds the waiting when a process dies or a message is lost: [waiting](crate::guide::waiting).
///
/// A call that gave up found the lock busy: `on_busy` answers for it, `None` and `()` mean it too, and as an
/// `Err` it is [`is_wait_limit_reached`](LockError::is_wait_limit_reached). Where the server gave
/// no answer, the lock may be free: that is a failure and not busy, so `on_error` answers. The limit counts from
/// the start of the call and never cuts its first try short; a limit that is computed, and is zero, is
/// one try, or busy at once beside other calls of its locker. The lease begins when the wait ends.
///
/// ```
/// # use std::time::Duration;
/// # use lockable_runtime::{LockError, Locker, distributed_lock};
/// #[distributed_lock(key = "stock:{sku}", wait = "50ms", locker = locks)]
/// async fn sell(locks: &Locker, sku: &str) -> Result<usize, LockError> {
///     Ok(sku.len())
/// }
///
/// # async fn example() -> Result<(), LockError> {
/// let locks = Locker::connect("memory://").await?;
/// let other = locks.lock("stock:shirt").acquire().await?;
/// assert!(sell(&locks, "shirt").await.unwrap_err().is_wait_limit_reached());
///
/// let (sold, released) = tokio::join!(sell(&locks, "shirt"), other.release());
/// assert_eq!(sold?, 5);
/// # released
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
///
/// # What becomes of the lease
///
/// Without `renew` a body has `expire` to end in, and is stopped midway then. With it, the lease ends
/// only when the body does, when a renewal finds that the lock is gone, when none is answered until the
/// deadline, or after `max_hold`. Then, and when an operator asks the holder to stop, the body is not polled any more,
/// and the call gives an error:
///
/// | what happened | the error |
/// |---|---|
/// | the lease was lost, and the body was stopped | [`is_lost`](LockError::is_lost) |
/// | the lease was lost, and the body completed before it could be stopped | both that and [`is_body_finished`](LockError::is_body_finished) |
/// | `max_hold` was over | [`is_max_hold_reached`](LockError::is_max_hold_reached) |
/// | an operator asked the holder to stop | [`is_revoked`](LockError::is_revoked) |
/// | `max_hold` was zero, or `min_hold` longer than `expire`, and the body did not run | [`InvalidOption`](crate::LockErrorKind::InvalidOption) |
///
/// With `on_lost = finish` a body that has started completes: its value is returned, an error event
/// names the key, and [`is_lost`](Lease::is_lost) of the guard is true. Another holder may be at work
/// meanwhile, so it is for work that its [fencing token](FencingToken), or its nature, makes harmless.
///
/// With `min_hold`, every other call within that time finds the lock busy. So a job that several
/// machines trigger runs once, although their clocks differ by nearly as much.
///
/// # Calls inside of the body
///
/// A call for the key that the calling body holds itself could only wait for its own end. It fails at
/// once, with `wait` too, and [`is_held_by_caller`](LockError::is_held_by_caller) holds: in a recursion, through another
/// function, and between async, sync and boxed ones. `on_busy` is not asked. Siblings in `join!` and
/// `select!`, and tasks that the body spawns, are other callers.
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
/// #[distributed_lock(key = "report:{day}", expire = "1m", renew, max_hold = "2h", on_lost = finish)]
/// async fn report(day: u32) -> Option<u32> {
///     Some(day)
/// }
///
/// #[distributed_lock(key = "remind", renew, min_hold = 5, on_lost = cancel)]
/// async fn remind_everybody() {}
///
/// #[distributed_lock(key = "ticket:{id}", wait = "3s", fair)]
/// async fn take(id: u64) -> Option<u64> {
///     Some(id)
/// }
///
/// #[distributed_lock(key = "menu", wait, blocking)]
/// fn print_menu() {}
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
/// // For a crate that has this one by a re-export: `crate = ::shop::locks`.
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
/// With `wait` it may block for long, so it matters where it is called:
///
/// | called | it |
/// |---|---|
/// | outside of any runtime | waits |
/// | anywhere in a multi-thread runtime | waits, and lets the runtime's other tasks run, as tokio's `block_in_place` does |
/// | in a current-thread runtime, also in its `spawn_blocking` | gives an error, [`InvalidOption`](crate::LockErrorKind::InvalidOption), and does not run the body: on the runtime's own thread it would keep the holder from ever releasing, and the two cannot be distinguished |
/// | the same, with the option `blocking` | waits: the option says that this is `spawn_blocking`, or another thread that may block |
///
/// Inside of a `LocalSet` on a multi-thread runtime it gives the same error.
///
/// A call on the own thread of a current-thread runtime may take one command deadline longer, 1 s by
/// default, and find the lock busy, where an async call for the same key was dropped there just before: the
/// answer to that one, and what it was granted, comes over a connection of the runtime that the call blocks.
///
/// Nothing can stop a sync body, so `on_lost = cancel` is a compile error there. When its lease is
/// lost, the call gives an error for which both [`is_lost`](LockError::is_lost) and
/// [`is_body_finished`](LockError::is_body_finished) hold, after the body has ended; with `on_lost = finish` it
/// gives the body's value, and an error event. Until then [`is_held`](Lease::is_held) of the guard
/// says so: ask it before each step that matters.
///
/// `renew` keeps the lease alive from the thread of this crate, however long the body blocks its own.
/// `max_hold` ends that: `is_held` is false from then on, and the lock is lost when its last lease is
/// over. A body that ends before gives its value. When an operator asks the holder to stop, `is_held` is false, too, and
/// the lease is renewed until the body has ended.
///
/// ```
/// # use lockable_runtime::{LockError, Locker, distributed_lock};
/// #[distributed_lock(key = "rebuild:{name}", renew, max_hold = "10m", locker = locks, guard = lock)]
/// fn rebuild(locks: &Locker, name: &str) -> Result<usize, LockError> {
///     let built = name.len();
///     if !lock.is_held() {
///         return Ok(0);
///     }
///     Ok(built)
/// }
///
/// assert_eq!(rebuild(&Locker::in_memory(), "menu")?, 4);
/// # Ok::<(), LockError>(())
/// ```
///
/// A sync function that returns a future is a compile error, whatever the type is called: its body
/// would run after the release. Write it as an `async fn`, or return a boxed future. A `const fn` is
/// refused too.
///
/// # Re-exports
///
/// The attribute expands to paths of `::lockable_runtime`. In a crate that does not depend on it, and has the attribute
/// from another crate, the compiler says at the attribute:
///
/// ```text
/// error[E0432]: unresolved import `lockable_runtime`
///               could not find `lockable_runtime` in the list of imported crates
/// ```
///
/// Then `crate = ::shop` says that the crate `shop` has `pub use lockable_runtime::*;`. The line
/// `extern crate shop as lockable_runtime;` in `lib.rs` or `main.rs` says it once for the whole crate. And `shop` can
/// [offer a macro](crate::guide::faq#can-my-crate-re-export-it) that says it for all.
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
/// # Whose lock it is
///
/// A call inside of a [`RequestId::scope`] leaves the request's id in Redis, at the end of the lock's
/// value, in functions of every kind. A lock that is passed on within a [turn](#waiting) keeps the id of the
/// first in that turn. With the feature `tower` a layer makes the scope for each HTTP
/// request.
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
/// What a stopped body spawned is not stopped. A renewed body that hangs holds its lock for as long as
/// it hangs, or for `max_hold`. Over a network no lease can exclude two holders in every case; see
/// [limits](crate::guide::limits), and [`FencingToken`].
#[cfg(feature = "macros")]
pub use lockable_macros::distributed_lock;

#[doc(hidden)]
pub mod __private {
    pub use crate::attribute::{
        Call, EndsEarly, FromLockError, IntoExpire, IntoHold, IntoLockKey, IntoWait, KeyPart,
        Label, Lease, LeaseCell, Part, Refused, RefusedBesideOnBusy, RefusedBesideOnError,
        Returned, Run, RunsUnderTheLock, Skip, Value, absent, run, run_blocking,
        run_blocking_even_when_busy, start, value,
    };
    pub use crate::types::clock::Moment;
    #[cfg(feature = "redis")]
    pub use crate::types::clock::boot_time;
    pub use crate::types::written::Written;
}

#[cfg(feature = "__internals")]
#[doc(hidden)]
pub mod __internals {
    pub use crate::backend::MemoryStore;
    pub use crate::testing::internals::{GrantTo, Place, VerbAttempt, Verbs, fence_counter};
}
