//! A body that asks for its own lock is refused, where waiting would never end.

use std::cell::Cell;
use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use lockable_runtime::{LockError, Locker, OnLost};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, yield_now};

use crate::body::caught;
use crate::cancellation::give_up_after;
use crate::fixture::{KEY, NAME, Redis, Store, at_once, hold, run_in_time};

every_backend! { one_thread: [
    a_body_asking_for_its_own_lock_is_refused,
    siblings_and_spawned_tasks_find_a_bodys_lock_busy,
    a_guard_held_by_hand_does_not_count,
    a_panic_may_be_followed_by_a_relock,
    a_relock_may_follow_a_dropped_body,
    a_body_in_a_body_sees_both_locks,
    what_the_body_polls_is_part_of_it,
    a_call_from_outside_is_refused_where_polled,
    a_body_that_continues_after_its_loss_may_relock,
] and_sentinel: [
    a_body_is_refused_through_any_locker,
    the_same_key_elsewhere_is_another_lock,
] }

every_claim! { redis_alone: Redis, one_thread, [
    another_database_is_another_store,
] }

async fn a_body_asking_for_its_own_lock_is_refused(store: &Store) {
    let locker = store.locker().await;
    let body = async {
        let before = store.requests();
        for _ in 0..2 {
            assert_refused(at_once(locker.lock(KEY).acquire()).unwrap().map(drop));
            assert_refused(at_once(locker.lock(KEY).try_acquire()).unwrap().map(drop));
            let inner = async { unreachable!("the body in the body runs") };
            assert_refused(at_once(locker.lock(KEY).run::<_>(inner)).unwrap());
            yield_now().await;
        }
        assert_eq!(store.requests(), before);
        assert!(store.has(NAME));
        42
    };
    assert_eq!(locker.lock(KEY).run(body).await.unwrap(), 42);
    hold(&locker).await.release().await.unwrap();
}

async fn a_body_is_refused_through_any_locker(store: &Store) {
    let (locker, same_place) = (store.locker().await, store.locker().await);
    let longer = store.builder().prefix("disLock:order").connect().await.unwrap();
    let body = async {
        assert_refused(locker.clone().lock(KEY).acquire().await.map(drop));
        assert_refused(same_place.lock(KEY).acquire().await.map(drop));
        assert_refused(longer.lock(":7").acquire().await.map(drop));
    };
    locker.lock(KEY).run(body).await.unwrap();
}

async fn the_same_key_elsewhere_is_another_lock(store: &Store) {
    let (locker, elsewhere) = (store.locker().await, store.another());
    let nameless = [Locker::connect("memory://").await, Locker::connect("memory://").await];
    let body = async {
        hold(&elsewhere.locker().await).await.release().await.unwrap();
        let [one, another] = nameless.map(Result::unwrap);
        let inner = async {
            assert_refused(one.clone().lock(KEY).acquire().await.map(drop));
            hold(&another).await.release().await.unwrap();
        };
        one.lock(KEY).run(inner).await.unwrap();
    };
    locker.lock(KEY).run(body).await.unwrap();
}

async fn siblings_and_spawned_tasks_find_a_bodys_lock_busy(store: &Store) {
    let locker = store.locker().await;
    let (send, received) = oneshot::channel();
    let (done, is_done) = oneshot::channel();
    let body = async {
        send.send(()).unwrap();
        is_done.await.unwrap();
    };
    let sibling = async {
        received.await.unwrap();
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
        done.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(locker.lock(KEY).run(body), sibling);
    outcome.unwrap();
    let sibling = async {
        store.eventually(|| store.has(NAME)).await;
        locker.lock(KEY).try_acquire().await
    };
    let outcome = tokio::select! {
        biased;
        _ = locker.lock(KEY).run(pending::<()>()) => unreachable!("its body never ends"),
        outcome = sibling => outcome,
    };
    assert!(outcome.unwrap_err().is_busy());
    let spawning = async {
        let locker = locker.clone();
        tokio::spawn(async move { locker.lock(KEY).try_acquire().await }).await.unwrap()
    };
    assert!(locker.lock(KEY).run(spawning).await.unwrap().unwrap_err().is_busy());
}

async fn a_guard_held_by_hand_does_not_count(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    // Nor is one that a body holds by hand beside its own.
    let body = async {
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    };
    locker.lock("other").run(body).await.unwrap();
    guard.release().await.unwrap();
}

async fn a_panic_may_be_followed_by_a_relock(store: &Store) {
    let locker = store.locker().await;
    let panicking = async {
        yield_now().await;
        resume_unwind(Box::new("the body's own"));
    };
    let inner = async {
        assert!(caught(locker.lock(KEY).run::<_>(panicking)).await.is_err());
        // On the thread of the panic, and inside of another body.
        hold(&locker).await.release().await.unwrap();
        assert_refused(locker.lock("other").acquire().await.map(drop));
    };
    locker.lock("other").run(inner).await.unwrap();
    hold(&locker).await.release().await.unwrap();
}

async fn a_relock_may_follow_a_dropped_body(store: &Store) {
    let locker = store.locker().await;
    let started = Cell::new(false);
    let body = async {
        started.set(true);
        pending::<()>().await;
    };
    let mut call = Box::pin(locker.lock(KEY).run(body));
    while !started.get() {
        assert!(!give_up_after(1, call.as_mut()).await);
        yield_now().await;
    }
    drop(call);
    hold(&locker).await.release().await.unwrap();
}

async fn a_body_in_a_body_sees_both_locks(store: &Store) {
    let locker = store.locker().await;
    let innermost = async {
        for key in [KEY, "second", "third"] {
            assert_refused(locker.lock(key).acquire().await.map(drop));
        }
        yield_now().await;
    };
    let inner = async {
        locker.lock("third").run(innermost).await.unwrap();
        assert_refused(locker.lock(KEY).acquire().await.map(drop));
        assert_refused(locker.lock("second").acquire().await.map(drop));
        locker.lock("third").try_run(async {}).await.unwrap();
    };
    let outer = async {
        locker.lock("second").run(Box::pin(inner)).await.unwrap();
        locker.lock("second").try_run(async {}).await.unwrap();
        assert_refused(locker.lock(KEY).acquire().await.map(drop));
    };
    Box::pin(locker.lock(KEY).run(outer)).await.unwrap();
}

/// As a collection of futures does that the body polls: with wakers and an order of its own.
async fn what_the_body_polls_is_part_of_it(store: &Store) {
    let locker = store.locker().await;
    let ask = async || {
        yield_now().await;
        locker.lock(KEY).acquire().await.map(drop)
    };
    let body = async {
        let mut calls = [Box::pin(ask()), Box::pin(ask()), Box::pin(ask())];
        for _ in 0..2 {
            for call in calls.iter_mut().rev() {
                if let Poll::Ready(outcome) = poll_apart(call.as_mut()) {
                    assert_refused(outcome);
                }
            }
        }
        let (one, another) = tokio::join!(ask(), ask());
        assert_refused(one);
        assert_refused(another);
        let local = locker.clone();
        let set = LocalSet::new();
        let task = async move { local.lock(KEY).acquire().await.map(drop) };
        assert_refused(set.run_until(async { set.spawn_local(task).await.unwrap() }).await);
    };
    locker.lock(KEY).run(body).await.unwrap();
}

async fn a_call_from_outside_is_refused_where_polled(store: &Store) {
    let locker = store.locker().await;
    let call = locker.lock(KEY).acquire();
    assert_refused(locker.lock(KEY).run(call).await.unwrap().map(drop));
    let made_inside = async { locker.lock(KEY) };
    let request = locker.lock(KEY).run(made_inside).await.unwrap();
    request.try_acquire().await.unwrap().release().await.unwrap();
}

/// It holds nothing any more that it could wait for.
async fn a_body_that_continues_after_its_loss_may_relock(store: &Store) {
    let locker = store.locker().await;
    let body = async || {
        store.block(store.short());
        store.pass(NAME).await;
        hold(&locker).await.release().await.unwrap();
        42
    };
    let request = || locker.lock(KEY).expire(store.short()).on_lost(OnLost::Finish);
    assert_eq!(run_in_time(request, body).await.unwrap(), 42);
}

async fn another_database_is_another_store(store: &Redis) {
    let locker = store.locker().await;
    let database = |number| store.builder().url(format!("{}/{number}", store.url())).connect();
    let (second, first) = (database(1).await.unwrap(), database(0).await.unwrap());
    let body = async {
        hold(&second).await.release().await.unwrap();
        assert_refused(first.lock(KEY).acquire().await.map(drop));
    };
    locker.lock(KEY).run(body).await.unwrap();
}

fn assert_refused(outcome: Result<(), LockError>) {
    let error = outcome.unwrap_err();
    assert!(error.is_held_by_caller() && !error.is_busy(), "{error}");
    assert!(error.key().is_some_and(|key| error.to_string().contains(key)));
}

/// Polls with a waker that is not the task's.
fn poll_apart<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    struct Deaf;
    impl Wake for Deaf {
        fn wake(self: Arc<Self>) {}
    }
    future.poll(&mut Context::from_waker(&Arc::new(Deaf).into()))
}
