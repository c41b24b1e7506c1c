//! Whether a grant that is published arrives.

use ::redis::{RedisResult, Value};

use super::rights::{Missing, revocations};
use super::session::{Probe, Session};
use super::shard_channel::ShardChannel;
use crate::backend::redis::fault;
use crate::backend::redis::pubsub::subscription;
use crate::check::{Code, Finding, Report, Severity};
use crate::types::namespace::Channels;

/// A subscription to the wake-ups of the probe.
pub(super) enum Subscription {
    /// On a channel of the whole server.
    Plain(subscription::Subscription),
    /// On one of the probe's slot.
    Sharded(ShardChannel),
}

impl Subscription {
    /// Subscribes as a locker does whose calls wait, and checks that the subscription lives.
    pub(super) async fn open(
        session: &Session<'_>,
        probe: &Probe,
        missing: &mut Missing,
        report: &mut Report,
    ) -> Option<Self> {
        match session.opener.channels {
            Channels::Plain => open(session, probe, missing, report).await.map(Self::Plain),
            Channels::Sharded => {
                hear_revocations(session, probe, missing).await;
                ShardChannel::open(session, probe, missing, report).await.map(Self::Sharded)
            }
        }
    }

    /// Waits for the grant that the release has published.
    pub(super) async fn receive(mut self, session: &Session<'_>, probe: &Probe) -> Option<Finding> {
        let limit = session.opener.command_deadline;
        let text = session.opener.within(limit, self.next()).await.flatten();
        let is_received = text.is_some_and(|text| text.ends_with(probe.key.as_str()));
        let message = format!("a grant that was published did not arrive within {limit:?}");
        (!is_received).then(|| not_received(message))
    }

    /// The next message.
    async fn next(&mut self) -> Option<String> {
        match self {
            Self::Plain(subscription) => subscription.next().await?.get_payload().ok(),
            Self::Sharded(channel) => channel.next().await,
        }
    }
}

async fn open(
    session: &Session<'_>,
    probe: &Probe,
    missing: &mut Missing,
    report: &mut Report,
) -> Option<subscription::Subscription> {
    let opener = session.opener;
    let channel = probe.names.namespace.channel(probe.origin);
    let subscribing = subscription::Subscription::open(&session.target.client, channel);
    let answer = opener.within(opener.connect_deadline, subscribing).await;
    let mut subscription = succeeded("subscribe", answer, probe, missing, report)?;
    let pong = opener.within(opener.command_deadline, subscription.ping()).await;
    let pong = pong.map(|answer| answer.and_then(Value::extract_error));
    succeeded("ping", pong, probe, missing, report);
    Some(subscription)
}

/// Subscribes as a locker does whose holders may be asked to stop. Only a missing right is a finding: no lock
/// depends on it.
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

/// The answer; where there is none, or an error, the reason is added.
fn succeeded<T>(
    command: &str,
    answer: Option<RedisResult<T>>,
    probe: &Probe,
    missing: &mut Missing,
    report: &mut Report,
) -> Option<T> {
    let failure = match answer {
        Some(Ok(answer)) => return Some(answer),
        Some(Err(error)) if fault::is_missing_right(&error) => {
            missing.add_of_subscription(probe, command, &error);
            return None;
        }
        Some(Err(error)) => format!("`{command}` failed: {}", fault::explain(&error).1),
        None => format!("`{command}` was not answered in time"),
    };
    report.add([not_received(failure)]);
    None
}

fn not_received(message: String) -> Finding {
    Finding::new(Severity::Error, Code::GrantNotReceived, message)
}
