//! What thousands of locks cost that one process holds, or has dropped while the server is away, and how crowds of
//! calls come through failovers.
//!
//! One test at a time: the memory that is counted is the whole process's, and so is `shutdown`; and two crowds would
//! measure each other.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::Admin;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

mod accounts;
mod cluster;
mod failovers;
mod load;
mod pairs;
mod permits;
mod releases;
mod renewals;
mod sentinel;
mod sets;
mod waiters;

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The bytes that are allocated now.
fn in_use() -> usize {
    let stats = MEMORY.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Runs a test while no other one runs, or ends.
fn alone(test: impl Future<Output = ()>) {
    let _turn = turn();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    run(&runtime, test);
}

/// The same on a runtime of the test's own.
fn alone_with(runtime: &Runtime, test: impl Future<Output = ()>) {
    let _turn = turn();
    run(runtime, test);
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(runtime: &Runtime, test: impl Future<Output = ()>) {
    runtime.block_on(async { tokio::time::timeout(TEST_LIMIT, test).await }).expect("it ends");
}

/// Acquires locks of different keys, many at the same time.
async fn hold(locker: &Locker, count: usize, terms: fn(LockRequest) -> LockRequest) -> Guards {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let locker = locker.clone();
        tasks.spawn(async move {
            let mut guards = Vec::with_capacity(count.div_ceil(TASKS));
            for n in (task..count).step_by(TASKS) {
                guards.push(terms(locker.lock(format!("crowd:{n}"))).acquire().await.unwrap());
            }
            guards
        });
    }
    let guards = tasks.join_all().await;
    assert_eq!(guards.iter().map(Vec::len).sum::<usize>(), count);
    guards
}

/// What [`hold`] acquired, one part a task.
type Guards = Vec<Vec<LockGuard>>;

/// How many locks the server has.
fn held(admin: &Admin) -> usize {
    admin.keys("disLock:*").len()
}

const TASKS: usize = 50;

/// What only a test that hangs reaches.
const TEST_LIMIT: Duration = Duration::from_secs(300);
