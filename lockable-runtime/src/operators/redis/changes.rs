//! What a server reports of one lock and its queue, by client tracking.
//!
//! See "How does a listing or a watch spare the server (`SCAN`)?" in DESIGN.md.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::{Cmd, Value};
use tokio::sync::{Notify, oneshot, watch};

use super::call::call;
use crate::core::backend::{Events, Fault, WakeUp};
use crate::core::process::clock::timer_on;
use crate::core::process::together::first_of;
use crate::core::types::key::LockKey;
use crate::core::types::slot::Slot;
use crate::redis::connect::opener::Opener;
use crate::redis::route::Router;
use crate::redis::wire::connection::Connection;
use crate::redis::wire::tracking;

pub(super) async fn changes(
    router: &Router,
    key: LockKey,
) -> Result<Option<watch::Receiver<()>>, Fault> {
    router.topology.servers().await?;
    let Some(server) = router.topology.slot_owners.server(Slot::of(&key)) else { return Ok(None) };
    let changed = Arc::new(Changed::default());
    let opener = server.readers().opener.for_reading().afresh();
    let events: Weak<Changed> = Arc::downgrade(&changed);
    opener.reports.go_to(events);
    let (begun, outcome) = oneshot::channel();
    // It belongs to no call, so it lives in the runtime of the background.
    drop(opener.timers.clone().spawn(async move {
        let tracked = opener.connecting(Box::pin(Tracked::open(&opener, &key))).await;
        match tracked {
            Ok(Some(tracked)) => {
                let (reports, receiver) = watch::channel(());
                if begun.send(Ok(Some(receiver))).is_ok() {
                    tracked.report(&opener, &changed, &reports).await;
                }
            }
            Ok(None) => drop(begun.send(Ok(None))),
            Err(fault) => drop(begun.send(Err(fault))),
        }
    }));
    outcome.await.unwrap_or(Ok(None))
}

/// A connection, and what is read on it again after each change: a server reports only the first change after a read.
struct Tracked {
    connection: Connection,
    reads: Vec<Cmd>,
}

impl Tracked {
    /// `None` where the server tracks nothing for this user, or the slot of the key moves.
    async fn open(opener: &Opener, key: &LockKey) -> Result<Option<Self>, Fault> {
        let connection = Box::pin(Connection::open(opener.clone(), true)).await?;
        let value = Cmd::new().arg("PTTL").arg(key.as_str()).to_owned();
        let queue = Cmd::new().arg("LLEN").arg(opener.namespace.queue(key)).to_owned();
        let reads = [value, queue].into_iter().flat_map(|read| [tracking::caching(), read]);
        let tracked = Self { connection, reads: reads.collect() };
        let switch = call(&tracked.connection, [tracking::turn_on()]).await?;
        let is_on = is_done(switch) && tracked.read().await?;
        Ok(is_on.then_some(tracked))
    }

    async fn read(&self) -> Result<bool, Fault> {
        Ok(is_done(call(&self.connection, self.reads.iter().cloned()).await?))
    }

    async fn report(&self, opener: &Opener, changed: &Changed, reports: &watch::Sender<()>) {
        while self.connection.unless_abandoned(self.hears(changed, reports)).await == Some(true) {
            // A lock that changes hands all the time is not read as often.
            timer_on(&opener.timers, PAUSE).await;
            if !self.read().await.unwrap_or(false) {
                return;
            }
            reports.send_replace(());
        }
    }

    async fn hears(&self, changed: &Changed, reports: &watch::Sender<()>) -> bool {
        let heard = async {
            changed.0.notified().await;
            true
        };
        let ended = async {
            self.connection.end().await;
        };
        let over = async {
            first_of(pin!(ended), pin!(reports.closed())).await;
            false
        };
        first_of(pin!(heard), pin!(over)).await
    }
}

fn is_done(replies: Vec<Value>) -> bool {
    replies.into_iter().all(|reply| reply.extract_error().is_ok())
}

/// Notified by the connection's own task, also before anyone waits.
#[derive(Default)]
struct Changed(Notify);

impl Events for Changed {
    fn on_wake_up(&self, _: WakeUp) {}

    fn on_changed(&self, _: &str) {
        self.0.notify_one();
    }

    fn on_flushed(&self, _: &dyn Fn(Slot) -> bool) {
        self.0.notify_one();
    }
}

/// From a change to the next read.
const PAUSE: Duration = Duration::from_millis(50);
