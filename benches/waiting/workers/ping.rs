//! A `PING` in place of an acquisition, and nothing in place of a release.

use lockable_benches::worker::{Contender, Waiter};

use super::client::Client;

pub(super) async fn contender(url: &str) -> Ping {
    Ping(Client::connect(url).await)
}

#[derive(Clone)]
pub(super) struct Ping(Client);

impl Contender for Ping {
    type Waiter = Self;

    fn waiter(&self, _key: String) -> Self {
        self.clone()
    }
}

impl Waiter for Ping {
    async fn acquire(&mut self) {
        let pong: String =
            redis::cmd("PING").query_async(&mut self.0.connection).await.expect("an answer");
        assert_eq!(pong, "PONG");
    }

    async fn release(&mut self) {}
}
