//! Whether a wake-up that is published arrives.

use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::rights::{Missing, revocations, unnotified};
use crate::core::naming::namespace::Channels;
use crate::core::types::slot::Slot;
use crate::findings::{Code, Finding, Severity};
use crate::operators::check::Report;
use crate::redis::fault;
use crate::redis::pubsub::push_subscription::{ChannelRequest, PushSubscription};
use crate::redis::pubsub::subscription;
use crate::redis::wire::probe::Probe;
use crate::redis::wire::session::Session;

pub(super) struct ProbeSubscription {
    /// Ends when it is dropped.
    _subscription: PushSubscription,
    messages: UnboundedReceiver<String>,
}

impl ProbeSubscription {
    /// Subscribes as waiting calls do, and checks that the subscription lives.
    pub(super) async fn open(
        session: &Session<'_>,
        probe: &Probe,
        missing: &mut Missing,
        report: &mut Report,
    ) -> Option<Self> {
        let (opener, channels) = (session.opener, session.opener.channels);
        if channels == Channels::Sharded {
            hear_revocations(session, probe, missing).await;
        }
        let (sender, messages) = mpsc::unbounded_channel();
        let hear = move |text: &str| {
            // There is no receiver when the check is over.
            let _over = sender.send(text.to_owned());
        };
        let ended = Arc::default();
        let opening = PushSubscription::open(&session.target.client, channels, &ended, hear);
        let subscription = match opener.within(opener.connect_deadline, opening).await {
            Some(Ok(subscription)) => subscription,
            failed => {
                let error = failed.and_then(Result::err).map(|error| fault::explain(&error).1);
                let limit = opener.connect_deadline;
                let late = || session.target.client.progress.late("no answer", limit).0;
                let cause = error.unwrap_or_else(late);
                report.add([unnotified(channels, "connecting by RESP3", &cause)]);
                return None;
            }
        };
        let channel =
            channels.of_wake_ups(&probe.names.namespace, probe.origin, Slot::of(&probe.key));
        let commands = [channels.subscribe(), "ping"];
        let requests = [ChannelRequest::Join(channel), ChannelRequest::Ping];
        let asked = opener.within(opener.command_deadline, subscription.request(&requests)).await;
        let Some(Ok(outcomes)) = asked else {
            report.add([unnotified(channels, commands[0], "no answer")]);
            return None;
        };
        let mut is_subscribed = true;
        for (command, outcome) in commands.into_iter().zip(outcomes) {
            let Err(error) = outcome else { continue };
            is_subscribed &= command == "ping";
            if fault::is_missing_right(&error) {
                missing.add_of_subscription(probe, command, &error);
            } else if !fault::is_redirect(&error) {
                report.add([unnotified(channels, command, &fault::explain(&error).1)]);
            }
        }
        is_subscribed.then_some(Self { _subscription: subscription, messages })
    }

    pub(super) async fn receive(mut self, session: &Session<'_>, probe: &Probe) -> Option<Finding> {
        let limit = session.opener.command_deadline;
        let text = session.opener.within(limit, self.messages.recv()).await.flatten();
        let is_received = text.is_some_and(|text| text.ends_with(probe.key.as_str()));
        let message = format!("a grant that was published did not arrive within {limit:?}");
        (!is_received).then(|| Finding::new(Severity::Error, Code::GrantNotReceived, message))
    }
}

/// Subscribes as holders do that may be asked to stop. Only a missing right is a finding: no lock depends on it.
async fn hear_revocations(session: &Session<'_>, probe: &Probe, missing: &mut Missing) {
    let channel = revocations(&probe.namespace, probe.origin);
    let subscribing = subscription::Subscription::open(&session.target.client, channel);
    let answer = session.opener.within(session.opener.connect_deadline, subscribing).await;
    if let Some(Err(error)) = answer
        && fault::is_missing_right(&error)
    {
        missing.add_of_subscription(probe, "subscribe", &error);
    }
}
