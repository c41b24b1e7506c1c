use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::call::OneCall;
use crate::core::acquire::inspect::inspect;
use crate::core::holder::Holder;
use crate::core::telemetry;
use crate::core::types::key::LockKey;
use crate::core::types::permit::PermitsKey;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitedFor {
    Lock,
    OnePermit,
    /// One of them, while the same call may have others.
    AllPermits,
}

pub(super) struct Patient<'a> {
    pub(super) call: OneCall<'a>,
    /// Which one its events name.
    pub(super) key: &'a LockKey,
    pub(super) awaited: WaitedFor,
    pub(super) is_known: bool,
}

impl Patient<'_> {
    /// The caller pins the call: a future that is moved in here would take its space twice.
    pub(super) async fn wait<T>(&self, mut call: Pin<&mut impl Future<Output = T>>) -> T {
        let patience = self.call.acquirer.context.reporting.waited_over;
        let patience = patience.filter(|_| !self.call.options.is_campaign);
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

    /// Logs what the call waits for: after `patience`, and each time that this has doubled, at least once an hour. Of a
    /// crowd that waits for one key, one call does so at a time.
    async fn warn(&self, patience: Duration) {
        let backend = &self.call.acquirer.context.backend;
        let (mut next, mut warner, mut is_known) = (patience, None, self.is_known);
        loop {
            backend.timer(next.saturating_sub(self.call.waited())).await;
            next += next.clamp(SHORTEST, LONGEST);
            warner = warner.or_else(|| self.call.acquirer.warners.enter(self.key));
            if warner.is_some() {
                // Boxed, because every call that waits has the space for this and hardly one waits so long.
                is_known |= Box::pin(self.log(is_known)).await;
            }
        }
    }

    /// Returns whether the log has an obstacle that ends by itself.
    async fn log(&self, is_known: bool) -> bool {
        // The gate has a name that no caller knows.
        let permits_key = PermitsKey::of_gate(self.key);
        let shown = self.call.shown(permits_key.as_ref().map_or(self.key, PermitsKey::key));
        let occupant = Occupant::of(self).await;
        if !occupant.is_obstacle {
            telemetry::waits_long(shown, self.call.waited(), &occupant.words);
        } else if !is_known {
            telemetry::waits_behind(shown, &occupant.words);
        }
        occupant.is_obstacle
    }
}

struct Occupant {
    words: String,
    is_obstacle: bool,
}

impl Occupant {
    async fn of(Patient { call, key, awaited, .. }: &Patient<'_>) -> Self {
        let (context, key) = (&call.acquirer.context, *key);
        let count = call.options.permits.count().unwrap_or(1);
        let permits = || PermitsKey::with_key(key.clone());
        // A pause of permits is under each of them.
        let is_lock = *awaited == WaitedFor::Lock;
        let lock = if is_lock { key.clone() } else { permits().member(1) };
        let found = match inspect(context, lock).await {
            Ok(found) => found,
            Err(error) => return Self { words: error.problem().to_owned(), is_obstacle: false },
        };
        let is_obstacle = found.as_ref().is_some_and(Holder::ends_by_itself);
        let (mut words, is_own) = match (&found, awaited) {
            (Some(holder), _) if is_lock || is_obstacle => {
                let is_own = holder.is_own(call.options.identity.as_ref());
                (holder.words(context.reporting.show(key)), is_own)
            }
            (_, WaitedFor::Lock) => ("the lock is free now".to_owned(), false),
            (_, WaitedFor::AllPermits) => ("a permit is still taken".to_owned(), false),
            (_, WaitedFor::OnePermit) => {
                let is_held = |permit| !call.acquirer.leases(&permit).is_empty();
                ("all permits are taken".to_owned(), permits().members(count).any(is_held))
            }
        };
        if is_own {
            words.push_str(MAY_WAIT_FOR_ITSELF);
        }
        Self { words, is_obstacle }
    }
}

const MAY_WAIT_FOR_ITSELF: &str =
    "; the holder is of this process or request, so the call may wait for itself";

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3_600);
