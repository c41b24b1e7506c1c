//! A client that does nothing but `PING`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lockable_benches::monotonic;
use redis::Connection;

const BETWEEN: Duration = Duration::from_millis(1);

pub struct Pinging {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Vec<u64>>,
}

impl Pinging {
    pub fn start(mut connection: Connection) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let task = thread::spawn(move || {
            let mut times = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(BETWEEN);
                let sent = monotonic();
                redis::cmd("PING").exec(&mut connection).expect("PONG");
                times.push(monotonic() - sent);
            }
            times
        });
        Self { is_over, task }
    }

    pub fn end(self) -> Vec<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.join().expect("no panic")
    }
}

/// How long the answers took, in nanoseconds.
#[derive(Default)]
pub struct Pings(Vec<u64>);

impl Pings {
    pub fn add(&mut self, more: Vec<u64>) {
        self.0.extend(more);
        self.0.sort_unstable();
    }

    /// The time within which this share of the answers came.
    #[expect(clippy::cast_precision_loss, reason = "a time is short")]
    pub fn at(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in the list"
        )]
        let place = (share * self.0.len() as f64) as usize;
        self.0.get(place.min(self.0.len().saturating_sub(1))).map_or(0.0, |nanos| *nanos as f64)
    }
}
