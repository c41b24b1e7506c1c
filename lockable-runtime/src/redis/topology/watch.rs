//! Receives every failover at once, by a subscription to each Sentinel.
//!
//! See "Why subscribe to `+switch-master` on every Sentinel?" in DESIGN.md.

use std::sync::{Arc, OnceLock, Weak};

use ::redis::Msg;

use super::sentinels::{Sentinel, Sentinels};
use crate::core::backend::Reply;
use crate::core::process::clock::{timer_on, within};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::finder::{Finder, Term};
use crate::redis::pubsub::kept::{Kept, Subscriber, SubscriptionEnd};
use crate::redis::pubsub::subscription::Subscription;

pub(crate) const CHANNEL: &str = "+switch-master";

/// Watches the Sentinels of one primary, from the first query until it is dropped.
pub(crate) struct Watch {
    pub(crate) sentinels: Arc<Sentinels>,
    tasks: OnceLock<Vec<Kept>>,
}

impl Watch {
    pub(crate) fn new(sentinels: Sentinels) -> Self {
        Self { sentinels: Arc::new(sentinels), tasks: OnceLock::new() }
    }

    fn started(&self) -> Vec<Kept> {
        let start = |sentinel: &Sentinel| {
            let all = Arc::downgrade(&self.sentinels);
            Kept::spawn(&self.sentinels.timers, Watcher { sentinel: sentinel.clone(), all })
        };
        self.sentinels.each.iter().map(start).collect()
    }
}

impl Finder for Watch {
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

struct Watcher {
    sentinel: Sentinel,
    all: Weak<Sentinels>,
}

impl Subscriber for Watcher {
    async fn serve(&mut self) -> SubscriptionEnd {
        let Some(all) = self.all.upgrade() else { return SubscriptionEnd::Failed };
        let opening = async {
            let sentinel = self.sentinel.logged_in(all.limit).await?;
            Subscription::open(&sentinel.client, CHANNEL).await
        };
        let opened = within(|| timer_on(&all.timers, all.limit), opening).await;
        let Some(Ok(mut subscription)) = opened else { return SubscriptionEnd::Failed };
        // What was announced before is lost.
        match self.sentinel.names(&all).await {
            Some(endpoint) if all.elections.last() == Some(endpoint.clone()) => {}
            _ => all.refresh().await,
        }
        while let Ok(message) = subscription.message(&all.timers, all.limit).await {
            if let Some(message) = message {
                self.announced(&message, &all).await;
            }
        }
        SubscriptionEnd::Broken
    }

    fn is_needed(&self) -> bool {
        self.all.strong_count() > 0
    }
}

impl Watcher {
    async fn announced(&self, message: &Msg, all: &Sentinels) {
        if let Some((left, endpoint)) = announced(message, &all.primary)
            && !all.elections.announce(&left, endpoint.clone())
            && self.sentinel.names(all).await.as_ref() == Some(&endpoint)
        {
            all.elections.confirm(endpoint);
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

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::*;

    fn message(words: &str) -> Msg {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let parts = ["message", CHANNEL, words].map(text);
        Msg::from_owned_value(Value::Array(parts.to_vec())).unwrap()
    }

    /// Sentinels publish the failovers of all their primaries on one channel.
    #[test]
    fn only_a_failover_of_the_same_primary_is_heard() {
        let at = |host: &str, port| Endpoint { host: host.to_owned(), port };
        let failover = message("orders 10.0.0.1 6379 10.0.0.2 6380");
        let places = (at("10.0.0.1", 6379), at("10.0.0.2", 6380));
        assert_eq!(announced(&failover, "orders"), Some(places));
        assert_eq!(announced(&failover, "order"), None);
        assert_eq!(announced(&message("orders 10.0.0.1 6379"), "orders"), None);
    }
}
