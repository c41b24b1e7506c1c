//! A process that forks while it uses locks: `faults/forks.rs` starts it.
//!
//! `worker fork URL CASE` says what it finds, a line each; the lines of its child begin with `child: `. It
//! waits until its child has ended.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{io, mem, thread};

use fork::{Fork, fork, waitpid};
use lockable_runtime::{LockError, LockGuard, Locker, distributed_lock, install, shutdown};
use lockable_tests::sections::renewed;
use tokio::runtime::{Builder, Runtime};

pub(crate) fn main(arguments: &[String]) {
    let [url, case] = arguments else { panic!("{arguments:?}") };
    match case.as_str() {
        "refused" => refused(url),
        "guard" => guard(url),
        "own" => own(url),
        "environment" => environment(),
        "tokens" => tokens(url),
        "body" => body(url),
        "sync body" => sync_body(url),
        "inherited runtime" => inherited_runtime(url),
        other => panic!("{other}"),
    }
    if is_child() {
        exit(0);
    }
}

#[distributed_lock(key = "decorated")]
fn decorated() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "decorated", wait)]
async fn decorated_async() -> Result<(), LockError> {
    Ok(())
}

/// Every way to use what was made before the fork.
fn refused(url: &str) {
    let (parents, locker) = parent(url);
    install(locker.clone()).unwrap();
    let guard = held(&parents, &locker);
    if !forks() {
        let other = parents.block_on(locker.lock("k").try_acquire());
        println!(
            "the parent holds: {}",
            guard.lease().is_held() && other.is_err_and(|error| error.is_busy())
        );
        return parents.block_on(guard.release()).unwrap();
    }
    let own = runtime();
    let lock = || locker.lock("other").acquire();
    say("own runtime", own.block_on(lock()));
    say("with a limit", own.block_on(locker.lock("k").wait(LONG).acquire()));
    say("inherited runtime", parents.handle().block_on(lock()));
    say("leading", own.block_on(locker.lock("other").lead(|_| async {})));
    say("decorated", own.block_on(decorated_async()));
    say("sync", decorated());
    say("inspect", own.block_on(locker.inspect("k")));
    println!("child: check: {}", own.block_on(locker.check()));
    say("extend", own.block_on(guard.lease().extend(LONG)));
    say("shutdown", own.block_on(shutdown(LONG)));
    say("release", own.block_on(guard.release()));
    leave_alone(parents);
}

/// A guard that was inherited, and is dropped with its locker.
fn guard(url: &str) {
    let (parents, locker) = parent(url);
    let guard = held(&parents, &locker);
    if forks() {
        println!("child: held: {}, lost: {}", guard.lease().is_held(), guard.lease().is_lost());
        println!("child: {guard:?}");
        println!("child: {}", runtime().block_on(guard.lease().lost()));
        drop(guard);
        drop(locker);
        return leave_alone(parents);
    }
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    println!("held: {}", guard.lease().is_held());
    parents.block_on(guard.release()).unwrap();
    parents.block_on(locker.lock("other").run(async {})).unwrap();
}

/// What the child makes for itself.
fn own(url: &str) {
    let (parents, locker) = parent(url);
    let _guard = held(&parents, &locker);
    install(locker).unwrap();
    if !forks() {
        return;
    }
    let own = runtime();
    let locker = own.block_on(connect(url));
    say("the parent's lock", own.block_on(locker.lock("k").wait(Duration::ZERO).acquire()));
    let guard = own.block_on(locker.lock("renewed").expire(LEASE).renew().acquire()).unwrap();
    // By the thread of the child alone.
    own.block_on(renewed(&guard));
    println!("child: renewed: {}", guard.lease().is_held());
    say("released", own.block_on(guard.release()));
    install(locker.clone()).unwrap();
    say("decorated", own.block_on(decorated_async()));
    say("sync", decorated());
    drop(own.block_on(locker.lock("dropped").acquire()).unwrap());
    say("shutdown", own.block_on(shutdown(LONG)));
    leave_alone(parents);
}

/// The default locker that the environment names.
fn environment() {
    decorated().unwrap();
    if forks() {
        say("sync", decorated());
        say("async", runtime().block_on(decorated_async()));
    }
}

/// The locks of the parent and of two children, which stay.
fn tokens(url: &str) {
    let (parents, locker) = parent(url);
    mem::forget(held(&parents, &locker));
    for key in ["1", "2"] {
        if forks() {
            let own = runtime();
            let locker = own.block_on(connect(url));
            mem::forget(own.block_on(locker.lock(key).expire(LONG).acquire()).unwrap());
            return leave_alone(parents);
        }
    }
}

/// A body that was begun before the fork.
fn body(url: &str) {
    let (parents, locker) = parent(url);
    let (steps, is_over) = (Cell::new(0), Cell::new(false));
    let work = poll_fn(|_| {
        steps.set(steps.get() + 1);
        if is_over.get() { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut run = pin!(locker.lock("k").expire(LONG).run(work));
    parents.block_on(poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending());
        if steps.get() > 0 { Poll::Ready(()) } else { Poll::Pending }
    }));
    let before = steps.get();
    if forks() {
        match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => say("body", outcome),
            Poll::Pending => println!("child: body: waits"),
        }
        println!("child: steps: {}", steps.get() - before);
        return leave_alone(parents);
    }
    is_over.set(true);
    println!("parent: {}", parents.block_on(run).is_ok());
}

/// A body that forks.
fn sync_body(url: &str) {
    let (parents, locker) = parent(url);
    install(locker).unwrap();
    let outcome = forking();
    if is_child() {
        say("sync body", outcome);
        return leave_alone(parents);
    }
    println!("parent: {}", outcome.is_ok());
}

#[distributed_lock(key = "k", on_lost = finish)]
fn forking() -> Result<bool, LockError> {
    Ok(forks())
}

/// A locker, and the runtime of its connection. A call that waits for the end of a deadline hangs.
fn parent(url: &str) -> (Runtime, Locker) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locker = runtime.block_on(connect(url));
    (runtime, locker)
}

async fn connect(url: &str) -> Locker {
    let locker = Locker::builder().url(url).command_deadline(LONG).connect_deadline(LONG);
    locker.connect().await.unwrap()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn held(runtime: &Runtime, locker: &Locker) -> LockGuard {
    runtime.block_on(locker.lock("k").expire(LEASE).renew().acquire()).unwrap()
}

/// To drop it would wait for its threads, of which the child has none.
fn leave_alone(runtime: Runtime) {
    mem::forget(runtime);
}

fn say<T>(what: &str, outcome: Result<T, LockError>) {
    match outcome {
        Ok(_) => println!("child: {what}: ok"),
        Err(error) => println!("child: {what}: {:?}: {error}", error.kind()),
    }
}

/// Makes a child, and returns whether this is it. The parent continues when the child has ended.
fn forks() -> bool {
    match fork().unwrap() {
        Fork::Child => {
            IS_CHILD.store(true, Ordering::Relaxed);
            thread::spawn(end_late);
            true
        }
        Fork::Parent(child) => {
            assert_eq!(waitpid(child).unwrap(), 0, "the child ends well");
            false
        }
    }
}

static IS_CHILD: AtomicBool = AtomicBool::new(false);

fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// A child that hangs says so.
fn end_late() {
    thread::park_timeout(LIMIT);
    println!("child: hangs");
    exit(1);
}

/// It is renewed after a third of it: the rest is for a slow machine.
const LEASE: Duration = Duration::from_secs(9);

/// Longer than the child may live.
const LONG: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(100);

/// A child that runs its parent's runtime, on one thread, and uses no lock; the parent asks for
/// locks meanwhile, every second of which another program holds.
fn inherited_runtime(url: &str) {
    let mut granted = 0;
    for round in 0..5 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // A call whose wake-up the child takes away ends at its deadline.
        let locker = Locker::builder().url(url).connect_deadline(LONG);
        let locker = runtime.block_on(locker.connect()).unwrap();
        drop(runtime.block_on(locker.lock("warm").run(async {})));
        let child = match fork().unwrap() {
            Fork::Parent(child) => child,
            Fork::Child => {
                // Until it is killed: tokio does not promise that this goes well in a child.
                runtime.block_on(std::future::pending::<()>());
                exit(0);
            }
        };
        let calls = async {
            let mut calls = tokio::task::JoinSet::new();
            for number in 0..200 {
                let is_busy = number % 2 == 0;
                let key = if is_busy { "busy".to_owned() } else { format!("{round}:{number}") };
                let call = locker.lock(key).try_acquire();
                calls.spawn(async move { (is_busy, call.await) });
                tokio::task::yield_now().await;
            }
            while let Some(call) = calls.join_next().await {
                let (is_busy, outcome) = call.unwrap();
                granted += usize::from(is_busy && outcome.is_ok());
            }
        };
        // The two share what tokio waits for, so the child may take a wake-up of the parent's away.
        let ticks = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(10));
            loop {
                ticks.tick().await;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = calls => {}
                () = ticks => {}
            }
        });
        let child = rustix::process::Pid::from_raw(child).unwrap();
        rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        waitpid(child.as_raw_pid()).unwrap();
    }
    println!("held by two: {granted}");
}
