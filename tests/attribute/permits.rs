//! Functions that several calls may run at a time: `permits`.

use std::sync::atomic::{AtomicUsize, Ordering};

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, Locker, distributed_lock};

use crate::support::{BoxFuture, is_free, locker, pause};

static INSIDE: AtomicUsize = AtomicUsize::new(0);

#[distributed_lock(key = "export:{kind}", permits = 3, wait, guard = permit, locker = locks)]
async fn export(locks: &Locker, kind: &str) -> Result<String, LockError> {
    let others = INSIDE.fetch_add(1, Ordering::Relaxed);
    pause().await;
    INSIDE.fetch_sub(1, Ordering::Relaxed);
    assert!(others < 3 && permit.is_held(), "{others}");
    Ok(permit.key().to_string())
}

#[distributed_lock(key = "export:{kind}", permits = all(3), wait = "5s", guard = all, locker = locks)]
async fn migrate(locks: &Locker, kind: &str) -> Result<usize, LockError> {
    assert_eq!(INSIDE.load(Ordering::Relaxed), 0);
    pause().await;
    Ok(all.len())
}

#[tokio::test(start_paused = true)]
async fn so_many_calls_run_at_a_time() {
    let locks = locker().await;
    let (a, b, c, d, all) = tokio::join!(
        export(&locks, "a"),
        export(&locks, "a"),
        export(&locks, "a"),
        export(&locks, "a"),
        migrate(&locks, "a"),
    );
    let names = [a, b, c, d].map(Result::unwrap);
    assert_eq!(names[..3], [1, 2, 3].map(|number| format!("disLock:{{export:a}}#{number}")));
    assert_eq!(all.unwrap(), 3);
}

const MOST: usize = 2;

#[distributed_lock(key = "sync", permits = MOST, locker = locks)]
fn in_sync(locks: &Locker, depth: u32) -> Option<u32> {
    Some(depth)
}

#[distributed_lock(key = "sync", permits = all(MOST), guard = all, locker = locks, on_busy = 0, on_error = |_| 1)]
fn all_in_sync(locks: &Locker) -> usize {
    all.len()
}

#[distributed_lock(key = "sync", permits = 2, locker = locks, on_busy = skip)]
fn boxed(locks: &Locker) -> BoxFuture<'_, Option<u32>> {
    Box::pin(async { Some(7) })
}

#[tokio::test(start_paused = true)]
async fn sync_and_boxed_functions_have_permits_too() {
    let locks = TestLocks::new();
    assert_eq!(in_sync(locks.locker(), 7), Some(7));
    assert_eq!((all_in_sync(locks.locker()), boxed(locks.locker()).await), (2, Some(7)));
    let one = locks.hold("{sync}#1");
    assert_eq!((in_sync(locks.locker(), 7), all_in_sync(locks.locker())), (Some(7), 0));
    let two = locks.hold("{sync}#2");
    assert_eq!((in_sync(locks.locker(), 7), boxed(locks.locker()).await), (None, None));
    drop((one, two));
    let others = locks.hold_permits("sync", 2);
    assert_eq!(in_sync(locks.locker(), 7), None);
    drop(others);
    assert_eq!(in_sync(locks.locker(), 7), Some(7));
}

#[distributed_lock(key = "nested", permits = 2, locker = locks)]
async fn nested(locks: &Locker) -> Result<(), LockError> {
    #[distributed_lock(key = "nested", permits = 2, locker = locks)]
    async fn inner(locks: &Locker) -> Result<(), LockError> {
        Ok(())
    }
    assert!(inner(locks).await.unwrap_err().is_held_by_caller());
    assert!(is_free(locks, "nested"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_with_a_permit_gets_no_other() {
    nested(&locker().await).await.unwrap();
}

#[distributed_lock(key = "one", permits = 1, guard = permit, locker = locks)]
async fn one(locks: &Locker) -> Option<String> {
    Some(permit.key().to_string())
}

/// So a limit that is lowered to one still counts with larger ones.
#[tokio::test(start_paused = true)]
async fn one_permit_has_the_name_of_a_permit() {
    assert_eq!(one(&locker().await).await.unwrap(), "disLock:{one}#1");
}
