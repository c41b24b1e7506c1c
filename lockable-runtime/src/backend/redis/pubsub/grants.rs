//! The subscription on which this process receives grants, apart from the connections that carry
//! commands.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::backend::redis::connect::opener::{Opener, Target};
use crate::backend::redis::fault;
use crate::backend::redis::known::times::Times;
use crate::backend::redis::pubsub::subscription::{Heard, Subscription};
use crate::backend::{Fault, Grant, Reserved};
use crate::types::clock::{boot_time, timer_on};
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken};

/// The pause between two tries to subscribe.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// It doubles with each try that fails, up to this: the waiters ask about once a second meanwhile.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a subscription that is left has to show that it lives; other processes are handed locks by then.
pub(super) const PING: Duration = Duration::from_millis(200);

/// The one subscription of a locker; there is none until a call waits.
pub(crate) struct PlainGrants {
    subscriber: Subscriber,
    state: Mutex<Option<watch::Receiver<State>>>,
}

/// Whether the subscription is confirmed; `None` before the first try has ended.
type State = Option<Result<(), Fault>>;

/// What subscribing takes.
#[derive(Clone)]
struct Subscriber {
    opener: Opener,
}

impl PlainGrants {
    pub(crate) fn new(opener: Opener) -> Self {
        Self { subscriber: Subscriber { opener }, state: Mutex::default() }
    }

    /// Answers once the subscription is confirmed.
    pub(crate) async fn listen(&self, origin: Origin) -> Result<(), Fault> {
        let mut state = self.started(origin);
        let opener = &self.subscriber.opener;
        let confirmed = async {
            let known = state.wait_for(Option::is_some).await;
            let outcome = known.ok().and_then(|known| known.clone());
            outcome.unwrap_or_else(|| Err(fault::runtime_ended(&opener.server)))
        };
        opener.connecting(confirmed).await
    }

    fn started(&self, origin: Origin) -> watch::Receiver<State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (confirmed, state) = watch::channel(None);
            let subscribing = self.subscriber.clone().subscribe_always(origin, confirmed);
            // This runtime outlives the callers'.
            drop(self.subscriber.opener.timers.spawn(subscribing));
            state
        };
        state.get_or_insert_with(start).clone()
    }
}

impl Subscriber {
    /// Subscribes, again and again, until no locker is left whose calls could wait.
    ///
    /// Each time with an origin that is drawn then, and with those of the attempts that wait already.
    async fn subscribe_always(self, origin: Origin, confirmed: watch::Sender<State>) {
        let mut last = None;
        let mut keeps_origin = false;
        let mut pause = PAUSE;
        let reports = &self.opener.reports;
        while reports.are_received() {
            let current = match last {
                None => origin,
                // Its connection has just answered, so no other process was started from this one's image.
                Some(last) if keeps_origin => last,
                // Without randomness no new attempt is made either.
                Some(last) => Origin::draw().unwrap_or(last),
            };
            let mut origins =
                reports.events().map_or_else(BTreeSet::new, |events| events.waiting_origins());
            // A call may come to wait before the waiters know the new one.
            origins.extend(last.into_iter().chain([current]));
            let epoch = self.opener.demotion.epoch();
            match self.opener.connecting(self.subscribe(origins)).await {
                Ok((target, mut subscription)) => {
                    (last, pause) = (Some(current), PAUSE);
                    // This may be another server, with another clock.
                    self.opener.times.forget();
                    confirmed.send_replace(Some(Ok(())));
                    // What was published meanwhile is lost.
                    if let Some(events) = reports.events() {
                        events.on_resubscribed(Some(current), &|_| true);
                    }
                    let receiving = self.receive(&mut subscription);
                    let end = epoch.unless_over(target.unless_over(receiving)).await.flatten();
                    confirmed.send_replace(None);
                    if end.is_some() {
                        reports.broken(&fault::broke(&self.opener.server));
                    }
                    keeps_origin = end.is_none() && self.lives(&mut subscription).await;
                    if end.is_none() {
                        continue;
                    }
                }
                Err(fault) => drop(confirmed.send_replace(Some(Err(fault)))),
            }
            timer_on(&self.opener.timers, pause).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    /// Whether the subscription that is left still answers, as it does in a planned failover.
    ///
    /// See "What if two processes start from one image?" in DESIGN.md.
    async fn lives(&self, subscription: &mut Subscription) -> bool {
        matches!(self.opener.within(PING, subscription.ping()).await, Some(Ok(_)))
    }

    async fn subscribe(&self, origins: BTreeSet<Origin>) -> Result<(Target, Subscription), Fault> {
        let login = self.opener.login().await?;
        let channels = channels(&self.opener.namespace, origins);
        loop {
            let target = self.opener.target(&login).await?;
            let subscribing = Subscription::open(&target.client, &channels);
            let Some(subscription) = target.unless_over(subscribing).await else { continue };
            let failed = |error| {
                target.doubt();
                fault::of_login(&target.server, &error, target.login_advice)
            };
            let subscription = subscription.map_err(failed)?;
            return Ok((target, subscription));
        }
    }

    /// Passes grants to the waiters, until the subscription breaks or no locker is left.
    async fn receive(&self, subscription: &mut Subscription) {
        let Opener { timers, command_deadline, .. } = &self.opener;
        loop {
            let heard = subscription.hear(timers, *command_deadline).await;
            let Some(events) = self.opener.reports.events() else { return };
            match heard {
                Heard::Message(message) => {
                    let text = message.get_payload::<String>();
                    if let Some(grant) = text.ok().and_then(|text| grant(&text, &self.opener.times))
                    {
                        events.on_grant(grant);
                    }
                }
                Heard::Nothing => {}
                Heard::End => return,
            }
        }
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
/// See "Why is a grant with a token far ahead of its time claimed?" in DESIGN.md.
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
