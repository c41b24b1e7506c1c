//! One try to acquire, which leaves nothing behind however it ends.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::backend::{Acquisition, Attempt, Fault, Reply};
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::key::LockKey;
use crate::lease::Lease;
use crate::options::Ttl;
use crate::releaser::{Known, Releaser};

/// Tries once; gives the key back when another holder has the lock.
///
/// # Cancel safety
/// A request that was sent is waited for in the background, and what it grants is released.
pub(crate) async fn try_acquire(
    releaser: Arc<Releaser>,
    key: LockKey,
    ttl: Ttl,
) -> Result<Result<LockGuard, LockKey>, LockError> {
    releaser.settled(&key).await;
    let attempt = Arc::new(Attempt::new(key, ttl));
    match Asked::new(&releaser, &attempt).answer().await {
        Ok(Acquisition::Contended) => Ok(Err(attempt.key.clone())),
        Ok(Acquisition::Granted { fencing_token, since }) => {
            start(LockGuard::new(Lease::new(attempt, fencing_token, since, releaser))).map(Ok)
        }
        Err(fault) => Err(LockError::from(fault).with_key(attempt.key.as_str())),
    }
}

/// An answer that came after the lease's own deadline is a failed acquisition.
fn start(guard: LockGuard) -> Result<LockGuard, LockError> {
    if guard.is_held() {
        return Ok(guard);
    }
    let key = guard.key().clone();
    drop(guard);
    Err(LockError::too_late(key.as_str()))
}

/// A request and the duty to release what it may grant.
struct Asked<'a> {
    releaser: &'a Arc<Releaser>,
    attempt: &'a Arc<Attempt>,
    /// Gone once answered.
    reply: Option<Reply<Acquisition>>,
}

impl<'a> Asked<'a> {
    fn new(releaser: &'a Arc<Releaser>, attempt: &'a Arc<Attempt>) -> Self {
        let reply = releaser.backend().try_acquire(Arc::clone(attempt));
        Self { releaser, attempt, reply: Some(reply) }
    }

    /// The answer, within one command deadline of the sending; connecting has a deadline of its own.
    async fn answer(mut self) -> Result<Acquisition, Fault> {
        let backend = self.releaser.backend();
        let limit = self.releaser.command_deadline();
        let mut timer = pin!(None);
        poll_fn(|cx| {
            if let Poll::Ready(answer) = self.poll_reply(cx) {
                return Poll::Ready(answer);
            }
            if timer.is_none() && self.attempt.sent_at().is_some() {
                timer.set(Some(backend.timer(limit)));
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(cx).map(|()| {
                    backend.unanswered();
                    Err(Fault::no_answer(backend.name(), limit))
                }),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Acquisition, Fault>> {
        let Some(reply) = &mut self.reply else { return Poll::Pending };
        let answer = reply.as_mut().poll(cx);
        if let Poll::Ready(answer) = &answer {
            self.reply = None;
            if answer.as_ref().is_err_and(|fault| !fault.proves_absence) && self.may_hold() {
                self.releaser.hand_over(Arc::clone(self.attempt), Known::Unknown);
            }
        }
        answer
    }

    fn may_hold(&self) -> bool {
        self.attempt.sent_at().is_some()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take()
            && self.may_hold()
        {
            self.releaser.adopt(Arc::clone(self.attempt), reply);
        }
    }
}
