//! What this project's own test suites need to see of the backends.

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::backend::{
    Acquisition, Attempt, Backend, Enqueued, Grant, Granted, Memory, Release, Renewal, Renewed,
    Reply, Settings, open,
};
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken, random};

/// The store behind `memory://name`, for as long as this lives.
#[derive(Clone)]
pub struct MemoryStore(Arc<Memory>);

impl MemoryStore {
    /// Opens the store that lockers of `memory://name` share.
    ///
    /// # Errors
    /// When the system gives no background thread.
    pub fn open(name: &str) -> Result<Self, LockError> {
        Ok(Self(Memory::open(name)?))
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub fn flush(&self) {
        self.0.flush();
    }

    /// Takes a lock away, as somebody from outside can.
    pub fn delete(&self, key: &str) {
        self.0.delete(key);
    }

    /// Puts another holder in, whoever was there, as somebody from outside can.
    pub fn put_foreign(&self, key: &str, life: Duration) {
        self.0.put_foreign(key, life);
    }

    /// Who waits for a lock, in their order, by what each would write there.
    #[must_use]
    pub fn queue(&self, key: &str) -> Vec<String> {
        self.0.queue(key)
    }

    /// The last fencing token of a lock that is given away, where its fence counter lives.
    #[must_use]
    pub fn fence(&self, key: &str) -> Option<u64> {
        self.0.fence(key)
    }

    /// The names that live now and how long each still does.
    #[must_use]
    pub fn keyspace(&self) -> Vec<(String, Duration)> {
        self.0.keyspace()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

/// The verbs of the backend at a URL, as one process has them, to be compared with those of another
/// backend.
pub struct Verbs {
    backend: Arc<dyn Backend>,
    origin: Origin,
    told: Option<Arc<Told>>,
}

/// One acquisition, as its backend knows it.
#[derive(Clone)]
pub struct VerbAttempt(Arc<Attempt>);

/// A lock that was given to one who waited: what its holder wrote, the first of its fencing tokens,
/// and for how long it is given.
impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verbs").finish_non_exhaustive()
    }
}

impl fmt::Debug for VerbAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbAttempt").finish_non_exhaustive()
    }
}

type GrantTo = (String, u64, Duration);

fn grant_to(grant: &Grant) -> GrantTo {
    (grant.owner.as_ref().to_owned(), grant.fence, grant.ttl.duration())
}

/// Passes on what its process is told.
struct Told(Sender<GrantTo>);

impl Granted for Told {
    fn granted(&self, grant: Grant) {
        // A test that has ended needs no answer.
        drop(self.0.send(grant_to(&grant)));
    }

    fn origins(&self) -> BTreeSet<Origin> {
        BTreeSet::new()
    }

    fn missed(&self, _: Origin) {}
}

impl VerbAttempt {
    /// An acquisition that nobody has asked for yet.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn new(key: &str, ttl: Duration) -> Result<Self, LockError> {
        let attempt = Attempt::new(LockKey::prefixed("", key)?, Ttl::new("expire", ttl)?, None);
        Ok(Self(Arc::new(attempt?)))
    }

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
}

impl Verbs {
    /// Opens the backend without connecting.
    ///
    /// # Errors
    /// When the URL names none.
    pub fn open(url: &str) -> Result<Self, LockError> {
        let backend = open(&Settings { url: url.to_owned(), ..Settings::default() })?;
        Ok(Self { backend, origin: Origin::draw()?, told: None })
    }

    /// An acquisition that waits in this process; nobody has asked for it yet.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn waiting(&self, key: &str, ttl: Duration) -> Result<VerbAttempt, LockError> {
        let (key, ttl) = (LockKey::prefixed("", key)?, Ttl::new("expire", ttl)?);
        let owner = OwnerToken::at(self.origin, random()?, None);
        Ok(VerbAttempt(Arc::new(Attempt::owned(key, ttl, owner))))
    }

    /// The fencing token; `None` when another holder has the lock.
    ///
    /// # Errors
    /// The backend's.
    pub async fn acquire(&self, attempt: &VerbAttempt) -> Result<Option<u64>, LockError> {
        match answered(self.backend.try_acquire(Arc::clone(&attempt.0))).await? {
            Acquisition::Granted { fencing_token, .. } => Ok(Some(fencing_token.into())),
            Acquisition::Busy => Ok(None),
        }
    }

    /// Renews for so long, or only looks; 1 kept, 0 nobody's, -1 another's.
    ///
    /// # Errors
    /// The backend's, or when a lease is invalid.
    pub async fn renew(
        &self,
        batch: &[(VerbAttempt, Option<Duration>)],
    ) -> Result<Vec<i8>, LockError> {
        let now = self.backend.now();
        let renewal = |(attempt, ttl): &(VerbAttempt, Option<Duration>)| {
            let ttl = ttl.map(|ttl| Ttl::new("extend", ttl)).transpose()?;
            Ok(Renewal::new(&attempt.0, ttl, now))
        };
        let batch = batch.iter().map(renewal).collect::<Result<_, LockError>>()?;
        let code = |outcome| match outcome {
            Renewed::Held => 1,
            Renewed::Absent => 0,
            Renewed::Taken => -1,
        };
        let outcomes = answered(self.backend.renew(batch)).await?;
        outcomes.into_iter().map(|outcome| Ok(code(outcome?))).collect()
    }

    /// Releases, and leaves the lock taken for so long; 1 released, 0 nobody's, -1 another's.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release(&self, attempt: &VerbAttempt, keep: Duration) -> Result<i8, LockError> {
        attempt.0.keep_until(self.backend.now().after(keep));
        Ok(release_code(answered(self.backend.release(Arc::clone(&attempt.0))).await?))
    }

    /// Releases all of them without a minimum hold, each asked for before any is answered; tells of
    /// each as `release` does.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release_all(&self, attempts: &[VerbAttempt]) -> Result<Vec<i8>, LockError> {
        let release = |VerbAttempt(attempt): &VerbAttempt| {
            attempt.keep_until(Moment::from_nanos(0));
            self.backend.release(Arc::clone(attempt))
        };
        let mut releases: Vec<_> =
            attempts.iter().map(release).map(|reply| (reply, None)).collect();
        poll_fn(|cx| {
            for (reply, found) in releases.iter_mut().filter(|(_, found)| found.is_none()) {
                if let Poll::Ready(answer) = reply.as_mut().poll(cx) {
                    *found = Some(answer);
                }
            }
            let is_complete = releases.iter().all(|(_, found)| found.is_some());
            if is_complete { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let found = releases.into_iter().filter_map(|(_, found)| found);
        found.map(|found| Ok(release_code(found?))).collect()
    }

    /// The same as `release`, and queues another attempt; gives the grant when that one's turn has come.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release_to(
        &self,
        attempt: &VerbAttempt,
        next: &VerbAttempt,
        keep: Duration,
    ) -> Result<(i8, Option<GrantTo>), LockError> {
        attempt.0.keep_until(self.backend.now().after(keep));
        let reply = self.backend.release_to(Arc::clone(&attempt.0), Arc::clone(&next.0));
        let (found, grant) = answered(reply).await?;
        Ok((release_code(found), grant.as_ref().map(grant_to)))
    }

    /// The grant, or for how long another holder has the lock.
    ///
    /// # Errors
    /// The backend's.
    pub async fn enqueue(
        &self,
        attempt: &VerbAttempt,
    ) -> Result<Result<GrantTo, Option<Duration>>, LockError> {
        match answered(self.backend.enqueue(Arc::clone(&attempt.0))).await? {
            Enqueued::Granted(grant) => Ok(Ok(grant_to(&grant))),
            Enqueued::Queued { remaining } => Ok(Err(remaining)),
        }
    }

    /// Takes the attempt out of the queue, and lets its lock go on.
    ///
    /// # Errors
    /// The backend's.
    pub async fn leave(&self, attempt: &VerbAttempt) -> Result<(), LockError> {
        answered(self.backend.leave(Arc::clone(&attempt.0))).await
    }

    /// Has the grants passed on that are handed to those who wait in this process.
    ///
    /// # Errors
    /// The backend's.
    pub async fn listen(&mut self, told: Sender<GrantTo>) -> Result<(), LockError> {
        let told: Arc<Told> = Arc::clone(self.told.insert(Arc::new(Told(told))));
        let hook: Weak<Told> = Arc::downgrade(&told);
        answered(self.backend.listen(self.origin, hook)).await
    }

    /// What the holder wrote, and for how long it has the lock.
    ///
    /// # Errors
    /// The backend's, or when the key is invalid.
    pub async fn inspect(
        &self,
        key: &str,
    ) -> Result<Option<(String, Option<Duration>)>, LockError> {
        let held = answered(self.backend.inspect(LockKey::prefixed("", key)?)).await?;
        Ok(held.map(|held| (held.owner, held.remaining)))
    }
}

fn release_code(found: Release) -> i8 {
    match found {
        Release::Released => 1,
        Release::Absent => 0,
        Release::Taken => -1,
    }
}

async fn answered<T>(reply: Reply<T>) -> Result<T, LockError> {
    reply.await.map_err(LockError::from)
}
