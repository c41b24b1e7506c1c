//! A call that a test polls by hand, so that it hears of nothing before.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use lockable_tests::wait;

use crate::support::LIMIT;

/// Knows whether what the call waits for has come.
#[derive(Debug, Default)]
pub(crate) struct ByHand(Arc<Woken>);

#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl ByHand {
    pub(crate) fn poll<F: Future>(&self, call: Pin<&mut F>) -> Poll<F::Output> {
        self.0.0.store(false, Ordering::SeqCst);
        call.poll(&mut Context::from_waker(&Waker::from(Arc::clone(&self.0))))
    }

    /// Waits until the call is to be polled again since the last time, and leaves that to the test.
    pub(crate) async fn woken(&self) {
        wait::until_async(LIMIT, async || self.0.0.load(Ordering::SeqCst)).await;
    }
}
