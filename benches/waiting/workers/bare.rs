//! `SET NX PX` and a script that compares and deletes.

use lockable_benches::worker::{Contender, Waiter};

use super::client::{Client, RELEASE, Script};
use super::{LEASE_MS, OWNER};

pub(super) async fn contender(url: &str) -> Bare {
    let mut client = Client::connect(url).await;
    let release = client.load(RELEASE).await;
    Bare { client, release }
}

pub(super) struct Bare {
    client: Client,
    release: Script,
}

pub(super) struct Locking {
    client: Client,
    release: Script,
    key: String,
}

impl Contender for Bare {
    type Waiter = Locking;

    fn waiter(&self, key: String) -> Locking {
        Locking { client: self.client.clone(), release: self.release.clone(), key }
    }
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg(OWNER).arg("NX").arg("PX").arg(LEASE_MS);
        let reply: Option<String> =
            set.query_async(&mut self.client.connection).await.expect("an answer");
        assert!(reply.is_some(), "no one else has this key");
    }

    async fn release(&mut self) {
        let released = self.client.call(&self.release, &self.key, &[OWNER]).await;
        assert_eq!(released, 1);
    }
}
