//! A client that does nothing but `PING`, and how long its answers take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::Connection;

use crate::{Server, monotonic};

/// A thread with a connection of its own, which waits between two requests.
#[derive(Debug)]
pub struct Pinging {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Vec<u64>>,
}

impl Pinging {
    /// Begins at once.
    #[must_use]
    pub fn start(server: &Server, between: Duration) -> Self {
        let mut connection = connect(server);
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let task = thread::spawn(move || {
            let mut times = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(between);
                let sent = monotonic();
                redis::cmd("PING").exec(&mut connection).expect("PONG");
                times.push(monotonic() - sent);
            }
            times
        });
        Self { is_over, task }
    }

    /// How long each answer took.
    #[must_use]
    pub fn end(self) -> Times {
        self.is_over.store(true, Ordering::Relaxed);
        Times::of(self.task.join().expect("no panic"))
    }
}

fn connect(server: &Server) -> Connection {
    let client = redis::Client::open(server.url()).expect("a URL");
    client.get_connection().expect("the server answers")
}

/// How long something took each time, in nanoseconds; the shortest first.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<u64>);

impl Times {
    /// In any order.
    #[must_use]
    pub fn of(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// Takes those of another measurement in.
    pub fn add(&mut self, more: Self) {
        self.0.extend(more.0);
        self.0.sort_unstable();
    }

    /// The nanoseconds that this share of them did not exceed; 0 where there are none.
    #[must_use]
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
