//! The subscription on which this process receives grants, apart from the connections that carry
//! commands.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::redis::aio::{PubSubSink, PubSubStream};
use ::redis::{Client, Msg, RedisResult, Value};
use futures_core::Stream;
use tokio::sync::watch;

use super::times::Times;
use crate::backend::redis::wire::connection::Opener;
use crate::backend::redis::wire::fault;
use crate::backend::{Fault, Grant, Listener, Reserved};
use crate::types::clock::{boot_time, timer_on};
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken};

/// A silent subscription is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The pause between two tries to subscribe.
const PAUSE: Duration = Duration::from_millis(100);

/// The one subscription of a locker; there is none until a call waits.
pub(crate) struct Grants {
    subscriber: Subscriber,
    state: Mutex<Option<watch::Receiver<State>>>,
}

/// Whether the subscription is confirmed; `None` before the first try has ended.
type State = Option<Result<(), Fault>>;

/// What subscribing takes.
#[derive(Clone)]
struct Subscriber {
    opener: Opener,
    times: Arc<Times>,
}

impl Grants {
    pub(crate) fn new(opener: Opener, times: Arc<Times>) -> Self {
        Self { subscriber: Subscriber { opener, times }, state: Mutex::default() }
    }

    /// Answers once the subscription is confirmed.
    pub(crate) async fn listen(
        &self,
        origin: Origin,
        hook: Weak<dyn Listener>,
    ) -> Result<(), Fault> {
        let mut state = self.started(origin, hook);
        let opener = &self.subscriber.opener;
        let confirmed = async {
            let known = state.wait_for(Option::is_some).await;
            let outcome = known.ok().and_then(|known| known.clone());
            outcome.unwrap_or_else(|| Err(fault::runtime_ended(&opener.server)))
        };
        opener.connecting(confirmed).await
    }

    fn started(&self, origin: Origin, hook: Weak<dyn Listener>) -> watch::Receiver<State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (confirmed, state) = watch::channel(None);
            let subscribing = self.subscriber.clone().subscribe_always(origin, confirmed, hook);
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
    async fn subscribe_always(
        self,
        origin: Origin,
        confirmed: watch::Sender<State>,
        hook: Weak<dyn Listener>,
    ) {
        let mut last = None;
        while hook.strong_count() > 0 {
            // Without randomness no new attempt is made either.
            let current = last.map_or(origin, |last| Origin::draw().unwrap_or(last));
            let mut origins =
                hook.upgrade().map_or_else(BTreeSet::new, |hook| hook.waiting_origins());
            // A call may come to wait before the waiters know the new one.
            origins.extend(last.into_iter().chain([current]));
            let subscribe = async {
                let subscribed =
                    subscribe(&self.opener.client, &self.opener.namespace, origins).await;
                subscribed.map_err(|error| fault::of(&self.opener.server, &error))
            };
            match self.opener.connecting(subscribe).await {
                Ok((sink, stream)) => {
                    last = Some(current);
                    confirmed.send_replace(Some(Ok(())));
                    // What was published meanwhile is lost.
                    if let Some(waiters) = hook.upgrade() {
                        waiters.on_resubscribed(current);
                    }
                    self.receive(sink, stream, &hook).await;
                    confirmed.send_replace(None);
                }
                Err(fault) => drop(confirmed.send_replace(Some(Err(fault)))),
            }
            timer_on(&self.opener.timers, PAUSE).await;
        }
    }

    /// Passes grants to the waiters, until the subscription breaks or no locker is left.
    async fn receive(
        &self,
        mut sink: PubSubSink,
        mut stream: PubSubStream,
        hook: &Weak<dyn Listener>,
    ) {
        loop {
            let event = self.opener.within(HEARTBEAT, next(&mut stream)).await;
            let Some(waiters) = hook.upgrade() else { return };
            if let Some(message) = event {
                let Some(message) = message else { return };
                if let Some(grant) = self.grant(&message) {
                    waiters.on_grant(grant);
                }
            } else {
                drop(waiters);
                // A refusal is an answer too.
                let pong = self.opener.within(self.opener.command_deadline, sink.ping::<Value>());
                let Some(Ok(_)) = pong.await else { return };
            }
        }
    }

    /// `first token \n server's time \n milliseconds \n owner token \n lock key`.
    fn grant(&self, message: &Msg) -> Option<Grant> {
        let arrived = boot_time();
        let text = message.get_payload::<String>().ok()?;
        let mut parts = text.splitn(5, '\n');
        let fence = parts.next()?.parse().ok()?;
        let granted = parts.next()?.parse().ok()?;
        let millis = Duration::from_millis(parts.next()?.parse().ok()?);
        let owner = OwnerToken::received(parts.next()?);
        let key = LockKey::prefixed("", parts.next()?).ok()?;
        let ttl = Ttl::new("expire", millis).ok()?;
        let began = self.times.began(granted, arrived);
        let counts_from = began.map_or(arrived, |began| began.counts_from);
        let since = began.map(|began| began.since);
        let fence = Reserved::at(fence, granted);
        Some(Grant { key, owner, fence, since, counts_from, ttl })
    }
}

/// A subscription to the grants of those origins.
pub(crate) async fn subscribe(
    client: &Client,
    namespace: &Namespace,
    origins: impl IntoIterator<Item = Origin>,
) -> RedisResult<(PubSubSink, PubSubStream)> {
    let (mut sink, stream) = client.get_async_pubsub().await?.split();
    let channels: Vec<String> =
        origins.into_iter().map(|origin| namespace.channel(origin)).collect();
    sink.subscribe(channels).await?;
    Ok((sink, stream))
}

/// The next message; `None` when the subscription has ended.
pub(crate) async fn next(stream: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}
