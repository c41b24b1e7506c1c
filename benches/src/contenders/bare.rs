//! `SET NX PX` and a script that compares and deletes.

use super::{Client, LEASE_MS, OWNER, RELEASE, Script};
use crate::worker::Contender;

/// No fencing token, and no call can wait: the yardstick.
#[derive(Debug, Clone)]
pub struct Bare {
    client: Client,
    release: Script,
}

impl Bare {
    /// One connection.
    pub async fn connect(url: &str) -> Self {
        let mut client = Client::connect(url).await;
        let release = client.load(RELEASE).await;
        Self { client, release }
    }
}

impl Contender for Bare {
    type Held = ();

    async fn acquire(&mut self, key: &str) {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(OWNER).arg("NX").arg("PX").arg(LEASE_MS);
        let reply: Option<String> =
            set.query_async(&mut self.client.connection).await.expect("an answer");
        assert!(reply.is_some(), "no one else has this key");
    }

    async fn release(&mut self, key: &str, (): ()) {
        let released = self.client.call(&self.release, &[key], &[OWNER]).await;
        assert_eq!(released, 1);
    }
}
