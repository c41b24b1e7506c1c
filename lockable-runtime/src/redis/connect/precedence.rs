//! A locker's connection that renews leases is opened first.
//!
//! See "What happens when many processes reconnect after a restart (thundering herd)?" in DESIGN.md.

use std::sync::Arc;

use tokio::sync::watch;

/// How many connections that renew are being opened.
#[derive(Clone, Default)]
pub(crate) struct Precedence(Arc<watch::Sender<usize>>);

impl Precedence {
    /// Others wait until this is dropped.
    pub(crate) fn take(&self) -> First {
        self.0.send_modify(|count| *count += 1);
        First(self.clone())
    }

    pub(crate) async fn none(&self) {
        // The sender lives as long as this.
        drop(self.0.subscribe().wait_for(|count| *count == 0).await);
    }
}

pub(crate) struct First(Precedence);

impl Drop for First {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn others_wait_until_none_is_opened_first() {
        let precedence = Precedence::default();
        let both = [precedence.take(), precedence.take()];
        let mut none = pin!(precedence.none());
        let mut is_over = || none.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        for first in both {
            assert!(!is_over());
            drop(first);
        }
        assert!(is_over());
    }
}
