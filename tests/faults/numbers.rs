//! What operators count while a server is away.

use std::collections::BTreeMap;
use std::time::Duration;

use lockable_tests::wait;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::support::{LIMIT, impatient, server_and_proxy};

/// The sums of the counters, and the highest levels of the gauges, as `name[label]`.
struct Numbers {
    snapshotter: Snapshotter,
    seen: BTreeMap<String, f64>,
}

impl Numbers {
    /// The whole process's: what happens in the background is counted there.
    fn install() -> Self {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().expect("no other test has a recorder");
        Self { snapshotter, seen: BTreeMap::new() }
    }

    /// Looking takes away what was counted.
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
async fn what_is_not_answered_is_counted() {
    let (_server, proxy) = server_and_proxy();
    let locks = impatient(&proxy.url()).connect().await.unwrap();
    let dropped = locks.lock("numbers:dropped").expire(Duration::from_millis(500));
    let dropped = dropped.acquire().await.unwrap();
    let renewed = locks.lock("numbers:renewed").expire(Duration::from_secs(1)).renew();
    let renewed = renewed.acquire().await.unwrap();
    let mut numbers = Numbers::install();
    proxy.turn_away();
    proxy.cut();
    drop(dropped);
    assert!(numbers.has("lock.release.backlog[]", 1.0), "{:?}", numbers.seen);
    for name in [
        r#"lock.renewal["unanswered"]"#,
        r#"lock.release["unanswered"]"#,
        "lock.release.abandoned[]",
        r#"lock.lost["deadline"]"#,
    ] {
        wait::until_async(LIMIT, async || numbers.has(name, 1.0)).await;
    }
    drop(renewed);
}
