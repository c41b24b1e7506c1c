//! Where lock state lives: the contract of a backend, and what its verbs say.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::check::Report;
use crate::request_id::RequestId;
use crate::types::clock::{Moment, within};
use crate::types::error::{Cause, LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::redact::Shown;
use crate::types::token::{FencingToken, Origin, OwnerToken};

mod memory;
#[cfg(feature = "redis")]
mod redis;
mod url;

pub(crate) use memory::Memory;
#[cfg(feature = "redis")]
pub(crate) use redis::Redis;
pub(crate) use url::{Settings, open};

/// An answer that is on its way. It borrows nothing, so it can outlive the call that asked.
pub(crate) type Reply<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// What a check finds, on its way.
pub(crate) type Checkup = Pin<Box<dyn Future<Output = Report> + Send>>;

/// A place where locks live.
///
/// # Contract
/// - At most one attempt is granted a key at any time of the backend's own clock.
/// - A grant ends when it is released, or `ttl` after it was made, whichever is first.
/// - The same attempt, asked again while it is granted, is granted again: verbs may be repeated.
/// - Fencing tokens of a key rise from grant to grant, also after the backend lost all its data.
/// - `renew` moves the end of a grant only forwards, and makes nothing that is not there.
/// - `release` of an attempt that is not the holder changes nothing. After `keep_until` was set, it
///   leaves the lock taken until then, by nobody who could renew it.
/// - A key that holds anything but a lock is left as it is.
///
/// # Cancel safety
/// A dropped `Reply` may or may not have had its effect. [`Attempt::sent_at`] tells whether it can
/// have; the caller keeps such replies until they are answered.
pub(crate) trait Backend: Send + Sync + 'static {
    /// Which backend this is, for messages: where it is, without credentials.
    fn name(&self) -> &str;

    /// What two backends have in common exactly when they lead to the same place, as far as can be told.
    fn store(&self) -> &str;

    /// The time on the clock that this backend's leases are measured by.
    fn now(&self) -> Moment;

    /// A timer that goes with [`now`](Backend::now).
    fn timer(&self, duration: Duration) -> Sleep;

    /// Makes sure that the backend can be used from the calling task.
    fn connect(&self) -> Reply<()>;

    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition>;

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release>;

    /// Renews leases, or only looks at them; gives one outcome for each, in their order. A fault that
    /// concerns one lease leaves the others as they are.
    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>>;

    /// Acquires the lock when the attempt's turn has come, or queues the attempt for it.
    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued>;

    /// Takes the attempt out of the queue; a lock that it was granted meanwhile goes on.
    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()>;

    /// Releases, and queues another attempt of this process behind the others, in one step; gives
    /// the grant when that one's turn has come at once.
    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)>;

    /// Has this called with every grant of that origin; answers once that is sure.
    fn listen(&self, origin: Origin, hook: Weak<dyn Granted>) -> Reply<()>;

    /// Who has the lock under a key, if anybody.
    fn inspect(&self, key: LockKey) -> Reply<Option<Held>>;

    /// Looks whether locks whose keys begin so can work here; touches none of them.
    fn check(&self, prefix: &str) -> Checkup;

    /// Tells the backend that the calling task gave up waiting for an answer, after so long.
    fn unanswered(&self, waited: Duration);

    /// Is told of a call that waits behind others of this process, and so asks nothing itself.
    fn lined_up(&self, _: &LockKey) {}

    /// Is told of a call that has its turn, which may have been granted to one before it.
    fn served(&self, _: &LockKey) {}

    /// Runs work that must not depend on the caller: never blocks, needs no runtime around it.
    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// The runtime on which the leases of this caller are renewed; one who blocks its own says so.
    fn home(&self, caller_blocks: bool) -> Handle;

    /// Has this called whenever a connection was opened: the server may be another one, or have
    /// lost its data, since the others were.
    fn when_connected(&self, hook: Box<dyn Fn() + Send + Sync>);
}

/// One acquisition, from before it is asked for until after it is released.
///
/// Its owner token is also the identity of the request: a command that was sent twice finds its
/// own token and succeeds.
pub(crate) struct Attempt {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
    pub(crate) ttl: Ttl,
    /// Written by the backend before the first request enters any queue; zero until then.
    sent_at: AtomicU64,
    /// The latest end that any request so far can have given the lock; zero before the first.
    lapses_at: AtomicU64,
    /// Written when the lock is granted for a minimum hold; zero without one.
    keep_until: AtomicU64,
    /// Whether it was handed the lock, and so somebody releases it.
    had_turn: AtomicBool,
    /// How many questions for its place in the queue have no answer: those that were given up count.
    open_questions: AtomicU32,
}

impl Attempt {
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn new(
        key: LockKey,
        ttl: Ttl,
        identity: Option<&RequestId>,
    ) -> Result<Self, LockError> {
        Ok(Self::owned(key, ttl, OwnerToken::draw(identity)?))
    }

    pub(crate) fn owned(key: LockKey, ttl: Ttl, owner: OwnerToken) -> Self {
        let never = || AtomicU64::new(0);
        let (sent_at, lapses_at, keep_until) = (never(), never(), never());
        let (had_turn, open_questions) = (AtomicBool::new(false), AtomicU32::new(0));
        Self { key, owner, ttl, sent_at, lapses_at, keep_until, had_turn, open_questions }
    }

    /// How it stands in a queue: for how many milliseconds it is granted, and its owner token.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "in memory it stands itself"))]
    pub(crate) fn entry(&self) -> String {
        format!("{} {}", self.ttl.provisional().duration().as_millis(), self.owner.as_ref())
    }

    /// Notes that a request goes out now; gives the time of the first one, which the lease counts from.
    pub(crate) fn mark_sent(&self, now: Moment) -> Moment {
        self.mark_renewed(now, self.ttl);
        let first = self.sent_at.compare_exchange(
            0,
            now.as_nanos().max(1),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        Moment::from_nanos(first.map_or_else(|earlier| earlier, |_| now.as_nanos()))
    }

    /// Notes that a request goes out now that can make the lock last so long.
    pub(crate) fn mark_renewed(&self, now: Moment, ttl: Ttl) {
        self.lapses_at.fetch_max(now.after(ttl.duration()).as_nanos(), Ordering::AcqRel);
    }

    /// When the first request went out; `None` means that the backend cannot know this attempt.
    pub(crate) fn sent_at(&self) -> Option<Moment> {
        moment(&self.sent_at)
    }

    /// When the lock ends at the latest, but for the time that its last request was under way.
    pub(crate) fn lapses_at(&self) -> Option<Moment> {
        moment(&self.lapses_at)
    }

    /// Notes that the lock was handed to it.
    pub(crate) fn mark_turn(&self) {
        self.had_turn.store(true, Ordering::Release);
    }

    pub(crate) fn had_turn(&self) -> bool {
        self.had_turn.load(Ordering::Acquire)
    }

    /// Notes that a question for its place in the queue is about to be sent.
    pub(crate) fn question_begins(&self) {
        self.open_questions.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a question was answered, or never sent.
    pub(crate) fn question_ends(&self) {
        self.open_questions.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a question may still reach the backend.
    pub(crate) fn has_open_question(&self) -> bool {
        self.open_questions.load(Ordering::Acquire) > 0
    }

    /// Keeps the lock taken until then, however soon it is released.
    pub(crate) fn keep_until(&self, end: Moment) {
        self.keep_until.store(end.as_nanos(), Ordering::Release);
    }

    /// Whether a minimum hold was asked for; spares a look at the clock where there is none.
    pub(crate) fn has_min_hold(&self) -> bool {
        self.keep_until.load(Ordering::Acquire) != 0
    }

    /// How long a release of now has to leave the lock taken, in whole milliseconds.
    pub(crate) fn kept_for(&self, now: Moment) -> Option<Duration> {
        const ALMOST_ONE: Duration = Duration::from_nanos(999_999);
        let rest = moment(&self.keep_until)?.since(now);
        let millis = u64::try_from(rest.saturating_add(ALMOST_ONE).as_millis()).unwrap_or(u64::MAX);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

fn moment(nanos: &AtomicU64) -> Option<Moment> {
    match nanos.load(Ordering::Acquire) {
        0 => None,
        nanos => Some(Moment::from_nanos(nanos)),
    }
}

/// A lease that is to be renewed.
#[derive(Clone)]
pub(crate) struct Renewal {
    pub(crate) attempt: Arc<Attempt>,
    /// How long it is to last from now; `None` only asks whether it is still held.
    pub(crate) ttl: Option<Ttl>,
}

impl Renewal {
    /// A request that goes out now.
    pub(crate) fn new(attempt: &Arc<Attempt>, ttl: Option<Ttl>, now: Moment) -> Self {
        if let Some(ttl) = ttl {
            attempt.mark_renewed(now, ttl);
        }
        Self { attempt: Arc::clone(attempt), ttl }
    }
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// The lock is this attempt's, and lasts as long as was asked for, or longer.
    Held,
    /// Nobody holds the lock: it expired or was deleted.
    Absent,
    /// Another holder has the lock, or other data is there; it was left alone.
    Taken,
}

/// A lock that somebody has.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// What the holder wrote there, which is to be shown to nobody.
    pub(crate) owner: String,
    /// How long it lasts; `None` is without an end.
    pub(crate) remaining: Option<Duration>,
}

/// The answer, or the fault that none came within the limit.
pub(crate) async fn answer_within<T>(
    backend: &dyn Backend,
    limit: Duration,
    reply: Reply<T>,
) -> Result<T, Fault> {
    let answer = within(|| backend.timer(limit), reply).await;
    answer.unwrap_or_else(|| {
        backend.unanswered(limit);
        Err(Fault::no_answer(backend.name(), limit))
    })
}

/// Who is told of grants that are handed to this process.
pub(crate) trait Granted: Send + Sync {
    fn granted(&self, grant: Grant);

    /// Where the attempts began that wait now: a new subscription hears of their grants too.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "in memory nothing is missed"))]
    fn origins(&self) -> BTreeSet<Origin>;

    /// Grants may have been missed, so every line asks. New attempts have that origin.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "in memory nothing is missed"))]
    fn missed(&self, origin: Origin);
}

/// A lock that was handed to an attempt that waited for it.
#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
    /// The first of the fencing tokens that are reserved for it.
    pub(crate) fence: u64,
    /// From when on it counts at the latest; `None` when nobody can tell.
    pub(crate) since: Option<Moment>,
    /// Nobody can tell either for an attempt that was first sent before this.
    pub(crate) counts_from: Moment,
    pub(crate) ttl: Ttl,
}

impl Grant {
    /// The backend's answer to a request of the attempt that was sent at that moment.
    pub(crate) fn answered(attempt: &Attempt, fence: u64, sent: Moment, ttl: Ttl) -> Self {
        let (key, owner) = (attempt.key.clone(), attempt.owner.clone());
        Self { key, owner, fence, since: Some(sent), counts_from: Moment::default(), ttl }
    }

    /// From when on it counts for its attempt, where that can be told.
    pub(crate) fn since_for(&self, attempt: &Attempt) -> Option<Moment> {
        let counts = attempt.sent_at().is_some_and(|sent| sent >= self.counts_from);
        self.since.filter(|_| counts)
    }
}

/// What asking for a place in the queue came to.
pub(crate) enum Enqueued {
    Granted(Grant),
    /// Another holder has the lock, for so long; `None` is without an end.
    Queued {
        remaining: Option<Duration>,
    },
}

/// What an attempt came to.
pub(crate) enum Acquisition {
    /// The lock is this attempt's, counted from `since`.
    Granted { fencing_token: FencingToken, since: Moment },
    /// Another holder has it.
    Busy,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The lock was this attempt's and is free now.
    Released,
    /// Nobody holds the lock: it expired or was deleted.
    Absent,
    /// Another holder has the lock, or other data is there; it was left alone.
    Taken,
}

/// A backend that gave no usable answer.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: LockErrorKind,
    pub(crate) message: String,
    pub(crate) source: Option<Cause>,
    /// Whether the attempt is certain to hold nothing, so that there is nothing to release.
    pub(crate) proves_absence: bool,
}

impl Fault {
    pub(crate) fn new(kind: LockErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, proves_absence: false }
    }

    /// In words that may be shown beside this key.
    pub(crate) fn shown(mut self, key: Shown<'_>) -> Self {
        self.message = key.within(&self.message).into_owned();
        if let Some(source) = self.source.as_ref().and_then(|source| key.reworded(source)) {
            self.source = Some(Arc::new(source));
        }
        self
    }

    /// A lock that was granted for a shorter time than its answer took.
    pub(crate) fn too_late() -> Self {
        Self::new(LockErrorKind::Unavailable, LockError::TOO_LATE)
    }

    /// A command that was not answered in time.
    pub(crate) fn no_answer(backend: &str, limit: Duration) -> Self {
        Self::new(LockErrorKind::Unavailable, format!("{backend}: no answer within {limit:?}"))
    }
}

impl From<LockError> for Fault {
    fn from(error: LockError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<Fault> for LockError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind, fault.message).with_source(fault.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_counts_from_the_first_request() {
        let attempt = Attempt::new(LockKey::from_static("k"), Ttl::DEFAULT, None).unwrap();
        assert_eq!(attempt.sent_at(), None);
        assert_eq!(attempt.mark_sent(Moment::from_nanos(5)), Moment::from_nanos(5));
        assert_eq!(attempt.mark_sent(Moment::from_nanos(9)), Moment::from_nanos(5));
        assert_eq!(attempt.sent_at(), Some(Moment::from_nanos(5)));
    }

    #[test]
    fn a_lock_lapses_after_the_latest_end_that_was_asked_for() {
        let attempt = Attempt::new(LockKey::from_static("k"), Ttl::DEFAULT, None).unwrap();
        assert_eq!(attempt.lapses_at(), None);
        attempt.mark_sent(Moment::from_nanos(5));
        attempt.mark_renewed(Moment::from_nanos(7), Ttl::MIN);
        let lapse = Moment::from_nanos(5).after(Duration::from_secs(10));
        assert_eq!(attempt.lapses_at(), Some(lapse));
    }

    #[test]
    fn a_minimum_hold_counts_down_to_nothing() {
        let attempt = Attempt::new(LockKey::from_static("k"), Ttl::DEFAULT, None).unwrap();
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        assert_eq!(attempt.kept_for(at(1)), None);
        attempt.keep_until(at(20));
        assert_eq!(attempt.kept_for(at(5)), Some(Duration::from_millis(15)));
        assert_eq!(
            attempt.kept_for(Moment::from_nanos(19_999_999)),
            Some(Duration::from_millis(1))
        );
        assert_eq!(attempt.kept_for(at(20)), None);
    }
}
