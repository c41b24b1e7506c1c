//! A program that ends right after it has dropped a guard: `faults/ways_out/exits.rs` starts it.
//!
//! `worker exit URL CASE`, where the case says in which way.

use std::io;
use std::process::exit;
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker, install};
use tokio::runtime::{Builder, Runtime};

mod listener;

pub(crate) fn main(arguments: &[String]) {
    let [url, case] = arguments else { panic!("{arguments:?}") };
    if case == "listener" {
        listener::begin();
    }
    match case.as_str() {
        "outside" | "listener" => drop(one_thread().block_on(held(url))),
        "one thread" => one_thread().block_on(async { drop(held(url).await) }),
        "many threads" => many_threads().block_on(async { drop(held(url).await) }),
        "task" => many_threads().block_on(task(url)),
        "aborted" => many_threads().block_on(aborted(url)),
        "elsewhere" => drop(elsewhere(url)),
        "installed" => many_threads().block_on(installed(url)),
        "exit" => {
            many_threads().block_on(async { drop(held(url).await) });
            exit(0);
        }
        "panic" => {
            let _guard = many_threads().block_on(held(url));
            panic!("a panic of the test's own");
        }
        "stopped" => stopped(url),
        other => panic!("{other}"),
    }
}

async fn held(url: &str) -> LockGuard {
    connect(url).await.lock("k").acquire().await.unwrap()
}

/// No test reaches its deadlines.
async fn connect(url: &str) -> Locker {
    let limit = Duration::from_secs(300);
    let builder = Locker::builder().url(url).command_deadline(limit).connect_deadline(limit);
    builder.connect().await.unwrap()
}

/// Dropped on a thread of the runtime, right before the end of `main`.
async fn task(url: &str) {
    let guard = held(url).await;
    tokio::spawn(async { drop(guard) }).await.unwrap();
}

/// Dropped with its runtime.
async fn aborted(url: &str) {
    let guard = held(url).await;
    tokio::spawn(async {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
}

/// Locked by a thread that has ended: the main one has had to do with no lock before.
fn elsewhere(url: &str) -> LockGuard {
    let url = url.to_owned();
    thread::spawn(move || one_thread().block_on(held(&url))).join().unwrap()
}

/// A locker that lives as long as the process.
async fn installed(url: &str) {
    let locker = connect(url).await;
    install(locker.clone()).unwrap();
    let _guard = locker.lock("k").acquire().await.unwrap();
}

/// Dropped while the server gives no answer.
fn stopped(url: &str) {
    let runtime = one_thread();
    let guard = runtime.block_on(held(url));
    println!("held");
    io::stdin().read_line(&mut String::new()).unwrap();
    drop(guard);
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn many_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
