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
//! | `tls` | `rediss://`, `rediss-sentinel://` and `rediss-cluster://`, through rustls and the system's root certificates, with [ring](crate::guide::which_redis#whose-cryptography) unless the program has chosen another provider | off |
//! | `tls-no-provider` | the same without ring: for a library, and for a program that has a provider | off |
//! | `tower` | `lockable_runtime::tower::RequestIdLayer`, for axum, tonic and others | off |
//! | `metrics` | metrics (counters and histograms) through the `metrics` facade; see [`telemetry`] | off |
//! | `admin` | `Locker::admin`: listing locks, and asking their holders to stop; holders stop on request without it too | off |
//! | `serde` | keys, fencing tokens, tickets and request ids in serialized data, and the report of a check as JSON | off |
#![allow(
    rustdoc::redundant_explicit_links,
    reason = "the texts' links are needed outside of rustdoc"
)]
// What needs a feature shows it on its page, on docs.rs and in `cargo xtask lint`.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(target_family = "wasm")]
compile_error!(
    "lockable-runtime needs threads and sockets, which WebAssembly lacks: leave it out for this target \
     (`[target.'cfg(not(target_family = \"wasm\"))'.dependencies]`), and lock in a service that the program calls"
);

#[cfg_attr(
    not(feature = "redis"),
    allow(dead_code, reason = "the store in memory needs less of it")
)]
mod core;
#[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "the store in memory finds little"))]
mod findings;
// Text alone. `tests/documents` runs its code, and doctests would need lines that readers see elsewhere.
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod open;
#[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "the store in memory finds little"))]
mod operators;
#[cfg(feature = "redis")]
mod redis;
#[cfg(test)]
#[cfg(feature = "redis")]
mod simulation;
pub mod testing;

pub use self::core::attribute::AfterRelease;
pub use self::core::hold::guard::LockGuard;
pub use self::core::hold::set::{Leases, LockSet};
pub use self::core::hold::ticket::IntoTicketError;
pub use self::core::holder::{HeldSince, Holder, HolderKind};
pub use self::core::lease::Lease;
pub use self::core::locker::{
    Locker, LockerBuilder,
    global::install,
    lead::{Leadership, Leading},
    request::LockRequest,
};
pub use self::core::releaser::shutdown;
pub use self::core::request_id::RequestId;
#[cfg(feature = "tower")]
pub use self::core::request_id::tower;
pub use self::core::types::credentials::Credentials;
pub use self::core::types::error::{LockError, LockErrorKind};
#[cfg(feature = "tls-no-provider")]
pub use self::core::types::pem::Pem;
pub use self::core::types::remedy::Remedy;
pub use self::core::types::secret::Secret;
pub use self::core::types::ticket::{Ticket, TicketError};
pub use self::core::types::token::{FencingToken, FencingTokenError};
pub use self::core::types::written::parse_duration;
pub use self::core::types::{key::LockKey, options::OnLost};
pub use self::core::{fencing, telemetry};
#[cfg(feature = "admin")]
pub use self::operators::admin;
pub use self::operators::check;

/// Runs every call of a function, in every process, under one lock: the body runs only while its lease is held.
///
/// If the lock is not acquired, the body does not start. If the lease is lost, the body stops, unless it may
/// [finish](#when-the-lease-ends). The body's own value or error passes through unchanged.
///
/// Put it on an `async fn`, on a function that returns a [boxed future](#boxed-futures), or on a [sync
/// function](#sync-functions); free, in an `impl` or in a trait.
///
/// # What this does not guarantee
///
/// - Over a network no lease can exclude two holders in every case; see [limits](crate::guide::limits), and
///   [`FencingToken`].
/// - Tasks that a stopped body has spawned are not stopped, and work that a returned value does later is [not under the
///   lock](#what-must-not-leave-the-body).
/// - A renewed body that hangs holds its lock for as long as it hangs, or for `max_hold`.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = "…{name}…"`, `key("…{}…", expr, …)` | the key template, checked at compile time, rendered before the body; it [labels](telemetry#which-lock) logs and metrics | required |
/// | `key = expr` | a [`LockKey`]; a text is never converted into one | |
/// | `keys = ["…{name}…", "…"]` | [several locks](#several-keys), all or none; 2 to 16 templates | |
/// | `keys = expr` | the same for 1 to 64 keys, a number known at run time: a `Vec<LockKey>`, `[LockKey; N]` or `&[LockKey]`, made by [`lock_key!`] | |
/// | `prefix = "…"` | replaces the locker's prefix, with which every key starts; a text without holes | the locker's, itself `"disLock:"` |
/// | `expire = 10`, `"1500ms"`, `"1m30s"`, or a [`Duration`](std::time::Duration) expression | the length of the lease, at least 10 ms; an integer is seconds; an expression is evaluated once for each call | the locker's, itself 10 s |
/// | `wait`, `wait = "3s"`, a duration as `expire` takes it | [waits](#waiting) for a busy lock, without a limit or at most this long | one try |
/// | `fair` | with `wait`: passes the lock to another process after each holder, if one waits | off |
/// | `blocking` | with `wait`, on a sync function: states that the [calling thread may block](#sync-functions), as in `spawn_blocking` | off |
/// | `permits = 3`, an integer or an expression of one, from 1 to 64 | the number of calls that [run at a time](#permits), in all processes | one |
/// | `permits = all(3)` | all permits at once: waits until the other calls are out, and lets none in | |
/// | `renew` | keeps the lease alive while the body runs | off |
/// | `max_hold = "5m"`, a duration as `expire` takes it | with `renew`: the longest hold, measured from the grant; then the body is dropped and the lock released | none |
/// | `min_hold = "3s"`, a duration as `expire` takes it | the shortest hold, measured from the grant, at most `expire`; a call that ends earlier returns at once, whatever its outcome, and leaves the lock taken for the rest | none |
/// | `once = "20h"`, a duration as `expire` takes it | after a call that ended well, with `Ok`, `Some` or `()`, [no other call runs its body](#once) for so long, measured from the grant | off |
/// | `on_lost = cancel`, `on_lost = finish` | whether a lost lease stops the body, or lets it complete and return its value | `cancel` |
/// | `on_busy = expr`, `on_busy = skip` | the value when another holder has the lock, or still has it at the limit of `wait`; `expr` sees all parameters, `skip` is `()`, `None`, `Ok(())` or `Ok(None)` | by return type |
/// | `on_error = \|err\| expr` | the value for every other failure to finish under the lock; sees its argument, statics and `Copy` parameters | by return type |
/// | `guard = name` | binds `name` in the body to its [`Lease`]: key, fencing token, remaining time, and a [signal](Lease::ending_within) before its end; with `keys` or `permits = all(…)`, to the [`Leases`] of all | |
/// | `locker = expr` | the [`Locker`], such as `self.locks`; cloned, never borrowed across the body | the process-wide one, see [`install`] |
/// | `crate = ::path` | the path of `lockable_runtime`, for a crate that has it by a [re-export](#re-exports) | `::lockable_runtime` |
///
/// A literal that is wrong for its option is a compile error. A wrong value of an expression is an [invalid
/// option](LockErrorKind::InvalidOption) at each call, and the body never runs: check what an operator sets when the
/// program starts, by [`LockRequest::check`] of a request with the same values.
///
/// # Return types
///
/// | return type | a call whose body did not run, or was stopped, returns |
/// |---|---|
/// | `()` | nothing; an event states the reason |
/// | `Option<T>` | `None`; an event states the reason |
/// | `Result<T, E>` where `E: From<LockError>` | `Err` |
/// | any other | the value of `on_busy` or `on_error`; both are required, or `on_error` alone beside `wait` without a limit |
///
/// The level of each event is [in the guide](crate::guide::errors#without-a-result).
///
/// # Keys
///
/// A hole `{name}` takes a parameter, `{self}` or a constant in capitals by its [`Display`](std::fmt::Display).
/// Anything else is an argument of `key("…", …)`.
///
/// For one template, different values give different keys:
///
/// - In an inserted value `%`, `:`, `{`, `}`, white space and control characters are percent-encoded. If another hole
///   follows, so is the first character of the text after the hole. Ordinary ids are unchanged.
/// - Two holes with nothing between them, a `%` in the template and format specs such as `{id:?}` are compile errors.
/// - `{{` and `}}` stand for braces, which a key may have only as a hash tag: `"{{user}}:{id}"`.
///
/// The arguments are computed at each call, before the lock is acquired, so what they read can have changed when the
/// body runs. In an async function, or one that returns a boxed future, they may await. A value that displays as
/// nothing, or a whole key over 1 KiB, is an [invalid key](LockErrorKind::InvalidKey) at run time.
///
/// Some keys compile with a warning, because they were probably not meant. `key("…")` confirms that the text is meant:
///
/// | key | rendered key | write instead |
/// |---|---|---|
/// | `"order:{{id}}"` | `order:{id}`: every call shares one lock | `"order:{id}"`, or `key("order:{{id}}")` |
/// | `"order:id"`, with a parameter `id` | `order:id`: every call shares one lock | `"order:{id}"`, or `key("order:id")` |
/// | `"order:${id}"`, `"order:#{id}"` | the sign, then the value: `order:$7` | `"order:{id}"`, or `key("order:${id}")` |
///
/// # Several keys
///
/// With `keys` a call acquires the locks of all keys or none, and such calls never wait for each other in a circle.
/// Each key has a lease and a fencing token of its own; `guard` binds them in the order written. See [several
/// keys](crate::guide::several_keys).
///
/// # Permits
///
/// Each of the permits is a lock with a lease and a fencing token of its own; with `all`, `guard` binds the leases of
/// the gate and of each permit. See [permits](crate::guide::permits).
///
/// # Warnings
///
/// The warning is rustc's `deprecated`, at the value or the type:
///
/// | code | effect | write instead |
/// |---|---|---|
/// | `expire = 60000`, or any option with a number of seconds that is a multiple of 1000 | a lease of 16 h 40 min | `expire = "60s"`, or `"60000s"` |
/// | `min_hold = "30s"` without `expire` | with the default lease of 10 s, every call fails | `expire = "30s", min_hold = "30s"` |
/// | `on_busy` beside `wait` without a limit, and without `once` | nothing: the call waits until the lock is free | no `on_busy`, or `wait = "3s"` |
/// | `-> impl Iterator`, also inside of `Result`, `Option` or `Box` | what a lazy iterator does for each item runs [after the release](#what-must-not-leave-the-body) | `Vec<_>`, or [`AfterRelease<impl Iterator<..>>`](crate::AfterRelease) |
///
/// # Waiting
///
/// With `wait`, the call waits in a FIFO queue, without polling, until its turn or until its limit, which starts with
/// the call; its lease begins at the end of the wait. At the limit `on_busy` applies; if the server did not reply, the
/// lock may be free, so `on_error` applies. A computed limit of zero is one try. See [waiting](crate::guide::waiting).
///
/// # When the lease ends
///
/// Without `renew` the body is stopped when `expire` is over, even midway; with it only if a renewal finds that the
/// lock is gone, or if no renewal had a reply in time. `max_hold` and an operator stop it under its lock. A stopped
/// body is not polled any more, and the call returns an [error that says why](crate::guide::errors#a-loss-in-detail).
/// See [what ends a hold](crate::guide::leases#what-ends-a-hold).
///
/// The body is dropped before the lock is released, and after that the parameters that it does not use, other than
/// those named `_x`.
///
/// With `on_lost = finish` a body that has started completes after a loss: its value is returned, an error event names
/// the key, and [`is_lost`](Lease::is_lost) of the guard is true. Another holder may be at work meanwhile, so use it
/// only for work that its [fencing token](FencingToken), or its nature, makes harmless.
///
/// # Once
///
/// With `once = "20h"`, a call that ended well leaves the lock done: for 20 hours from its grant, no other call of that
/// key runs its body, in any process. Such a call returns an error for which [`is_done`](LockError::is_done) and
/// [`is_busy`](LockError::is_busy) hold, so `on_busy`, `skip`, `None` and `()` apply. With `wait`, it first waits for
/// the run that is under way. By hand: [`LockRequest::once`] and [`LockGuard::keep`]. See [which runs count, and for
/// how long](crate::guide::leases#a-run-that-is-not-repeated).
///
/// # What must not leave the body
///
/// The lock is released when the body ends. Whatever the returned value does later, it does without the lock:
///
/// | the value, also inside of `Result`, `Option`, `Box` or `Pin` | |
/// |---|---|
/// | a future or a stream, whatever its type is called: `impl Future`, `BoxStream`, `JoinHandle`, an alias | a compile error; only a function that returns a [boxed future](#boxed-futures) itself is locked until that is done |
/// | `impl Iterator`, which may be lazy | a [warning](#warnings) |
/// | any other value, also a generic `T`, `Vec<_>` and `Box<dyn Iterator>` | accepted |
///
/// So await, consume and collect inside of the body, or return in [`AfterRelease`] what does not need the lock.
///
/// No type shows the rest: a response whose body is a stream, a spawned task, a closure. If such work needs the lock,
/// it acquires the lock itself: by [`run`](LockRequest::run), or with a guard that lives as long as the stream. Work
/// that another process finishes gets it by a [ticket](LockGuard::into_ticket).
///
/// ```
/// # use lockable_runtime::Locker;
/// # use tokio::sync::mpsc;
/// /// For the body of a response; the lock is held until the last row is taken.
/// fn export(locks: &Locker) -> mpsc::Receiver<u32> {
///     let (rows, response) = mpsc::channel(16);
///     let writing = locks.lock("export").renew().run(async move {
///         for row in 0..3 {
///             rows.send(row).await.ok()?; // fails if the client has gone
///         }
///         Some(())
///     });
///     tokio::spawn(writing);
///     response
/// }
/// ```
///
/// # Calls inside of the body
///
/// A call for the key that the calling body holds itself fails at once, even with `wait`, and
/// [`is_held_by_caller`](LockError::is_held_by_caller) holds: in a recursion, through another function, and between
/// async, sync and boxed ones. `on_busy` does not apply. Siblings in `join!` and `select!`, and tasks that the body
/// spawns, are other callers.
///
/// # Examples
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
/// #[distributed_lock(key = NIGHTLY, prefix = "jobs:", renew, max_hold = "2h", min_hold = 5, on_busy = skip)]
/// async fn nightly() -> Result<(), LockError> {
///     Ok(())
/// }
///
/// #[distributed_lock(keys = skus, wait = "3s", fair, expire = LEASE, on_lost = finish)]
/// async fn order(skus: Vec<LockKey>) {}
///
/// #[distributed_lock(key = "export", permits = 3, on_busy = 0, on_error = |_| 0)]
/// async fn export() -> u64 {
///     7
/// }
///
/// #[distributed_lock(key = "invoices:{month}", once = "40d", wait, blocking)]
/// fn send_invoices(month: &str) {}
///
/// impl Stock {
///     #[distributed_lock(key("stock:{}:{}", item.sku, self.region), locker = self.locks, guard = lock)]
///     async fn sell(&self, item: &Item) -> Result<u64, LockError> {
///         Ok(lock.fencing_token().into())
///     }
/// }
/// ```
///
/// # Sync functions
///
/// The calling thread waits for the lock and, at the end, for its release. The requests run on a thread of this crate,
/// so such a function can be called anywhere. With `wait` it may block for long, so the place of the call matters:
///
/// | place of the call | the call |
/// |---|---|
/// | outside of any runtime | waits |
/// | anywhere in a multi-thread runtime | waits, and lets the runtime's other tasks run, as tokio's `block_in_place` does |
/// | inside of a `LocalSet` there, or in a current-thread runtime, even in its `spawn_blocking` | returns the error [`InvalidOption`](crate::LockErrorKind::InvalidOption): a runtime's own thread may keep the holder from ever releasing |
/// | in a current-thread runtime, with the option `blocking` | waits: the option states that this is `spawn_blocking`, or another thread that may block |
///
/// On the own thread of a current-thread runtime, a call may take one command deadline longer, and find the lock busy,
/// if an async call for the same key was dropped there just before: its reply arrives over a connection of the runtime
/// that the sync call blocks.
///
/// Nothing can stop a sync body, so `on_lost = cancel` is a compile error there. If its lease is lost, the body runs to
/// its end, and [`is_held`](Lease::is_held) of the guard is false meanwhile: check it before each step that matters.
/// Then the call returns an error for which both [`is_lost`](LockError::is_lost) and
/// [`is_body_finished`](LockError::is_body_finished) hold; with `on_lost = finish` it returns the body's value, and
/// logs an error event.
///
/// After `max_hold`, `is_held` is false too, and the lock is lost when its last lease is over; a body that ends before
/// that returns its value. After an operator's request to stop it is false as well, and the lease is renewed until the
/// body has ended.
///
/// ```
/// # use lockable_runtime::{LockError, Locker, distributed_lock};
/// #[distributed_lock(key = "rebuild:{name}", renew, max_hold = "10m", locker = locks, guard = lock)]
/// fn rebuild(locks: &Locker, name: &str) -> Result<usize, LockError> {
///     Ok(if lock.is_held() { name.len() } else { 0 })
/// }
///
/// assert_eq!(rebuild(&Locker::in_memory(), "menu")?, 4);
/// # Ok::<(), LockError>(())
/// ```
///
/// A sync function that [returns a future](#what-must-not-leave-the-body) is a compile error, and so is a `const fn`.
///
/// # Re-exports
///
/// The attribute expands to paths of `::lockable_runtime`. If a crate has it from another crate, and does not depend on
/// this one, the compiler reports at the attribute:
///
/// ```text
/// error[E0432]: unresolved import `lockable_runtime`
///               could not find `lockable_runtime` in the list of imported crates
/// ```
///
/// Then write `crate = ::shop` if the crate `shop` has `pub use lockable_runtime::*;`. The line
/// `extern crate shop as lockable_runtime;` does that for the whole crate, and a [macro of
/// `shop`](crate::guide::faq#can-my-crate-re-export-it) for all crates.
///
/// # Boxed futures
///
/// A function that returns `Pin<Box<dyn Future<Output = T>>>`, with or without `Send` and a lifetime,
/// `BoxFuture<'_, T>` or `LocalBoxFuture<'_, T>` is locked like an `async fn` that returns `T`: nothing happens before
/// the first poll, not even the function's own statements, and the future is dropped before the lock is released. So
/// the attribute works inside `#[async_trait]`, on methods of the trait and of the impl:
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
/// Inside of it a key cannot name a part of a destructured parameter; give the parameter a name.
///
/// # Request ids
///
/// A call inside of a [`RequestId::scope`] stores the request's id in Redis, at the end of the lock's value. A lock
/// that is passed on within a turn keeps the id of the turn's first holder.
///
/// # With other attributes
///
/// Attributes expand from the top: the code that one of them wraps around the body is inside of the code of those below
/// it. Two `#[distributed_lock]` on one function are refused: [`keys`](#several-keys) takes several locks. Commit a
/// database transaction inside the body, so that the next holder sees its changes.
///
/// An attribute that rebuilds the function can drop this one, and nothing reports it: [test that the function is
/// locked](crate::guide::testing#is-the-function-locked). These were tried, in the versions given:
///
/// | attribute | above this one | below this one |
/// |---|---|---|
/// | `#[tracing::instrument]` 0.1 | the span is only the body | the span includes acquiring |
/// | `#[fastrace::trace]` 0.7, `#[logcall]` 0.2 | works | works |
/// | `#[hotpath::measure]` 0.30 | works; **not locked** with hotpath 0.4, which drops this attribute | works |
/// | `#[tokio::main]`, `#[tokio::test]` 1.54 | a sync function: the lock is held around the whole runtime | an async body under its lock, inside the runtime |
/// | `#[test]`, `#[test_case]` 3.4, `#[test_log::test]` 0.2 | works | works |
/// | `#[rstest]` 0.29 | the lock moves to the single cases, which have no parameters: `key` and `guard` cannot name any | works, keys name the parameters |
/// | `#[serial]` 4.0 | the body moves into a function of its own, where `guard` has no name | works |
/// | `#[axum::debug_handler]` 0.8, `#[utoipa::path]` 6.0 | works | works |
/// | `#[async_recursion]` 1.2, `#[maybe_async]` 0.2 | works | works |
/// | `#[memoize]` 0.6 | works | works |
/// | `#[cached]` 4.1 | does not work: it puts this attribute on two functions, one inside the other, so the body never runs; with cached 0.56 it works, and a hit takes the lock | a hit takes no lock |
/// | `#[async_trait]` 0.1 | on the `impl` or the trait | not on an `impl`: this attribute is for functions |
/// | `#[automock]` 0.15 | on a trait whose methods have this attribute, a compile error: put it on those of an implementation | not on a trait |
/// | `#[trait_variant::make]` 0.1 | on a trait whose methods have bodies, a compile error: put it on those of an implementation | not on a trait |
#[cfg(feature = "macros")]
pub use lockable_macros::distributed_lock;

/// Makes a [`LockKey`] from a template, as [`distributed_lock`](macro@distributed_lock#keys) makes the key of a call.
///
/// The value is a `Result<LockKey, LockError>`. Iterators collect such results into a
/// `Result<Vec<LockKey>, LockError>`, which the option `keys` takes as it is: the call then fails with that error.
///
/// # Guarantees
/// For one template, different values give different keys; see [how they are escaped](macro@distributed_lock#keys).
/// Mistakes in the template are compile errors.
///
/// A crate that has the macro by a [re-export](macro@distributed_lock#re-exports) of `shop` needs the line
/// `extern crate shop as lockable_runtime;`.
///
/// # Errors
/// [`InvalidKey`](LockErrorKind::InvalidKey), which names the hole.
///
/// # Examples
/// A number of locks that is known at run time:
/// ```
/// # fn example() -> Result<(), lockable_runtime::LockError> {
/// use lockable_runtime::lock_key;
///
/// let skus = ["shirt", "red:shoes"];
/// let keys = skus.iter().map(|sku| lock_key!("sku:{sku}")).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(keys[1].as_str(), "sku:red%3Ashoes");
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use lockable_macros::lock_key;

#[doc(hidden)]
pub mod __private {
    pub use crate::core::attribute::{
        Acquire, AllPermits, Awaited, Call, Called, Consumed, EndsEarly, EndsWell, FromLockError,
        Grant, GrantCell, Inside, IntoExpire, IntoHold, IntoLockKey, IntoLockKeys, IntoPermits,
        IntoWait, KeyPart, Keys, Label, Late, Lease, LeaseCell, Leases, LeasesCell, OnLost, Once,
        Options, Part, Permits, Refused, RefusedBesideOnBusy, RefusedBesideOnError, Returned, Run,
        RunsUnderTheLock, Skip, Wait, Works, absent, lock_key, once, run, run_blocking,
        run_blocking_even_when_busy, start, value,
    };
}

#[cfg(lockable_internals)]
#[doc(hidden)]
pub mod __internals {
    pub use crate::core::lease::owner_of;
    pub use crate::core::locker::rechecks_later;
    pub use crate::core::memory::MemoryStore;
    pub use crate::open::StubStore;
    pub use crate::testing::internals::{
        GrantTo, Place, VerbAttempt, Verbs, WakeUpOf, fence_counter, ticket_at,
    };
}
