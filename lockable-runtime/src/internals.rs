//! What this project's own test suites need to see of the backends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{
    Acquisition, Attempt, Backend, Memory, Release, Renewal, Renewed, Reply, Settings, open,
};
use crate::error::LockError;
use crate::key::LockKey;
use crate::options::Ttl;

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

    /// The names that live now and how long each still does.
    #[must_use]
    pub fn keyspace(&self) -> Vec<(String, Duration)> {
        self.0.keyspace()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryStore").field(&self.keyspace()).finish()
    }
}

/// The verbs of the backend at a URL, to be compared with those of another.
#[derive(Debug)]
pub struct Verbs(Arc<dyn Backend>);

/// One acquisition, as its backend knows it.
#[derive(Clone, Debug)]
pub struct VerbAttempt(Arc<Attempt>);

impl VerbAttempt {
    /// An acquisition that nobody has asked for yet.
    ///
    /// # Errors
    /// When the key or the lease is invalid.
    pub fn new(key: &str, ttl: Duration) -> Result<Self, LockError> {
        let attempt = Attempt::new(LockKey::prefixed("", key)?, Ttl::new("expire", ttl)?, None);
        Ok(Self(Arc::new(attempt)))
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
        Ok(Self(open(&Settings { url: url.to_owned(), ..Settings::default() })?))
    }

    /// The fencing token; `None` when another holder has the lock.
    ///
    /// # Errors
    /// The backend's.
    pub async fn acquire(&self, attempt: &VerbAttempt) -> Result<Option<u64>, LockError> {
        match answered(self.0.try_acquire(Arc::clone(&attempt.0))).await? {
            Acquisition::Granted { fencing_token, .. } => Ok(Some(fencing_token.into())),
            Acquisition::Contended => Ok(None),
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
        let now = self.0.now();
        let renewal = |(attempt, ttl): &(VerbAttempt, Option<Duration>)| {
            let ttl = ttl.map(|ttl| Ttl::new("extend", ttl)).transpose()?;
            Ok(Renewal::new(&attempt.0, ttl, now))
        };
        let batch = batch.iter().map(renewal).collect::<Result<_, LockError>>()?;
        let code = |outcome| match outcome {
            Renewed::Kept => 1,
            Renewed::Absent => 0,
            Renewed::Taken => -1,
        };
        Ok(answered(self.0.renew(batch)).await?.into_iter().map(code).collect())
    }

    /// Releases, and leaves the lock taken for so long; 1 released, 0 nobody's, -1 another's.
    ///
    /// # Errors
    /// The backend's.
    pub async fn release(&self, attempt: &VerbAttempt, keep: Duration) -> Result<i8, LockError> {
        attempt.0.keep_until(self.0.now().after(keep));
        match answered(self.0.release(Arc::clone(&attempt.0))).await? {
            Release::Released => Ok(1),
            Release::Absent => Ok(0),
            Release::Taken => Ok(-1),
        }
    }

    /// What the holder wrote, and for how long it has the lock.
    ///
    /// # Errors
    /// The backend's, or when the key is invalid.
    pub async fn inspect(
        &self,
        key: &str,
    ) -> Result<Option<(String, Option<Duration>)>, LockError> {
        let held = answered(self.0.inspect(LockKey::prefixed("", key)?)).await?;
        Ok(held.map(|held| (held.owner, held.remaining)))
    }
}

async fn answered<T>(reply: Reply<T>) -> Result<T, LockError> {
    reply.await.map_err(LockError::from)
}
