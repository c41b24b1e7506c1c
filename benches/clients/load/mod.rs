//! Tasks that acquire and release locks of keys that never repeat, in a process that another one commands by lines.
//! The programs of all contenders share this source.
//!
//! | line in | meaning |
//! |---|---|
//! | `start` | the tasks begin |
//! | `stop` | no task begins another pair |
//! | `end` | close the client, and exit |
//! | end of input | the other process is gone: exit |
//!
//! | line out | meaning |
//! |---|---|
//! | `ready` | connected |
//! | `.` | this process is alive |
//! | `+ <group> <ms> <pairs>` | a millisecond of the monotonic clock in which pairs succeeded, and how many |
//! | `! <group> <ms> <key> <reason>` | a call that failed |
//! | `stopped` | all tasks have ended, or do not end |
//! | `over` | the client is closed |

mod log;
mod task;

use std::future::Future;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use self::log::Log;
use self::task::Task;

/// A way to lock. Every task has a clone of its own. The errors are words that are counted.
pub(crate) trait Client: Clone + Send + 'static {
    /// What is held.
    type Held: Send;

    /// Tries once to have the lock of a key.
    fn acquire(&mut self, key: &str) -> impl Future<Output = Result<Self::Held, String>> + Send;

    /// Gives the lock back.
    fn release(
        &mut self,
        key: &str,
        held: Self::Held,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Does what a program does at its end.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// The hash tags of the keys: those where something happens, and all others, for which there may be none.
pub(crate) struct Tags([Vec<String>; 2]);

impl Tags {
    /// Of two words, each with the tags of a group and commas between them.
    pub(crate) fn parse(groups: [&str; 2]) -> Self {
        Self(groups.map(|group| {
            let tags = group.split(',').filter(|tag| !tag.is_empty());
            tags.map(str::to_owned).collect()
        }))
    }
}

/// The lease, which no run outlives: a lock that is left is still there when the locks are counted.
pub(crate) const LEASE: Duration = Duration::from_secs(120);

/// The longest wait for one reply.
pub(crate) const DEADLINE: Duration = Duration::from_secs(1);

/// Obeys the lines of standard input.
///
/// # Panics
/// At a line that says nothing of the above: the two processes are of one build.
pub(crate) async fn serve(client: impl Client, tags: &Tags) {
    let (mut orders, log, stop) = (orders(), Log::start(), Arc::<AtomicBool>::default());
    let mut tasks = JoinSet::new();
    println!("ready");
    while let Some(order) = orders.recv().await {
        match order.as_str() {
            "start" => {
                for number in 0..TASKS {
                    tasks.spawn(Task::new(number, tags, &log, &stop).run(client.clone()));
                }
            }
            "stop" => {
                stop.store(true, Ordering::Relaxed);
                let all = async { while tasks.join_next().await.is_some() {} };
                tokio::time::timeout(PATIENCE, all).await.ok();
                log.write("stopped");
            }
            "end" => {
                client.close().await;
                log.write("over");
            }
            _ => panic!("no order: {order}"),
        }
    }
}

/// A thread reads the lines, and exits when the process that writes them is gone.
fn orders() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            sender.send(line).ok();
        }
        std::process::exit(0);
    });
    receiver
}

const TASKS: usize = 24;

/// More than a pair takes whose two calls reach their deadlines.
const PATIENCE: Duration = Duration::from_secs(5);
