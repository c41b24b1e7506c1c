//! What the benches share: a Redis server of their own, cores kept awake, and numbers compared as
//! ratios.
//!
//! The machines that these run on drift, so an absolute figure proves nothing: every contender runs
//! a short round in turn, and what counts is the median of the ratios within one turn.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A process of ours, ended when this is dropped.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("a process of ours ends");
    }
}

/// A redis-server on a free port of 127.0.0.1, ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    port: u16,
    _process: Process,
}

impl Server {
    /// Starts `redis-server` from the path and waits until it takes connections.
    #[must_use]
    pub fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let server = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is on the path");
        let server = Self { port, _process: Process(server) };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(5), "redis-server does not start");
            std::thread::yield_now();
        }
        server
    }

    /// The URL of this server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

/// Keeps the cores awake while it lives: waking a sleeping one costs more than a lock does.
///
/// The loops run at idle priority, so they take nothing from whoever has work to do.
#[derive(Debug)]
pub struct AwakeCores {
    _spinners: Vec<Process>,
}

impl AwakeCores {
    /// One loop a core; none, with a note, where `chrt` is missing.
    #[must_use]
    pub fn start() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        let spinner =
            || Command::new("chrt").args(["-i", "0", "sh", "-c", "while :; do :; done"]).spawn();
        let spinners: Vec<Process> =
            (0..cores).filter_map(|_| spinner().ok()).map(Process).collect();
        if spinners.is_empty() {
            println!("note: no `chrt` here, so idle cores go to sleep between requests");
        }
        Self { _spinners: spinners }
    }
}

/// The middle one of some numbers.
#[must_use]
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
