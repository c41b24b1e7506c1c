//! The verbs of a lock whose slot moves, by requests of one key each, as `redis/route/in_parts.rs`.

use std::pin::Pin;
use std::sync::Arc;

use super::client::{SERVER, sent};
use super::nodes::Part;
use super::process::{Ask, Asked, NoAnswer, Process};
use super::server::Does;
use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Fault, Grant, Release, Remaining, Renewal, Renewed,
    Reply, Reserved,
};
use crate::core::memory::Memory;
use crate::core::process::clock::tokio_time;
use crate::core::types::key::LockKey;
use crate::core::types::slot::Slot;
use crate::redis::sure;

impl Process {
    pub(super) async fn acquire_in_parts(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
    ) -> Result<AcquireReply, Fault> {
        if attempt.local_permit.is_none() {
            return self.acquire_one(attempt).await;
        }
        attempt.mark_sent(tokio_time());
        for permit in self.own_first(attempt).await? {
            let found = self.acquire_one(&permit).await?;
            if let AcquireReply::Granted(grant) = found {
                return Ok(AcquireReply::Granted(grant.of_permit(Some(permit.key.clone()))));
            }
        }
        Ok(AcquireReply::Busy)
    }

    /// The permit that the attempt has comes first.
    async fn own_first(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
    ) -> Result<Vec<Arc<Attempt>>, Fault> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for permit in attempt.permits() {
            let check = |store: &Arc<Memory>| {
                let (store, permit) = (Arc::clone(store), Arc::clone(&permit));
                later(move || store.is_own(&permit))
            };
            let is_own = self.about_lock("owner", Does::Reads, &permit, check).await?.answer;
            if is_own { &mut own } else { &mut others }.push(permit);
        }
        own.append(&mut others);
        Ok(own)
    }

    async fn acquire_one(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<AcquireReply, Fault> {
        if let Some(found) = self.set(attempt).await? {
            return Ok(found);
        }
        let fence = Reserved::single(self.count(attempt).await?);
        let check = |store: &Arc<Memory>| {
            let (store, attempt) = (Arc::clone(store), Arc::clone(attempt));
            later(move || store.is_own(&attempt))
        };
        let is_own = self.about_lock("owner", Does::Reads, attempt, check).await?.answer;
        let grant = Grant::answered(attempt, fence, attempt.sent_at().unwrap());
        Ok(if is_own { AcquireReply::Granted(grant) } else { AcquireReply::Busy })
    }

    /// Acquires the lock, or waits in no queue.
    pub(super) async fn enqueue_in_parts(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
    ) -> Result<Enqueued, Fault> {
        self.world.count("calls that wait while a slot moves");
        if attempt.local_permit.is_none() {
            return self.enqueue_one(attempt).await;
        }
        self.world.waits_in_parts(attempt);
        attempt.mark_sent(tokio_time());
        for permit in self.own_first(attempt).await? {
            let found = self.enqueue_one(&permit).await?;
            if let Enqueued::Granted(grant) = found {
                return Ok(Enqueued::Granted(grant.of_permit(Some(permit.key.clone()))));
            }
        }
        Ok(Enqueued::Queued(Remaining::Unknown))
    }

    async fn enqueue_one(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<Enqueued, Fault> {
        let busy = Enqueued::Queued(Remaining::Unknown);
        match self.set(attempt).await? {
            None => {}
            Some(AcquireReply::Done) => return Ok(Enqueued::Done(Remaining::Unknown)),
            Some(_) => return Ok(busy),
        }
        let sent = tokio_time();
        let renewal = Renewal::new(attempt, Some(attempt.ttl), sent);
        Ok(match self.renew_in_parts(&renewal).await? {
            Renewed::Held => {
                let fence = Reserved::single(self.count(attempt).await?);
                drop(self.leave_queue(attempt).await);
                Enqueued::Granted(Grant::answered(attempt, fence, sent))
            }
            Renewed::Absent | Renewed::Taken => busy,
        })
    }

    /// Returns the owner, unless it is the attempt.
    async fn set(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<Option<AcquireReply>, Fault> {
        attempt.mark_sent(tokio_time());
        let set = |store: &Arc<Memory>| {
            let (store, attempt) = (Arc::clone(store), sent(attempt));
            let world = Arc::clone(&self.world);
            later(move || {
                let found = store.set_lock(&attempt);
                if found.is_none() {
                    let server = usize::from(!Arc::ptr_eq(&store, world.store(0)));
                    world.takes(server, &attempt.key, attempt.owner.as_ref());
                }
                found
            })
        };
        Ok(self.about_lock("set", Does::Grows, attempt, set).await?.answer)
    }

    async fn count(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<u64, Fault> {
        let part = Part::Counter(attempt.slot);
        let count = |store: &Arc<Memory>| {
            let (store, attempt) = (Arc::clone(store), Arc::clone(attempt));
            let world = Arc::clone(&self.world);
            later(move || {
                let first = store.count(&attempt);
                let server = usize::from(!Arc::ptr_eq(&store, world.store(0)));
                let fence = Reserved::single(first);
                world.counted(server, &attempt.key, attempt.owner.as_ref(), fence);
                first
            })
        };
        Ok(self.about("count", Does::Grows, attempt.slot, part, count).await?.answer)
    }

    async fn leave_queue(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<(), Fault> {
        let part = Part::Queue(attempt.key.clone());
        let leave = |store: &Arc<Memory>| {
            let (store, attempt) = (Arc::clone(store), Arc::clone(attempt));
            later(move || store.leave_queue(&attempt))
        };
        self.about("leave queue", Does::Writes, attempt.slot, part, leave).await.map(drop)
    }

    /// Frees the lock; waiters try again within a second.
    pub(super) async fn release_in_parts(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
    ) -> Result<Release, Fault> {
        if attempt.local_permit.is_none() {
            let Asked { answer, before, .. } = self.free(attempt).await?;
            return sure(answer, &before, SERVER);
        }
        let mut released = Release::Absent;
        for permit in attempt.permits() {
            if self.free(&permit).await?.answer == Release::Released {
                released = Release::Released;
            }
        }
        Ok(released)
    }

    async fn free(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Result<Asked<Release>, Fault> {
        let free = |store: &Arc<Memory>| {
            let (store, attempt) = (Arc::clone(store), sent(attempt));
            later(move || store.free_one(&attempt))
        };
        self.about_lock("free", Does::Writes, attempt, free).await
    }

    /// Frees a lock that was granted meanwhile.
    pub(super) async fn leave_in_parts(
        self: &Arc<Self>,
        attempt: &Arc<Attempt>,
    ) -> Result<(), Fault> {
        let permits: Vec<_> = match attempt.local_permit {
            None => vec![Arc::clone(attempt)],
            Some(_) => attempt.permits().collect(),
        };
        for one in permits {
            drop(self.leave_queue(&one).await);
            self.free(&one).await?;
        }
        Ok(())
    }

    pub(super) async fn renew_in_parts(
        self: &Arc<Self>,
        renewal: &Renewal,
    ) -> Result<Renewed, Fault> {
        let renew = |store: &Arc<Memory>| self.renewed(store, vec![renewal.clone()]);
        let asked = self.about_lock("renew", Does::Writes, &renewal.attempt, renew).await?;
        asked.answer.into_iter().next().unwrap()
    }

    pub(super) async fn is_any_taken_in_parts(
        self: &Arc<Self>,
        keys: &[LockKey],
    ) -> Result<bool, Fault> {
        for key in keys {
            let part = Part::Lock(key.clone());
            let look = |store: &Arc<Memory>| store.inspect(key.clone());
            if self.about("look", Does::Reads, Slot::of(key), part, look).await?.answer.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn about_lock<T: Send + 'static>(
        self: &Arc<Self>,
        what: &'static str,
        does: Does,
        attempt: &Attempt,
        request: impl Fn(&Arc<Memory>) -> Reply<T> + Send + Sync,
    ) -> Result<Asked<T>, Fault> {
        let part = Part::Lock(attempt.key.clone());
        self.about(what, does, attempt.slot, part, request).await
    }

    fn about<'a, T: Send + 'static>(
        self: &'a Arc<Self>,
        what: &'static str,
        does: Does,
        slot: Slot,
        part: Part,
        request: impl Fn(&Arc<Memory>) -> Reply<T> + Send + Sync + 'a,
    ) -> Pin<Box<dyn Future<Output = Result<Asked<T>, Fault>> + Send + 'a>> {
        let ask = Ask { what, slot, does, part: Some(part) };
        Box::pin(async move { self.ask(ask, request).await.map_err(NoAnswer::fault) })
    }
}

/// Runs when the server serves the request.
fn later<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Reply<T> {
    Box::pin(async move { Ok(act()) })
}
