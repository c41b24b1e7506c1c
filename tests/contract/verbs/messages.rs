//! What is published in a server, word by word.

use redis::{Client, Connection, FromRedisValue, cmd};

use crate::fixture::LIMIT;

/// A subscription to the channels of processes that listen themselves: one more would make others alive.
pub(super) struct Messages(Connection);

/// Where the end of a step is published.
pub(super) const END: &str = "end of the step";

impl Messages {
    pub(super) fn subscribe(url: &str, channels: &[String]) -> Self {
        let mut connection = Client::open(url).unwrap().get_connection().unwrap();
        connection.set_read_timeout(Some(LIMIT)).unwrap();
        let subscribe = cmd("SUBSCRIBE").arg(channels).arg(END).get_packed_command();
        connection.send_packed_command(&subscribe).unwrap();
        for _ in 0..=channels.len() {
            connection.recv_response().unwrap();
        }
        Self(connection)
    }

    /// All that was published before the end of the step.
    pub(super) fn of_step(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let message = self.0.recv_response().unwrap();
            let (_, channel, text) = <(String, String, String)>::from_redis_value(message).unwrap();
            if channel == END {
                texts.sort();
                return texts;
            }
            texts.push(text);
        }
    }
}
