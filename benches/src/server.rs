//! A Redis server for one run.

use std::env;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Leash;

/// A redis-server on a free port of 127.0.0.1, ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    port: u16,
    _process: Leash,
    /// Where it writes what its replicas ask for.
    _folder: TempDir,
}

impl Server {
    /// Starts `redis-server` from the path, or the program that `LOCKABLE_REDIS_SERVER` names, and waits
    /// until it takes connections.
    #[must_use]
    pub fn start() -> Self {
        Self::start_under(&[], &[])
    }

    /// The same on the first core only, by `taskset`.
    #[must_use]
    pub fn start_on_first_core() -> Self {
        Self::start_under(&["taskset", "--cpu-list", "0"], &[])
    }

    /// The same with other options, under a tool that runs the program at the end of its arguments.
    #[must_use]
    pub fn start_under(tool: &[&str], options: &[&str]) -> Self {
        let program = env::var("LOCKABLE_REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".to_owned());
        Self::start_as(&[tool, &[&program], options].concat())
    }

    fn start_as(command: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().to_string_lossy();
        let options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", &*path];
        let port_option = ["--port", &port.to_string()];
        let process = Leash::start(command[0], &[&command[1..], &port_option, &options].concat());
        let mut process = process.expect("a shell");
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(process.is_alive(), "{command:?} does not start");
            assert!(started.elapsed() < Duration::from_secs(60), "redis-server does not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { port, _process: process, _folder: folder }
    }

    /// The URL of this server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}
