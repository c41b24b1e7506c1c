//! A `PING` in place of an acquisition, and nothing in place of a release.

use lockable_benches::contenders::Client;
use lockable_benches::worker::Contender;

pub(super) async fn contender(url: &str) -> Ping {
    Ping(Client::connect(url).await)
}

#[derive(Clone)]
pub(super) struct Ping(Client);

impl Contender for Ping {
    type Held = ();

    async fn acquire(&mut self, _key: &str) {
        let pong: String =
            redis::cmd("PING").query_async(&mut self.0.connection).await.expect("an answer");
        assert_eq!(pong, "PONG");
    }

    async fn release(&mut self, _key: &str, (): ()) {}
}
