//! The id of the current request, which its locks carry.
//!
//! See "Why is the request id in the owner token?" in DESIGN.md.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::futures::TaskLocalFuture;

#[cfg(feature = "tower")]
pub mod tower;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of one request: the locks that it acquires carry the id in Redis.
///
/// Inside of [`scope`](RequestId::scope) or [`sync_scope`](RequestId::sync_scope) every lock that is acquired has the
/// id at the end of its value: `GET disLock:order:7` returns `<random>.<number> <id>`. For HTTP services the layer of
/// the feature `tower` makes the scope for each request.
///
/// Cheap to clone. With the feature `serde`, an id is its text in serialized data, and is [cleaned](RequestId::new)
/// when it is read.
///
/// # Guarantees
/// The text is 1 to 128 printable ASCII characters without white space at its ends: it fits into a header, a log line
/// and a lock's value.
///
/// # What this does not guarantee
/// A client may send any id, and two requests may send the same: an id is information, not proof. Their locks stay
/// distinct.
///
/// A spawned task, a thread and `spawn_blocking` start without an id; the example carries it over.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), tokio::task::JoinError> {
/// use lockable_runtime::RequestId;
///
/// async fn handler() -> Result<(), tokio::task::JoinError> {
///     let id = RequestId::current().unwrap_or_else(RequestId::generate);
///     tokio::spawn(id.scope(send_the_mail())).await?;
///     tokio::task::spawn_blocking(move || id.sync_scope(write_the_file)).await
/// }
/// # async fn send_the_mail() { assert_eq!(RequestId::current().unwrap().as_str(), "checkout-7") }
/// # fn write_the_file() { assert_eq!(RequestId::current().unwrap().as_str(), "checkout-7") }
///
/// RequestId::new("checkout-7").scope(handler()).await
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Makes an id from any text.
    ///
    /// White space at its ends is removed, every character but printable ASCII becomes `_`, and the text is cut to 128
    /// characters. If nothing is left, the id is a [generated](RequestId::generate) one.
    ///
    /// # Examples
    /// ```
    /// # use lockable_runtime::RequestId;
    /// assert_eq!(RequestId::new(" checkout 7\r\n").as_str(), "checkout 7");
    /// assert_eq!(RequestId::new("café\nb").as_str(), "caf__b");
    /// assert_ne!(RequestId::new(""), RequestId::new(""));
    /// ```
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '_' };
        let text: String = text.as_ref().trim().chars().map(printable).take(MAX_LENGTH).collect();
        // The cut may have left white space at the end.
        match text.trim_end() {
            "" => Self::generate(),
            text => Self(text.into()),
        }
    }

    /// Makes an id that no other request has, also in a forked process: 64 random bits and a counter.
    #[must_use]
    pub fn generate() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(1);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        // Drawn for each id, and not the bits of the owner tokens: those are secret, and an id is sent to
        // clients. An id is no proof, so one that could be guessed is better than none.
        let guessable = |_| RandomState::new().hash_one(process::id());
        Self(format!("{:016x}-{count}", getrandom::u64().unwrap_or_else(guessable)).into())
    }

    /// Returns the id of the innermost scope around the caller, if there is one.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_get().ok()
    }

    /// Runs a future as a part of this request.
    ///
    /// The id is current whenever the future is polled, and when it is dropped; other work of the thread does not see
    /// it. The innermost of nested scopes applies. Spawned tasks have no id; see [the type](RequestId).
    ///
    /// # Cancel safety
    /// As that of the future.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.around(future)
    }

    /// [`scope`](RequestId::scope), as a type with a name.
    fn around<F: Future>(&self, future: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), future)
    }

    /// Runs a closure as a part of this request: in a thread, or in `spawn_blocking`.
    ///
    /// A future that the closure returns is outside of the scope.
    pub fn sync_scope<T>(&self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), work)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for RequestId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Clients choose the length, and every lock stores it: three times a UUID, more than a trace context (55), and still
/// short beside a lock key.
const MAX_LENGTH: usize = 128;

#[cfg(test)]
mod tests;
