//! Whether a simulated process runs: it, or its callers' runtime, may stop for a while; and it may die.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::core::process::clock::{Moment, timer_on, tokio_time};

#[derive(Default)]
pub(super) struct Life {
    is_over: AtomicBool,
    /// Nothing runs until then.
    stopped: Mutex<Moment>,
    /// Calls are not polled until then.
    blocked: Mutex<Moment>,
}

impl Life {
    pub(super) fn stop_until(&self, end: Moment) {
        let mut stopped = self.stopped.lock().unwrap();
        *stopped = end.max(*stopped);
    }

    pub(super) fn block_until(&self, end: Moment) {
        let mut blocked = self.blocked.lock().unwrap();
        *blocked = end.max(*blocked);
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn runs_at(&self) -> Moment {
        tokio_time().max(*self.stopped.lock().unwrap())
    }

    fn polls_at(&self) -> Moment {
        self.runs_at().max(*self.blocked.lock().unwrap())
    }

    /// Ends at that moment, or when the process runs again; never if it died.
    pub(super) async fn until(&self, moment: Moment) {
        sleep_until(|| moment.max(self.runs_at())).await;
        if self.is_over() {
            pending::<()>().await;
        }
    }
}

/// Ends at a moment that may move meanwhile.
pub(super) async fn sleep_until(moment: impl Fn() -> Moment) {
    loop {
        let rest = moment().since(tokio_time());
        if rest.is_zero() {
            return;
        }
        sleep(rest).await;
    }
}

pub(super) fn sleep(duration: Duration) -> Sleep {
    timer_on(&Handle::current(), duration)
}

thread_local! {
    static POLLED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The worker that this thread polls; none for a background task.
pub(super) fn polled_worker() -> Option<usize> {
    POLLED.get()
}

/// Polls a worker only while its process runs.
pub(super) struct Gate<'a, F> {
    life: &'a Life,
    worker: usize,
    work: Pin<Box<F>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'a, F> Gate<'a, F> {
    pub(super) fn new(life: &'a Life, worker: usize, work: F) -> Self {
        Self { life, worker, work: Box::pin(work), timer: None }
    }
}

impl<F: Future> Future for Gate<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        loop {
            if self.life.is_over() {
                return Poll::Pending;
            }
            let pause = self.life.polls_at().since(tokio_time());
            if pause.is_zero() {
                break;
            }
            let timer = self.timer.insert(Box::pin(sleep(pause)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        POLLED.set(Some(self.worker));
        let polled = self.work.as_mut().poll(cx);
        POLLED.set(None);
        polled
    }
}
