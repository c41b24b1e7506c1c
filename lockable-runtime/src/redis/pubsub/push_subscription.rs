//! A subscription by RESP3, on its own connection.
//!
//! See "Why does the subscription speak RESP3?" in DESIGN.md.

use std::collections::HashSet;
use std::sync::Arc;

use ::redis::{Pipeline, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::Notify;

use crate::core::naming::namespace::Channels;
use crate::core::process::mutex::Mutex;
use crate::redis::connect::client::Client;
use crate::redis::connect::driven::Driven;

const JOINED: [PushKind; 2] = [PushKind::Subscribe, PushKind::SSubscribe];
const LEFT: [PushKind; 2] = [PushKind::Unsubscribe, PushKind::SUnsubscribe];
const MESSAGES: [PushKind; 2] = [PushKind::Message, PushKind::SMessage];

/// A connection only for subscriptions.
///
/// A node that gives a slot away ends the subscriptions to its channels with the message that confirms an
/// unsubscription, which the client takes for the reply to a request in flight. So each reply is compared with its
/// request, and the first unrequested message of that kind ends the use of the connection.
pub(crate) struct PushSubscription {
    driven: Driven,
    received: Arc<Pushes>,
    channels: Channels,
}

pub(crate) enum ChannelRequest {
    Join(String),
    Leave(String),
    Ping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushEnd {
    /// The node has just given a slot away.
    Unsubscribed,
    Broken,
}

impl PushSubscription {
    /// Connects and logs in. `hear` gets each published message, on the runtime that drives the connection, and may not
    /// block.
    pub(crate) async fn open(
        client: &Client,
        channels: Channels,
        changed: &Arc<Notify>,
        hear: impl Fn(&str) + Send + Sync + 'static,
    ) -> RedisResult<Self> {
        let received = Arc::new(Pushes { known: Mutex::default(), changed: Arc::clone(changed) });
        let pushed = Arc::clone(&received);
        let driven = Driven::open_with_pushes(client, move |push| match text_of_message(&push) {
            Some(text) => hear(text),
            None => pushed.on(&push),
        });
        Ok(Self { driven: driven.await?, received, channels })
    }

    /// Sends the requests in one go; a server's error is one of the outcomes.
    pub(crate) async fn request(
        &self,
        requests: &[ChannelRequest],
    ) -> Result<Vec<RedisResult<()>>, PushEnd> {
        self.received.known.lock().leaving = leaving(requests);
        let mut pipeline = Pipeline::with_capacity(requests.len());
        for request in requests {
            request.add_to(self.channels, &mut pipeline);
        }
        let mut commands = self.driven.commands.clone();
        let replies = commands.send_packed_commands(&pipeline, 0, requests.len()).await;
        self.received.known.lock().leaving.clear();
        let Ok(replies) = replies else { return Err(PushEnd::Broken) };
        let outcomes = requests.iter().zip(replies).map(|(request, reply)| request.outcome(reply));
        outcomes.collect::<Option<_>>().ok_or(PushEnd::Unsubscribed)
    }

    pub(crate) fn end(&self) -> Option<PushEnd> {
        self.received.known.lock().end
    }
}

impl ChannelRequest {
    fn add_to(&self, channels: Channels, pipeline: &mut Pipeline) {
        match (self, channels) {
            (Self::Join(channel), Channels::Plain) => pipeline.cmd("SUBSCRIBE").arg(channel),
            (Self::Join(channel), Channels::Sharded) => pipeline.cmd("SSUBSCRIBE").arg(channel),
            (Self::Leave(channel), Channels::Plain) => pipeline.cmd("UNSUBSCRIBE").arg(channel),
            (Self::Leave(channel), Channels::Sharded) => pipeline.cmd("SUNSUBSCRIBE").arg(channel),
            (Self::Ping, _) => pipeline.cmd("PING"),
        };
    }

    /// The outcome by the reply; `None` if the reply is to another request.
    fn outcome(&self, reply: Value) -> Option<RedisResult<()>> {
        match (self, reply) {
            // One to `PING`, too, shows that the node lives.
            (_, Value::ServerError(error)) => Some(Err(error.into())),
            (Self::Join(channel), Value::Push { kind, data }) if JOINED.contains(&kind) => {
                confirmed(channel, &data)
            }
            (Self::Leave(channel), Value::Push { kind, data }) if LEFT.contains(&kind) => {
                confirmed(channel, &data)
            }
            (Self::Ping, Value::Push { .. }) | (Self::Join(_) | Self::Leave(_), _) => None,
            (Self::Ping, _) => Some(Ok(())),
        }
    }
}

/// A confirmation of another channel is no reply to this request.
fn confirmed(channel: &str, data: &[Value]) -> Option<RedisResult<()>> {
    (channel_of(data) == Some(channel)).then_some(Ok(()))
}

fn leaving(requests: &[ChannelRequest]) -> HashSet<String> {
    let channel = |request: &ChannelRequest| match request {
        ChannelRequest::Leave(channel) => Some(channel.clone()),
        ChannelRequest::Join(_) | ChannelRequest::Ping => None,
    };
    requests.iter().filter_map(channel).collect()
}

struct Pushes {
    known: Mutex<Joined>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Joined {
    /// The channels that requests in flight leave.
    leaving: HashSet<String>,
    end: Option<PushEnd>,
}

impl Pushes {
    fn on(&self, push: &PushInfo) {
        let mut known = self.known.lock();
        let end = match push.kind {
            PushKind::Disconnection => PushEnd::Broken,
            ref kind if LEFT.contains(kind) && !known.is_requested(&push.data) => {
                PushEnd::Unsubscribed
            }
            _ => return,
        };
        known.end.get_or_insert(end);
        drop(known);
        self.changed.notify_one();
    }
}

impl Joined {
    /// Whether this first confirms a requested unsubscription.
    fn is_requested(&mut self, data: &[Value]) -> bool {
        channel_of(data).is_some_and(|channel| self.leaving.remove(channel))
    }
}

fn text_of_message(push: &PushInfo) -> Option<&str> {
    let text = push.data.get(1).filter(|_| MESSAGES.contains(&push.kind))?;
    text_of(text)
}

fn channel_of(data: &[Value]) -> Option<&str> {
    text_of(data.first()?)
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(kind: &str, channel: &str) -> Value {
        let (length, size) = (kind.len(), channel.len());
        let text = format!(">3\r\n${length}\r\n{kind}\r\n${size}\r\n{channel}\r\n:1\r\n");
        ::redis::parse_redis_value(text.as_bytes()).unwrap()
    }

    fn reply(text: &str) -> Value {
        ::redis::parse_redis_value(format!("{text}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn an_answer_belongs_to_its_request() {
        let (join, leave) =
            (ChannelRequest::Join("a".to_owned()), ChannelRequest::Leave("a".to_owned()));
        assert!(join.outcome(push("ssubscribe", "a")).unwrap().is_ok());
        assert!(leave.outcome(push("sunsubscribe", "a")).unwrap().is_ok());
        assert!(ChannelRequest::Ping.outcome(reply("+PONG")).unwrap().is_ok());
        for request in [join, leave, ChannelRequest::Ping] {
            let moved = request.outcome(reply("-MOVED 7 127.0.0.1:7000")).unwrap();
            assert_eq!(moved.unwrap_err().code(), Some("MOVED"));
        }
    }

    /// Otherwise each later reply would be taken for that of the request before.
    #[test]
    fn an_unasked_message_answers_no_request() {
        let requests = ["a", "b"].map(|channel| ChannelRequest::Join(channel.to_owned()));
        for request in requests.iter().chain([&ChannelRequest::Ping]) {
            assert!(request.outcome(push("sunsubscribe", "a")).is_none());
        }
        assert!(requests[0].outcome(push("ssubscribe", "b")).is_none());
        assert!(requests[0].outcome(reply("+PONG")).is_none());
        assert!(ChannelRequest::Ping.outcome(push("ssubscribe", "b")).is_none());
    }

    #[test]
    fn only_an_unasked_message_ends_a_subscription() {
        let received = Pushes { known: Mutex::default(), changed: Arc::default() };
        let on = |kind: &str, channel: &str| match push(kind, channel) {
            Value::Push { kind, data } => received.on(&PushInfo { kind, data }),
            other => panic!("{other:?}"),
        };
        received.known.lock().leaving = leaving(&[ChannelRequest::Leave("a".to_owned())]);
        on("ssubscribe", "b");
        on("sunsubscribe", "a");
        assert_eq!(received.known.lock().end, None);
        on("sunsubscribe", "a");
        assert_eq!(received.known.lock().end, Some(PushEnd::Unsubscribed));
        received.on(&PushInfo { kind: PushKind::Disconnection, data: Vec::new() });
        assert_eq!(received.known.lock().end, Some(PushEnd::Unsubscribed));
    }
}
