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
    let ttl = Ttl::new("expire", millis).ok()?;
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
