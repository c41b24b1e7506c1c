//! What this project's own test suites need to see of the backends.

#![expect(missing_debug_implementations, reason = "no test prints them")]

use std::fmt::Debug;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::core::backend::{
    AcquireReply, Attempt, Backend, Enqueued, Events, Fault, Grant, Remaining, Renewal, WakeUp,
};
use crate::core::locker::Locker;
use crate::core::naming::namespace::Namespace;
use crate::core::process::clock::Moment;
use crate::core::request_id::RequestId;
use crate::core::settings::Settings;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::{Deadlines, Ttl};
use crate::core::types::owner::{Origin, OwnerToken, ReleasedBy};
use crate::core::types::permit::{LocalNumber, LocalPermit, PermitsKey};
use crate::core::types::random::random;
use crate::core::types::slot::Slot;
use crate::core::types::ticket::Ticket;
use crate::open::open;

/// The verbs of the backend at a URL, as one process has them; compared between backends.
pub struct Verbs {
    backend: Arc<dyn Backend>,
    origin: Origin,
    listener: Option<Arc<Sending>>,
}

/// One acquisition, as its backend knows it.
#[derive(Clone)]
pub struct VerbAttempt(Arc<Attempt>);

/// A lock that was granted to a waiter: its owner token, the first and the last of its fencing tokens, and its TTL.
pub type GrantTo = (String, [u64; 2], Duration);

/// A lock that is reserved for a waiter: its key and the waiter's owner token.
pub type WakeUpOf = (String, String);

/// What a request for a place in the queue found.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "these are all answers that there are")]
pub enum Place {
    /// The attempt has the lock.
    Granted(GrantTo),
    /// Another holder has the lock, for this long; `None` is without an end, or not known.
    Queued(Option<Duration>),
}

/// Sends on what it hears.
struct Sending(Sender<WakeUpOf>);

impl Events for Sending {
    fn on_wake_up(&self, WakeUp { key, owner }: WakeUp) {
        // A test that has ended needs no answer.
        drop(self.0.send((key.as_str().to_owned(), owner.as_ref().to_owned())));
    }
}

fn grant_to(attempt: &VerbAttempt, grant: &Grant) -> GrantTo {
    let tokens = [grant.fence().first, grant.fence().last()];
    (attempt.owner().to_owned(), tokens, attempt.0.ttl.duration())
}

/// The name of the fence counter that counts the grants of a lock.
///
/// # Errors
/// When the key is invalid.
pub fn fence_counter(key: &str) -> Result<String, LockError> {
    let slot = Slot::of(&LockKey::prefixed("", key)?);
    Ok(Namespace::default().fence(slot).to_string())
}

/// A ticket as this locker would have made it, where each process has a proxy of its own in front of one store.
#[must_use]
pub fn ticket_at(locker: &Locker, ticket: Ticket) -> Ticket {
    ticket.at(locker.context().backend.store())
}

impl VerbAttempt {
    /// The whole name of its lock.
    #[must_use]
    pub fn key(&self) -> &str {
        self.0.key.as_str()
    }

    /// What its holder writes.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.owner.as_ref()
    }

    /// Returns this acquisition as it is once a ticket has its lock, for that long.
    ///
    /// # Errors
    /// When the time is invalid.
    pub fn ticket(&self, ttl: Duration) -> Result<Self, LockError> {
        let (key, owner) = (self.0.key.clone(), self.0.owner.of_ticket());
        Ok(Self(Arc::new(Attempt::owned(key, Ttl::new("ttl", ttl)?, owner))))
    }

    /// Returns this acquisition as one that is known to have the permit of this name.
    ///
    /// # Errors
    /// When the name is invalid.
    pub fn of_permit(&self, name: &str) -> Result<Self, LockError> {
        Ok(Self(self.0.with_permit(LockKey::prefixed("", name)?)))
    }
}

impl Verbs {
    /// Opens the backend without connecting.
    ///
    /// # Errors
    /// When the URL names none.
    pub fn open(url: &str) -> Result<Self, LockError> {
        Self::open_with(url, Deadlines::default())
    }

    /// As [`open`](Self::open), but with another command deadline, and ample time to connect.
    ///
    /// # Errors
    /// When the URL names none.
    pub fn open_impatient(url: &str, command: Duration) -> Result<Self, LockError> {
        let deadlines = Deadlines { command, connect: Duration::from_secs(10) };
        Self::open_with(url, deadlines)
    }

    fn open_with(url: &str, deadlines: Deadlines) -> Result<Self, LockError> {
        let backend = open(&Settings { url: url.to_owned(), deadlines, ..Settings::default() })?;
        Ok(Self { backend, origin: Origin::draw()?, listener: None })
    }

    /// An acquisition of this process that is not requested yet.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn attempt(
        &self,
        key: &str,
        ttl: Duration,
        identity: Option<&str>,
    ) -> Result<VerbAttempt, LockError> {
        self.released_by(ReleasedBy::Script, key, ttl, identity)
    }

    /// As [`attempt`](Self::attempt), but for a single try, which one command may release.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn attempt_of_try(
        &self,
        key: &str,
        ttl: Duration,
        identity: Option<&str>,
    ) -> Result<VerbAttempt, LockError> {
        self.released_by(ReleasedBy::Command, key, ttl, identity)
    }

    /// As [`attempt`](Self::attempt), but for any of the key's `permits` permits.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn attempt_for_permit(
        &self,
        key: &str,
        permits: u8,
        ttl: Duration,
    ) -> Result<VerbAttempt, LockError> {
        let permits_key = PermitsKey::with_key(LockKey::prefixed("", key)?);
        let local_permit =
            Arc::new(LocalPermit { permits_key, number: LocalNumber::OneOf(1), permits });
        let owner = OwnerToken::at(self.origin, random()?, None);
        Ok(VerbAttempt(Arc::new(Attempt::in_local_permit(
            &local_permit,
            Ttl::new("expire", ttl)?,
            owner,
        ))))
    }

    fn released_by(
        &self,
        released_by: ReleasedBy,
        key: &str,
        ttl: Duration,
        identity: Option<&str>,
    ) -> Result<VerbAttempt, LockError> {
        let key = LockKey::prefixed("", key)?;
        let ttl = Ttl::new("expire", ttl)?;
        let identity = identity.map(RequestId::new);
        let owner = OwnerToken::written(self.origin, released_by, random()?, identity.as_ref());
        Ok(VerbAttempt(Arc::new(Attempt::owned(key, ttl, owner))))
    }

    /// What the clock shows that measures leases here, since its start.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.backend.now().as_nanos())
    }

    /// The fencing token; `None` when another holder has the lock.
    ///
    /// # Errors
    /// The backend's.
    pub async fn acquire(&self, attempt: &VerbAttempt) -> Result<Option<u64>, LockError> {
        match self.backend.try_acquire(Arc::clone(&attempt.0)).await.map_err(Fault::into_error)? {
            AcquireReply::Granted(grant) => Ok(Some(grant.fencing_token().into())),
            AcquireReply::Busy | AcquireReply::Done => Ok(None),
        }
    }

    /// Renews for that long, or only checks; returns an outcome for each.
    ///
    /// # Errors
    /// The backend's, or when a lease is invalid.
    pub async fn renew(
        &self,
        batch: &[(VerbAttempt, Option<Duration>)],
    ) -> Result<Vec<impl Debug + use<>>, LockError> {
        self.renew_each(batch).await?.into_iter().collect()
    }

    /// As [`renew`](Self::renew), but with a fault for each renewal.
    ///
    /// # Errors
    /// The backend's, or when a lease is invalid.
    pub async fn renew_each(
        &self,
        batch: &[(VerbAttempt, Option<Duration>)],
    ) -> Result<Vec<Result<impl Debug + use<>, LockError>>, LockError> {
        let now = self.backend.now();
        let renewal = |(attempt, ttl): &(VerbAttempt, Option<Duration>)| {
            let ttl = ttl.map(|ttl| Ttl::new("extend", ttl)).transpose()?;
            Ok(Renewal::new(&attempt.0, ttl, now))
        };
        let batch = batch.iter().map(renewal).collect::<Result<_, LockError>>()?;
        let outcomes = self.backend.renew(batch).await.map_err(Fault::into_error)?;
        Ok(outcomes.into_iter().map(|outcome| outcome.map_err(Fault::into_error)).collect())
    }

    /// Releases all at once, and leaves each lock taken for that long. One without a minimum hold may be batched.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release_all(
        &self,
        attempts: &[(VerbAttempt, Duration)],
    ) -> Result<Vec<impl Debug + use<>>, LockError> {
        let release = |(VerbAttempt(attempt), keep): &(VerbAttempt, Duration)| {
            let end = self.backend.now().after(*keep);
            attempt.min_hold.set_end(if keep.is_zero() { Moment::default() } else { end });
            tokio::spawn(self.backend.release(Arc::clone(attempt)))
        };
        let releases: Vec<_> = attempts.iter().map(release).collect();
        let mut outcomes = Vec::new();
        for release in releases {
            let outcome = release.await.map_err(|error| Fault::unavailable(error.to_string()));
            outcomes.push(outcome.map_err(Fault::into_error)?.map_err(Fault::into_error)?);
        }
        Ok(outcomes)
    }

    /// Releases, and leaves the lock taken for that long; queues `next`, if given, and returns its grant if its turn
    /// has come.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release(
        &self,
        attempt: &VerbAttempt,
        next: Option<&VerbAttempt>,
        keep: Duration,
    ) -> Result<(impl Debug + use<>, Option<GrantTo>), LockError> {
        attempt.0.min_hold.set_end(self.backend.now().after(keep));
        let attempt = Arc::clone(&attempt.0);
        let Some(next) = next else {
            return Ok((self.backend.release(attempt).await.map_err(Fault::into_error)?, None));
        };
        let (found, grant) = self
            .backend
            .release_to(attempt, Arc::clone(&next.0))
            .await
            .map_err(Fault::into_error)?;
        Ok((found, grant.as_ref().map(|grant| grant_to(next, grant))))
    }

    /// The grant, or for how long another holder has the lock.
    ///
    /// # Errors
    /// The backend's.
    pub async fn enqueue(&self, attempt: &VerbAttempt) -> Result<Place, LockError> {
        Ok(match self.backend.enqueue(Arc::clone(&attempt.0)).await.map_err(Fault::into_error)? {
            Enqueued::Granted(grant) => Place::Granted(grant_to(attempt, &grant)),
            Enqueued::Queued(Remaining::Time(time)) | Enqueued::Done(Remaining::Time(time)) => {
                Place::Queued(Some(time))
            }
            Enqueued::Queued(_) | Enqueued::Done(_) => Place::Queued(None),
        })
    }

    /// Takes the attempt out of the queue, and hands a lock that it was granted to the next waiter.
    ///
    /// # Errors
    /// The backend's.
    pub async fn leave(&self, attempt: &VerbAttempt) -> Result<(), LockError> {
        self.backend.leave(Arc::clone(&attempt.0)).await.map_err(Fault::into_error)
    }

    /// Gives the lock from one attempt to another.
    ///
    /// # Errors
    /// The backend's.
    pub async fn transfer(
        &self,
        from: &VerbAttempt,
        to: &VerbAttempt,
    ) -> Result<impl Debug + use<>, LockError> {
        let (from, to) = (Arc::clone(&from.0), Arc::clone(&to.0));
        let answer = self.backend.transfer(from, to).await.map_err(Fault::into_error)?;
        Ok(answer.found)
    }

    /// Sends the wake-ups of the waiters of this process.
    pub fn listen(&mut self, wake_ups: Sender<WakeUpOf>) {
        let listener = self.listener.insert(Arc::new(Sending(wake_ups)));
        let events = Arc::downgrade(listener) as Weak<dyn Events>;
        self.backend.report_to(self.origin, events);
    }

    /// What the holder wrote, and for how long it has the lock.
    ///
    /// # Errors
    /// The backend's, or when the key is invalid.
    pub async fn inspect(
        &self,
        key: &str,
    ) -> Result<Option<(String, Option<Duration>)>, LockError> {
        let held =
            self.backend.inspect(LockKey::prefixed("", key)?).await.map_err(Fault::into_error)?;
        Ok(held.map(|held| (held.owner.text().to_owned(), held.remaining)))
    }
}
