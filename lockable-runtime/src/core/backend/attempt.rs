use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::min_hold::MinHold;
use crate::core::labels::label::Label;
use crate::core::process::clock::Moment;
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::ReleasedBy;
use crate::core::types::owner::{Held, LockValue, OwnerToken, is_of_holder, is_pause};
use crate::core::types::permit::LocalPermit;
use crate::core::types::redact::DisplayKey;
use crate::core::types::reporting::Reporting;
use crate::core::types::slot::Slot;

/// One acquisition, as its backend knows it, from before its first request until after its release.
///
/// Its owner token is also the identity of the request: a command that was sent twice finds its own token and succeeds.
pub(crate) struct Attempt {
    pub(crate) key: LockKey,
    /// Set while the call waits for any of the permits; `None` for a plain lock, and once a permit was granted.
    pub(crate) local_permit: Option<Arc<LocalPermit>>,
    /// Whose fence counter counts its grant.
    pub(crate) slot: Slot,
    pub(crate) owner: OwnerToken,
    pub(crate) released_by: ReleasedBy,
    pub(crate) ttl: Ttl,
    /// How long a hand-off reserves the lock for it. Never changes, because its entry in a queue says so.
    pub(crate) reservation: Ttl,
    /// Written by the backend before the first request enters any queue; zero until then.
    sent_at: AtomicU64,
    /// The latest end that any request so far can have given the lock; zero before the first.
    lapses_at: AtomicU64,
    pub(crate) min_hold: MinHold,
    /// Whether the lock was handed off to it, and so its turn releases it.
    had_turn: AtomicBool,
    /// Whether no call waits for it any more: it may not be queued again.
    is_withdrawn: AtomicBool,
    is_watched: AtomicBool,
    /// Of the call that holds or requests the lock, for events. It changes when the turn is passed on.
    label: Mutex<&'static Label>,
    /// What has the lock by the latest answer, if that is no holder.
    obstacle: Mutex<Option<Arc<Held>>>,
}

impl Attempt {
    #[cfg(test)]
    pub(crate) fn drawn(key: LockKey, ttl: Ttl) -> Self {
        Self::owned(key, ttl, OwnerToken::draw(None).unwrap())
    }

    pub(crate) fn owned(key: LockKey, ttl: Ttl, owner: OwnerToken) -> Self {
        Self {
            slot: Slot::of(&key),
            key,
            local_permit: None,
            released_by: owner.released_by(),
            owner,
            ttl,
            reservation: ttl.reservation(),
            min_hold: MinHold::default(),
            sent_at: AtomicU64::default(),
            lapses_at: AtomicU64::default(),
            had_turn: AtomicBool::default(),
            is_withdrawn: AtomicBool::default(),
            is_watched: AtomicBool::default(),
            label: Mutex::default(),
            obstacle: Mutex::default(),
        }
    }

    pub(crate) fn in_local_permit(
        local_permit: &Arc<LocalPermit>,
        ttl: Ttl,
        owner: OwnerToken,
    ) -> Self {
        let local_permit = Arc::clone(local_permit);
        Self {
            local_permit: Some(Arc::clone(&local_permit)),
            ..Self::owned(local_permit.permits_key.key().clone(), ttl, owner)
        }
    }

    /// Once the acquisition is known to have that permit.
    pub(crate) fn with_permit(&self, permit: LockKey) -> Arc<Self> {
        self.again_as(Self::owned(permit, self.ttl, self.owner.clone()))
    }

    pub(crate) fn with_ttl(&self, ttl: Ttl) -> Arc<Self> {
        let this = Self::owned(self.key.clone(), ttl, self.owner.clone());
        self.again_as(Self { local_permit: self.local_permit.clone(), ..this })
    }

    /// The other value, which then knows what has been sent for this one.
    fn again_as(&self, other: Self) -> Arc<Self> {
        let other = Self { reservation: self.reservation, ..other }.labeled(self.label());
        for (from, to) in [
            (&self.sent_at, &other.sent_at),
            (&self.lapses_at, &other.lapses_at),
            (&self.min_hold.0, &other.min_hold.0),
        ] {
            to.store(from.load(Ordering::Acquire), Ordering::Release);
        }
        other.had_turn.store(self.had_turn.load(Ordering::Acquire), Ordering::Release);
        Arc::new(other)
    }

    pub(crate) fn permits(&self) -> impl Iterator<Item = Arc<Self>> + Send + '_ {
        self.local_permit
            .iter()
            .flat_map(|local_permit| local_permit.members())
            .map(|permit| self.with_permit(permit))
    }

    pub(crate) fn line(&self) -> LineKey {
        match &self.local_permit {
            None => LineKey::Lock(self.key.clone()),
            Some(local_permit) => LineKey::LocalPermit(Arc::clone(local_permit)),
        }
    }

    /// An attempt of another process, whose hold an operator ends: the waiters come first.
    pub(crate) fn forced(key: LockKey, ttl: Ttl, owner: OwnerToken) -> Self {
        Self { released_by: ReleasedBy::Script, ..Self::owned(key, ttl, owner) }
    }

    pub(crate) fn labeled(self, label: &'static Label) -> Self {
        Self { label: Mutex::new(label), ..self }
    }

    pub(crate) fn set_label(&self, label: &'static Label) {
        *self.label.lock() = label;
    }

    pub(crate) fn shown(&self, reporting: &Reporting) -> DisplayKey<'_> {
        reporting.show(&self.key).labeled(self.label())
    }

    pub(crate) fn label(&self) -> &'static Label {
        *self.label.lock()
    }

    /// Notes that the lock has this value, which is not its own. Of permits only a pause is noted: it is a pause of
    /// all.
    pub(crate) fn mark_busy(&self, value: &[u8], remaining: Option<Duration>) {
        let is_noted = is_pause(value) || self.local_permit.is_none() && !is_of_holder(value);
        let held = || Held { owner: LockValue::new(value.to_owned()), remaining };
        let obstacle = is_noted.then(|| Arc::new(held()));
        *self.obstacle.lock() = obstacle;
    }

    pub(crate) fn obstacle(&self) -> Option<Arc<Held>> {
        self.obstacle.lock().clone()
    }

    /// The reservation in milliseconds, and the owner token.
    pub(crate) fn entry(&self) -> String {
        format!("{} {}", self.reservation.duration().as_millis(), self.owner.as_ref())
    }

    /// Notes that a request is sent now; returns the time of the first one, from which the lease counts.
    pub(crate) fn mark_sent(&self, now: Moment) -> Moment {
        self.mark_renewed(now, self.ttl);
        let nanos = now.as_nanos().max(1);
        let order = Ordering::Acquire;
        let first = self.sent_at.compare_exchange(0, nanos, Ordering::AcqRel, order);
        debug_assert!(self.lapses_at() >= self.sent_at(), "it lapses before it is granted");
        first.err().map_or(now, Moment::from_nanos)
    }

    /// Notes that a request is sent now that can make the lock last for this TTL.
    pub(crate) fn mark_renewed(&self, now: Moment, ttl: Ttl) {
        self.lapses_at.fetch_max(now.after(ttl.duration()).as_nanos(), Ordering::AcqRel);
    }

    /// `None` means that the backend cannot know this attempt.
    pub(crate) fn sent_at(&self) -> Option<Moment> {
        moment(&self.sent_at)
    }

    /// When the lock ends at the latest, apart from the time that its last request was under way.
    pub(crate) fn lapses_at(&self) -> Option<Moment> {
        moment(&self.lapses_at)
    }

    pub(crate) fn mark_turn(&self) {
        self.had_turn.store(true, Ordering::Release);
    }

    /// Notes that it leaves its queue. A request for its place that was not sent by then is too late: it would arrive
    /// behind the one that leaves.
    pub(crate) fn mark_withdrawn(&self) {
        self.is_withdrawn.store(true, Ordering::Release);
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Acquire)
    }

    /// From now on each request that renews or checks the lock also starts its tracking.
    pub(crate) fn mark_watched(&self) {
        self.is_watched.store(true, Ordering::Release);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Acquire)
    }

    pub(crate) fn had_turn(&self) -> bool {
        self.had_turn.load(Ordering::Acquire)
    }

    pub(crate) fn was_queued(&self) -> bool {
        self.had_turn() || self.is_withdrawn()
    }
}

fn moment(nanos: &AtomicU64) -> Option<Moment> {
    match nanos.load(Ordering::Acquire) {
        0 => None,
        nanos => Some(Moment::from_nanos(nanos)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    Released,
    /// The lock has no holder: it expired or was deleted.
    Absent,
    /// Another holder has the lock, or other data is there; it was left alone.
    Taken,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_lease_counts_from_the_first_request() {
        let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
        assert_eq!(attempt.sent_at(), None);
        assert_eq!(attempt.mark_sent(Moment::from_nanos(5)), Moment::from_nanos(5));
        assert_eq!(attempt.mark_sent(Moment::from_nanos(9)), Moment::from_nanos(5));
        assert_eq!(attempt.sent_at(), Some(Moment::from_nanos(5)));
    }

    /// Otherwise one call is in the queue twice. The reservation is a part of the entry.
    #[test]
    fn an_attempt_keeps_its_entry_for_a_longer_lease() {
        let [short, long] = [500, 60_000].map(Duration::from_millis);
        let [short, long] = [short, long].map(|length| Ttl::new("expire", length).unwrap());
        let attempt = Attempt::drawn(LockKey::from_static("k"), short);
        let longer = attempt.with_ttl(long);
        assert_eq!((longer.entry(), longer.ttl), (attempt.entry(), long));
    }

    /// Otherwise its release is given up early.
    #[test]
    fn a_permit_lapses_when_its_attempt_does() {
        let attempt = Attempt::drawn(LockKey::from_static("{k}"), Ttl::DEFAULT);
        attempt.mark_sent(Moment::from_nanos(5));
        let permit = attempt.with_permit(LockKey::from_static("{k}#1"));
        let times = (permit.sent_at(), permit.lapses_at());
        assert!(times == (attempt.sent_at(), attempt.lapses_at()) && times.0.is_some());
    }

    #[test]
    fn a_lock_lapses_after_its_latest_requested_end() {
        let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
        assert_eq!(attempt.lapses_at(), None);
        attempt.mark_sent(Moment::from_nanos(5));
        attempt.mark_renewed(Moment::from_nanos(7), Ttl::MIN);
        let lapse = Moment::from_nanos(5).after(Duration::from_secs(10));
        assert_eq!(attempt.lapses_at(), Some(lapse));
    }
}
