//! Numbered epochs, of which only the last one counts: what began in an earlier one is over.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Epochs {
    /// The number of the one that counts now; read by every call.
    number: AtomicU64,
    numbers: watch::Sender<u64>,
}

#[derive(Clone)]
pub(crate) struct Epoch {
    all: Arc<Epochs>,
    number: u64,
}

impl Epochs {
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    pub(crate) fn current(self: &Arc<Self>) -> Epoch {
        Epoch { all: Arc::clone(self), number: self.number() }
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.numbers.subscribe()
    }

    pub(crate) fn begin(&self, is_announced: bool) {
        let number = self.number.fetch_add(1, Ordering::Release) + 1;
        self.numbers.send_if_modified(|latest| {
            *latest = number;
            is_announced
        });
    }
}

impl Epoch {
    pub(crate) fn is_over(&self) -> bool {
        self.all.number() != self.number
    }

    /// The future's output; `None` when another epoch begins first.
    pub(crate) async fn unless_over<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut changes = self.all.changes();
        let mut over = pin!(changes.wait_for(|number| *number != self.number));
        let mut future = pin!(future);
        poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }
}
