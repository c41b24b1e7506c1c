//! What the benches share: a Redis server of their own, and numbers compared as ratios.
//!
//! The machines that these run on drift, so an absolute figure proves nothing: every contender runs
//! a short round in turn, and what counts is the median of the ratios within one turn.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A redis-server on a free port of 127.0.0.1, ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts `redis-server` from the path and waits until it takes connections.
    ///
    /// # Panics
    /// When there is none, or it does not start within five seconds.
    #[must_use]
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .expect("a free port")
            .port();
        let process = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is on the path");
        let server = Self { process, port };
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
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

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("our own redis-server ends");
    }
}

/// The middle one of some numbers.
///
/// # Panics
/// When there are none.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
