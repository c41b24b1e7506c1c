//! Hears of every failover at once: a subscription to each Sentinel.
//!
//! See "Why are Sentinels watched?" in DESIGN.md.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ::redis::Msg;
use tokio::task::AbortHandle;

use super::sentinels::{Sentinel, Sentinels};
use crate::backend::Reply;
use crate::backend::redis::connect::endpoint::Endpoint;
use crate::backend::redis::connect::finder::{Finder, Term};
use crate::backend::redis::pubsub::subscription::{Heard, Subscription};
use crate::types::clock::{timer_on, within};

/// What Sentinels publish when another server is the primary.
pub(crate) const CHANNEL: &str = "+switch-master";

/// The pause before a Sentinel is subscribed to again.
const PAUSE: Duration = Duration::from_secs(1);

/// The Sentinels of one primary, which are watched from the first question on until this is dropped.
pub(crate) struct Watch {
    pub(crate) sentinels: Arc<Sentinels>,
    tasks: OnceLock<Vec<AbortHandle>>,
}

impl Watch {
    pub(crate) fn new(sentinels: Sentinels) -> Self {
        Self { sentinels: Arc::new(sentinels), tasks: OnceLock::new() }
    }

    fn started(&self) -> Vec<AbortHandle> {
        let start = |sentinel: &Sentinel| {
            let watching = watch(sentinel.clone(), Arc::downgrade(&self.sentinels));
            self.sentinels.timers.spawn(watching).abort_handle()
        };
        self.sentinels.each.iter().map(start).collect()
    }
}

impl Finder for Watch {
    /// The Sentinels are watched from the first time on.
    fn find(&self) -> Reply<(Endpoint, Arc<dyn Term>)> {
        self.tasks.get_or_init(|| self.started());
        let sentinels = Arc::clone(&self.sentinels);
        Box::pin(async move {
            let (endpoint, election) = sentinels.primary().await?;
            Ok((endpoint, Arc::new(election) as Arc<dyn Term>))
        })
    }

    fn last(&self) -> Option<Endpoint> {
        self.sentinels.elections.last()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
    }
}

/// Subscribes, again and again.
async fn watch(sentinel: Sentinel, all: Weak<Sentinels>) {
    while let Some(all) = all.upgrade() {
        let subscribing = Subscription::open(&sentinel.client, CHANNEL);
        let subscribed = within(|| timer_on(&all.timers, all.limit), subscribing).await;
        if let Some(Ok(mut subscription)) = subscribed {
            // What was announced before is lost.
            match sentinel.names(&all).await {
                Some(endpoint) if all.elections.last() == Some(endpoint.clone()) => {}
                _ => all.refresh().await,
            }
            hear(&mut subscription, &sentinel, &all).await;
        }
        timer_on(&all.timers, PAUSE).await;
    }
}

/// Passes on what the Sentinel announces, until the subscription breaks.
async fn hear(subscription: &mut Subscription, sentinel: &Sentinel, all: &Sentinels) {
    loop {
        match subscription.hear(&all.timers, all.limit).await {
            Heard::Message(message) => {
                if let Some((left, endpoint)) = announced(&message, &all.primary)
                    && !all.elections.announce(&left, endpoint.clone())
                    && sentinel.names(all).await.as_ref() == Some(&endpoint)
                {
                    all.elections.confirm(endpoint);
                }
            }
            Heard::Nothing => {}
            Heard::End => return,
        }
    }
}

/// `name old-host old-port host port`: the old primary and the new one; `None` for another name.
fn announced(message: &Msg, primary: &str) -> Option<(Endpoint, Endpoint)> {
    let text = message.get_payload::<String>().ok()?;
    // A name has no white space: the Sentinel's configuration could not hold it.
    let mut words = text.split_whitespace();
    if words.next()? != primary {
        return None;
    }
    let mut endpoint = || {
        let host = words.next()?.to_owned();
        Some(Endpoint { host, port: words.next()?.parse().ok()? })
    };
    Some((endpoint()?, endpoint()?))
}
