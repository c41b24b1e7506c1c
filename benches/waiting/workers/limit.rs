//! Two scripts a section, where no waiter ever finds the lock taken.
//!
//! Its waiters queue in this process, so that a hand-off is a release, an acquisition and nothing else.
//! No lock that asks Redis twice a section has more sections a second; one that passes its lease on
//! within a process can have.

use lockable_benches::worker::{Contender, Waiter};

use super::client::{Client, RELEASE, Script};
use super::{LEASE_MS, OWNER};

pub(super) async fn contender(url: &str) -> Limit {
    let mut client = Client::connect(url).await;
    let (acquire, release) = (client.load(ACQUIRE).await, client.load(RELEASE).await);
    Limit { client, acquire, release }
}

pub(super) struct Limit {
    client: Client,
    acquire: Script,
    release: Script,
}

pub(super) struct Locking {
    client: Client,
    acquire: Script,
    release: Script,
    key: String,
}

impl Contender for Limit {
    type Waiter = Locking;

    fn waiter(&self, key: String) -> Locking {
        Locking {
            client: self.client.clone(),
            acquire: self.acquire.clone(),
            release: self.release.clone(),
            key,
        }
    }
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        let lease = LEASE_MS.to_string();
        let acquired = self.client.call(&self.acquire, &self.key, &[OWNER, &lease]).await;
        assert_eq!(acquired, 1, "no one else has this key");
    }

    async fn release(&mut self) {
        let released = self.client.call(&self.release, &self.key, &[OWNER]).await;
        assert_eq!(released, 1);
    }
}

const ACQUIRE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0";
