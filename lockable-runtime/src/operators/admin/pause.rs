//! Taking a lock away into a pause, and moving to the front of its queue.
//!
//! See "How does a pause keep a lock taken?" in DESIGN.md.

use std::sync::Arc;
use std::time::Duration;

use super::{Admin, Forced, HeldLock};
use crate::core::backend::{Attempt, Fault, Release, Renewed};
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::id::ProcessId;
use crate::core::types::owner::{LockValue, OwnerToken};
use crate::core::types::pause;
use crate::core::types::reason::Reason;
use crate::core::types::slot::Slot;
use crate::operators::contract::operations;

impl Admin {
    /// Takes the lock away as [`force_release`](Admin::force_release) does, and leaves it
    /// [paused](crate::HolderKind::Paused) for `length`, so that no call has it.
    ///
    /// If the data cannot check fencing tokens, this gives the old holder time to notice the loss and stop. A `length`
    /// a little above its `expire` is enough, unless its process is paused or its body cannot be dropped.
    ///
    /// # Guarantees
    /// As [`force_release`](Admin::force_release): only this hold ends, in one step with the start of the pause. The
    /// pause ends as that of [`LockGuard::into_pause`](crate::LockGuard::into_pause) does.
    ///
    /// # Errors
    /// - As [`force_release`](Admin::force_release).
    /// - [`InvalidOption`](LockErrorKind::InvalidOption) for a `length` under 10 ms or over 24 hours, and for a value
    ///   of another library that is no text or has 1 KiB or more.
    ///
    /// # Cancel safety
    /// As [`force_release`](Admin::force_release).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use std::time::Duration;
    /// use lockable_runtime::{HolderKind, admin::Forced};
    ///
    /// let guard = locker.lock("order:7").acquire().await?;
    /// let admin = locker.admin();
    /// let held = admin.holder("order:7").await?.expect("it is held");
    /// let forced = admin.force_pause(&held, Duration::from_secs(30), "its host is gone").await?;
    /// assert_eq!(forced, Forced::Released);
    ///
    /// let paused = admin.holder("order:7").await?.expect("it is paused");
    /// assert_eq!(paused.holder().kind(), HolderKind::Paused);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn force_pause(
        &self,
        held: &HeldLock,
        length: Duration,
        reason: impl AsRef<str>,
    ) -> Result<Forced, LockError> {
        let reason = Reason::new(reason.as_ref());
        let about = |error: LockError| error.with_key(held.key().as_str());
        let length = pause::length(length).map_err(about)?;
        let token = pause::token(length, &reason).map_err(about)?;
        let pause = Arc::new(Attempt::owned(held.key().clone(), length, token));
        self.force(held, &reason, Some(&pause)).await
    }

    /// Moves the places of this process to the front of this key's queue; returns whether it has any there.
    ///
    /// A permit has the queue of all permits of its key.
    ///
    /// # Errors
    /// As [`revoke`](Admin::revoke).
    ///
    /// # Cancel safety
    /// Once the future was polled, the places may have been moved.
    #[doc(hidden)]
    pub async fn come_first(&self, key: impl AsRef<str>) -> Result<bool, LockError> {
        let key = self.key(key.as_ref())?;
        let operations = operations(&self.context)?;
        let moved = operations.advance(key.clone(), ProcessId::current()?).await;
        moved.map_err(|fault| fault.about(&key, &self.context.reporting))
    }

    /// Replaces the lock's owner token by that of the pause.
    pub(super) async fn leave_to(
        &self,
        pause: &Arc<Attempt>,
        owner: &str,
    ) -> Result<Release, Fault> {
        let context = &self.context;
        let held = Attempt::owned(pause.key.clone(), pause.ttl, OwnerToken::received(owner));
        let transfer = context.backend.transfer(Arc::new(held), Arc::clone(pause));
        context.request(Slot::of(&pause.key), transfer).await.map(|answer| match answer.found {
            Renewed::Held => Release::Released,
            Renewed::Absent => Release::Absent,
            Renewed::Taken => Release::Taken,
        })
    }

    /// # Errors
    /// For what another library wrote, if it is no text, or was not read to its end.
    pub(super) fn text_of(&self, held: &HeldLock, owner: Vec<u8>) -> Result<String, LockError> {
        let is_whole = owner.len() < LockValue::MAX_BYTES;
        let text = is_whole.then(|| String::from_utf8(owner).ok()).flatten();
        text.ok_or_else(|| {
            let error = LockError::new(LockErrorKind::InvalidOption, NO_TEXT)
                .advise("take it away without a pause");
            self.context.reporting.redact(error.with_key(held.key().as_str()))
        })
    }
}

const NO_TEXT: &str = "the lock has a value of another library that is no text, or has 1 KiB or more, so no pause can \
                       follow it; it was not changed";
