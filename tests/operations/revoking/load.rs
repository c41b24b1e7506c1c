//! Many ask many holders, and no two bodies are at work at once.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockable_runtime::Locker;
use lockable_runtime::admin::Revoked;
use lockable_tests::{Cluster, Server, long_form};
use tokio::task::JoinSet;

use super::support::listener;
use crate::support::{LIMIT, connect, now};

/// The calls that hold the locks or wait for them.
const WAITERS: usize = 64;

const KEYS: usize = 8;

/// As many lockers have them.
const LOCKERS: usize = 4;

#[derive(Default)]
struct Load {
    /// Who is at work under each lock.
    inside: [AtomicBool; KEYS],
    bodies: AtomicU64,
    is_over: AtomicBool,
    /// When each holder was asked, and how long its body was there after that.
    asked: Mutex<[Option<Instant>; KEYS]>,
    stopped: Mutex<Vec<Duration>>,
}

/// A body at work.
struct Inside(Arc<Load>, usize);

impl Inside {
    fn enter(load: &Arc<Load>, key: usize) -> Self {
        assert!(!load.inside[key].swap(true, Ordering::SeqCst), "two bodies at once");
        load.bodies.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(load), key)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Self(load, key) = self;
        if let Some(asked) = load.asked.lock().unwrap()[*key].take() {
            load.stopped.lock().unwrap().push(asked.elapsed());
        }
        assert!(load.inside[*key].swap(false, Ordering::SeqCst));
    }
}

/// Holds a lock until it is asked to stop, or for a moment, again and again.
async fn work(load: Arc<Load>, locker: Locker, number: usize) {
    let key = number % KEYS;
    for round in number.. {
        let body = async {
            let _inside = Inside::enter(&load, key);
            // Some end by themselves, so that a message may come too late.
            if round % 5 != 0 && !load.is_over.load(Ordering::Relaxed) {
                pending::<()>().await;
            }
            tokio::task::yield_now().await;
        };
        match locker.lock(format!("load:{key}")).renew().run(body).await {
            Ok(()) => {}
            // A machine that stalls for the first second of a hand-off loses the lock.
            Err(error) => assert!(error.is_revoked() || error.is_lost(), "{error}"),
        }
        if load.is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Asks the holder of the lock; returns whether it let go of it because of that.
async fn ask(load: &Load, operator: &Locker, key: usize) -> bool {
    let Some(seen) = operator.admin().holder(format!("load:{key}")).await.unwrap() else {
        return false;
    };
    load.asked.lock().unwrap()[key] = Some(now());
    match operator.admin().revoke(&seen, "why", LIMIT).await.unwrap() {
        Revoked::Released { .. } => true,
        Revoked::Changed => false,
        other => panic!("{other:?}"),
    }
}

async fn are_asked(url: &str, count: usize) {
    let (load, operator) = (Arc::new(Load::default()), connect(url).await);
    let listener = |key| listener(url, &operator, key);
    let listening = tokio::join!(
        listener("first:0"),
        listener("first:1"),
        listener("first:2"),
        listener("first:3")
    );
    let lockers = <[Locker; LOCKERS]>::from(listening);
    let mut workers = JoinSet::new();
    for number in 0..WAITERS {
        let locker = lockers[number / KEYS % LOCKERS].clone();
        workers.spawn(work(Arc::clone(&load), locker, number));
    }
    let mut operators = JoinSet::new();
    for key in 0..KEYS {
        let (load, operator) = (Arc::clone(&load), operator.clone());
        operators.spawn(async move {
            let mut asked = 0;
            while asked < count.div_ceil(KEYS) {
                asked += usize::from(ask(&load, &operator, key).await);
            }
        });
    }
    operators.join_all().await;
    load.is_over.store(true, Ordering::Relaxed);
    while !workers.is_empty() {
        for key in 0..KEYS {
            ask(&load, &operator, key).await;
        }
        while let Some(ended) = workers.try_join_next() {
            ended.unwrap();
        }
    }
    let mut stopped = load.stopped.lock().unwrap();
    stopped.sort();
    let (median, most) = (stopped[stopped.len() / 2], stopped[stopped.len() - 1]);
    let bodies = load.bodies.load(Ordering::Relaxed);
    println!("{count} asked, {bodies} bodies; dropped after {median:.0?}, at most {most:.0?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_bodies_overlap_with_no_one() {
    let server = Server::start();
    are_asked(&server.url(), long_form(200, 10_000)).await;
    let admin = server.admin();
    assert_eq!(admin.keys("*"), admin.keys("lockable:fence:*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_bodies_overlap_with_no_one_in_a_cluster() {
    are_asked(&Cluster::shared().url(), long_form(50, 2_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_bodies_overlap_with_no_one_in_memory() {
    are_asked("memory://asked", long_form(200, 10_000)).await;
}
