//! A process that waits for the lock `k`: `faults/waiting/*.rs` stop and kill it.
//!
//! `worker wait URL` prints `ready`, and then reads an order a line. `hold MILLISECONDS` acquires the lock for so long,
//! prints `held`, and does not release it. `try MILLISECONDS` does so, or prints `error` and the error.
//! `wait MILLISECONDS` waits for the lock, prints `held`, and holds it until the next line, which may be `release`;
//! `permit MILLISECONDS` does so with one of three permits, `all MILLISECONDS` with the locks `z`, `k` and `a` together,
//! and `permits MILLISECONDS` with all three permits. `body MILLISECONDS` runs a body under those three locks, renewed:
//! it prints the time of each poll of the call in which the body takes a step, and `lost KEY` once it is stopped.
//! `watch MILLISECONDS` waits for the lock, prints what is below each millisecond until it is lost or a line comes, and
//! then `free`.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockGuard, LockKey, LockRequest, LockSet, Locker};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

pub(crate) fn main(arguments: &[String]) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locker = Locker::builder().url(&arguments[0]);
    // Longer than a busy machine takes.
    let locker = locker.connect_deadline(PATIENCE).command_deadline(PATIENCE);
    let locker = runtime.block_on(locker.connect()).unwrap();
    println!("ready");
    obey(&runtime, &locker);
}

fn obey(runtime: &Runtime, locker: &Locker) {
    let mut held = None;
    while let Some(line) = line() {
        let (verb, millis) = line.split_once(' ').unwrap_or((&line, "0"));
        let request = || locker.lock("k").expire(expire(millis));
        if let Some(guard) = Option::<LockGuard>::take(&mut held) {
            runtime.block_on(guard.release()).unwrap();
        }
        held = match verb {
            "hold" => Some(runtime.block_on(request().try_acquire()).unwrap()),
            "try" => match runtime.block_on(request().try_acquire()) {
                Err(error) if !error.is_busy() => {
                    println!("error {error}");
                    None
                }
                tried => tried.ok(),
            },
            "permit" => Some(runtime.block_on(request().permits(3).acquire()).unwrap()),
            "wait" => Some(runtime.block_on(request().acquire()).unwrap()),
            "all" => {
                let request = locker.lock_all(["z", "k", "a"]).expire(expire(millis));
                hold_until_a_line(runtime.block_on(request.acquire()).unwrap());
                None
            }
            "permits" => {
                hold_until_a_line(runtime.block_on(request().all_permits(3).acquire()).unwrap());
                None
            }
            "body" => {
                runtime.block_on(run(locker.lock_all(["z", "k", "a"]).expire(expire(millis))));
                None
            }
            "watch" => {
                watch(runtime, || request().renew());
                None
            }
            _ => None,
        };
        println!("{}", if held.is_some() { "held" } else { "free" });
    }
}

fn hold_until_a_line(set: LockSet) {
    println!("held");
    drop(line());
    drop(set);
}

/// The time is read before the poll, because a process that was stopped within one has read the clock of its leases.
async fn run(request: LockRequest<Vec<LockKey>>) {
    let polled = Cell::default();
    let mut call = pin!(request.renew().run(steps(&polled)));
    let noted = poll_fn(|context| {
        polled.set(boot_time());
        call.as_mut().poll(context)
    });
    println!("lost {}", noted.await.unwrap_err().key().unwrap());
}

async fn steps(polled: &Cell<Duration>) {
    loop {
        println!("{}", polled.get().as_nanos());
        tick().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a step that waits is the subject")]
async fn tick() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn watch(runtime: &Runtime, request: impl Fn() -> LockRequest) {
    let ends = end_of_input();
    let guard = loop {
        let guard = runtime.block_on(request().acquire()).unwrap();
        // A process that stood still may have lost it before its first look.
        if report(&guard) {
            break guard;
        }
    };
    while report(&guard) && !ends.load(Ordering::Relaxed) {
        pause();
    }
    drop(runtime.block_on(guard.release()));
    // A lease that was lost is over before the line comes.
    while !ends.load(Ordering::Relaxed) {
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "the other processes of the test need the processor")]
fn pause() {
    thread::sleep(Duration::from_millis(1));
}

/// Prints that the lock is held, where it is.
fn report(guard: &LockGuard) -> bool {
    // A holder that holds it after this has held it at this moment.
    let before = boot_time();
    let is_held = guard.lease().is_held();
    if is_held {
        println!("{} {}", guard.lease().fencing_token(), before.as_nanos());
    }
    is_held
}

fn end_of_input() -> Arc<AtomicBool> {
    let ends = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&ends);
    thread::spawn(move || {
        line();
        ended.store(true, Ordering::Relaxed);
    });
    ends
}

fn line() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).unwrap();
    (length > 0).then(|| line.trim().to_owned())
}

fn boot_time() -> Duration {
    clock_gettime(ClockId::Boottime).try_into().unwrap()
}

fn expire(millis: &str) -> Duration {
    Duration::from_millis(millis.parse().unwrap())
}

const PATIENCE: Duration = Duration::from_secs(300);
