//! Two scripts a section, where no waiter ever finds the lock taken.
//!
//! Its waiters queue in this process, so that a hand-off is a release, an acquisition and nothing else.
//! No lock that asks Redis twice a section has more sections a second; one that passes its lease on
//! within a process can have.

use lockable_benches::contenders::{Client, LEASE_MS, OWNER, RELEASE, Script};
use lockable_benches::worker::Contender;

pub(super) async fn contender(url: &str) -> Limit {
    let mut client = Client::connect(url).await;
    let (acquire, release) = (client.load(ACQUIRE).await, client.load(RELEASE).await);
    Limit { client, acquire, release }
}

#[derive(Clone)]
pub(super) struct Limit {
    client: Client,
    acquire: Script,
    release: Script,
}

impl Contender for Limit {
    type Held = ();

    async fn acquire(&mut self, key: &str) {
        let lease = LEASE_MS.to_string();
        let acquired = self.client.call(&self.acquire, &[key], &[OWNER, &lease]).await;
        assert_eq!(acquired, 1, "no one else has this key");
    }

    async fn release(&mut self, key: &str, (): ()) {
        let released = self.client.call(&self.release, &[key], &[OWNER]).await;
        assert_eq!(released, 1);
    }
}

const ACQUIRE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0";
