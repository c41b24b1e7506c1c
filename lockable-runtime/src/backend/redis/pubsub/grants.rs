//! The subscription on which this process receives grants, apart from the connections that carry
//! commands.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::kept::{End, Followed, Kept, Subscriber};
use crate::backend::redis::connect::opener::Opener;
use crate::backend::redis::fault;
use crate::backend::redis::known::times::Times;
use crate::backend::{Fault, Grant, Reserved};
use crate::types::clock::boot_time;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken};

/// The one subscription of a locker; there is none until a call waits.
pub(crate) struct PlainGrants {
    opener: Opener,
    task: Mutex<Option<(Kept, Confirmed)>>,
}

/// Whether the subscription is confirmed; `None` before the first try has ended.
type Confirmed = watch::Receiver<Option<Result<(), Fault>>>;

/// Receives grants: each subscription has the channel of its own origin, and those of the attempts that wait already.
struct GrantReceiver {
    opener: Opener,
    confirmed: watch::Sender<Option<Result<(), Fault>>>,
    origin: Origin,
    /// Whether it is the first, or its connection has just answered: then no other process was started from this one's
    /// image.
    keeps_origin: bool,
    /// The one before, with which calls may come to wait still.
    last: Option<Origin>,
}

impl PlainGrants {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { opener, task: Mutex::default() }
    }

    /// Answers once the subscription is confirmed.
    pub(crate) async fn listen(&self, origin: Origin) -> Result<(), Fault> {
        let mut confirmed = self.started(origin);
        let confirmed = async {
            let outcome = confirmed.wait_for(Option::is_some).await;
            let outcome = outcome.ok().and_then(|outcome| outcome.clone());
            outcome.unwrap_or_else(|| Err(fault::runtime_ended(&self.opener.server)))
        };
        self.opener.connecting(confirmed).await
    }

    fn started(&self, origin: Origin) -> Confirmed {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (confirmed, state) = watch::channel(None);
            let opener = self.opener.clone();
            let receiver =
                GrantReceiver { opener, confirmed, origin, keeps_origin: true, last: None };
            (Kept::spawn(&self.opener.timers, receiver), state)
        };
        task.get_or_insert_with(start).1.clone()
    }
}

impl Subscriber for GrantReceiver {
    async fn serve(&mut self) -> End {
        if !self.keeps_origin {
            // Without randomness no new attempt is made either.
            self.origin = Origin::draw().unwrap_or(self.origin);
        }
        let opener = &self.opener;
        let mut subscription = match Followed::open(opener, self.channels()).await {
            Ok(subscription) => subscription,
            Err(fault) => {
                self.confirmed.send_replace(Some(Err(fault)));
                return End::Failed;
            }
        };
        self.last = Some(self.origin);
        // This may be another server, with another clock.
        opener.times.forget();
        self.confirmed.send_replace(Some(Ok(())));
        // What was published meanwhile is lost.
        if let Some(events) = opener.reports.events() {
            events.on_resubscribed(Some(self.origin), &|_| true);
        }
        let end = subscription.pass_on(opener, |message| {
            let text = message.get_payload::<String>().ok();
            if let Some(grant) = text.and_then(|text| grant(&text, &opener.times))
                && let Some(events) = opener.reports.events()
            {
                events.on_grant(grant);
            }
        });
        let end = end.await;
        self.confirmed.send_replace(None);
        if matches!(end, End::Broken) {
            opener.reports.broken(&fault::broke(&opener.server));
        }
        self.keeps_origin = matches!(end, End::Left) && subscription.lives(opener).await;
        end
    }

    fn is_needed(&self) -> bool {
        self.opener.reports.are_received()
    }
}

impl GrantReceiver {
    fn channels(&self) -> Vec<String> {
        let events = self.opener.reports.events();
        let mut origins = events.map_or_else(BTreeSet::new, |events| events.waiting_origins());
        // A call may come to wait before the waiters know the new one.
        origins.extend(self.last.into_iter().chain([self.origin]));
        channels(&self.opener.namespace, origins)
    }
}

/// A grant as the scripts publish it:
/// `first token \n server's time \n milliseconds \n owner token \n lock key`.
pub(super) fn grant(text: &str, times: &Times) -> Option<Grant> {
    let arrived = boot_time();
    let mut parts = text.splitn(5, '\n');
    let fence = parts.next()?.parse().ok()?;
    let granted = parts.next()?.parse().ok()?;
    let millis = Duration::from_millis(parts.next()?.parse().ok()?);
    let owner = OwnerToken::received(parts.next()?);
    let key = LockKey::prefixed("", parts.next()?).ok()?;
    // No script grants for longer: what is published by someone else is claimed soon, and so found out.
    let ttl = Ttl::new("expire", millis).ok()?.provisional();
    let began = times.began(granted, arrived).filter(|_| fence <= farthest(granted));
    let counts_from = began.map_or(arrived, |began| began.counts_from);
    let since = began.map(|began| began.since);
    let fence = Reserved::at(fence, granted);
    Some(Grant { key, owner, fence, since, counts_from, ttl })
}

/// The highest first token that a server's clock gives reason to believe. What is above it is claimed: the clock was
/// set back, or someone else has published the grant, whose token would poison what it fences.
///
/// See "What if a grant is forged, with a fencing token far ahead of the clock?" in DESIGN.md.
fn farthest(granted: u64) -> u64 {
    granted.saturating_add(Reserved::PASSES + 1)
}

/// The channels on which the grants of those origins are published.
pub(crate) fn channels(
    namespace: &Namespace,
    origins: impl IntoIterator<Item = Origin>,
) -> Vec<String> {
    origins.into_iter().map(|origin| namespace.channel(origin)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "0123456789abcdef.17500000000000010000000007 req-1";

    fn times() -> Times {
        let times = Times::default();
        let now = boot_time();
        times.learn(now, 1_750_000_000_000_000, now);
        times
    }

    /// What is nearly a part of a grant, or one.
    fn part() -> impl Strategy<Value = String> {
        let texts =
            ["", "0", "-1", "+5", " 7", "1750000000000017", "18446744073709551616", OWNER, "k"];
        let texts = prop::sample::select(texts.to_vec()).prop_map(str::to_owned);
        prop_oneof![texts, any::<u64>().prop_map(|number| number.to_string()), "\\PC{0,30}"]
    }

    proptest! {
        /// A script publishes numbers without a sign, and a key as it is.
        #[test]
        fn a_grant_is_read_as_it_was_published(
            fence: u64,
            time: u64,
            millis in 10_u64..100_000,
            key in "[a-z:\n]{1,40}",
        ) {
            let text = format!("{fence}\n{time}\n{millis}\n{OWNER}\n{key}");
            let grant = grant(&text, &times()).unwrap();
            prop_assert_eq!(grant.fence.first, fence);
            prop_assert_eq!(grant.ttl.duration(), Duration::from_millis(millis.min(1_000)));
            prop_assert_eq!((grant.owner.as_ref(), grant.key.as_str()), (OWNER, key.as_str()));
            prop_assert!(grant.since.is_none() || fence <= farthest(time));
        }

        /// Whatever it says, it lasts no longer than a script grants, and is dated only by a possible token.
        #[test]
        fn a_message_is_a_short_grant_or_none(parts in vec(part(), 0..7)) {
            let text = parts.join("\n");
            let Some(grant) = grant(&text, &times()) else { return Ok(()) };
            prop_assert!(grant.ttl.duration() <= Duration::from_secs(1), "{:?}", grant.ttl);
            prop_assert!(parts.len() >= 5, "{}", text);
            prop_assert!(grant.since.is_none_or(|since| since <= boot_time()));
        }

        #[test]
        fn any_text_is_a_grant_or_none(text in ".{0,200}") {
            drop(grant(&text, &times()));
        }
    }
}
