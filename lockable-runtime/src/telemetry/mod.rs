//! Observability of locks: spans and events through [`tracing`], and metrics through the `metrics`
//! facade, with the feature of that name.
//!
//! # Spans and events
//!
//! All have the target `lockable`. `waited` and `held` are seconds, as floating-point numbers.
//!
//! Those with a `key` have two more fields, which say [which lock](#which-lock) it is: `lock` and `function`, written
//! as `…` below.
//!
//! | level | name | kind | fields | when |
//! |---|---|---|---|---|
//! | warn | `connect` | event | `settings` | a locker was made whose URL has these settings for other programs |
//! | debug | `acquire` | span | `key`, …, `outcome`, `waited`, `fencing_token` | a call asks for its lock, until it has the lock or gives up |
//! | debug | `acquire` | event | the same | the end of that; without `waited` and `fencing_token` unless the lock was granted |
//! | info | `acquire` | event | `key`, … | a decorated call found another holder, and skips its body without an error |
//! | warn | `acquire` | event | `key`, …, `waited` | the wait limit was reached, and another holder has the lock |
//! | error | `acquire` | event | `key`, …, `error` | a decorated call failed, and its return type cannot carry the error |
//! | debug | `wait` | span | `key`, …, `waited` | a call waits in line, inside of its `acquire` |
//! | warn | `wait` | event | `key`, …, `waited` | a call has waited for [a long time](crate::LockerBuilder::warn_waited_over), and waits on |
//! | debug | `hold` | span | `key`, …, `fencing_token`, `held`, `outcome` | the lock is held; the body runs inside |
//! | debug | `hold` | event | the same | the end of that: the release starts, or the lock was lost |
//! | warn | `revoked` | event | `key`, …, `fencing_token`, `reason` | an operator asked the holder to stop |
//! | warn | `hold` | event | `key`, …, `held`, `share` | a body without `renew` used more than four fifths of its lease |
//! | warn | `hold` | event | `key`, …, `fencing_token`, `held` | a lock with `renew` has been held for a day; again each time that this has doubled |
//! | debug | `renew` | span | `leases` | one command renews this count of leases |
//! | trace | `renew` | event | `key`, …, `fencing_token`, `outcome` | the answer for one of them |
//! | warn | `renew` | event | `leases`, `error` | no answer came; the renewal is tried again |
//! | debug | `release` | span | `key`, …, `outcome` | a release is under way, by the holder or in the background |
//! | debug | `release` | event | the same | the end of that, or the lock was handed off within this process, without a request |
//! | debug | `release` | event | `key`, … | a guard was dropped, and its release is sent in the background |
//! | warn | `release` | event | `key`, …, `outcome` | the lock that was to be released had been lost |
//! | warn | `release` | event | `key`, …, `error` | a release was abandoned; the lock ends with its lease |
//! | warn | `lost` | event | `key`, …, `fencing_token`, `reason` | the lock was lost |
//! | error | `lost` | event | `key`, … | a body completed although its lock was lost |
//!
//! | of | values |
//! |---|---|
//! | `outcome` of `acquire` | `granted`, `busy`, `wait_limit`, `failed`, `cancelled` |
//! | `outcome` of `hold` | `released`, `revoked` (an operator asked for it), `lost` |
//! | `outcome` of `renew` | `renewed`, `absent` (no holder has the lock), `taken` (another holder has it) |
//! | `outcome` of `release` | `released`, `handed_off` (to the next waiter of this process), `absent`, `taken`, `unanswered` |
//! | `reason` of `lost` | `deadline`, `absent`, `taken`, `forced` (an operator took it away) |
//! | `reason` of `revoked` | the operator's own words |
//!
//! The body of [`run`](crate::LockRequest::run) and of a decorated function runs inside the span `hold`,
//! so that its own events can be read with the key and the fencing token. Code under a guard that is
//! held by hand runs in its own spans only; the span `hold` is their sibling then. A span of
//! `#[tracing::instrument]` is inside of `hold` when that is written above `#[distributed_lock]`, and
//! around `acquire` and `hold` when it is written below. The spans are at debug level, because they
//! would be printed before every line that a body logs.
//!
//! Each call that fails is an event of its own: while a server is down, a busy service writes a line for
//! each call. A subscriber that limits repeated lines is the place to bound them.
//!
//! # Which lock
//!
//! The attribute gives its locks a label: its key template as it is written, without the prefix, such as `order:{id}`.
//! Of `key = NIGHTLY`, or of another expression, the label is that code. Locks that are written by hand are given one by
//! [`LockRequest::label`](crate::LockRequest::label). The label is a constant of the program and contains no value of
//! a key, so it is shown as it is, also where keys are [redacted](#redacted-keys). So a template without
//! a hole shows the key there too, all but its prefix.
//!
//! - Spans and events have it as the field `lock`, and the path of the decorated function as the field `function`:
//!   its module and its name, such as `shop::orders::settle`. Where there is none, there is no such field.
//! - Metrics have it as the label `lock`, which is empty where there is none. Functions with the same template share
//!   it, because they contend for the same locks. So there are as many time series as places in the code, not as
//!   locks.
//!
//! What the background does is reported for the call that it does it for: the release of a guard that was dropped, of
//! a call that was cancelled, the renewals of a lease, and its loss.
//!
//! # Metrics
//!
//! All have the label `lock`.
//!
//! | metric | kind | as Prometheus shows it | other labels | counts |
//! |---|---|---|---|---|
//! | `lockable.acquire` | counter | `lockable_acquire_total` | `outcome` as above | calls that asked for a lock |
//! | `lockable.acquire.failed` | counter | `lockable_acquire_failed_total` | `kind`: `unavailable`, `refused`, `wrong-type`, `invalid-key`, `invalid-option`, `held-by-caller`, `not-configured` | calls that failed, also before they asked: by the [kind](crate::LockErrorKind) of their error |
//! | `lockable.acquire.wait` | histogram, seconds | `lockable_acquire_wait_seconds_bucket`, `_sum`, `_count` | | how long calls waited that found another holder, however that ended |
//! | `lockable.waiters` | gauge | `lockable_waiters` | | calls that are waiting now |
//! | `lockable.handoff` | counter | `lockable_handoff_total` | `by`: `queue`, `local` | grants that came by the queue, or from the holder before in this process |
//! | `lockable.hold` | histogram, seconds | `lockable_hold_seconds_bucket`, `_sum`, `_count` | | how long locks were held, from the grant to the start of the release |
//! | `lockable.hold.lost` | counter | `lockable_hold_lost_total` | `reason` as above | locks that were lost |
//! | `lockable.hold.revoked` | counter | `lockable_hold_revoked_total` | | holders that an operator asked to stop |
//! | `lockable.hold.completed_after_loss` | counter | `lockable_hold_completed_after_loss_total` | | bodies that completed although their lock was lost |
//! | `lockable.renewal` | counter | `lockable_renewal_total` | `outcome` as above, and `unanswered` | renewals, one for each lease and try |
//! | `lockable.release` | counter | `lockable_release_total` | `outcome` as above | releases, one for each try |
//! | `lockable.release.abandoned` | counter | `lockable_release_abandoned_total` | | releases that were abandoned |
//! | `lockable.release.backlog` | gauge | `lockable_release_backlog` | | releases that wait in the background now |
//!
//! The key is never a label: each order would make a new time series. Units and texts are described to
//! the recorder when a locker is made, so install the recorder before. Rare events are counted from zero on: for each
//! lock from the end of its first call.
//!
//! ## Prometheus
//!
//! The recorder of the crate `metrics-exporter-prometheus` needs two settings, which are off by default:
//!
//! ```text
//! let recorder = PrometheusBuilder::new()
//!     .with_recommended_naming(true)
//!     .set_buckets(&[0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0])?;
//! ```
//!
//! Without the first, counters have no `_total` in their names and times no `_seconds`. Without the second there are
//! no buckets. Then no panel of the dashboard [`grafana.json`] draws anything, and no rule of [`alerts.yml`] fires. The
//! example [`prometheus.rs`] is a whole program.
//!
//! [`grafana.json`]: https://github.com/lockable/lockable/blob/main/examples/services/grafana.json
//! [`alerts.yml`]: https://github.com/lockable/lockable/blob/main/examples/services/alerts.yml
//! [`prometheus.rs`]: https://github.com/lockable/lockable/blob/main/examples/services/prometheus.rs
//!
//! # Redacted keys
//!
//! With [`redact_keys`](crate::LockerBuilder::redact_keys) events, spans, the messages of
//! [errors](crate::LockError) and of their sources, and `{:?}` of guards, leases and requests show
//! `redacted:` and a number instead of the key. A key has the same number within one process, and another
//! number in the next process. [`LockError::key`](crate::LockError::key),
//! [`Lease::key`](crate::Lease::key), a [lock key](crate::LockKey) and the backend have the key
//! itself.
//!
//! Owner tokens are never shown, whether keys are redacted or not, because they release locks. A server
//! that refuses a command may quote its arguments; that part of its answer is left out.
//!
//! ```
//! # async fn example() -> Result<(), lockable_runtime::LockError> {
//! use std::time::Duration;
//! use lockable_runtime::Locker;
//!
//! let locker = Locker::builder()
//!     .url("memory://")
//!     .redact_keys()
//!     .warn_waited_over(Some(Duration::from_secs(2)))
//!     .connect()
//!     .await?;
//! let _held = locker.lock("mail:ada@example.org").acquire().await?;
//! let request = locker.lock("mail:ada@example.org").wait(Duration::ZERO);
//! let error = request.acquire().await.unwrap_err();
//! assert!(!error.to_string().contains("ada"));
//! assert_eq!(error.key(), Some("disLock:mail:ada@example.org"));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # What it costs
//!
//! Nothing that can be measured, while no subscriber is installed: a span or an event that no subscriber
//! wants is a load of one atomic number, and its fields are not computed. Times are taken from the
//! lease, so an uncontended lock reads the clock no more often than without telemetry. A test counts the
//! allocations of an acquisition and its release: counting adds none, with a recorder or without, but for those that
//! store the names of a label's metrics when each is counted for the first time.

pub(crate) use self::acquiring::{
    Acquiring, Waiting, acquisition_failed, error_discarded, settings_ignored, skipped,
    wait_limit_reached, waits_long,
};
pub(crate) use self::counters::{change, describe, handed_off};
pub(crate) use self::holding::{
    Hold, HoldEnd, completed_after_loss, held_long, lost, renewal_unanswered, renewed, renewing,
    revoked,
};
pub(crate) use self::releasing::{
    handed_off_locally, release_abandoned, release_deferred, released_too_late, releasing,
};
pub(crate) use self::span::inside;

mod acquiring;
#[cfg(feature = "metrics")]
mod counters;
#[cfg(not(feature = "metrics"))]
#[path = "no_counters.rs"]
mod counters;
mod holding;
mod releasing;
mod span;
