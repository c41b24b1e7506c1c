//! A subscription to wake-ups that are published on a channel of a shard.

use std::sync::Arc;

use ::redis::RedisResult;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::failures::no_channel;
use super::rights::Missing;
use super::session::{Probe, Session};
use crate::backend::redis::fault;
use crate::backend::redis::pubsub::shard_subscription::{ChannelRequest, ShardSubscription};
use crate::check::Report;
use crate::types::slot::Slot;

/// A subscription to the wake-ups of the probe, on a channel of its slot.
pub(super) struct ShardChannel {
    /// Ends the subscription when it is dropped.
    _subscription: ShardSubscription,
    messages: UnboundedReceiver<String>,
}

impl ShardChannel {
    /// Subscribes as a locker does whose calls wait, and checks that the subscription lives.
    pub(super) async fn open(
        session: &Session<'_>,
        probe: &Probe,
        missing: &mut Missing,
        report: &mut Report,
    ) -> Option<Self> {
        let opener = session.opener;
        let (sender, messages) = mpsc::unbounded_channel();
        let hear = move |text: &str| {
            // There is no receiver when the check is over.
            let _over = sender.send(text.to_owned());
        };
        let ended = Arc::default();
        let opening = ShardSubscription::open(&session.target.client, &ended, hear);
        let answer = opener.within(opener.connect_deadline, opening).await;
        let subscription = answered("connecting", answer, report)?;
        let channel = probe.names.namespace.shard_channel(probe.origin, Slot::of(&probe.key));
        let requests = [ChannelRequest::Join(channel), ChannelRequest::Ping];
        let asked = opener.within(opener.command_deadline, subscription.request(&requests)).await;
        let Some(Ok(outcomes)) = asked else {
            report.add([no_channel("ssubscribe", "no answer")]);
            return None;
        };
        let mut is_subscribed = true;
        for (command, outcome) in ["ssubscribe", "ping"].into_iter().zip(outcomes) {
            let Err(error) = outcome else { continue };
            is_subscribed &= command != "ssubscribe";
            if fault::is_missing_right(&error) {
                missing.add_of_subscription(probe, command, &error);
            } else if !fault::is_redirect(&error) {
                report.add([no_channel(command, &fault::explain(&error).1)]);
            }
        }
        is_subscribed.then_some(Self { _subscription: subscription, messages })
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.messages.recv().await
    }
}

/// The answer; where there is none, or an error, the reason is added.
fn answered<T>(what: &str, answer: Option<RedisResult<T>>, report: &mut Report) -> Option<T> {
    match answer {
        Some(Ok(answer)) => return Some(answer),
        Some(Err(error)) => report.add([no_channel(what, &fault::explain(&error).1)]),
        None => report.add([no_channel(what, "no answer in time")]),
    }
    None
}
