//! What this crate sends, through the client library alone.

use super::{Client, LEASE_MS, OWNER, Script};
use crate::worker::Contender;

/// One fence counter for all keys, which is made once: what is left of ours when the fence counters,
/// the tables of what is held, the timers and the renewal cost nothing.
#[derive(Debug, Clone)]
pub struct Same {
    client: Client,
    release: Script,
}

impl Same {
    /// One connection.
    pub async fn connect(url: &str) -> Self {
        let mut client = Client::connect(url).await;
        let mut make = redis::cmd("SET");
        make.arg(FENCE).arg(1_700_000_000_000_000_u64).arg("PX").arg(600_000);
        make.exec_async(&mut client.connection).await.expect("an answer");
        let release = client.load(RELEASE).await;
        Self { client, release }
    }
}

impl Contender for Same {
    type Held = ();

    async fn acquire(&mut self, key: &str) {
        let mut pipeline = redis::pipe();
        pipeline.cmd("SET").arg(key).arg(OWNER).arg("NX").arg("GET").arg("PX").arg(LEASE_MS);
        pipeline.cmd("INCR").arg(FENCE);
        let replies = pipeline.query_async(&mut self.client.connection).await;
        let (owner, _token): (Option<String>, u64) = replies.expect("an answer");
        assert!(owner.is_none(), "no one else has this key");
    }

    async fn release(&mut self, key: &str, (): ()) {
        let queue = format!("lockable:queue:{{{key}}}");
        let released = self.client.call(&self.release, &[key, FENCE, &queue], &[OWNER]).await;
        assert_eq!(released, 1);
    }
}

const FENCE: &str = "lockable:fence:{same}";

/// What this crate runs to release.
const RELEASE: &str = concat!(
    include_str!("../../../lockable-runtime/scripts/free.lua"),
    include_str!("../../../lockable-runtime/scripts/publish.lua"),
    include_str!("../../../lockable-runtime/scripts/hand_off.lua"),
    include_str!("../../../lockable-runtime/scripts/release.lua")
);
