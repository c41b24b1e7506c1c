//! What operators count while a server is away.
//!
//! Apart from the other tests: only a recorder of the whole process counts what happens in the background,
//! and such a recorder would count the locks of every other test as well.

use std::collections::BTreeMap;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Proxy, Server, wait};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// The sums of the counters, and the highest levels of the gauges, as `name[lock, outcome]`.
struct Numbers {
    snapshotter: Snapshotter,
    seen: BTreeMap<String, f64>,
}

impl Numbers {
    fn install() -> Self {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().expect("the process has no other recorder");
        Self { snapshotter, seen: BTreeMap::new() }
    }

    /// A snapshot resets what was counted.
    fn has(&mut self, name: &str, least: f64) -> bool {
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let labels: Vec<_> = key.key().labels().map(metrics::Label::value).collect();
            let sum = self.seen.entry(format!("{}{labels:?}", key.key().name())).or_default();
            match value {
                DebugValue::Counter(count) => *sum += u32::try_from(count).map_or(0.0, f64::from),
                DebugValue::Gauge(level) => *sum = sum.max(level.into_inner()),
                DebugValue::Histogram(_) => {}
            }
        }
        self.seen.get(name).is_some_and(|seen| *seen >= least)
    }
}

#[tokio::test]
async fn what_goes_unanswered_is_counted_by_lock() {
    let mut numbers = Numbers::install();
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let locks = Locker::builder().url(proxy.url()).command_deadline(COMMAND);
    let locks = locks.connect_deadline(LIMIT).connect().await.unwrap();
    let request = |key| locks.lock(key).expire(LEASE);
    let dropped = request("numbers:dropped").label("dropped").acquire().await.unwrap();
    let renewed = request("numbers:renewed").label("renewed").renew().acquire().await.unwrap();
    // Renewed by the same command.
    let again = request("numbers:again").label("again").renew().acquire().await.unwrap();
    proxy.turn_away();
    proxy.cut();
    drop(dropped);
    for name in [
        r#"lockable.release.backlog["dropped"]"#,
        r#"lockable.renewal["renewed", "unanswered"]"#,
        r#"lockable.renewal["again", "unanswered"]"#,
        r#"lockable.release["dropped", "unanswered"]"#,
        r#"lockable.release.abandoned["dropped"]"#,
        r#"lockable.hold.lost["renewed", "deadline"]"#,
    ] {
        wait::until_async(LIMIT, async || numbers.has(name, 1.0)).await;
    }
    drop((renewed, again));
}

/// Short enough to wait for its end.
const LEASE: Duration = Duration::from_secs(4);

/// A release is abandoned that long after its lease. Connections are turned away at once.
const COMMAND: Duration = Duration::from_secs(2);

/// How long the test waits for an event that must come.
const LIMIT: Duration = Duration::from_secs(30);
