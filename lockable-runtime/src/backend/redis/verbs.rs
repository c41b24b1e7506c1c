//! The verbs of a lock, each as one request and, while its slot moves key by key, in parts.

use std::sync::Arc;

use super::batch::acquire::acquire;
use super::batch::releases;
use super::fault;
use super::route::{Keys, Request, Router, send_one};
use super::wire::command;
use super::wire::connection::Connection;
use super::wire::meaning::Failed;
use super::wire::permits::Asker;
use super::wire::script::{self, Call, QueueReply};
use crate::backend::{self, Acquisition, Attempt, Enqueued, Fault, Grant, Renewed};
use crate::types::clock::boot_time;
use crate::types::key::LockKey;

pub(super) struct Acquire<'a>(pub(super) &'a Attempt);

impl Request for Acquire<'_> {
    type Found = Acquisition;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Acquisition, Failed> {
        acquire(connection, self.0).await
    }

    /// Permits are tried one after the other.
    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Acquisition, Failed> {
        if self.0.lane.is_none() {
            return Ok(router.acquire_in_parts(self.0).await?);
        }
        self.0.mark_sent(boot_time());
        for attempt in own_first(router, self.0).await? {
            let found = router.acquire_in_parts(&attempt).await?;
            if let Acquisition::Granted(grant) = found {
                return Ok(Acquisition::Granted(grant.of_permit(Some(attempt.key.clone()))));
            }
        }
        Ok(Acquisition::Busy)
    }
}

/// The permits that an attempt may have, in their order, but first the one that it has: a request that is repeated may
/// have been granted one already.
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

pub(super) struct Release<'a>(pub(super) &'a Arc<Attempt>);

impl Request for Release<'_> {
    type Found = backend::Release;

    async fn send(
        &self,
        connection: &Arc<Connection>,
        _: bool,
    ) -> Result<backend::Release, Failed> {
        match Asker::of(self.0) {
            None => releases::release(connection, self.0).await,
            Some(asker) => Box::pin(release_any(connection, asker)).await,
        }
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<backend::Release, Failed> {
        if self.0.lane.is_none() {
            return Ok(router.release_in_parts(self.0).await?);
        }
        let mut released = backend::Release::Absent;
        for attempt in self.0.permits() {
            if router.release_in_parts(&attempt).await? == backend::Release::Released {
                released = backend::Release::Released;
            }
        }
        Ok(released)
    }
}

/// Ends whatever an attempt has been granted of which no answer says which permit it is.
async fn release_any(
    connection: &Connection,
    asker: Asker<'_>,
) -> Result<backend::Release, Failed> {
    let had = connection.run(asker.leave(&connection.names)).await?;
    Ok(if had { backend::Release::Released } else { backend::Release::Absent })
}

/// A release that queues another attempt of this process.
pub(super) struct ReleaseTo<'a> {
    pub(super) router: &'a Router,
    pub(super) attempt: &'a Attempt,
    pub(super) next: &'a Attempt,
}

impl Request for ReleaseTo<'_> {
    type Found = (backend::Release, Option<Grant>);

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Self::Found, Failed> {
        let Self { router, attempt, next } = *self;
        router.topology.start_listening_for(next);
        let sent = boot_time();
        next.mark_sent(sent);
        let (found, handed) = releases::release_one(connection, attempt, Some(next)).await?;
        Ok((found, handed.map(|fence| Grant::answered(next, fence, sent))))
    }

    /// The next attempt waits in no queue, and tries again within a second.
    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Self::Found, Failed> {
        Ok((router.release_in_parts(self.attempt).await?, None))
    }
}

/// Acquires the lock when the attempt's turn has come, or queues the attempt.
pub(super) struct Enqueue<'a> {
    pub(super) router: &'a Router,
    pub(super) attempt: &'a Arc<Attempt>,
}

impl Request for Enqueue<'_> {
    type Found = Enqueued;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Enqueued, Failed> {
        let Self { router, attempt } = *self;
        router.topology.listen_for(attempt).await;
        if attempt.is_withdrawn() {
            return Ok(Enqueued::Queued { remaining: None });
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
            QueueReply::Granted { fence } => {
                Enqueued::Granted(Grant::answered(attempt, fence, sent).of_permit(permit))
            }
            QueueReply::Queued { remaining } => Enqueued::Queued { remaining },
            QueueReply::Done { remaining } => Enqueued::Done { remaining },
        })
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Enqueued, Failed> {
        if self.attempt.lane.is_none() {
            return Ok(router.enqueue_in_parts(self.attempt).await?);
        }
        self.attempt.mark_sent(boot_time());
        for attempt in own_first(router, self.attempt).await? {
            let found = router.enqueue_in_parts(&attempt).await?;
            if let Enqueued::Granted(grant) = found {
                return Ok(Enqueued::Granted(grant.of_permit(Some(attempt.key.clone()))));
            }
        }
        Ok(Enqueued::Queued { remaining: None })
    }
}

pub(super) struct Leave<'a>(pub(super) &'a Attempt);

impl Request for Leave<'_> {
    type Found = ();

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<(), Failed> {
        match Asker::of(self.0) {
            None => connection.run(script::leave(&connection.names, self.0)).await,
            Some(asker) => connection.run(asker.leave(&connection.names)).await.map(drop),
        }
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<(), Failed> {
        if self.0.lane.is_none() {
            return Ok(router.leave_in_parts(self.0).await?);
        }
        for attempt in self.0.permits() {
            router.leave_in_parts(&attempt).await?;
        }
        Ok(())
    }
}

/// Gives the lock from one owner token to another.
pub(super) struct Transfer<'a> {
    pub(super) from: &'a Attempt,
    pub(super) to: &'a Attempt,
}

impl Request for Transfer<'_> {
    type Found = Renewed;
    const KEYS: Keys = Keys::One;

    async fn send(&self, connection: &Arc<Connection>, is_asking: bool) -> Result<Renewed, Failed> {
        let now = boot_time();
        let since = self.to.mark_sent(now);
        let Call { command, read } = script::transfer(&connection.names, self.from, self.to);
        let reply = send_one(connection, command, is_asking).await?;
        read(reply).map_err(|error| {
            // As of an acquisition.
            let proves_absence = since == now && !fault::is_no_answer(&error);
            connection.failed(&error).map(|fault| Fault { proves_absence, ..fault })
        })
    }
}

/// Whether anything is under one of these keys, which are in one slot.
pub(super) struct AnyTaken<'a>(pub(super) &'a [LockKey]);

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
