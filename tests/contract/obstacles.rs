//! What calls return that find a lock taken: each kind of holder has words of its own.

use std::time::Duration;

use lockable_runtime::admin::Forced;
use lockable_runtime::{HolderKind, LockError, Locker};
use lockable_tests::wait;

use crate::fixture::{AMPLE, KEY, NAME, Store, assert_quiet};

every_full_backend! { one_thread: [
    each_kind_of_holder_has_its_words,
    a_done_lock_says_until_when,
    a_call_that_waits_hears_what_has_the_lock,
    what_no_version_writes_yet_is_busy,
] }

/// The words for each kind, where `None` is a lock that another holder has.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Running, "another holder"),
    (Kind::MinHold, "the lock was released, and its `min_hold` keeps it taken"),
    (Kind::Done, "a call with `once` ended well, and keeps the lock taken"),
    (Kind::Paused, "the lock is paused until 2"),
    (Kind::Ticket, "a ticket has the lock, which is on its way to another process"),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Running,
    MinHold,
    Done,
    Paused,
    Ticket,
}

impl Kind {
    async fn begin(self, locker: &Locker) {
        let request = locker.lock(KEY).expire(AMPLE);
        match self {
            Self::Running => std::mem::forget(request.acquire().await.unwrap()),
            Self::MinHold => {
                let guard = request.min_hold(AMPLE).acquire().await.unwrap();
                guard.release().await.unwrap();
            }
            Self::Done => request.once().acquire().await.unwrap().keep(AMPLE).await.unwrap(),
            Self::Paused => {
                let guard = request.acquire().await.unwrap();
                guard.into_pause(AMPLE, "deploy").await.unwrap();
            }
            Self::Ticket => {
                let guard = request.acquire().await.unwrap();
                drop(guard.into_ticket(AMPLE).await.unwrap());
            }
        }
    }
}

/// Of a call without `once`, and without a wait or at its limit.
async fn busy_for(locker: &Locker, limit: u64) -> LockError {
    let limit = Duration::from_millis(limit);
    let error = locker.lock(KEY).wait(limit).acquire().await.unwrap_err();
    assert!(error.is_wait_limit_reached() && !error.is_done(), "{error}");
    error
}

async fn each_kind_of_holder_has_its_words(store: &Store) {
    let other = store.locker().await;
    for (kind, words) in KINDS {
        let locker = store.locker().await;
        kind.begin(&locker).await;
        for limit in [0, 100] {
            let error = busy_for(&other, limit).await;
            assert!(error.to_string().contains(words), "{limit}: {error}");
        }
        force_release(&other).await;
    }
    assert_quiet(store).await;
}

/// Method: the limit is longer than what the call's own try has found counts.
async fn a_call_that_waits_hears_what_has_the_lock(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    Kind::Ticket.begin(&locker).await;
    // A place in the queue may be answered later than that.
    let says = async || busy_for(&other, 1_500).await.to_string().contains("a ticket has the lock");
    wait::until_async(wait::HANG, says).await;
    force_release(&other).await;
    assert_quiet(store).await;
}

/// Goal: a later version that writes another sign, and a lock of it that this one frees or is granted.
/// Method: values with a sign that does not exist, and with known ones in another order.
async fn what_no_version_writes_yet_is_busy(store: &Store) {
    let locker = store.locker().await;
    for sign in ["?", "^~", "~~", "=+", "%", "2:"] {
        let value = format!("{sign}0123456789abcdef.1750000000000001");
        store.put(NAME, &value, AMPLE);
        assert!(busy_for(&locker, 0).await.is_busy(), "{sign}");
        assert!(busy_for(&locker, 100).await.is_busy(), "{sign}");
        let holder = locker.admin().holder(KEY).await.unwrap().expect("it has the lock");
        assert_eq!(holder.holder().kind(), HolderKind::Foreign, "{sign}");
        assert!(store.life(NAME).is_some_and(|life| life > AMPLE / 2), "{sign}");
        force_release(&locker).await;
    }
    drop(locker.lock(KEY).acquire().await.unwrap());
    assert_quiet(store).await;
}

async fn force_release(locker: &Locker) {
    let admin = locker.admin();
    let held = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(admin.force_release(&held, "").await.unwrap(), Forced::Released);
}

async fn a_done_lock_says_until_when(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    Kind::Done.begin(&locker).await;
    let error = busy_for(&other, 0).await;
    assert!(error.to_string().contains("keeps the lock taken until 2"), "{error}");
    force_release(&other).await;
    assert_quiet(store).await;
}
