//! A process with waiters in it, which another process commands by lines.
//!
//! | line in | meaning |
//! |---|---|
//! | `start <at> <key> <waiters> <section> <limit>` | at `at` nanoseconds of the monotonic clock `waiters` waiters want the lock, hold it for `section` microseconds, release it and want it again, `limit` times or without end for 0; a `*` in the key is replaced by the waiter's number: a key of its own |
//! | `end` | the round is over: drop the waiters, and write down their sections |
//! | end of input | the other process is gone: exit |
//!
//! | line out | meaning |
//! |---|---|
//! | `ready` | connected; the next round may start |
//! | `done` | every waiter has reached its limit |
//! | `s <waiter> <asked> <entered> <left>` | a section: when it was asked for, when it began, when its release began, in nanoseconds since `at` |
//! | `p <waiter> <asked>` | what a waiter still waited for at the end |
//! | `over` | everything is written down |

mod log;
mod order;
mod round;

use std::future::Future;
use std::io::{self, BufRead};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::order::Order;
use self::round::Round;

/// A way to lock.
pub trait Contender: Send + Sync + 'static {
    /// One that waits for the lock of a key.
    type Waiter: Waiter;

    /// Makes one of the waiters for a key.
    fn waiter(&self, key: String) -> Self::Waiter;
}

/// One that acquires and releases in turn.
pub trait Waiter: Send + 'static {
    /// Waits until it has the lock.
    fn acquire(&mut self) -> impl Future<Output = ()> + Send;

    /// Gives the lock back.
    fn release(&mut self) -> impl Future<Output = ()> + Send;
}

/// Obeys the lines of standard input until it ends.
///
/// # Panics
/// At a line that says nothing of the above: the two processes are of one build.
pub async fn serve(contender: impl Contender) {
    let mut orders = orders();
    println!("ready");
    while let Some(order) = orders.recv().await {
        let Order::Start(terms) = order else { continue };
        let mut round = Round::start(&contender, &terms);
        tokio::select! {
            () = round.all_done() => {
                println!("done");
                // An order ends the round, whatever the waiters did.
                orders.recv().await;
            }
            _ = orders.recv() => {}
        }
        round.write().await;
    }
}

/// A thread reads the lines, and exits when the process that writes them is gone.
fn orders() -> UnboundedReceiver<Order> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            sender.send(Order::parse(&line).expect("an order")).ok();
        }
        std::process::exit(0);
    });
    receiver
}
