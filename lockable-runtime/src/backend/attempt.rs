//! One acquisition, as its backend knows it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::request_id::RequestId;
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::token::OwnerToken;

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
