//! A subscription to channels, on its own connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use ::redis::aio::{PubSub, PubSubSink, PubSubStream};
use ::redis::{Msg, RedisResult, ToRedisArgs, Value};
use futures_core::Stream;
use tokio::runtime::Handle;

use crate::core::process::clock::{timer_on, within};
use crate::redis::connect::client::Client;

/// After this silence a subscription is pinged.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub(crate) struct Broken;

pub(crate) struct Subscription {
    sink: PubSubSink,
    stream: PubSubStream,
}

impl Subscription {
    pub(crate) async fn open(client: &Client, channels: impl ToRedisArgs) -> RedisResult<Self> {
        let settings = client.info.redis_settings();
        let opened = PubSub::new(settings, client.connect().await?).await;
        let (mut sink, stream) = client.first_answer(opened)?.split();
        client.sends("SUBSCRIBE");
        sink.subscribe(channels).await?;
        Ok(Self { sink, stream })
    }

    pub(crate) async fn next(&mut self) -> Option<Msg> {
        poll_fn(|cx| Pin::new(&mut self.stream).poll_next(cx)).await
    }

    pub(crate) async fn ping(&mut self) -> RedisResult<Value> {
        self.sink.ping().await
    }

    /// The next message; `None` after a silence, if a reply within `limit` shows that it lives.
    pub(crate) async fn message(
        &mut self,
        timers: &Handle,
        limit: Duration,
    ) -> Result<Option<Msg>, Broken> {
        if let Some(next) = within(|| timer_on(timers, HEARTBEAT), self.next()).await {
            return next.map(Some).ok_or(Broken);
        }
        match within(|| timer_on(timers, limit), self.ping()).await {
            // A refusal is an answer too.
            Some(Ok(_)) => Ok(None),
            Some(Err(_)) | None => Err(Broken),
        }
    }
}
