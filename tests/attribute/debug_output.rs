//! What `{:?}` shows of a lock: one line, for which nothing is locked while it is written.

use std::fmt::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lockable_runtime::{LockGuard, Locker};

use crate::events;
use crate::support::{LIMIT, SECOND, elapse, hold, locker};

async fn renewed(locks: &Locker, key: &str) -> LockGuard {
    locks.lock(key).expire(SECOND).renew().acquire().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn debug_of_a_guard_is_one_line_among_thousands() {
    let locks = locker().await;
    let mut guards = Vec::new();
    for n in 0..2_000 {
        guards.push(locks.lock(format!("order:{n}")).renew().acquire().await.unwrap());
    }
    let guard = guards.pop().unwrap();
    let (lease, token) = (guard.lease().clone(), guard.lease().fencing_token());
    let fields =
        format!(r#" {{ key: "disLock:order:1999", fencing_token: {token}, is_held: true }}"#);
    assert_eq!(format!("{guard:?}"), format!("LockGuard{fields}"));
    assert_eq!(format!("{lease:?}"), format!("Lease{fields}"));
    let texts = [format!("{guard:#?}"), format!("{:?}", locks.lock("k")), format!("{locks:?}")];
    assert!(texts.iter().all(|text| text.len() < 300), "{texts:?}");
    guard.release().await.unwrap();
    assert!(format!("{lease:?}").ends_with("is_held: false }"), "{lease:?}");
}

/// Writes piece by piece, each when it is allowed to.
struct SlowWriter {
    begun: Sender<()>,
    go: Receiver<()>,
}

impl Write for SlowWriter {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        self.begun.send(()).unwrap();
        self.go.recv_timeout(LIMIT).map_err(|_| fmt::Error)
    }
}

/// Goal: a slow log holds up no lock. Method: at each piece of the text the writer stalls, until
/// another lock was renewed several times, and one was acquired and released.
#[tokio::test(start_paused = true)]
async fn a_stalled_writer_holds_up_no_renewal() {
    let locks = locker().await;
    let (shown, other) = (renewed(&locks, "shown").await, renewed(&locks, "other").await);
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    let mut writer = SlowWriter { begun, go: may_go };
    let writing = thread::spawn(move || write!(writer, "{shown:?} {:?}", shown.lease()));
    let mut pieces = 0;
    while has_begun.recv_timeout(LIMIT).is_ok() {
        pieces += 1;
        elapse(3 * SECOND).await;
        renewed(&locks, "third").await.release().await.unwrap();
        assert!(other.lease().is_held());
        go.send(()).expect("the writer waits for this, and not the other way round");
    }
    writing.join().unwrap().unwrap();
    assert!(pieces > 2, "{pieces}");
}

/// Goal: an event about a guard causes no other event, which could wait for the first one's end.
#[tokio::test(start_paused = true)]
async fn debug_of_a_guard_logs_no_loss() {
    let locks = locker().await;
    let guard = hold(&locks, "k").await;
    events::listen();
    elapse(20 * SECOND).await;
    assert!(format!("{guard:?}").ends_with("is_held: false }"), "{guard:?}");
    assert!(events::take().is_empty());
    assert!(guard.lease().is_lost());
    assert_eq!(events::take().len(), 1);
}
