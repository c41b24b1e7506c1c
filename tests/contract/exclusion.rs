//! At most one holder at any time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::{FencingToken, LockGuard, Locker};
use tokio::task::{JoinSet, yield_now};

use crate::fixture::{Fixture, KEY, NAME, hold};

every_backend! { many_threads: [
    sections_of_many_tasks_never_overlap,
    of_many_tries_at_once_one_gets_the_lock,
    a_try_on_a_held_lock_finds_it_busy,
    the_busy_error_names_the_held_lock,
    a_busy_try_leaves_the_holders_lease_alone,
    keys_that_resemble_each_other_are_different_locks,
    another_prefix_is_another_lock,
    a_lock_outlives_its_locker_and_its_runtime,
] }

/// Goal: two sections of one key at the same time, if the backend lets that happen.
/// Method: many tasks of two lockers want two keys over and over. Each section marks its key as
/// taken and lets others run before it ends; sections end in each of the three ways there are.
async fn sections_of_many_tasks_never_overlap<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    let sections = ["left", "right"].map(|key| (key, Arc::new(Sections::default())));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let locker = lockers[task % 2].clone();
        let (key, sections) = sections[task / 2 % 2].clone();
        tasks.spawn(async move { work(&locker, key, &sections).await });
    }
    tasks.join_all().await;
    for (_, sections) in sections {
        let tokens = sections.tokens.lock().unwrap();
        assert_eq!(tokens.len(), TASKS / 2 * ROUNDS);
        assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
    }
}

async fn of_many_tries_at_once_one_gets_the_lock<F: Fixture>(store: &F) {
    let lockers = [store.locker().await, store.locker().await];
    for _ in 0..10 {
        let mut tries = JoinSet::new();
        for task in 0..TASKS {
            let request = lockers[task % 2].lock(KEY);
            tries.spawn(async move { request.try_acquire().await.unwrap() });
        }
        let granted = tries.join_all().await.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(granted.len(), 1);
        for guard in granted {
            guard.release().await.unwrap();
        }
    }
}

async fn a_try_on_a_held_lock_finds_it_busy<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let held = hold(&locker).await;
    assert_eq!(held.key().as_str(), NAME);
    for other in [locker.clone(), locker, store.locker().await] {
        assert!(other.lock(KEY).try_acquire().await.unwrap().is_none());
    }
}

async fn the_busy_error_names_the_held_lock<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let _held = hold(&locker).await;
    let error =
        store.locker().await.lock(KEY).wait_at_most(Duration::ZERO).acquire().await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    assert_eq!(error.key(), Some(NAME));
    assert!(error.to_string().contains(NAME), "{error}");
    assert!(!error.is_lost() && !error.is_completed() && !error.is_unavailable());
}

async fn a_busy_try_leaves_the_holders_lease_alone<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let held = hold(&locker).await;
    let (owner, life) = (store.owner(NAME), store.life(NAME));
    let longer = locker.lock(KEY).expire(Duration::from_secs(60));
    assert!(longer.try_acquire().await.unwrap().is_none());
    assert!(store.life(NAME) <= life && store.owner(NAME) == owner);
    held.release().await.unwrap();
}

async fn keys_that_resemble_each_other_are_different_locks<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let keys =
        ["a", "A", "aa", "a:", ":a", "{a}", "{a}:", "a ", "a\n", "a%3A", "*", "?", "ä", "ａ"];
    let mut held = Vec::new();
    for key in keys {
        held.push(locker.lock(key).acquire().await.unwrap());
    }
    assert_eq!(store.locks().len(), keys.len());
    for (key, guard) in keys.into_iter().zip(held) {
        assert!(other.lock(key).try_acquire().await.unwrap().is_none(), "{key}");
        guard.release().await.unwrap();
        other.lock(key).try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
}

async fn another_prefix_is_another_lock<F: Fixture>(store: &F) {
    let _held = hold(&store.locker().await).await;
    let shop = Locker::builder().url(store.url()).prefix("shop:").connect().await.unwrap();
    let other = hold(&shop).await;
    assert_eq!(other.key().as_str(), "shop:order:7");
    let same = Locker::builder().url(store.url()).prefix("disLock:order").connect().await.unwrap();
    assert!(same.lock(":7").try_acquire().await.unwrap().is_none());
}

async fn a_lock_outlives_its_locker_and_its_runtime<F: Fixture>(store: &F) {
    let url = store.url();
    let elsewhere = move || {
        let runtime = F::runtime();
        runtime.block_on(async { hold(&Locker::connect(&url).await.unwrap()).await })
    };
    let held = std::thread::spawn(elsewhere).join().unwrap();
    let locker = store.locker().await;
    assert!(locker.lock(KEY).try_acquire().await.unwrap().is_none());
    assert!(held.is_held());
    held.release().await.unwrap();
    hold(&locker).await.release().await.unwrap();
}

const TASKS: usize = 24;
const ROUNDS: usize = 20;

async fn work(locker: &Locker, key: &str, sections: &Sections) {
    for round in 0..ROUNDS {
        let guard = next_grant(locker, key).await;
        sections.run(guard.fencing_token()).await;
        match round % 3 {
            0 => guard.release().await.unwrap(),
            1 => drop(guard),
            _ => drop(tokio::spawn(async { guard.release().await })),
        }
    }
}

/// A lock that is busy is tried again when the other tasks have had their turn.
async fn next_grant(locker: &Locker, key: &str) -> LockGuard {
    loop {
        if let Some(guard) = locker.lock(key).try_acquire().await.unwrap() {
            return guard;
        }
        yield_now().await;
    }
}

/// The sections of one key, which must not overlap.
#[derive(Default)]
struct Sections {
    is_inside: AtomicBool,
    /// The token of each section, in the order in which they began.
    tokens: Mutex<Vec<FencingToken>>,
}

impl Sections {
    async fn run(&self, token: FencingToken) {
        assert!(!self.is_inside.swap(true, Ordering::SeqCst), "two sections at the same time");
        self.tokens.lock().unwrap().push(token);
        for _ in 0..5 {
            yield_now().await;
        }
        assert!(self.is_inside.swap(false, Ordering::SeqCst), "two sections at the same time");
    }
}
