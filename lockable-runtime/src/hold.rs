//! A body that runs only while its lease is held.

use std::fmt;
use std::future::{Future, pending};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use once_cell::sync::OnceCell;
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::error::LockError;
use crate::guard::LockGuard;
use crate::lease::Lease;
use crate::telemetry;

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
        // Declared first, so dropped before the guard in `state` when this future is dropped.
        #[pin]
        body: Option<F>,
        granted: Option<Granted>,
        runs_when_busy: bool,
        state: State<F::Output>,
    }
}

enum State<T> {
    Acquiring(BoxFuture<Result<LockGuard, LockError>>),
    Holding {
        guard: LockGuard,
        timer: Option<Pin<Box<Sleep>>>,
    },
    Releasing {
        value: Option<T>,
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
                    Ok(guard) => Ok(holding(guard, this.granted.as_ref())),
                    Err(error) if error.is_contended() && *this.runs_when_busy => {
                        Ok(busy(this.granted.as_ref()))
                    }
                    Err(error) => Err(Err(error)),
                },
                State::Holding { guard, timer } => {
                    let outcome = ready!(poll_while_held(guard, timer, this.body.as_mut(), cx));
                    this.body.set(None);
                    releasing(mem::replace(this.state, State::Ended), outcome)
                }
                State::Releasing { value, release } => {
                    ready!(release.as_mut().poll(cx));
                    value.take().map_or(Ok(State::Ended), |value| Err(Ok(value)))
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

fn holding<T>(guard: LockGuard, granted: Option<&Granted>) -> State<T> {
    if let Some(granted) = granted {
        granted.tell(Some(guard.lease()));
    }
    State::Holding { guard, timer: None }
}

fn busy<T>(granted: Option<&Granted>) -> State<T> {
    if let Some(granted) = granted {
        granted.tell(None);
    }
    State::Busy
}

/// After the body: its value waits for the release, a loss does not.
fn releasing<T>(held: State<T>, outcome: Result<T, LockError>) -> Next<T> {
    match (held, outcome) {
        (State::Holding { guard, .. }, Ok(value)) => {
            Ok(State::Releasing { value: Some(value), release: Box::pin(guard.finish()) })
        }
        (_, Ok(value)) => Err(Ok(value)),
        (_, Err(error)) => {
            telemetry::lost(error.key().unwrap_or_default(), error.is_completed());
            Err(Err(error))
        }
    }
}

/// Reads the clock before every poll of the body, and after the last.
///
/// A timer alone would not do: after a pause of the process it lets the body take one more step
/// before it goes off. It only wakes a body that waits past its deadline.
fn poll_while_held<F: Future>(
    guard: &LockGuard,
    timer: &mut Option<Pin<Box<Sleep>>>,
    mut body: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, LockError>> {
    loop {
        if !guard.is_held() {
            return Poll::Ready(Err(LockError::lost(guard.key().as_str(), false)));
        }
        if let Poll::Ready(value) = poll_body(body.as_mut(), cx) {
            let completed = || LockError::lost(guard.key().as_str(), true);
            return Poll::Ready(if guard.is_held() { Ok(value) } else { Err(completed()) });
        }
        ready!(poll_deadline(guard, timer, cx));
    }
}

fn poll_body<F: Future>(body: Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    body.as_pin_mut().map_or(Poll::Pending, |body| body.poll(cx))
}

/// Ready when the lease should have ended; a timer that went off early is set again.
fn poll_deadline(
    guard: &LockGuard,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let backend = guard.releaser().backend();
    let sleep = timer.get_or_insert_with(|| Box::pin(backend.timer(guard.remaining())));
    ready!(sleep.as_mut().poll(cx));
    *timer = None;
    Poll::Ready(())
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
