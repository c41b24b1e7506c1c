//! Fencing tokens of a key rise from grant to grant, whatever happens in between.

use std::time::Duration;

use lockable_runtime::{FencingToken, LockGuard};

use crate::cancellation::give_up_after;
use crate::fixture::{AMPLE, KEY, NAME, Store, hold, in_time};

every_backend! { one_thread: [
    tokens_rise_from_holder_to_holder,
    tokens_rise_over_leases_that_passed,
    after_a_rush_tokens_rise_over_a_data_loss,
    a_held_lock_keeps_its_token,
] and_sentinel: [
    tokens_rise_over_a_loss_of_all_data,
    tokens_rise_over_acquisitions_that_were_given_up,
] }

async fn tokens_rise_from_holder_to_holder(store: &Store) {
    rise(store, AMPLE, async |_, guard| guard.release().await.unwrap()).await;
}

async fn tokens_rise_over_leases_that_passed(store: &Store) {
    rise(store, store.short(), async |_, _guard| store.pass(NAME).await).await;
}

/// Some have released their locks by then. The others believe for a while that they hold, which is what fencing is for.
async fn tokens_rise_over_a_loss_of_all_data(store: &Store) {
    let mut former = None;
    let lose = async |round, guard| {
        former = (round / 2 % 2 == 0).then_some(guard);
        store.lose_all_data();
    };
    rise(store, AMPLE, lose).await;
    drop(former);
}

/// Goal: a counter that ran ahead of whatever a lost one starts again from.
/// Method: every grant and every failed try counts; there are many before the loss.
async fn after_a_rush_tokens_rise_over_a_data_loss(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let mut latest = Latest::default();
    for _ in 0..3 {
        for _ in 0..60 {
            let guard = hold(&locker).await;
            latest.replace(&guard);
            for locker in [&locker, &other] {
                assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
            }
            guard.release().await.unwrap();
        }
        store.lose_all_data();
    }
}

async fn tokens_rise_over_acquisitions_that_were_given_up(store: &Store) {
    let locker = store.locker().await;
    let mut latest = Latest::default();
    for polls in 0..5 {
        give_up_after(polls, locker.lock(KEY).acquire()).await;
        let guard = hold(&locker).await;
        latest.replace(&guard);
        guard.release().await.unwrap();
    }
}

async fn a_held_lock_keeps_its_token(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let token = guard.lease().fencing_token();
    assert!(other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    other.lock("another").acquire().await.unwrap().release().await.unwrap();
    assert_eq!((guard.lease().fencing_token(), guard.lease().fencing_token()), (token, token));
    assert_eq!(u64::from(token).to_string(), token.to_string());
}

/// Grants the lock to two lockers in turn; the number of the grant and its guard go to `end`.
async fn rise(store: &Store, expire: Duration, mut end: impl AsyncFnMut(u32, LockGuard)) {
    let lockers = [store.locker().await, store.locker().await];
    let mut latest = Latest::default();
    for (round, locker) in (0..ROUNDS).zip(lockers.iter().cycle()) {
        let guard = in_time(|| locker.lock(KEY).expire(expire)).await;
        latest.replace(&guard);
        end(round, guard).await;
    }
}

const ROUNDS: u32 = 8;

/// The latest token of one key, which the next one has to be above.
#[derive(Debug, Default)]
struct Latest(Option<FencingToken>);

impl Latest {
    fn replace(&mut self, guard: &LockGuard) {
        let former = self.0.replace(guard.lease().fencing_token());
        assert!(self.0 > former, "{self:?} after {former:?}");
    }
}
