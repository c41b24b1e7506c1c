//! The verbs of a lock in Redis, each as one request, or in parts while its slot moves key by key.

use std::sync::Arc;

use super::batch::acquire::acquire;
use super::batch::releases;
use super::route::{KeyCount, Ran, Request, Router, send_one, sure};
use super::wire::command;
use super::wire::connection::Connection;
use super::wire::meaning::Failed;
use super::wire::permits::Asker;
use super::wire::script::{self, ScriptCall};
use super::{Redis, fault};
use crate::core::backend::epochs::Epoch;
use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Environment as _, Fault, Grant, Release, Remaining,
    Renewal, Renewed, Reply, Transferred,
};
use crate::core::process::clock::boot_time;
use crate::core::types::key::LockKey;
use crate::core::types::owner::Held;
use crate::core::types::slot::Slot;

impl Backend for Redis {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<AcquireReply> {
        let this = self.clone();
        Box::pin(async move {
            let Ran { found, epoch, .. } =
                this.router.run(attempt.slot, &AcquireVerb(&attempt)).await?;
            match found {
                AcquireReply::Granted(grant) => {
                    this.confirmed(attempt, grant, epoch).await.map(AcquireReply::Granted)
                }
                found => Ok(found),
            }
        })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let this = self.clone();
        Box::pin(async move {
            let ran = this.router.run(attempt.slot, &ReleaseOne(&attempt)).await?;
            let found = sure(ran.found, &ran.before, this.name())?;
            this.ended(attempt, found);
            Ok(found)
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let this = self.clone();
        Box::pin(async move {
            let release = ReleaseTo { router: &this.router, attempt: &attempt, next: &next };
            let Ran { found, before, epoch } = this.router.run(attempt.slot, &release).await?;
            let (found, grant) = found;
            let found = sure(found, &before.map(|(found, _)| found), this.name())?;
            this.ended(attempt, found);
            let grant = match grant {
                // One that does not count is as if it were not known: its line asks again.
                Some(grant) => this.confirmed(next, grant, epoch).await.ok(),
                None => None,
            };
            Ok((found, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let this = self.clone();
        Box::pin(async move {
            let enqueue = Enqueue { router: &this.router, attempt: &attempt };
            let Ran { found, epoch, .. } = this.router.run(attempt.slot, &enqueue).await?;
            match found {
                Enqueued::Granted(grant) => {
                    this.confirmed(attempt, grant, epoch).await.map(Enqueued::Granted)
                }
                waiting => Ok(waiting),
            }
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move {
            this.router.run(attempt.slot, &Leave(&attempt)).await?;
            this.ended(attempt, Release::Released);
            Ok(())
        })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let router = self.router.clone();
        Box::pin(async move {
            let outcomes = router.renew(&renewals).await;
            if router.confirms() {
                return Ok(router.confirm_each(renewals, outcomes).await);
            }
            Ok(outcomes)
        })
    }

    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Transferred> {
        let router = self.router.clone();
        Box::pin(async move {
            let transfer = Transfer { from: &from, to: &to };
            let Ran { found, epoch, .. } = router.run(from.slot, &transfer).await?;
            if found == Renewed::Held && router.confirms() {
                Box::pin(router.confirm(to)).await?;
            }
            Ok(Transferred { found, epoch })
        })
    }

    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64> {
        let router = self.router.clone();
        Box::pin(async move { router.count(&attempt).await })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let router = self.router.clone();
        Box::pin(async move { router.inspect(&key).await })
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        let router = self.router.clone();
        Box::pin(async move {
            let Some(slot) = keys.first().map(Slot::of) else { return Ok(false) };
            Ok(router.run(slot, &AnyTaken(&keys)).await?.found)
        })
    }
}

impl Redis {
    /// The grant, once it is confirmed, valid during the epoch in which it was made.
    async fn confirmed(
        &self,
        attempt: Arc<Attempt>,
        grant: Grant,
        epoch: Option<Arc<Epoch>>,
    ) -> Result<Grant, Fault> {
        if self.router.confirms() {
            let permit = grant.permit().cloned().map(|permit| attempt.with_permit(permit));
            Box::pin(self.router.confirm(permit.unwrap_or(attempt))).await?;
        }
        Ok(grant.of_epoch(epoch))
    }

    /// Notes a release or a withdrawal that the server has answered.
    fn ended(&self, attempt: Arc<Attempt>, found: Release) {
        if let (Release::Released, Some(latest)) = (found, &self.topology().latest_releases) {
            latest.add(attempt, boot_time());
        }
    }
}

struct AcquireVerb<'a>(&'a Attempt);

impl Request for AcquireVerb<'_> {
    type Found = AcquireReply;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<AcquireReply, Failed> {
        acquire(connection, self.0).await
    }

    /// Permits are tried one after the other.
    async fn in_parts(&self, router: &Router, _: Failed) -> Result<AcquireReply, Failed> {
        if self.0.local_permit.is_none() {
            return Ok(router.acquire_in_parts(self.0).await?);
        }
        self.0.mark_sent(boot_time());
        for attempt in own_first(router, self.0).await? {
            let found = router.acquire_in_parts(&attempt).await?;
            if let AcquireReply::Granted(grant) = found {
                return Ok(AcquireReply::Granted(grant.of_permit(Some(attempt.key.clone()))));
            }
        }
        Ok(AcquireReply::Busy)
    }
}

/// The permits that an attempt may have, its own first: a repeated request may have been granted one already.
async fn own_first(router: &Router, attempt: &Attempt) -> Result<Vec<Arc<Attempt>>, Failed> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for permit in attempt.permits() {
        let held = router.inspect(&permit.key).await?;
        let is_own = held.is_some_and(|held| held.owner.text() == permit.owner.as_ref());
        if is_own { &mut own } else { &mut others }.push(permit);
    }
    own.append(&mut others);
    Ok(own)
}

struct ReleaseOne<'a>(&'a Arc<Attempt>);

impl Request for ReleaseOne<'_> {
    type Found = Release;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Release, Failed> {
        match Asker::of(self.0) {
            None => releases::release(connection, self.0).await,
            Some(asker) => Box::pin(release_any(connection, asker)).await,
        }
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Release, Failed> {
        if self.0.local_permit.is_none() {
            return Ok(router.release_in_parts(self.0).await?);
        }
        let mut released = Release::Absent;
        for attempt in self.0.permits() {
            if router.release_in_parts(&attempt).await? == Release::Released {
                released = Release::Released;
            }
        }
        Ok(released)
    }
}

/// Ends any permit of the attempt: no reply said which it was granted.
async fn release_any(connection: &Connection, asker: Asker<'_>) -> Result<Release, Failed> {
    let had = connection.run(asker.leave(&connection.names)).await?;
    Ok(if had { Release::Released } else { Release::Absent })
}

struct ReleaseTo<'a> {
    router: &'a Router,
    attempt: &'a Attempt,
    next: &'a Attempt,
}

impl Request for ReleaseTo<'_> {
    type Found = (Release, Option<Grant>);

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Self::Found, Failed> {
        let Self { router, attempt, next } = *self;
        router.topology.start_listening_for(next);
        let sent = boot_time();
        next.mark_sent(sent);
        let (found, handed) = releases::release_one(connection, attempt, Some(next)).await?;
        Ok((found, handed.map(|fence| Grant::answered(next, fence, sent))))
    }

    /// The next attempt is not queued, and tries again within a second.
    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Self::Found, Failed> {
        Ok((router.release_in_parts(self.attempt).await?, None))
    }
}

/// Acquires the lock if the attempt's turn has come, or queues the attempt.
struct Enqueue<'a> {
    router: &'a Router,
    attempt: &'a Arc<Attempt>,
}

impl Request for Enqueue<'_> {
    type Found = Enqueued;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Enqueued, Failed> {
        let Self { router, attempt } = *self;
        router.topology.listen_for(attempt).await;
        if attempt.is_withdrawn() {
            return Ok(Enqueued::Queued(Remaining::Unknown));
        }
        let sent = boot_time();
        attempt.mark_sent(sent);
        let words = |fault| fault::of_queue(fault, &connection.names.namespace, attempt);
        let place = match Asker::of(attempt) {
            None => {
                let call = script::enqueue(&connection.names, attempt);
                connection.run(call).await.map(|place| (place, None))
            }
            Some(asker) => connection.run(asker.enqueue(&connection.names)).await,
        };
        let (place, permit) = place.map_err(|failed| failed.map(words))?;
        Ok(match place {
            Enqueued::Granted(fence) => {
                Enqueued::Granted(Grant::answered(attempt, fence, sent).of_permit(permit))
            }
            Enqueued::Queued(remaining) => Enqueued::Queued(remaining),
            Enqueued::Done(remaining) => Enqueued::Done(remaining),
        })
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Enqueued, Failed> {
        if self.attempt.local_permit.is_none() {
            return Ok(router.enqueue_in_parts(self.attempt).await?);
        }
        self.attempt.mark_sent(boot_time());
        for attempt in own_first(router, self.attempt).await? {
            let found = router.enqueue_in_parts(&attempt).await?;
            if let Enqueued::Granted(grant) = found {
                return Ok(Enqueued::Granted(grant.of_permit(Some(attempt.key.clone()))));
            }
        }
        Ok(Enqueued::Queued(Remaining::Unknown))
    }
}

struct Leave<'a>(&'a Attempt);

impl Request for Leave<'_> {
    type Found = ();

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<(), Failed> {
        match Asker::of(self.0) {
            None => connection.run(script::leave(&connection.names, self.0)).await,
            Some(asker) => connection.run(asker.leave(&connection.names)).await.map(drop),
        }
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<(), Failed> {
        if self.0.local_permit.is_none() {
            return Ok(router.leave_in_parts(self.0).await?);
        }
        for attempt in self.0.permits() {
            router.leave_in_parts(&attempt).await?;
        }
        Ok(())
    }
}

/// Gives the lock from one owner token to another.
struct Transfer<'a> {
    from: &'a Attempt,
    to: &'a Attempt,
}

impl Request for Transfer<'_> {
    type Found = Renewed;
    const KEYS: KeyCount = KeyCount::One;

    async fn send(&self, connection: &Arc<Connection>, is_asking: bool) -> Result<Renewed, Failed> {
        let now = boot_time();
        let since = self.to.mark_sent(now);
        let ScriptCall { command, read } = script::transfer(&connection.names, self.from, self.to);
        let reply = send_one(connection, command, is_asking).await?;
        read(reply).map_err(|error| {
            // As of an acquisition.
            let proves_absence = since == now && !fault::is_no_answer(&error);
            connection.failed(&error).map(|fault| Fault { proves_absence, ..fault })
        })
    }
}

/// Whether any of these keys, all in one slot, exists.
struct AnyTaken<'a>(&'a [LockKey]);

impl Request for AnyTaken<'_> {
    type Found = bool;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<bool, Failed> {
        let reply = connection.evaluate(&command::count_taken(self.0)).await?;
        let taken = command::integer(&reply).map_err(|error| connection.failed(&error))?;
        Ok(taken > 0)
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<bool, Failed> {
        for key in self.0 {
            if router.inspect(key).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
