//! What is counted for operators.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, OnLost};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::runtime::Builder;

use crate::support::locker;

/// The counters of a test, as `name{label}=value`.
fn counted(test: impl AsyncFnOnce(Locker)) -> Vec<String> {
    let recorder = DebuggingRecorder::new();
    let counters = recorder.snapshotter();
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async { test(locker().await).await });
    });
    let counters = counters.snapshot().into_vec().into_iter().map(|(key, _, _, value)| {
        let DebugValue::Counter(value) = value else { panic!("{key:?} is no counter") };
        let labels: Vec<_> = key.key().labels().map(metrics::Label::value).collect();
        format!("{}{labels:?}={value}", key.key().name())
    });
    let mut counters: Vec<_> = counters.collect();
    counters.sort();
    counters
}

async fn lose(locks: &Locker, on_lost: OnLost, body: impl Future) -> Result<(), LockError> {
    let request = locks.lock("k").expire(Duration::from_secs(1)).on_lost(on_lost);
    request.run(body).await.map(drop)
}

#[expect(clippy::disallowed_methods, reason = "the clock is paused")]
async fn too_long() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

#[test]
fn a_lost_lock_is_counted_once_with_its_reason() {
    let counters = counted(async |locks| {
        lose(&locks, OnLost::Cancel, pending::<()>()).await.unwrap_err();
    });
    assert_eq!(counters, [r#"lock.lost["deadline"]=1"#]);
}

#[test]
fn a_body_that_completed_after_the_loss_is_counted_apart() {
    let counters = counted(async |locks| {
        lose(&locks, OnLost::Finish, too_long()).await.unwrap();
        lose(&locks, OnLost::Finish, too_long()).await.unwrap();
    });
    assert_eq!(counters, ["lock.completed_after_loss[]=2", r#"lock.lost["deadline"]=2"#]);
}

#[test]
fn a_lock_that_is_kept_counts_nothing() {
    let counters = counted(async |locks| {
        let request = locks.lock("k").expire(Duration::from_secs(1)).renew();
        request.run(too_long()).await.unwrap();
    });
    assert_eq!(counters, [""; 0]);
}
