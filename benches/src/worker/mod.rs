//! A process with waiters in it, which another process commands by lines.
//!
//! | line in | meaning |
//! |---|---|
//! | `start <at> <key> <waiters> <section> <limit>` | at `at` nanoseconds of the monotonic clock `waiters` waiters want the lock, hold it for `section` microseconds, release it and want it again, `limit` times or without end for 0; a `*` in the key is replaced by the waiter's number: a key of its own |
//! | `pairs <key> <tasks> <most> <time>` | `tasks` tasks acquire and release at once, `most` times each or until `time` milliseconds are over; a `*` in the key is replaced by the task's number, and a `#` at its end by the pair's: a key that never repeats, or, with `#64`, one of 64 in rotation |
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
//! | `<pairs> <wall> <cpu> <acquire p50> <p99> <pair p50> <p99>` | a round of pairs: their number, and nanoseconds |

mod flavour;
mod log;
mod order;
mod pairs;
mod round;

use std::future::Future;
use std::io::{self, BufRead};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use self::flavour::{Flavour, run};
use self::order::{Order, Terms};
use self::round::Round;

/// A way to lock. Every task has a clone of its own.
pub trait Contender: Clone + Send + 'static {
    /// What is held.
    type Held: Send;

    /// Waits until it has the lock of a key.
    fn acquire(&mut self, key: &str) -> impl Future<Output = Self::Held> + Send;

    /// Gives the lock back.
    fn release(&mut self, key: &str, held: Self::Held) -> impl Future<Output = ()> + Send;
}

/// Obeys the lines of standard input until it ends.
///
/// # Panics
/// At a line that says nothing of the above: the two processes are of one build.
pub async fn serve(contender: impl Contender) {
    let mut orders = orders();
    println!("ready");
    while let Some(order) = orders.recv().await {
        match order {
            Order::Start(terms) => waiters(&contender, &terms, &mut orders).await,
            Order::Pairs(terms) => println!("{}", pairs::run(&contender, &terms).await),
            Order::End => {}
        }
    }
}

async fn waiters(contender: &impl Contender, terms: &Terms, orders: &mut UnboundedReceiver<Order>) {
    let mut round = Round::start(contender, terms);
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
