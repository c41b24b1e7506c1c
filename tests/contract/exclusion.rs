//! At most one holder at any time.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::{Sections, unless_busy};
use tokio::task::{JoinSet, yield_now};

use crate::fixture::{AMPLE, KEY, NAME, Store, hold};

every_backend! { many_threads: [
    of_many_tries_at_once_one_gets_the_lock,
    a_busy_try_leaves_the_holders_lease_alone,
    keys_that_resemble_each_other_are_different_locks,
    another_prefix_is_another_lock,
] and_sentinel: [
    a_lock_outlives_its_locker_and_its_runtime,
    sections_of_many_tasks_never_overlap,
] }

/// Goal: two sections of one key at the same time, or a token that does not rise, if the backend lets that happen.
/// Method: many tasks of three lockers want two keys over and over. Some try again and again; some wait, and some of
/// those in fair turns. Sections end in each of the three ways there are.
async fn sections_of_many_tasks_never_overlap(store: &Store) {
    let lockers = [store.locker().await, store.locker().await, store.locker().await];
    let sections = Arc::new(Sections::default());
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locker, sections) = (lockers[task % 3].clone(), Arc::clone(&sections));
        tasks.spawn(async move { work(task, &locker, &sections).await });
    }
    tasks.join_all().await;
    sections.assert_sound();
    assert_eq!(usize::try_from(sections.finished()), Ok(TASKS * ROUNDS));
}

async fn of_many_tries_at_once_one_gets_the_lock(store: &Store) {
    let lockers = [store.locker().await, store.locker().await];
    for _ in 0..10 {
        let mut tries = JoinSet::new();
        for task in 0..TASKS {
            let request = lockers[task % 2].lock(KEY);
            tries.spawn(async move { unless_busy(request.try_acquire().await) });
        }
        let granted = tries.join_all().await.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(granted.len(), 1);
        for guard in granted {
            guard.release().await.unwrap();
        }
    }
}

async fn a_busy_try_leaves_the_holders_lease_alone(store: &Store) {
    let locker = store.locker().await;
    let held = hold(&locker).await;
    assert_eq!(held.lease().key().as_str(), NAME);
    let (owner, life) = (store.owner(NAME), store.life(NAME));
    for other in [locker.clone(), locker, store.locker().await] {
        let longer = other.lock(KEY).expire(2 * AMPLE);
        assert!(longer.try_acquire().await.unwrap_err().is_busy());
    }
    assert!(store.life(NAME) <= life && store.owner(NAME) == owner);
    held.release().await.unwrap();
}

async fn keys_that_resemble_each_other_are_different_locks(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let keys = [
        "a", "A", "aa", "a:", ":a", "{a}", "{a}:", "a ", "a\n", "a\r", "a\0", "a%3A", "*", "?",
        "ä", "a\u{308}", "ａ", "🦀", "a'", "a\"", "a]]", "[[a", "a\\",
    ];
    let mut held = Vec::new();
    for key in keys {
        held.push(locker.lock(key).acquire().await.unwrap());
    }
    assert_eq!(store.locks().len(), keys.len());
    for (key, guard) in keys.into_iter().zip(held) {
        assert!(other.lock(key).try_acquire().await.unwrap_err().is_busy(), "{key}");
        guard.release().await.unwrap();
        other.lock(key).try_acquire().await.unwrap().release().await.unwrap();
    }
}

async fn another_prefix_is_another_lock(store: &Store) {
    let _held = hold(&store.locker().await).await;
    let shop = store.builder().prefix("shop:").connect().await.unwrap();
    let other = hold(&shop).await;
    assert_eq!(other.lease().key().as_str(), "shop:order:7");
    let same = store.builder().prefix("disLock:order").connect().await.unwrap();
    assert!(same.lock(":7").try_acquire().await.unwrap_err().is_busy());
}

async fn a_lock_outlives_its_locker_and_its_runtime(store: &Store) {
    let (builder, runtime) = (store.builder(), store.runtime());
    let elsewhere =
        move || runtime.block_on(async { hold(&builder.connect().await.unwrap()).await });
    let held = std::thread::spawn(elsewhere).join().unwrap();
    let locker = store.locker().await;
    assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    assert!(held.lease().is_held());
    held.release().await.unwrap();
    hold(&locker).await.release().await.unwrap();
}

/// Three lockers, two keys, and three ways to ask.
const TASKS: usize = 18;
const ROUNDS: usize = 9;

async fn work(task: usize, locker: &Locker, sections: &Sections) {
    let request = || locker.lock(["left", "right"][task / 3 % 2]);
    let mut releases = JoinSet::new();
    for round in 0..ROUNDS {
        let guard = match task / 6 % 3 {
            0 => next_grant(request).await,
            1 => request().acquire().await.unwrap(),
            _ => request().fair().acquire().await.unwrap(),
        };
        sections.enter(&guard);
        for _ in 0..5 {
            yield_now().await;
        }
        sections.leave(&guard);
        match round % 3 {
            0 => guard.release().await.unwrap(),
            1 => drop(guard),
            _ => drop(releases.spawn(guard.release())),
        }
    }
    for release in releases.join_all().await {
        release.unwrap();
    }
}

/// A lock that is busy is tried again when the other tasks have had their turns.
#[expect(clippy::disallowed_methods, reason = "nothing says when a try would succeed")]
async fn next_grant(request: impl Fn() -> LockRequest) -> LockGuard {
    loop {
        if let Some(guard) = unless_busy(request().try_acquire().await) {
            return guard;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
