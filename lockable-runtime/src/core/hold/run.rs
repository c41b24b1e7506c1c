//! A body that runs only while its lease is held.
//!
//! See "Why does a body run only while its lease is held?" in DESIGN.md.

use std::fmt;
use std::future::{Future, pending};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use once_cell::sync::OnceCell;
use pin_project_lite::pin_project;

use crate::core::hold::grant::{Grant, is_watched};
use crate::core::hold::guard::LockGuard;
use crate::core::hold::reentry::holding;
use crate::core::hold::set::Leases;
use crate::core::lease::{Lease, Loss, Status};
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::options::OnLost;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Acquires, runs the body while the lease is held, then releases; returns the body's value.
    ///
    /// The body is dropped before the lock is released on every way out: at its end, when the lease is lost, when it
    /// panics, and when this future is dropped. It is one future with the body in place: an `async fn` would store it
    /// twice.
    #[must_use = "nothing happens until it is polled"]
    #[project = RunProj]
    pub struct Run<F: Future, G: Grant = LockGuard> {
        #[pin]
        body: Option<F>,
        cell: Option<GrantCell<G::Lease>>,
        runs_when_busy: bool,
        ended_well: fn(&F::Output) -> bool,
        state: RunState<F::Output, G>,
    }

    impl<F: Future, G: Grant> PinnedDrop for Run<F, G> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let RunState::Holding { guard, .. } = this.state {
                drop_body(guard, this.body);
            }
        }
    }
}

enum RunState<T, G> {
    Acquiring(BoxFuture<Result<G, LockError>>),
    Holding {
        guard: G,
        /// Ready when the lease is over; made when the body first waits.
        lost: Option<BoxFuture<LockError>>,
    },
    Releasing {
        outcome: Option<Result<T, LockError>>,
        release: BoxFuture<()>,
    },
    /// Another holder has the lock, and the body computes the call's value.
    Busy,
    /// Empty once the outcome is returned.
    Done(Option<Result<T, LockError>>),
}

impl<F: Future, G: Grant> Run<F, G> {
    pub(crate) fn new(
        acquire: impl Future<Output = Result<G, LockError>> + Send + 'static,
        body: F,
    ) -> Self {
        let state = RunState::Acquiring(Box::pin(acquire));
        let ended_well = |_: &_| false;
        Self { body: Some(body), cell: None, runs_when_busy: false, ended_well, state }
    }

    /// Puts the lease into this cell, from which the body takes it.
    pub fn lease_into(mut self, cell: GrantCell<G::Lease>) -> Self {
        self.cell = Some(cell);
        self
    }

    /// Leaves the lock done if the body ends well.
    pub fn once(mut self) -> Self
    where
        F::Output: EndsWell,
    {
        self.ended_well = EndsWell::ended_well;
        self
    }

    /// Runs the body without a lock and a lease when another holder has it: it then computes the call's value.
    pub fn even_when_busy(mut self) -> Self {
        self.runs_when_busy = true;
        self
    }
}

impl<F: Future, G: Grant> Future for Run<F, G> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            *this.state = match this.state {
                RunState::Acquiring(acquire) => {
                    let acquired = ready!(acquire.as_mut().poll(cx));
                    this.start(acquired)
                }
                RunState::Holding { guard, lost } => {
                    let outcome = ready!(poll_while_held(guard, lost, this.body.as_mut(), cx));
                    drop_body(guard, this.body.as_mut());
                    if outcome.as_ref().is_ok_and(*this.ended_well) {
                        guard.each().for_each(|lease| lease.ended_well(Duration::ZERO));
                    }
                    release(mem::replace(this.state, RunState::Done(None)), outcome)
                }
                RunState::Releasing { outcome, release } => {
                    ready!(release.as_mut().poll(cx));
                    RunState::Done(outcome.take())
                }
                RunState::Busy => {
                    let value = ready!(poll_body(this.body.as_mut(), cx));
                    this.body.set(None);
                    RunState::Done(Some(Ok(value)))
                }
                // Without an outcome it is polled again after its end, which no caller may do.
                RunState::Done(outcome) => {
                    return outcome.take().map_or(Poll::Pending, Poll::Ready);
                }
            }
        }
    }
}

impl<F: Future, G: Grant> RunProj<'_, F, G> {
    fn start(&mut self, acquired: Result<G, LockError>) -> RunState<F::Output, G> {
        match acquired {
            Ok(guard) => self.start_holding(guard),
            Err(error) if error.is_busy() && *self.runs_when_busy => {
                telemetry::skipped(&error);
                self.fill_cell(|| None);
                RunState::Busy
            }
            Err(error) => RunState::Done(Some(Err(error))),
        }
    }

    fn start_holding(&mut self, guard: G) -> RunState<F::Output, G> {
        if let Some(error) = refuse_start(&guard) {
            self.body.set(None);
            return release(RunState::Holding { guard, lost: None }, Err(error));
        }
        self.fill_cell(|| Some(guard.shown().clone()));
        RunState::Holding { guard, lost: None }
    }

    fn fill_cell(&mut self, lease: impl FnOnce() -> Option<G::Lease>) {
        if let Some(cell) = self.cell {
            cell.set(lease());
        }
    }
}

/// Releases after the body; the outcome waits for that, unless a loss left nothing to release.
fn release<T, G: Grant>(held: RunState<T, G>, outcome: Result<T, LockError>) -> RunState<T, G> {
    let is_lost = outcome.as_ref().is_err_and(LockError::is_lost);
    match held {
        RunState::Holding { guard, .. } if !(is_lost && guard.each().all(Lease::is_lost)) => {
            let release = Box::pin(guard.end());
            RunState::Releasing { outcome: Some(outcome), release }
        }
        _ => RunState::Done(Some(outcome)),
    }
}

/// Reads the clock before every poll of the body, and after the last.
///
/// A timer alone would let the body take one more step after a pause of the process. It only wakes a body that waits
/// past its deadline. See "Why is the clock read before every poll, instead of a timer?" in DESIGN.md.
fn poll_while_held<F: Future, G: Grant>(
    guard: &G,
    lost: &mut Option<BoxFuture<LockError>>,
    mut body: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, LockError>> {
    loop {
        // The last thing before the body: any code between the two could use up the lease.
        let step = || match stop_reason(guard) {
            Some(error) => Err(error),
            None => Ok(poll_body(body.as_mut(), cx)),
        };
        match guard.in_span(|| holding(guard.each(), step)) {
            Err(error) => return Poll::Ready(Err(error)),
            Ok(Poll::Ready(value)) => return Poll::Ready(completed(guard, value)),
            Ok(Poll::Pending) => {}
        }
        if !guard.each().any(is_watched) {
            // It finishes without its lock, and nothing is left to watch.
            return Poll::Pending;
        }
        ready!(lost.get_or_insert_with(|| guard.over()).as_mut().poll(cx));
        *lost = None;
    }
}

/// Drops the body before the lock is released, as a part of the body: what it drops may request its lock.
fn drop_body<F, G: Grant>(guard: &G, mut body: Pin<&mut Option<F>>) {
    guard.in_span(|| holding(guard.each(), || body.set(None)));
}

/// Why a body may not start, if it may not, whatever `on_lost` says: nothing is half done yet.
pub(crate) fn refuse_start(guard: &impl Grant) -> Option<LockError> {
    // The locks were acquired just now.
    guard.each().find_map(|lease| lease.over(lease.status_here()))
}

/// Why the body may not be polled now, if it may not.
fn stop_reason(guard: &impl Grant) -> Option<LockError> {
    guard.each().find_map(|lease| match (lease.status(), lease.on_lost()) {
        // After a fork the body runs in the parent: in the child it may not finish either.
        (Status::Lost(loss @ Loss::Forked), _) | (Status::Lost(loss), OnLost::Cancel) => {
            Some(lease.loss_error(loss, false))
        }
        (Status::Lost(_), OnLost::Finish) => None,
        (status, _) => lease.over(status),
    })
}

pub(crate) fn completed<T>(guard: &impl Grant, value: T) -> Result<T, LockError> {
    for lease in guard.each() {
        let Status::Lost(loss) = lease.status() else { continue };
        telemetry::completed_after_loss(lease.shown_key());
        if loss == Loss::Forked || lease.on_lost() == OnLost::Cancel {
            return Err(lease.loss_error(loss, true));
        }
    }
    Ok(value)
}

fn poll_body<F: Future>(body: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    body.as_pin_mut().map_or(Poll::Pending, |body| body.poll(cx))
}

/// The value of a body that can leave its lock done.
#[diagnostic::on_unimplemented(
    message = "`once` cannot know from a `{Self}` whether the call ended well",
    label = "neither a `Result`, nor an `Option`, nor `()`",
    note = "return `Result<T, E>`, `Option<T>` or `()`; or call `LockGuard::keep` yourself, on a lock that was requested with `once()`"
)]
pub trait EndsWell {
    /// Whether the body ended well.
    fn ended_well(&self) -> bool;
}

impl EndsWell for () {
    fn ended_well(&self) -> bool {
        true
    }
}

impl<T> EndsWell for Option<T> {
    fn ended_well(&self) -> bool {
        self.is_some()
    }
}

impl<T, E> EndsWell for Result<T, E> {
    fn ended_well(&self) -> bool {
        self.is_ok()
    }
}

impl<F: Future, G: Grant> fmt::Debug for Run<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Gives a body its lease when it starts, or reports a busy lock.
#[derive(Clone, Debug)]
pub struct GrantCell<L>(Arc<OnceCell<Option<L>>>);

/// For a body under one lock.
pub type LeaseCell = GrantCell<Lease>;

/// For a body under several.
pub type LeasesCell = GrantCell<Leases>;

impl<L> Default for GrantCell<L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<L: Clone> GrantCell<L> {
    fn set(&self, lease: Option<L>) {
        // Set once, by the one future that has it.
        drop(self.0.set(lease));
    }

    /// The lease; `None` when the lock is busy.
    pub async fn outcome(&self) -> Option<L> {
        match self.0.get() {
            Some(lease) => lease.clone(),
            // A body is polled only after its cell is filled.
            None => pending().await,
        }
    }

    /// The lease of a body that runs only under its lock.
    pub async fn lease(&self) -> L {
        match self.outcome().await {
            Some(lease) => lease,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::acquire::{Acquirer, Tried, acquire};
    use crate::core::backend::BackendContext;
    use crate::core::locker::Locker;
    use crate::core::process::clock::skip;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Options;

    /// Goal: a process that paused between the grant and the body's first step does not take it.
    /// Method: the clock jumps over the deadline at the end of acquiring.
    #[tokio::test(start_paused = true)]
    async fn no_body_starts_after_its_lease() {
        for on_lost in [OnLost::Cancel, OnLost::Finish] {
            let acquirer = Acquirer::new(Arc::new(BackendContext::in_memory())).unwrap();
            let key = LockKey::from_static("k");
            let options = Options { on_lost, ..Options::default() };
            let acquire = async move {
                let start = acquirer.context.backend.now();
                let Ok(Tried::Granted(guard)) = acquire(&acquirer, key, &options, start).await
                else {
                    unreachable!("the lock is free")
                };
                tokio::time::advance(Duration::from_secs(11)).await;
                Ok(guard)
            };
            let body = async { unreachable!("runs without a lock") };
            let outcome: Result<(), LockError> = Run::new(acquire, body).await;
            let error = outcome.unwrap_err();
            assert!(error.is_lost() && !error.is_body_finished());
            assert!(!error.to_string().contains("stopped"), "{error}");
        }
    }

    /// Goal: a call without an end, because no one watches the longest hold of a body that outlives a loss.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_may_finish_is_stopped_at_its_longest_hold() {
        let request = Locker::in_memory().lock("k").renew().max_hold(Duration::from_secs(1));
        let error = woken(request.on_lost(OnLost::Finish).run(pending::<()>())).await.unwrap_err();
        assert!(error.is_max_hold_reached());
    }

    /// Goal: a call without an end, because no one watches a lease that ended within the body's first step.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_after_a_long_first_step_is_stopped() {
        let acquirer = Acquirer::new(Arc::new(BackendContext::in_memory())).unwrap();
        let (key, options) = (LockKey::from_static("k"), Options::default());
        let acquire = async move {
            let start = acquirer.context.backend.now();
            match acquire(&acquirer, key, &options, start).await? {
                Tried::Granted(guard) => Ok(guard),
                Tried::Busy(_) => unreachable!("the lock is free"),
            }
        };
        let body = async {
            skip(Duration::from_secs(11));
            pending::<()>().await;
        };
        assert!(woken(Run::new(acquire, body)).await.unwrap_err().is_lost());
    }

    /// In a task of its own, which a limit around it does not poll.
    async fn woken<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
        let call = tokio::spawn(call);
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
        ended.expect("the call is woken").unwrap()
    }
}
