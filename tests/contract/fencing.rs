//! Fencing tokens of a key rise from grant to grant, whatever happens in between.

use lockable_runtime::{FencingToken, LockGuard};

use crate::fixture::{Fixture, KEY, NAME, hold, hold_shortly};

every_backend! { one_thread: [
    tokens_rise_from_holder_to_holder,
    tokens_rise_over_dropped_guards,
    tokens_rise_over_leases_that_passed,
    tokens_rise_over_a_loss_of_all_data,
    two_lockers_tokens_rise_over_a_data_loss,
    after_a_rush_tokens_rise_over_a_data_loss,
    tokens_rise_over_tries_that_failed,
    tokens_rise_over_acquisitions_that_were_given_up,
    a_held_lock_keeps_its_token,
] }

async fn tokens_rise_from_holder_to_holder<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    let mut tokens = Tokens::default();
    for round in 0..50 {
        let guard = hold(&lockers[round % 2]).await;
        tokens.add(&guard);
        guard.release().await.unwrap();
    }
}

async fn tokens_rise_over_dropped_guards<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let mut tokens = Tokens::default();
    for _ in 0..20 {
        tokens.add(&hold(&locker).await);
    }
}

async fn tokens_rise_over_leases_that_passed<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    let mut tokens = Tokens::default();
    for round in 0..3 {
        let guard = hold_shortly(store, &lockers[round % 2]).await;
        tokens.add(&guard);
        store.pass(NAME).await;
    }
}

async fn tokens_rise_over_a_loss_of_all_data<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    let mut tokens = Tokens::default();
    let mut _former = None;
    for round in 0..50 {
        let guard = hold(&lockers[round % 2]).await;
        tokens.add(&guard);
        // The one before has believed until now that it holds, which is what fencing is for.
        _former = Some(guard);
        store.lose_all_data();
    }
}

async fn two_lockers_tokens_rise_over_a_data_loss<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    let mut tokens = Tokens::default();
    for round in 0..10 {
        let guard = hold(&lockers[round % 2]).await;
        tokens.add(&guard);
        drop(guard);
        store.lose_all_data();
    }
}

/// Goal: a counter that ran ahead of whatever a lost one starts again from.
/// Method: every grant and every failed try counts; there are many before the loss.
async fn after_a_rush_tokens_rise_over_a_data_loss<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let mut tokens = Tokens::default();
    for _ in 0..3 {
        for _ in 0..200 {
            let guard = hold(&locker).await;
            tokens.add(&guard);
            assert!(locker.lock(KEY).try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
        store.lose_all_data();
    }
}

async fn tokens_rise_over_tries_that_failed<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let mut tokens = Tokens::default();
    for failures in 0..5 {
        let guard = hold(&locker).await;
        for _ in 0..failures {
            assert!(other.lock(KEY).try_acquire().await.unwrap().is_none());
        }
        tokens.add(&guard);
        guard.release().await.unwrap();
    }
}

async fn tokens_rise_over_acquisitions_that_were_given_up<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let mut tokens = Tokens::default();
    for polls in 0..5 {
        crate::cancellation::give_up_after(polls, locker.lock(KEY).acquire()).await;
        let guard = hold(&locker).await;
        tokens.add(&guard);
        guard.release().await.unwrap();
    }
}

async fn a_held_lock_keeps_its_token<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let token = guard.fencing_token();
    assert!(other.lock(KEY).try_acquire().await.unwrap().is_none());
    other.lock("another").acquire().await.unwrap().release().await.unwrap();
    assert_eq!((guard.fencing_token(), guard.lease().fencing_token()), (token, token));
    assert_eq!(u64::from(token).to_string(), token.to_string());
}

/// The tokens of one key in the order of their grants.
#[derive(Default)]
struct Tokens {
    latest: Option<FencingToken>,
}

impl Tokens {
    fn add(&mut self, guard: &LockGuard) {
        let token = guard.fencing_token();
        assert!(Some(token) > self.latest, "{token} after {:?}", self.latest);
        self.latest = Some(token);
    }
}
