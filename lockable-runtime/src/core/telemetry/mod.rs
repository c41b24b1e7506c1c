//! Observability of locks: spans and events through [`tracing`], and metrics through the `metrics` facade, with the
//! feature of that name.
//!
//! # Spans and events
//!
//! Their target is `lockable`. `waited` and `held` are seconds, as floating-point numbers. With a `key` come two more
//! fields, written as `…` below: `lock` and `function`, which say [which lock](#which-lock) it is.
//!
//! | level | name | kind | fields | when |
//! |---|---|---|---|---|
//! | warn | `connect` | event | `settings` | the URL of a new locker has these settings for other programs |
//! | warn | `connect` | event | `server`, `code`, `advice` | a setting of the server endangers locks, in the words of [`check`](crate::Locker::check); at the first connection of the process to the server, and of lockers with another number of [`replicas`](crate::LockerBuilder::replicas) |
//! | warn | `certificate` | event | | a certificate that the locker [was given](crate::Secret) ends within 14 days, or has ended; at a connection, once for each certificate in the life of the process |
//! | debug | `acquire` | span | `key`, …, `outcome`, `waited`, `fencing_token` | a call acquires its lock, until it has the lock or gives up |
//! | debug | `acquire` | event | the same | the end of that span; `waited` and `fencing_token` only if the lock was granted |
//! | info | `acquire` | event | `key`, … | a decorated call found another holder, and skips its body without an error |
//! | warn | `acquire` | event | `key`, …, `waited` | the wait limit was reached; the message says what has the lock |
//! | error | `acquire` | event | `key`, …, `error` | a decorated call failed, and its return type cannot carry the error |
//! | warn | `lead` | event | `key`, …, `error` | a campaign of [`lead`](crate::LockRequest::lead) failed; it is repeated each second, without another event until one succeeds |
//! | info | `lead` | event | `key`, …, `outcome` | the campaigns of this process are over: its body returned, or the future of `lead` was dropped, as by aborting its task |
//! | error | `lead` | event | `key`, …, `outcome`, `error` | the campaigns of this process are over for another reason; without an `error` after a panic |
//! | debug | `wait` | span | `key`, …, `waited` | a call waits in line, inside of its `acquire` |
//! | warn | `wait` | event | `key`, …, `waited` | a call has waited for [a long time](crate::LockerBuilder::warn_waited_over), and continues to wait; again each time that this has doubled, at least once an hour |
//! | warn | `wait` | event | `error` | a server refuses the subscription to wake-ups, so that waiting calls poll; once for each server |
//! | info | `wait` | event | `key`, … | a call waits for a lock that is paused or that a ticket has |
//! | warn | `found_done` | event | `key`, … | a call without `once` found a lock that a run with `once` keeps taken |
//! | debug | `hold` | span | `key`, …, `fencing_token`, `held`, `outcome` | the lock is held; the body runs inside |
//! | debug | `hold` | event | the same | the end of that span: the release starts, or the lock was lost |
//! | warn | `revoked` | event | `key`, …, `fencing_token`, `reason` | an operator asked the holder to stop |
//! | warn | `hold` | event | `key`, …, `held`, `share` | a body without `renew` used more than four fifths of its lease |
//! | warn | `hold` | event | `key`, …, `fencing_token`, `held` | a lock with `renew` has been held for a day; again each time that this has doubled |
//! | debug | `renew` | span | `leases` | one command renews this number of leases |
//! | trace | `send` | event | `server`, `commands` | commands are sent together over a connection that is open; their names only |
//! | trace | `renew` | event | `key`, …, `fencing_token`, `outcome` | the outcome for one of these leases |
//! | warn | `renew` | event | `leases`, `error` | the renewal had no reply, and is retried |
//! | debug | `release` | span | `key`, …, `outcome` | a release is under way, by the holder or in the background |
//! | debug | `release` | event | the same | the end of that span, or the lock was handed off within this process, without a request |
//! | debug | `release` | event | `key`, … | a guard was dropped, and its release is sent in the background |
//! | warn | `release` | event | `key`, …, `outcome` | the lock had been lost before its release |
//! | warn | `release` | event | `key`, …, `error` | a release was abandoned; the lock ends with its lease |
//! | warn | `lost` | event | `key`, …, `fencing_token`, `reason` | the lock was lost |
//! | error | `lost` | event | `key`, … | a body completed although its lock was lost |
//!
//! | field | values |
//! |---|---|
//! | `outcome` of `acquire` | `granted`, `busy`, `done` (the run of a `once` call is over), `wait_limit`, `failed`, `cancelled` |
//! | `outcome` of `lead` | `returned`, `dropped`, `failed`, `panicked` |
//! | `outcome` of `hold` | `released`, `revoked` (on an operator's request), `lost` |
//! | `outcome` of `renew` | `renewed`, `absent` (no holder has the lock), `taken` (another holder has it) |
//! | `outcome` of `release` | `released`, `handed_off` (to the next waiter of this process), `absent`, `taken`, `unanswered` |
//! | `reason` of `lost` | `deadline`, `absent`, `taken`, `forced` (an operator took it away) |
//! | `reason` of `revoked` | the operator's own words |
//!
//! The body of [`run`](crate::LockRequest::run) and of a decorated function runs inside the span `hold`, so that its
//! own events carry the key and the fencing token. Code under a guard that is held by hand runs in its own spans;
//! `hold` is their sibling. The spans are at debug level, because a subscriber prints them before every line that a
//! body logs.
//!
//! While a server is down, each failed call that returns no `Result` logs an error: use a subscriber that limits
//! repeated lines.
//!
//! # Which lock
//!
//! The attribute labels its locks with their key template as written, without the prefix, such as `order:{id}`; for
//! `key = NIGHTLY`, or another expression, with that code. Without the attribute,
//! [`LockRequest::label`](crate::LockRequest::label) sets the label.
//!
//! A call for several keys reports each lock by itself, under one label with all templates, as in
//! `account:{from}, account:{to}`. While such a call waits, it may acquire and release a lock several times, and each
//! time is counted.
//!
//! The label contains no value of a key, so it is shown even if keys are [redacted](#redacted-keys). A template without
//! a hole therefore shows the key, all but its prefix.
//!
//! - Spans and events have it as the field `lock`, and the module and name of the decorated function as `function`,
//!   such as `shop::orders::settle`. What is not known is missing.
//! - Metrics have it as the label `lock`, which may be empty. Functions with the same template share it: there is a
//!   time series for each place in the code, not for each lock.
//!
//! Work in the background is reported under the label of its call.
//!
//! # Metrics
//!
//! All have the label `lock`.
//!
//! | metric | kind | as Prometheus shows it | other labels | measures |
//! |---|---|---|---|---|
//! | `lockable.acquire` | counter | `lockable_acquire_total` | `outcome` as above | calls that tried to acquire a lock |
//! | `lockable.acquire.failed` | counter | `lockable_acquire_failed_total` | `kind`: `unavailable`, `refused`, `wrong-type`, `invalid-key`, `invalid-option`, `held-by-caller`, `not-configured` | failed calls by the [kind](crate::LockErrorKind) of their error, also those that sent no request, as after [`drain`](crate::Locker::drain) |
//! | `lockable.acquire.wait` | histogram, seconds | `lockable_acquire_wait_seconds_bucket`, `_sum`, `_count` | | how long calls waited that found another holder, whatever the outcome |
//! | `lockable.waiters` | gauge | `lockable_waiters` | | calls that are waiting now |
//! | `lockable.handoff` | counter | `lockable_handoff_total` | `by`: `queue`, `local` | grants from the queue, or from the previous holder in this process |
//! | `lockable.hold` | histogram, seconds | `lockable_hold_seconds_bucket`, `_sum`, `_count` | | how long locks were held, from the grant to the start of the release |
//! | `lockable.hold.lost` | counter | `lockable_hold_lost_total` | `reason` as above | locks that were lost |
//! | `lockable.hold.revoked` | counter | `lockable_hold_revoked_total` | | holders that an operator asked to stop |
//! | `lockable.hold.completed_after_loss` | counter | `lockable_hold_completed_after_loss_total` | | bodies that completed although their lock was lost |
//! | `lockable.renewal` | counter | `lockable_renewal_total` | `outcome` as above, and `unanswered` | renewals, one for each lease and try |
//! | `lockable.release` | counter | `lockable_release_total` | `outcome` as above | releases, one for each try |
//! | `lockable.release.abandoned` | counter | `lockable_release_abandoned_total` | | releases that were abandoned |
//! | `lockable.release.backlog` | gauge | `lockable_release_backlog` | | releases that wait in the background now |
//!
//! The key is never a label. A new locker gives the units and the descriptions to the recorder, so install the recorder
//! first. Counters of rare events start at zero, for each lock at the end of its first call.
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
//! Without these, counters have no `_total` in their names, times no `_seconds` and no buckets: then all panels of the
//! dashboard [`grafana.json`] are empty, and no rule of [`alerts.yml`] fires. [`prometheus.rs`] is a whole program.
//!
//! [`grafana.json`]: https://github.com/lockable/lockable/blob/main/examples/services/grafana.json
//! [`alerts.yml`]: https://github.com/lockable/lockable/blob/main/examples/services/alerts.yml
//! [`prometheus.rs`]: https://github.com/lockable/lockable/blob/main/examples/services/prometheus.rs
//!
//! # Redacted keys
//!
//! With [`redact_keys`](crate::LockerBuilder::redact_keys) events, spans, the messages of [errors](crate::LockError)
//! and of their sources, and `{:?}` of guards, leases and requests show `redacted:` and a number instead of the key. A
//! key has the same number within one process, and another in the next. [`LockError::key`](crate::LockError::key),
//! [`Lease::key`](crate::Lease::key), a [lock key](crate::LockKey) and the backend have the key itself.
//!
//! Owner tokens are never shown, because they release locks. A server that refuses a command may quote its arguments;
//! that part of its reply is omitted.
//!
//! # What it costs
//!
//! Nothing measurable, while no subscriber is installed: a span or an event that no subscriber wants is a load of one
//! atomic number. Metrics allocate nothing, except the names of a label's metrics at their first use.

pub(crate) use self::acquiring::{
    Acquiring, Waiting, acquisition_failed, certificate_ends, endangered, error_discarded,
    found_done, settings_ignored, skipped, unnotified, wait_limit_reached, waits_behind,
    waits_long,
};
pub(crate) use self::counters::{change, describe, handed_off};
pub(crate) use self::holding::{
    Hold, HoldEnd, completed_after_loss, held_long, lost, renewal_unanswered, renewed, renewing,
    revoked,
};
pub(crate) use self::leading::Campaigns;
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
mod leading;
mod releasing;
mod span;
#[cfg(test)]
pub(crate) mod tests;
