//! What is counted and measured for operators.

use std::future::pending;

use lockable_runtime::{Locker, OnLost, distributed_lock};
use metrics::{Key, Label, Unit};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::runtime::Builder;

use crate::support::{SECOND, elapse, hold, locker, locker_now, now, poll_once};

/// What a test on this thread counted, as `name[outcome]=value`, and `name{lock}[outcome]=value` where the lock
/// has a label.
pub(crate) struct Counted(pub(crate) Vec<String>);

impl Counted {
    pub(crate) fn of(&self, name: &str) -> Vec<&str> {
        let start = format!("{name}[");
        let found = self.0.iter().filter_map(|line| line.strip_prefix(&start));
        found.collect()
    }
}

pub(crate) fn counted(test: impl AsyncFnOnce(Locker)) -> Counted {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async { test(locker().await).await });
    });
    // Rare events are counted from zero on.
    let counted = snapshotter.snapshot().into_vec().into_iter();
    let counted = counted.filter(|(.., value)| *value != DebugValue::Counter(0));
    let counted = counted.map(|(key, unit, description, value)| {
        let (name, labels) = (key.key().name(), key.key().labels());
        assert!(description.is_some(), "{name} is not described");
        assert_eq!(unit == Some(Unit::Seconds), matches!(value, DebugValue::Histogram(_)));
        let (locks, others): (Vec<_>, Vec<_>) = labels.partition(|label| label.key() == "lock");
        assert_eq!(locks.len(), 1, "{name} does not say which lock");
        let lock = locks.into_iter().map(Label::value).find(|lock| !lock.is_empty());
        let lock = lock.map(|lock| format!("{{{lock}}}")).unwrap_or_default();
        let others: Vec<_> = others.into_iter().map(Label::value).collect();
        format!("{name}{lock}[{}]={}", others.join(","), text(&value))
    });
    let mut counted: Vec<_> = counted.collect();
    counted.sort();
    Counted(counted)
}

fn text(value: &DebugValue) -> String {
    match value {
        DebugValue::Counter(count) => count.to_string(),
        DebugValue::Gauge(level) => level.to_string(),
        DebugValue::Histogram(values) => {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
    }
}

async fn too_long() {
    elapse(2 * SECOND).await;
}

#[test]
fn a_loss_is_counted_once_and_late_completion_apart() {
    let counted = counted(async |locks| {
        let run = |on_lost| locks.lock("k").expire(SECOND).on_lost(on_lost).run(too_long());
        run(OnLost::Cancel).await.unwrap_err();
        run(OnLost::Finish).await.unwrap();
    });
    assert_eq!(counted.of("lockable.hold.lost"), ["deadline]=2"]);
    assert_eq!(counted.of("lockable.hold.completed_after_loss"), ["]=1"]);
}

#[test]
fn a_renewed_lock_counts_its_renewals_and_its_length() {
    let counted = counted(async |locks| {
        let request = locks.lock("k").expire(SECOND).renew();
        request.run(too_long()).await.unwrap();
    });
    assert_eq!(counted.of("lockable.hold.lost"), [""; 0]);
    assert_eq!(counted.of("lockable.acquire"), ["granted]=1"]);
    assert_eq!(counted.of("lockable.hold"), ["]=2"]);
    assert_eq!(counted.of("lockable.release"), ["released]=1"]);
    // After each third of the lease, on the grid of due moments.
    let renewals = counted.of("lockable.renewal");
    assert!(matches!(*renewals, ["renewed]=5" | "renewed]=6"]), "{renewals:?}");
    assert_eq!(counted.of("lockable.acquire.wait"), [""; 0]);
}

#[test]
fn a_look_for_a_deletion_is_no_renewal() {
    // A renewed lock is looked at after a second, and this one is renewed after three.
    let counted = counted(async |locks| locks.lock("k").renew().run(too_long()).await.unwrap());
    assert_eq!(counted.of("lockable.renewal"), [""; 0]);
}

#[test]
fn each_call_is_counted_by_how_it_ended() {
    let counted = counted(async |locks| {
        let _held = hold(&locks, "k").await;
        assert!(locks.lock("k").try_run(async {}).await.unwrap_err().is_busy());
        assert!(locks.lock("k").try_acquire().await.unwrap_err().is_busy());
        locks.lock("k").wait(SECOND).acquire().await.unwrap_err();
        let mut call = Box::pin(locks.lock("k").acquire());
        assert!(poll_once(call.as_mut()).await.is_none());
        drop(call);
        let once = async || locks.lock("once").once().acquire().await;
        once().await.unwrap().keep(SECOND).await.unwrap();
        once().await.unwrap_err();
        let nowhere = Locker::builder().url("redis://127.0.0.1:1").connect_lazy().unwrap();
        nowhere.lock("k").acquire().await.unwrap_err();
        locks.lock("").acquire().await.unwrap_err();
    });
    assert_eq!(
        counted.of("lockable.acquire"),
        ["busy]=2", "cancelled]=1", "done]=1", "failed]=1", "granted]=2", "wait_limit]=1"]
    );
    assert_eq!(counted.of("lockable.acquire.failed"), ["invalid-key]=1", "unavailable]=1"]);
    assert_eq!(counted.of("lockable.acquire.wait"), ["]=1 0"]);
    assert_eq!(counted.of("lockable.waiters"), ["]=0"]);
}

#[test]
fn a_call_that_fails_before_it_asks_is_counted_by_its_error() {
    #[distributed_lock(key = "{id}", locker = locks)]
    async fn call(locks: &Locker, id: &str) -> Option<()> {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "{id}", locker = locks, wait)]
    fn would_block(locks: &Locker, id: u8) -> Option<()> {
        unreachable!("runs without a lock")
    }
    let counted = counted(async |locks| {
        assert_eq!(call(&locks, "").await, None);
        assert_eq!(would_block(&locks, 7), None);
        let inside = locks.lock("k").run(async { locks.lock("k").try_acquire().await });
        assert!(inside.await.unwrap().unwrap_err().is_held_by_caller());
    });
    let failed = |lock| counted.of(&format!("lockable.acquire.failed{lock}")).join(" ");
    assert_eq!(failed("{{id}}"), "invalid-key]=1 invalid-option]=1");
    assert_eq!(failed(""), "held-by-caller]=1");
}

#[test]
fn calls_are_counted_while_they_wait() {
    let counted = counted(async |locks| {
        let _held = hold(&locks, "k").await;
        for _ in 0..2 {
            let mut call = Box::pin(locks.lock("k").acquire());
            assert!(poll_once(call.as_mut()).await.is_none());
            // It waits for as long as the test lasts, and is counted then.
            Box::leak(Box::new(call));
        }
    });
    assert_eq!(counted.of("lockable.waiters"), ["]=2"]);
}

#[test]
fn a_hand_off_is_counted_by_its_kind() {
    let counted = counted(async |locks| {
        let held = hold(&locks, "k").await;
        let wait = || locks.lock("k").run(async {});
        let (first, second, released) = tokio::join!(wait(), wait(), async {
            elapse(SECOND).await;
            held.release().await
        });
        first.and(second).and(released).unwrap();
    });
    assert_eq!(counted.of("lockable.handoff"), ["local]=1", "queue]=1"]);
    assert_eq!(counted.of("lockable.release"), ["handed_off]=1", "released]=2"]);
    assert_eq!(counted.of("lockable.acquire.wait"), ["]=1 1"]);
    assert_eq!(counted.of("lockable.hold"), ["]=1 0 0"]);
}

#[test]
fn a_background_release_is_counted_until_it_ends() {
    let counted = counted(async |locks| drop(hold(&locks, "k").await));
    assert_eq!(counted.of("lockable.release.backlog"), ["]=0"]);
    assert_eq!(counted.of("lockable.release"), ["released]=1"]);
}

/// Goal: what a renewal finds is counted. Method: the store forgets the lock of a renewed body.
#[test]
fn a_renewal_that_finds_no_holder_is_counted() {
    use lockable_runtime::__internals::MemoryStore;
    let counted = counted(async |_| {
        let locks = Locker::connect("memory://counted").await.unwrap();
        let store = MemoryStore::open("counted").unwrap();
        let body = async {
            store.flush();
            pending::<()>().await;
        };
        // Short enough to be renewed before it is looked at.
        locks.lock("k").expire(SECOND).renew().run(body).await.unwrap_err();
    });
    assert_eq!(counted.of("lockable.renewal"), ["absent]=1"]);
    assert_eq!(counted.of("lockable.hold.lost"), ["absent]=1"]);
    assert_eq!(counted.of("lockable.release"), [""; 0]);
}

/// A locker counts them, and each label does: where one is missing, a rate over its first event would be none.
#[test]
fn rare_events_are_counted_from_zero_on() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let locks = locker_now();
        now(async { drop(locks.lock("k").label("zero").acquire().await) });
    });
    let initial = snapshotter.snapshot().into_vec();
    for (name, others) in [
        ("acquire.failed", &["unavailable", "refused", "wrong-type", "invalid-key"][..]),
        ("hold.lost", &["deadline", "absent", "taken", "forced"]),
        ("hold.revoked", &[""]),
        ("hold.completed_after_loss", &[""]),
        ("release.abandoned", &[""]),
    ] {
        for (lock, other) in others.iter().flat_map(|other| [("", other), ("zero", other)]) {
            let is_lock = |label: &Label| label.key() == "lock" && label.value() == lock;
            let is_other = |label: &Label| other.is_empty() || label.value() == *other;
            let mut keys = initial.iter().map(|(key, ..)| key.key());
            let is_it = |key: &Key| {
                let is_named = key.name() == format!("lockable.{name}");
                is_named && key.labels().any(is_lock) && key.labels().any(is_other)
            };
            assert!(keys.any(is_it), "{name} of {lock:?}, {other:?}");
        }
    }
}
