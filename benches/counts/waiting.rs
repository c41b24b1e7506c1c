//! What a waiter costs the server: joining the queue, each later query, and a hand-off.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use lockable_benches::{Observer, Server, Snapshot};
use lockable_runtime::{LockError, LockGuard, Locker};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Commands of the server, those that scripts call among them, by what the waiter does.
pub(crate) type Waiting = BTreeMap<String, u64>;

pub(crate) fn all() -> Result<Waiting, String> {
    let server = Server::start();
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut scene = Scene::open(&server.url(), &runtime).map_err(|error| error.to_string())?;
    // The first hand-off subscribes, and makes the fence counter.
    scene.hand_off()?;
    scene.hand_off()
}

/// One line for each.
pub(crate) fn report(waiting: &Waiting) -> String {
    let lines = waiting.iter().map(|(name, commands)| format!("{name:<52} {commands:>4} commands"));
    [HEAD.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

pub(crate) fn differences(now: &Waiting, listed: &Waiting) -> Vec<String> {
    let differing = now.iter().filter(|(name, commands)| listed.get(*name) != Some(*commands));
    let line = |(name, commands): (&String, &u64)| {
        format!("{name}: {commands}, in the table {}", listed.get(name).copied().unwrap_or(0))
    };
    differing.map(line).collect()
}

/// Two lockers, of which one holds the lock and the other waits.
struct Scene<'a> {
    runtime: &'a Runtime,
    holder: Locker,
    waiter: Locker,
    observer: Observer,
}

impl<'a> Scene<'a> {
    fn open(url: &str, runtime: &'a Runtime) -> Result<Self, LockError> {
        let connect = || runtime.block_on(Locker::connect(url));
        let (holder, waiter) = (connect()?, connect()?);
        Ok(Self { runtime, holder, waiter, observer: Observer::new(url) })
    }

    fn hand_off(&mut self) -> Result<Waiting, String> {
        let held = self.runtime.block_on(self.holder.lock(KEY).acquire());
        let held = held.map_err(|error| error.to_string())?;
        let before = self.quiet();
        let waits = self.runtime.spawn(self.waiter.lock(KEY).acquire());
        let joined = self.after_scripts(&before, 1)?;
        let later = self.after_scripts(&joined, QUERIES)?;
        let ended = self.end(held, waits)?;
        let counts = [
            (JOIN, joined.all_calls_since(&before)),
            (QUERY, later.all_calls_since(&joined) / QUERIES),
            (HAND_OFF, ended.all_calls_since(&later)),
        ];
        Ok(counts.map(|(name, commands)| (name.to_owned(), commands)).into())
    }

    /// Releases, and waits for the grant.
    fn end(
        &mut self,
        held: LockGuard,
        waits: JoinHandle<Result<LockGuard, LockError>>,
    ) -> Result<Snapshot, String> {
        let granted = self.runtime.block_on(async {
            held.release().await?;
            waits.await.expect("no panic")
        });
        let granted = granted.map_err(|error| error.to_string())?;
        let ended = self.quiet();
        self.runtime.block_on(granted.release()).map_err(|error| error.to_string())?;
        Ok(ended)
    }

    /// After the scripts ran, and before the waiter queries by itself.
    fn after_scripts(&mut self, since: &Snapshot, count: u64) -> Result<Snapshot, String> {
        let begun = Instant::now();
        while self.observer.look().calls_since(since, &["evalsha"]) < count {
            if begun.elapsed() > LIMIT {
                return Err("a waiter does not query".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(self.quiet())
    }

    /// When nothing is under way: a waiter queries every 0.8 seconds.
    fn quiet(&mut self) -> Snapshot {
        thread::sleep(Duration::from_millis(300));
        self.observer.look()
    }
}

const KEY: &str = "order:7";

const QUERIES: u64 = 4;

const LIMIT: Duration = Duration::from_secs(30);

const HEAD: &str = "\na waiter costs the server";

const JOIN: &str = "trying, and joining the queue";
const QUERY: &str = "a later query";
const HAND_OFF: &str = "a release that hands the lock off, and its grant";

#[cfg(test)]
mod tests {
    use super::{Waiting, differences};

    #[test]
    fn one_command_more_or_less_is_a_difference() {
        let one = |commands| -> Waiting { [("a later query".to_owned(), commands)].into() };
        assert!(differences(&one(5), &one(5)).is_empty());
        assert_eq!(differences(&one(6), &one(5)), ["a later query: 6, in the table 5"]);
        assert_eq!(differences(&one(4), &Waiting::new()).len(), 1);
    }
}
