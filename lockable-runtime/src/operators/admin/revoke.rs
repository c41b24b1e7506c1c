//! Asking a holder to stop, and taking its lock away.
//!
//! See "What overlaps after `force_release`?" in DESIGN.md.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Admin, HeldLock};
use crate::core::backend::{Attempt, Fault, Release, Revocation, Verb};
use crate::core::holder::HolderKind;
use crate::core::process::together::join_all;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::owner::TokenParts;
use crate::core::types::reason::Reason;
use crate::core::types::slot::Slot;
use crate::operators::contract::operations;
use crate::operators::contract::{Audience, Seen};

impl Admin {
    /// Asks the holder to stop.
    ///
    /// Its body is dropped under the lock, then the lock is released to the next waiter. The holder's call returns
    /// [`is_revoked`](LockError::is_revoked) with this reason, and logs it in one line of at most 200 characters.
    /// `grace` limits the wait for the release; 5 s suit most bodies, and zero waits for nothing.
    ///
    /// # Guarantees
    /// - The request does not take the lock, so no two bodies overlap because of it.
    /// - Only this hold is asked to stop: no holder is if the lock has changed hands since.
    ///
    /// # What this does not guarantee
    /// - A request reaches only a process that listens: one that has held a lock with `renew` for a second, and may
    ///   subscribe. Otherwise the outcome is [`Revoked::NotListening`], after three seconds, by which a younger hold or
    ///   a lost connection is subscribed. A lock without `renew` ends by itself.
    /// - Nothing can stop a sync body, or code under a guard. It sees [`is_held`](crate::Lease::is_held) become false,
    ///   and its lock is renewed until it ends.
    /// - If calls of one process pass a lock on under one owner token, the request stops the call that has it when the
    ///   message arrives.
    /// - A lock with `min_hold` stays taken until that is over.
    ///
    /// A [ticket](crate::HolderKind::Ticket) is released at once, because no process works under it, and cannot be
    /// redeemed any more.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply.
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not publish or read; see [the
    ///   rights](super#rights).
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Once the future was polled, the request may have been sent.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # let body = locker.lock("order:7").renew().run(std::future::pending::<()>());
    /// # let operator = async {
    /// use lockable_runtime::admin::Revoked;
    /// use std::time::Duration;
    ///
    /// let admin = locker.admin();
    /// if let Some(held) = admin.holder("order:7").await? {
    ///     match admin.revoke(&held, "migration 42", Duration::from_secs(2)).await? {
    ///         Revoked::Released { after } => println!("released after {after:.0?}"),
    ///         Revoked::NotReleased { waited } => println!("still held after {waited:.0?}"),
    ///         Revoked::NotListening { remaining } => println!("ends in {remaining:?}"),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// # Ok::<_, lockable_runtime::LockError>(())
    /// # };
    /// # let (stopped, asked) = tokio::join!(body, operator);
    /// # assert!(stopped.unwrap_err().is_revoked());
    /// # asked
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn revoke(
        &self,
        held: &HeldLock,
        reason: impl AsRef<str>,
        grace: Duration,
    ) -> Result<Revoked, LockError> {
        let reason = Reason::new(reason.as_ref());
        self.context.usable_here()?;
        let backend = &self.context.backend;
        if held.holder().kind() == HolderKind::Ticket {
            return self.free(held).await;
        }
        let may_listen = held.owner.as_ref().is_some_and(|owner| has_process(owner.text()));
        let patience = if may_listen { LISTENS_WITHIN.min(grace) } else { Duration::ZERO };
        let start = backend.now();
        let mut pause = FIRST_PAUSE;
        let Some(_) = self.still_held(held).await? else { return Ok(Revoked::Changed) };
        loop {
            // Asked again, it changes nothing; a message may be lost.
            let audience = self.send(held, Verb::Revoke, &reason).await?;
            let seen = self.still_held(held).await?;
            let waited = backend.now().since(start);
            let Some(seen) = seen else { return Ok(Revoked::Released { after: waited }) };
            if audience == Audience::Silence && waited >= patience {
                return Ok(Revoked::NotListening { remaining: seen.remaining });
            }
            if waited >= grace {
                return Ok(Revoked::NotReleased { waited });
            }
            backend.timer(pause.min(grace.saturating_sub(waited))).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the lock away from any kind of holder, and passes it on as a release does.
    ///
    /// A message stops the holder's body, with [`is_lost`](LockError::is_lost) and the reason. This also works for a
    /// process that does not listen, and for a lock that is kept by `min_hold`, is [done](crate::HolderKind::Done), or
    /// is of another library. Try [`revoke`](Admin::revoke) first.
    ///
    /// # Guarantees
    /// The owner token is compared in one step with the release. If the lock has changed hands since it was listed, the
    /// new holder is undisturbed: [`Forced::Changed`].
    ///
    /// # What this does not guarantee
    /// Two bodies may be at work at once: the next holder starts at once, and the old one stops when the message
    /// arrives, at its next renewal, or at its deadline. Unless the message is first, its error has no reason. Only a
    /// resource that checks [fencing tokens](crate::FencingToken) is safe from the overlap.
    ///
    /// # Errors
    /// - As [`revoke`](Admin::revoke).
    /// - [`WrongType`](crate::LockErrorKind::WrongType) when the key holds data that is no lock.
    ///
    /// # Cancel safety
    /// Once the future was polled, the lock may have been taken away. That also holds after an error of the backend.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use lockable_runtime::admin::Forced;
    ///
    /// let guard = locker.lock("order:7").acquire().await?;
    /// let admin = locker.admin();
    /// let held = admin.holder("order:7").await?.expect("it is held");
    /// assert_eq!(admin.force_release(&held, "its host is gone").await?, Forced::Released);
    /// assert!(guard.lease().is_lost() && locker.inspect("order:7").await?.is_none());
    /// assert_eq!(admin.force_release(&held, "again").await?, Forced::Changed);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn force_release(
        &self,
        held: &HeldLock,
        reason: impl AsRef<str>,
    ) -> Result<Forced, LockError> {
        self.force(held, &Reason::new(reason.as_ref()), None).await
    }

    pub(super) async fn force(
        &self,
        held: &HeldLock,
        reason: &Reason,
        pause: Option<&Arc<Attempt>>,
    ) -> Result<Forced, LockError> {
        self.context.usable_here()?;
        let Some(owner) = &held.owner else { return Err(self.no_lock(held)) };
        // The message is the first, or its holder would hear from client tracking that the lock was deleted.
        // The lock is taken away, whether its holder hears of it now or later.
        let message = async { drop(self.send(held, Verb::Forced, reason).await) };
        let mut found = Ok(Release::Absent);
        let taking = async { found = self.take(held, owner.clone().into_bytes(), pause).await };
        let both: [Pin<Box<dyn Future<Output = ()> + Send>>; 2] =
            [Box::pin(message), Box::pin(taking)];
        join_all(both).await;
        let mut found = found?;
        // Its holder may have released it meanwhile, so that it is kept by its `min_hold`; or a waiter has changed the
        // mark of such a lock.
        if found != Release::Absent
            && let Some(now) = self.seen(held).await?.and_then(|seen| seen.owner)
            && is_kept_of(owner.text(), now.text())
        {
            found = self.take(held, now.into_bytes(), pause).await?;
        }
        Ok(if found == Release::Released { Forced::Released } else { Forced::Changed })
    }

    async fn free(&self, held: &HeldLock) -> Result<Revoked, LockError> {
        let start = self.context.backend.now();
        let Some(owner) = &held.owner else { return Ok(Revoked::Changed) };
        let found = self.take(held, owner.clone().into_bytes(), None).await?;
        let after = self.context.backend.now().since(start);
        Ok(if found == Release::Released { Revoked::Released { after } } else { Revoked::Changed })
    }

    async fn take(
        &self,
        held: &HeldLock,
        owner: Vec<u8>,
        pause: Option<&Arc<Attempt>>,
    ) -> Result<Release, LockError> {
        let context = &self.context;
        let key = held.key();
        let taken = match pause {
            None => {
                let forced = operations(context)?.force(key.clone(), owner);
                context.request(Slot::of(key), forced).await
            }
            Some(pause) => self.leave_to(pause, &self.text_of(held, owner)?).await,
        };
        taken.map_err(|fault| self.fault(held, fault))
    }

    async fn send(
        &self,
        held: &HeldLock,
        verb: Verb,
        reason: &Reason,
    ) -> Result<Audience, LockError> {
        let owner = held.owner.as_ref().map(|owner| owner.text().to_owned());
        let Some(owner) = owner.filter(|owner| has_process(owner)) else {
            return Ok(Audience::Silence);
        };
        let key = held.key().clone();
        let reason = reason.clone();
        let context = &self.context;
        let slot = Slot::of(&key);
        let sent = operations(context)?.send(Revocation { verb, owner, key, reason });
        let sent = context.request(slot, sent).await;
        sent.map_err(|fault| self.fault(held, fault))
    }

    async fn seen(&self, held: &HeldLock) -> Result<Option<Seen>, LockError> {
        let seen = operations(&self.context)?.look(held.key().clone()).await;
        seen.map_err(|fault| self.fault(held, fault))
    }

    /// Returns what is under the key if it is still this hold.
    async fn still_held(&self, held: &HeldLock) -> Result<Option<Seen>, LockError> {
        let is_same = |seen: &Seen| match (&held.owner, &seen.owner) {
            (Some(listed), Some(now)) => listed.is_of(now),
            (listed, now) => listed == now,
        };
        Ok(self.seen(held).await?.filter(is_same))
    }

    fn fault(&self, held: &HeldLock, fault: Fault) -> LockError {
        fault.about(held.key(), &self.context.reporting)
    }

    pub(super) fn no_lock(&self, held: &HeldLock) -> LockError {
        let message = "the key holds data that is no lock; it was not changed";
        let error = LockError::new(LockErrorKind::WrongType, message);
        self.context.reporting.redact(error.with_key(held.key().as_str()))
    }
}

/// A holder listens about a second after its grant, and a second after a broken subscription, as in a failover; longer
/// on a busy machine.
const LISTENS_WITHIN: Duration = Duration::from_secs(3);

/// The pauses between two checks of the owner double from this, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(5);

const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The outcome of a request to a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revoked {
    /// The holder has released the lock, and the next one may have it.
    ///
    /// With `min_hold` it stays taken until that is over.
    Released {
        /// The time from the request to the release.
        after: Duration,
    },
    /// The request was sent, as far as is known, and the holder still has the lock.
    ///
    /// Its body cannot be dropped, or checks for no request. Or its locker does not listen, but another locker of its
    /// process does, or the server is a cluster, where no node knows all listeners.
    NotReleased {
        /// The time for which the release was awaited.
        waited: Duration,
    },
    /// No request was possible, because no process listens.
    ///
    /// The lock has no `renew`, is kept by `min_hold`, or is one of another library. Or its process has ended, has
    /// another namespace, or did not subscribe within the grace.
    NotListening {
        /// The time after which the lock ends unless it is renewed; `None` if it has no end.
        remaining: Option<Duration>,
    },
    /// The lock had changed hands before, and no request was sent.
    Changed,
}

/// The outcome of taking a lock away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forced {
    /// The holder no longer has the lock, and the first waiter has it.
    Released,
    /// The lock had changed hands before, and was not changed.
    Changed,
}

fn has_process(owner: &str) -> bool {
    let acquired = TokenParts::parse(owner);
    acquired.is_some_and(|acquired| acquired.mark.is_none())
}

/// Whether it is kept now by its `min_hold`, and was acquired by that owner.
fn is_kept_of(owner: &str, now: &str) -> bool {
    let is_kept = |owner| TokenParts::parse(owner).is_some_and(|acquired| acquired.is_kept());
    let token = if is_kept(owner) { owner.get(1..) } else { Some(owner) };
    is_kept(now) && now.get(1..) == token
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::backend::BackendContext;
    use crate::core::naming::namespace::Namespace;
    use crate::core::process::clock::tokio_time;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Ttl;
    use crate::core::types::owner::OwnerToken;

    #[test]
    fn a_lock_is_kept_with_and_without_waiters() {
        let token = "0123456789abcdef.1700000000000000";
        let marked = |mark: &str| format!("{mark}{token} req-1");
        for owner in ["", "~", "="].map(marked) {
            assert!(is_kept_of(&owner, &marked("~")) && is_kept_of(&owner, &marked("=")));
            assert!(!is_kept_of(&owner, &marked("")) && !is_kept_of(&owner, "~another"));
            assert!(!is_kept_of(&owner, "~fedcba9876543210.1700000000000000 req-1"));
            assert!(!is_kept_of(&owner, &marked("@")));
        }
        assert!(has_process(token) && !has_process(&marked("~")) && !has_process("another"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_does_not_listen_is_waited_for_three_seconds() {
        let context = Arc::new(BackendContext::in_memory());
        let admin = Admin::new(Arc::clone(&context), String::new(), Namespace::default());
        let key = LockKey::prefixed("", "k").unwrap();
        let owner = OwnerToken::draw(None).unwrap();
        let attempt = Arc::new(Attempt::owned(key, Ttl::MAX, owner));
        context.backend.try_acquire(Arc::clone(&attempt)).await.unwrap();
        let held = admin.holder("k").await.unwrap().unwrap();
        for (grace, waits) in [(60, 3), (1, 1)] {
            let begun = tokio_time();
            let asked = admin.revoke(&held, "why", Duration::from_secs(grace)).await;
            assert!(matches!(asked, Ok(Revoked::NotListening { .. })), "{asked:?}");
            let waited = tokio_time().since(begun).as_millis();
            // The last pause is up to a quarter of a second.
            assert!((waits * 1_000..waits * 1_000 + 300).contains(&waited), "{waited}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_of_another_library_is_not_waited_for() {
        let context = Arc::new(BackendContext::in_memory());
        let admin = Admin::new(Arc::clone(&context), String::new(), Namespace::default());
        let owner = OwnerToken::received("another");
        let attempt = Attempt::owned(LockKey::from_static("k"), Ttl::MAX, owner);
        context.backend.try_acquire(Arc::new(attempt)).await.unwrap();
        let held = admin.holder("k").await.unwrap().unwrap();
        let begun = tokio_time();
        let asked = admin.revoke(&held, "why", Duration::from_secs(60)).await;
        assert!(matches!(asked, Ok(Revoked::NotListening { .. })), "{asked:?}");
        assert!(tokio_time().since(begun).is_zero());
    }

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<Revoked>();
    }
}
