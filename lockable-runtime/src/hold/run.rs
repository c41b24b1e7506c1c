//! A body that runs only while its lease is held.
//!
//! See "What may fail, and what is promised then?" in DESIGN.md.

use std::fmt;
use std::future::{Future, pending};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use once_cell::sync::OnceCell;
use pin_project_lite::pin_project;

use crate::hold::guard::LockGuard;
use crate::hold::reentry::holding;
use crate::lease::{Lease, Loss, Status};
use crate::telemetry;
use crate::types::error::LockError;
use crate::types::options::OnLost;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Acquires, runs the body while the lease is held, then releases; gives the body's value.
    ///
    /// The body is dropped before the lock is released on every way out: at its end, when the lease
    /// is lost, when it panics, and when this future is dropped.
    ///
    /// One future with the body in place, instead of an `async fn` that would store it twice.
    #[must_use = "nothing happens until it is polled"]
    pub struct Run<F: Future> {
        #[pin]
        body: Option<F>,
        granted: Option<Granted>,
        runs_when_busy: bool,
        state: State<F::Output>,
    }

    impl<F: Future> PinnedDrop for Run<F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let State::Holding { guard, .. } = this.state {
                drop_body(guard, this.body);
            }
        }
    }
}

enum State<T> {
    Acquiring(BoxFuture<Result<LockGuard, LockError>>),
    Holding {
        guard: LockGuard,
        /// Ready when the lease is over; made when the body first waits.
        lost: Option<BoxFuture<LockError>>,
    },
    Releasing {
        outcome: Option<Result<T, LockError>>,
        release: BoxFuture<()>,
    },
    /// Another holder has the lock, and the body says what the call gives then.
    Busy,
    Ended,
}

/// What comes after a state: the next one, or the end.
type Next<T> = Result<State<T>, Result<T, LockError>>;

impl<F: Future> Run<F> {
    /// Nothing happens before the first poll.
    pub(crate) fn new(
        acquire: impl Future<Output = Result<LockGuard, LockError>> + Send + 'static,
        body: F,
    ) -> Self {
        let state = State::Acquiring(Box::pin(acquire));
        Self { body: Some(body), granted: None, runs_when_busy: false, state }
    }

    /// Tells the body about its lease.
    pub fn granting(mut self, granted: Granted) -> Self {
        self.granted = Some(granted);
        self
    }

    /// Runs the body without a lock, and without a lease, when another holder has it: then the body
    /// only says what the call gives.
    pub fn even_when_busy(mut self) -> Self {
        self.runs_when_busy = true;
        self
    }
}

impl<F: Future> Future for Run<F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state {
                State::Acquiring(acquire) => match ready!(acquire.as_mut().poll(cx)) {
                    Ok(guard) => match too_late(&guard) {
                        None => Ok(start(guard, this.granted.as_ref())),
                        Some(error) => {
                            this.body.set(None);
                            releasing(State::Holding { guard, lost: None }, Err(error))
                        }
                    },
                    Err(error) if error.is_busy() && *this.runs_when_busy => {
                        Ok(busy(this.granted.as_ref()))
                    }
                    Err(error) => Err(Err(error)),
                },
                State::Holding { guard, lost } => {
                    let outcome = ready!(poll_while_held(guard, lost, this.body.as_mut(), cx));
                    drop_body(guard, this.body.as_mut());
                    releasing(mem::replace(this.state, State::Ended), outcome)
                }
                State::Releasing { outcome, release } => {
                    ready!(release.as_mut().poll(cx));
                    outcome.take().map_or(Ok(State::Ended), Err)
                }
                State::Busy => {
                    let value = ready!(poll_body(this.body.as_mut(), cx));
                    this.body.set(None);
                    Err(Ok(value))
                }
                // Polled again after its end, which no caller may do.
                State::Ended => return Poll::Pending,
            };
            match next {
                Ok(state) => *this.state = state,
                Err(output) => {
                    *this.state = State::Ended;
                    return Poll::Ready(output);
                }
            }
        }
    }
}

fn start<T>(guard: LockGuard, granted: Option<&Granted>) -> State<T> {
    if let Some(granted) = granted {
        granted.tell(Some(guard.lease()));
    }
    State::Holding { guard, lost: None }
}

fn busy<T>(granted: Option<&Granted>) -> State<T> {
    if let Some(granted) = granted {
        granted.tell(None);
    }
    State::Busy
}

/// After the body: its outcome waits for the release, but for a loss, which leaves nothing to wait for.
fn releasing<T>(held: State<T>, outcome: Result<T, LockError>) -> Next<T> {
    match held {
        State::Holding { guard, .. } if !outcome.as_ref().is_err_and(LockError::is_lost) => {
            Ok(State::Releasing { outcome: Some(outcome), release: Box::pin(guard.finish()) })
        }
        _ => Err(outcome),
    }
}

/// Reads the clock before every poll of the body, and after the last.
///
/// A timer alone would not do: after a pause of the process it lets the body take one more step
/// before it goes off. It only wakes a body that waits past its deadline.
///
/// See "Why is the clock read before every poll, instead of a timer?" in DESIGN.md.
fn poll_while_held<F: Future>(
    guard: &LockGuard,
    lost: &mut Option<BoxFuture<LockError>>,
    mut body: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, LockError>> {
    let lease = guard.lease_ref();
    loop {
        // The last thing before the body: what lies between the two is a step that comes too late.
        let step = || match stops(guard) {
            Some(error) => Err(error),
            None => Ok(poll_body(body.as_mut(), cx)),
        };
        match guard.in_scope(|| holding(lease, step)) {
            Err(error) => return Poll::Ready(Err(error)),
            Ok(Poll::Ready(value)) => return Poll::Ready(completed(guard, value)),
            Ok(Poll::Pending) => {}
        }
        if guard.on_lost() == OnLost::Finish && lease.is_lost() {
            // It finishes without its lock, and nothing is left to watch.
            return Poll::Pending;
        }
        let watch = || {
            let lease = lease.clone();
            Box::pin(async move { lease.lost().await }) as BoxFuture<_>
        };
        ready!(lost.get_or_insert_with(watch).as_mut().poll(cx));
        *lost = None;
    }
}

/// Before the lock is released, and as a part of the body: what a body drops may ask for its lock.
fn drop_body<F>(guard: &LockGuard, mut body: Pin<&mut Option<F>>) {
    guard.in_scope(|| holding(guard.lease_ref(), || body.set(None)));
}

/// Why a body may not start, if it may not: nothing is half done yet that it could finish.
pub(crate) fn too_late(guard: &LockGuard) -> Option<LockError> {
    let lease = guard.lease_ref();
    // The lock was acquired just now.
    match lease.status_here() {
        Status::Held(_) | Status::Released => None,
        Status::MaxHoldReached => Some(lease.max_hold_reached()),
        Status::Lost(loss) => Some(lease.lost_error(loss)),
    }
}

/// Why the body may not be polled now, if it may not.
fn stops(guard: &LockGuard) -> Option<LockError> {
    let lease = guard.lease_ref();
    match (lease.status(), guard.on_lost()) {
        // After a fork the body is the parent's, who runs it on: here it may not finish either.
        (Status::Lost(loss @ Loss::Forked), _) | (Status::Lost(loss), OnLost::Cancel) => {
            Some(lease.loss_error(loss, false))
        }
        (Status::Held(_) | Status::Released, _) | (Status::Lost(_), OnLost::Finish) => None,
        (Status::MaxHoldReached, _) => Some(lease.max_hold_reached()),
    }
}

/// What a body gives that came to its end; its lease may have been lost meanwhile.
pub(crate) fn completed<T>(guard: &LockGuard, value: T) -> Result<T, LockError> {
    let lease = guard.lease_ref();
    let Status::Lost(loss) = lease.status() else { return Ok(value) };
    telemetry::completed_after_loss(lease.shown_key());
    match guard.on_lost() {
        OnLost::Finish if loss != Loss::Forked => Ok(value),
        OnLost::Finish | OnLost::Cancel => Err(lease.loss_error(loss, true)),
    }
}

fn poll_body<F: Future>(body: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    body.as_pin_mut().map_or(Poll::Pending, |body| body.poll(cx))
}

impl<F: Future> fmt::Debug for Run<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// What a body learns when it starts: its lease, or that another holder has the lock.
#[derive(Clone, Debug, Default)]
pub struct Granted(Arc<OnceCell<Option<Lease>>>);

impl Granted {
    fn tell(&self, lease: Option<Lease>) {
        // Told once, by the one future that has it.
        drop(self.0.set(lease));
    }

    /// The lease; `None` when the body runs only to say what a busy call gives.
    pub async fn outcome(&self) -> Option<Lease> {
        match self.0.get() {
            Some(lease) => lease.clone(),
            // A body is polled only after it was told.
            None => pending().await,
        }
    }

    /// The lease of a body that runs under its lock only.
    pub async fn lease(&self) -> Lease {
        match self.outcome().await {
            Some(lease) => lease,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::backend::Link;
    use crate::locker::acquire::{Acquirer, Wanted};
    use crate::types::key::LockKey;
    use crate::types::options::{Terms, Ttl};

    /// Goal: a process that paused between the grant and the body's first step does not take it.
    /// Method: the clock jumps over the deadline at the end of acquiring.
    #[tokio::test(start_paused = true)]
    async fn a_body_does_not_start_after_the_end_of_its_lease() {
        for on_lost in [OnLost::Cancel, OnLost::Finish] {
            let acquirer = Acquirer::new(Arc::new(Link::in_memory())).unwrap();
            let key = LockKey::from_static("k");
            let terms = Terms { on_lost, ..Terms::new(Ttl::DEFAULT) };
            let acquire = async move {
                let wanted = Wanted { key, terms, identity: None, caller_blocks: false };
                let guard = acquirer.try_acquire(wanted).await.unwrap().ok().unwrap();
                tokio::time::advance(Duration::from_secs(11)).await;
                Ok(guard)
            };
            let body = async { unreachable!("runs without a lock") };
            let outcome: Result<(), LockError> = Run::new(acquire, body).await;
            let error = outcome.unwrap_err();
            assert!(error.is_lost() && !error.is_completed());
            assert!(!error.to_string().contains("stopped"), "{error}");
        }
    }
}
