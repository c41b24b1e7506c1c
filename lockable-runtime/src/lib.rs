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

/// Runs every call of a function, in every process, under one lock: the body runs only while its
/// lease is held.
///
/// If the lock is not acquired, the body does not start. If the lease is lost, the body stops, unless it may
/// [finish](#when-the-lease-ends). In every case the lock is released, and the body's own value or error passes
/// through unchanged.
///
/// Put it on an `async fn`, on a function that returns a [boxed future](#boxed-futures), or on a [sync
/// function](#sync-functions); free, in an `impl` or in a trait.
///
/// # What this does not guarantee
///
/// - Over a network no lease can exclude two holders in every case; see [limits](crate::guide::limits), and
///   [`FencingToken`].
/// - Tasks that a stopped body has spawned are not stopped.
/// - Work that a returned value does later is not under the lock; see [what must not leave the
///   body](#what-must-not-leave-the-body).
/// - A renewed body that hangs holds its lock for as long as it hangs, or for `max_hold`.
///
/// # Options
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key = "…{name}…"`, `key("…{}…", expr, …)` | the key template, checked at compile time; rendered once for each call, before the body and before anything is moved; it also [labels](telemetry#which-lock) logs and metrics | required |
/// | `key = expr` | a [`LockKey`]; a text is never converted into one | |
/// | `keys = ["…{name}…", "…"]` | several locks in the place of `key`: all of them, or none; 2 to 16 templates; see [several keys](#several-keys) | |
/// | `keys = expr` | the same for a number of keys known at run time, 1 to 64: a `Vec<LockKey>`, `[LockKey; N]` or `&[LockKey]`, each key of which [`lock_key!`] may make | |
/// | `prefix = "…"` | replaces the locker's prefix, with which every key starts; a text without holes | the locker's, itself `"disLock:"` |
/// | `expire = 10`, `"1500ms"`, `"1m30s"`, or a [`Duration`](std::time::Duration) expression | the length of the lease, at least 10 ms; an integer is seconds, with a [warning](#warnings) if it looks like milliseconds; an expression is evaluated once for each call | the locker's, itself 10 s |
/// | `wait`, `wait = "3s"`, a duration as `expire` takes it | waits for a busy lock, without a limit or at most this long; see [waiting](#waiting) | one try |
/// | `fair` | with `wait`: passes the lock to another process after each holder, if one waits | off |
/// | `blocking` | with `wait`, on a sync function: states that the calling thread may block, as in `spawn_blocking`; see [sync functions](#sync-functions) | off |
/// | `permits = 3`, an integer or an expression of one, from 1 to 64 | the number of calls that run at a time, in all processes; see [permits](#permits) | one |
/// | `permits = all(3)` | all permits at once: waits until the other calls are out, and lets none in | |
/// | `renew` | keeps the lease alive while the body runs | off |
/// | `max_hold = "5m"`, a duration as `expire` takes it | with `renew`: the longest hold, measured from the grant; then the body is dropped and the lock released | none |
/// | `min_hold = "3s"`, a duration as `expire` takes it | the shortest hold, measured from the grant, at most `expire`; a call that ends earlier returns at once, whatever its outcome, and leaves the lock taken for the rest | none |
/// | `once = "20h"`, a duration as `expire` takes it | after a call that ended well, with `Ok`, `Some` or `()`, no other call runs its body for so long, measured from the grant; see [once](#once) | off |
/// | `on_lost = cancel`, `on_lost = finish` | whether a lost lease stops the body, or lets it complete and return its value | `cancel` |
/// | `on_busy = expr`, `on_busy = skip` | the value when another holder has the lock, or still has it at the limit of `wait`; `expr` sees all parameters, `skip` is `()`, `None`, `Ok(())` or `Ok(None)` | by return type |
/// | `on_error = \|err\| expr` | the value for every other failure to finish under the lock; sees its argument, statics and `Copy` parameters | by return type |
/// | `guard = name` | binds `name` in the body to its [`Lease`]: key, fencing token, remaining time, and a [signal](Lease::ending_within) before its end; with `keys` or `permits = all(…)`, to the [`Leases`] of all | |
/// | `locker = expr` | the [`Locker`], such as `self.locks`; cloned, never borrowed across the body | the process-wide one, see [`install`] |
/// | `crate = ::path` | the path of `lockable_runtime`, for a crate that has it by a [re-export](#re-exports) | `::lockable_runtime` |
///
/// A value that is wrong for its option is a compile error where it is a literal. One of an expression is an
/// [invalid option](LockErrorKind::InvalidOption) at each call, and the body never runs. So check what an operator sets
/// when the program starts, by a request with the same values: [`LockRequest::check`].
///
/// # Return types
///
/// A call whose body did not run, or was stopped, still has to return something:
///
/// | return type | such a call returns |
/// |---|---|
/// | `()` | nothing; an event states the reason |
/// | `Option<T>` | `None`; an event states the reason |
/// | `Result<T, E>` where `E: From<LockError>` | `Err` |
/// | any other | the value of `on_busy` or `on_error`; both are required, or `on_error` alone beside `wait` without a limit |
///
/// A busy lock is logged as an info event that names the key, and at the limit of `wait` as a warning. A failure
/// that the return type cannot carry is logged as an error event: no failure is silent.
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
/// A hole `{name}` takes a parameter, `{self}` or a constant in capitals by its [`Display`](std::fmt::Display).
/// Anything else is an argument of `key("…", …)`.
///
/// For one template, different values give different keys, whatever they contain:
///
/// - In an inserted value `%`, `:`, `{`, `}`, white space and control characters are percent-encoded. If another
///   hole follows, so is the first character of the text after the hole. Ordinary ids are unchanged.
/// - Two holes with nothing between them, a `%` in the template and format specs such as `{id:?}` are compile
///   errors.
/// - `{{` and `}}` stand for braces, which a key may have only as a hash tag: `"{{user}}:{id}"`.
///
/// The arguments are computed at each call, before the lock is acquired. In an async function, or one that returns
/// a boxed future, they may await. The lock is not held meanwhile: its lease starts later, and what they read can
/// have changed when the body runs.
///
/// A value that displays as nothing, or a whole key over 1 KiB, is an [invalid key](LockErrorKind::InvalidKey) at
/// run time.
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
/// Some keys compile and are probably not what was meant. They give a warning; `key("…")` confirms that the text is
/// meant:
///
/// | key | rendered key | write instead |
/// |---|---|---|
/// | `"order:{{id}}"` | `order:{id}`: every call shares one lock | `"order:{id}"`, or `key("order:{{id}}")` |
/// | `"order:id"`, with a parameter `id` | `order:id`: every call shares one lock | `"order:{id}"`, or `key("order:id")` |
/// | `"order:${id}"`, `"order:#{id}"` | the sign, then the value: `order:$7` | `"order:{id}"`, or `key("order:${id}")` |
///
/// # Several keys
///
/// With `keys`, the body runs while the locks of all keys are held:
///
/// ```
/// # use lockable_runtime::{LockError, LockKey, distributed_lock, lock_key};
/// # struct Item { sku: String }
/// #[distributed_lock(keys = ["account:{from}", "account:{to}"], wait = "3s", guard = locks)]
/// async fn transfer(from: u64, to: u64) -> Result<(), LockError> {
///     // In the order written; the same lease at both places if `from == to`.
///     let (from, to) = (locks[0].fencing_token(), locks[1].fencing_token());
///     Ok(())
/// }
///
/// #[distributed_lock(keys = skus, wait = "3s")]
/// async fn order(skus: Vec<LockKey>) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// # async fn example(items: &[Item]) -> Result<(), LockError> {
/// let skus: Result<Vec<_>, _> = items.iter().map(|item| lock_key!("sku:{}", item.sku)).collect();
/// order(skus?).await
/// # }
/// ```
///
/// - All of them, or none: a call that tries once releases what it has before it returns busy, and the error names the
///   busy key.
/// - The order in which the keys are written does not matter. A call that waits holds smaller keys only, so calls with
///   `keys` never wait for each other in a circle; see [`LockRequest::acquire`](LockRequest::<Vec<LockKey>>::acquire).
/// - Each key has a lease and a fencing token of its own. If one is lost or revoked, the body is stopped as for one
///   lock, and the others are released.
/// - `max_hold`, `min_hold` and `renew` apply from the moment when the last lock is acquired. Until then all are
///   renewed.
/// - A value without a key, or with more than 64, is an [invalid key](LockErrorKind::InvalidKey), and the body does not
///   run.
/// - Spans, events and metrics are those of each lock, labelled with all templates. The body is inside the span `hold`
///   of the first.
///
/// # Permits
///
/// With `permits`, a key has several holders at a time, in all processes; with `all`, a call is all of them:
///
/// ```
/// # use lockable_runtime::{LockError, distributed_lock};
/// #[distributed_lock(key = "export", permits = 3, wait, renew)]
/// async fn export(report: u64) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// #[distributed_lock(key = "export", permits = all(3), wait = "10m", renew)]
/// async fn migrate() -> Result<(), LockError> {
///     Ok(())
/// }
/// ```
///
/// - Each permit is a lock with a name of its own, `{export}#1` and so on, and with a lease of its own: a process that
///   dies costs one permit until that ends. Calls are served in their order; those of one process beyond the
///   number of permits wait in it first.
/// - `guard` binds the lease of the permit; with `all`, the [`Leases`] of the gate and of each permit.
/// - With `min_hold = "1s"`, at most that number of calls starts in a second.
/// - The number is part of what all callers agree on, and permits and the plain lock of the same key are apart; see
///   [`LockRequest::permits`] and [`LockRequest::all_permits`].
///
/// # Warnings
///
/// Some code compiles and is hardly what was meant. The warning is rustc's `deprecated`, at the value or the type:
///
/// | code | effect | write instead |
/// |---|---|---|
/// | `expire = 60000`, or any option with a number of seconds that is a multiple of 1000 | a lease of 16 h 40 min | `expire = "60s"`, or `"60000s"` |
/// | `min_hold = "30s"` without `expire` | with a lease of 10 s, which is the default, every call fails | `expire = "30s", min_hold = "30s"` |
/// | `on_busy` beside `wait` without a limit, and without `once` | nothing: the call waits until the lock is free | no `on_busy`, or `wait = "3s"` |
/// | `-> impl Iterator`, also inside of `Result`, `Option` or `Box` | what a lazy iterator does for each item runs [after the release](#what-must-not-leave-the-body) | `Vec<_>`, or [`AfterRelease<impl Iterator<..>>`](crate::AfterRelease) |
///
/// # Waiting
///
/// The attribute tries once unless it has `wait`; [`LockRequest::acquire`] always waits. With `wait`, the call
/// waits in a FIFO queue, without polling, until its turn or until its limit.
///
/// - Calls of one process run in the order of arrival.
/// - Processes take turns. A turn is one holder, and at most sixteen more in its process to which the lock passes
///   within five milliseconds, to calls with the same or a shorter `expire`; with `fair` it is one holder.
/// - A call whose future is dropped leaves the queue at once.
/// - The lease begins at the end of the wait, with the request that is granted the lock.
/// - The guide lists what bounds the wait when a process dies or a message is lost:
///   [waiting](crate::guide::waiting).
///
/// At its limit a call finds the lock busy: `on_busy` gives the value, `None` and `()` mean the same, and an `Err`
/// is [`is_wait_limit_reached`](LockError::is_wait_limit_reached). If the server did not reply, the lock may be
/// free: that is a failure and not busy, so `on_error` gives the value.
///
/// The limit starts with the call and never cuts its first try short. A computed limit of zero is one try, or busy
/// at once if other calls of its locker hold the lock, wait for it or are trying to acquire it.
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
/// # When the lease ends
///
/// Without `renew` the body is stopped when `expire` is over, even midway. With `renew` the lease ends only:
///
/// - when the body ends;
/// - when a renewal finds that the lock is gone;
/// - at its deadline, if no renewal had a reply until then;
/// - after `max_hold`.
///
/// If the body has not ended by then, and when an operator asks the holder to stop, the body is not polled any
/// more, and the call returns an error:
///
/// | cause | error |
/// |---|---|
/// | the lease was lost, and the body was stopped | [`is_lost`](LockError::is_lost) |
/// | the lease was lost, and the body completed before it could be stopped | both that and [`is_body_finished`](LockError::is_body_finished) |
/// | `max_hold` was over | [`is_max_hold_reached`](LockError::is_max_hold_reached) |
/// | an operator asked the holder to stop | [`is_revoked`](LockError::is_revoked) |
/// | `max_hold` was zero, or `min_hold` longer than `expire`, and the body did not run | [`InvalidOption`](crate::LockErrorKind::InvalidOption) |
///
/// With `on_lost = finish` a body that has started completes: its value is returned, an error event names the key,
/// and [`is_lost`](Lease::is_lost) of the guard is true. Another holder may be at work meanwhile, so use it only
/// for work that its [fencing token](FencingToken), or its nature, makes harmless.
///
/// With `min_hold`, every other call within that time finds the lock busy. So a job that several machines trigger
/// runs once, even if their clocks differ by nearly as much.
///
/// # Once
///
/// With `once = "20h"`, a call that ended well leaves the lock done: for 20 hours from its grant, no other call of that
/// key runs its body, in any process. Such a call returns an error for which [`is_done`](LockError::is_done) holds, and
/// [`is_busy`](LockError::is_busy) too: `on_busy`, `skip`, `None` and `()` apply. With `wait`, a call waits for the run
/// that is under way, and then returns the same.
///
/// | the body | the next call |
/// |---|---|
/// | returned `Ok`, `Some` or `()`, under its lease | is done |
/// | returned `Err` or `None`, panicked, was dropped, or was stopped by a loss, an operator or `max_hold` | runs the body |
/// | returned, but its process died, or Redis did not reply, until the end of the lease | runs the body |
///
/// - Name the occasion in the key, as in `"report:{month}"`, of a daily job the scheduled day in UTC. Choose a period
///   that is longer than the clocks of the machines differ, and than an old trigger may be late.
/// - A daily job whose key does not name the day needs a period of 12 to 20 hours, because the next run may start
///   much less than 24 hours after this one: see [how long a run is
///   done](crate::guide::leases#how-long-is-a-run-done).
/// - The error and the event of a skipped call have the start of the run that counts, and the end of its period.
/// - A key is for `once` calls alone. Calls without `once`, and other libraries, find the lock taken for the period.
/// - A server that evicts keys or loses its data forgets what is done.
/// - By hand: [`LockRequest::once`] and [`LockGuard::keep`]. `lockable release KEY` has the run repeated.
///
/// ```
/// # use lockable_runtime::{LockError, distributed_lock};
/// #[distributed_lock(key = "report:{month}", renew, once = "40d", on_busy = skip)]
/// async fn report(month: &str) -> Result<(), LockError> {
///     // … write the report of this month …
///     Ok(())
/// }
/// ```
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
/// So await, consume and collect inside of the body. If the later work does not need the lock, as that of a task which
/// already runs, return it in [`AfterRelease`].
///
/// No type shows the rest: a response whose body is a stream, a task that the body has spawned, a closure. If such work
/// needs the lock, it has to hold it itself:
///
/// - What makes the items of a stream acquires the lock: by [`run`](LockRequest::run), or with a guard that lives as
///   long as the stream.
/// - Work that another process finishes gets the lock by a [ticket](LockGuard::into_ticket).
///
/// ```
/// # use lockable_runtime::{LockError, Locker};
/// # use tokio::sync::mpsc;
/// /// The rows of an export, for the body of a response. The lock is held until the last row was taken.
/// fn export(locks: &Locker) -> mpsc::Receiver<u32> {
///     let (rows, response) = mpsc::channel(16);
///     let writing = locks.lock("export").renew().run(async move {
///         for row in 0..3 {
///             // Fails if the client has gone.
///             rows.send(row).await.ok()?;
///         }
///         Some(())
///     });
///     tokio::spawn(writing);
///     response
/// }
///
/// # async fn example() -> Result<(), LockError> {
/// let locks = Locker::in_memory();
/// let mut rows = export(&locks);
/// assert_eq!(rows.recv().await, Some(0));
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
///
/// # Calls inside of the body
///
/// A call for the key that the calling body holds itself could only wait for its own end. It fails at once, even
/// with `wait`, and [`is_held_by_caller`](LockError::is_held_by_caller) holds: in a recursion, through another
/// function, and between async, sync and boxed ones. `on_busy` does not apply. Siblings in `join!` and `select!`,
/// and tasks that the body spawns, are other callers.
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
/// #[distributed_lock(key = "invoices:{month}", once = "40d")]
/// async fn send_invoices(month: &str) -> Result<(), LockError> {
///     Ok(())
/// }
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
///         // The protected resource rejects a smaller token than it has seen.
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
/// The calling thread waits for the lock and, at the end, for its release. The requests themselves run on a thread
/// of this crate, so such a function can be called anywhere: outside of any runtime, in `spawn_blocking`, and
/// inside a runtime of either kind, where it blocks its thread as every sync function does.
///
/// With `wait` it may block for long, so the place of the call matters:
///
/// | place of the call | the call |
/// |---|---|
/// | outside of any runtime | waits |
/// | anywhere in a multi-thread runtime | waits, and lets the runtime's other tasks run, as tokio's `block_in_place` does |
/// | in a current-thread runtime, even in its `spawn_blocking` | returns an error, [`InvalidOption`](crate::LockErrorKind::InvalidOption), and does not run the body: on the runtime's own thread it would keep the holder from ever releasing, and the two threads cannot be distinguished |
/// | the same, with the option `blocking` | waits: the option states that this is `spawn_blocking`, or another thread that may block |
/// | inside of a `LocalSet` on a multi-thread runtime | returns the error `InvalidOption`, too |
///
/// On the own thread of a current-thread runtime, a call may take one command deadline longer, 1 s by default, and
/// find the lock busy. This happens if an async call for the same key was dropped there just before: the reply to
/// that call, and the lock that it was granted, arrive over a connection of the runtime that the sync call blocks.
///
/// Nothing can stop a sync body, so `on_lost = cancel` is a compile error there. If its lease is lost, the body
/// runs to its end, and [`is_held`](Lease::is_held) of the guard is false meanwhile: check it before each step that
/// matters. Then the call returns an error for which both [`is_lost`](LockError::is_lost) and
/// [`is_body_finished`](LockError::is_body_finished) hold; with `on_lost = finish` it returns the body's value, and
/// logs an error event.
///
/// `renew` keeps the lease alive from the thread of this crate, however long the body blocks its own. `max_hold`
/// ends that: `is_held` is false from then on, and the lock is lost when its last lease is over. If the body ends
/// before that, the call returns its value. When an operator asks the holder to stop, `is_held` is false too, and
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
/// A sync function that [returns a future](#what-must-not-leave-the-body) is a compile error: write an `async fn`, or
/// return a boxed future. A `const fn` is refused too.
///
/// # Re-exports
///
/// The attribute expands to paths of `::lockable_runtime`. If a crate has the attribute from another crate, and
/// does not depend on this one, the compiler reports at the attribute:
///
/// ```text
/// error[E0432]: unresolved import `lockable_runtime`
///               could not find `lockable_runtime` in the list of imported crates
/// ```
///
/// Then write `crate = ::shop` if the crate `shop` has `pub use lockable_runtime::*;`. The line
/// `extern crate shop as lockable_runtime;` in `lib.rs` or `main.rs` does that once for the whole crate. And `shop`
/// can [offer a macro](crate::guide::faq#can-my-crate-re-export-it) that does it for all crates.
///
/// # Boxed futures
///
/// A function that returns `Pin<Box<dyn Future<Output = T>>>`, with or without `Send` and a lifetime,
/// `BoxFuture<'_, T>` or `LocalBoxFuture<'_, T>` is locked like an `async fn` that returns `T`: nothing happens
/// before the first poll, not even the function's own statements, and the future is dropped before the lock is
/// released. `on_busy` and `on_error` give a `T`.
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
/// Inside of it a key cannot name a part of a destructured parameter; give the parameter a name.
///
/// # Request ids
///
/// A call inside of a [`RequestId::scope`] stores the request's id in Redis, at the end of the lock's value;
/// functions of every kind do. A lock that is passed on within a [turn](#waiting) keeps the id of the first holder
/// of that turn. With the feature `tower` a layer makes the scope for each HTTP request.
///
/// # Expansion
///
/// ```text
/// let mut call = Call::new(key);
/// call.expire = …;
/// match run(call, async move { body }).await {   // reads the clock before every poll of the body
///     Ok(value) => value,
///     Err(error) => …,                           // by return type, on_busy, on_error
/// }
/// ```
///
/// The body is dropped before the lock is released. After that, the parameters are dropped that the body does not
/// use, other than those named `_x`.
///
/// # With other attributes
///
/// Attributes expand from the top. So the code that one attribute wraps around the body is inside of the code of
/// the attributes below it. Two `#[distributed_lock]` on one function are refused: [`keys`](#several-keys) takes several
/// locks. Commit a database transaction inside the body, so that the next holder sees its changes.
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
/// The value is a `Result<LockKey, LockError>`, because a value that displays as nothing, or one that makes the key
/// longer than 1 KiB, is known at run time only. Iterators collect such results into a `Result<Vec<LockKey>, LockError>`,
/// and the options `key` and `keys` take them as they are: the call then fails with that error.
///
/// # Guarantees
/// For one template, different values give different keys: in an inserted value `%`, `:`, `{`, `}`, white space and
/// control characters are percent-encoded.
///
/// A hole `{name}` takes what has that name here; anything else is an argument. Mistakes in the template are compile
/// errors. A crate that has the macro by a [re-export](macro@distributed_lock#re-exports) of `shop` needs the line
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
