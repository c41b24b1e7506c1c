//! What calls for one lock and for a permit have in common: their outcome, and what they log while they wait.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::acquirer::Acquirer;
use super::busy::Busy;
use crate::hold::guard::LockGuard;
use crate::locker::inspect::inspect;
use crate::telemetry;
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::line_key::LineKey;
use crate::types::options::Terms;
use crate::types::permit::{Family, Permits};

/// What a call found.
pub(crate) enum Tried<G = LockGuard> {
    Granted(G),
    /// Another holder has the lock, or it is paused.
    Busy(Busy),
}

/// What a call returns that does not wait for a busy lock.
pub(super) fn busy(
    acquirer: &Acquirer,
    busy: impl Into<Busy>,
    terms: &Terms,
    start: Moment,
) -> Result<Tried, LockError> {
    let busy = busy.into();
    match terms.wait.limit() {
        None => Ok(Tried::Busy(busy)),
        Some(limit) => Err(acquirer.wait_limit_reached(&busy, terms, limit, start)),
    }
}

/// A call that waits, and logs what for when that takes long.
pub(super) struct Patient<'a> {
    pub(super) acquirer: &'a Acquirer,
    pub(super) key: &'a LockKey,
    pub(super) terms: &'a Terms,
    pub(super) start: Moment,
    /// Whether the log has what it waits for.
    pub(super) is_known: bool,
    /// Its line and its number there, where it waits for one lock.
    pub(super) place: Option<(&'a LineKey, u64)>,
}

impl Patient<'_> {
    /// The call is pinned by its caller: a future that is moved in here would take its space twice.
    pub(super) async fn wait<T>(&self, mut call: Pin<&mut impl Future<Output = T>>) -> T {
        let patience = self.acquirer.link.reporting.waited_over;
        let patience = patience.filter(|_| !self.terms.is_campaign);
        let mut warnings = None;
        poll_fn(|cx| {
            let outcome = call.as_mut().poll(cx);
            if let (true, Some(patience)) = (outcome.is_pending(), patience) {
                let new = || Box::pin(self.warn(patience));
                let _endless: Poll<()> = warnings.get_or_insert_with(new).as_mut().poll(cx);
            }
            outcome
        })
        .await
    }

    /// Logs what the call waits for: after so long, and each time that this has doubled, at least once an hour. What ends
    /// by itself is logged once. A crowd of calls that wait for one lock logs one line, of the call that is next.
    async fn warn(&self, patience: Duration) {
        let backend = &self.acquirer.link.backend;
        let shown = self.acquirer.link.reporting.show(self.key).labeled(self.terms.label);
        let waited = || backend.now().since(self.start);
        let (mut next, mut is_known) = (patience, self.is_known);
        loop {
            backend.timer(next.saturating_sub(waited())).await;
            next += next.clamp(SHORTEST, LONGEST);
            if self.is_behind_others() {
                continue;
            }
            let occupant = Occupant::of(self.acquirer, self.key, self.terms).await;
            if !occupant.is_obstacle {
                telemetry::waits_long(shown, waited(), &occupant.words);
            } else if !is_known {
                telemetry::waits_behind(shown, &occupant.words);
            }
            is_known |= occupant.is_obstacle;
        }
    }

    fn is_behind_others(&self) -> bool {
        let waiters = &self.acquirer.waiters;
        self.place.is_some_and(|(line, number)| !waiters.is_first(line, number))
    }
}

/// What a call waits for now.
struct Occupant {
    words: String,
    /// Whether it is no holder, and ends by itself at a known time.
    is_obstacle: bool,
}

impl Occupant {
    async fn of(acquirer: &Acquirer, key: &LockKey, terms: &Terms) -> Self {
        match terms.permits {
            Permits::OneLock => Self::of_lock(acquirer, key, terms).await,
            Permits::OneOf(_) | Permits::All(_) => Self::of_permits(acquirer, key, terms),
        }
    }

    async fn of_lock(acquirer: &Acquirer, key: &LockKey, terms: &Terms) -> Self {
        let holder = match inspect(&acquirer.link, key.clone()).await {
            Ok(Some(holder)) => holder,
            Ok(None) => return Self { words: "the lock is free now".into(), is_obstacle: false },
            Err(error) => return Self { words: error.message().into(), is_obstacle: false },
        };
        let mut words = holder.words(acquirer.link.reporting.show(key));
        if holder.is_own(terms.identity.as_ref()) {
            words.push_str(MAY_WAIT_FOR_ITSELF);
        }
        Self { words, is_obstacle: holder.ends_by_itself() }
    }

    fn of_permits(acquirer: &Acquirer, key: &LockKey, terms: &Terms) -> Self {
        let mut words = "all permits are taken".to_owned();
        let (family, count) = (Family::with_key(key.clone()), terms.permits.count());
        if family.members(count.unwrap_or(0)).any(|permit| !acquirer.leases(&permit).is_empty()) {
            words.push_str(MAY_WAIT_FOR_ITSELF);
        }
        Self { words, is_obstacle: false }
    }
}

const MAY_WAIT_FOR_ITSELF: &str =
    "; the holder is of this process or request, so the call may wait for itself";

/// Between two warnings of one call.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3_600);
