//! How late a command ends under `lockable run`.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use lockable_tests::{Peer, Server};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::Figure;

/// The longest of a few times each. The watcher's deadline is earlier than the end of the lease by a twentieth of it,
/// which is ten times the bound.
pub(crate) fn command() -> Vec<Figure> {
    let program = program();
    let longest = |end: fn(&mut Run) -> Duration| {
        (0..TIMES).map(|_| Run::start(&program).late(end)).max().unwrap_or_default()
    };
    let figure = |name, end, bound| Figure::new(name, longest(end), Duration::from_millis(bound));
    vec![
        figure("after `lockable` is killed", Run::kill as fn(&mut Run) -> Duration, 100),
        figure("after the lock is deleted", Run::delete, 100),
        figure("past the deadline where `lockable` stands still", Run::stop, 20),
    ]
}

/// A command that heeds no polite word.
struct Run {
    server: Server,
    lockable: Peer,
    command: String,
}

impl Run {
    fn start(program: &PathBuf) -> Self {
        let server = Server::start();
        let url = server.url();
        let run = ["run", "--url", &url, "--key", "job", "--expire", "4s", "--kill-after", "500ms"];
        let script = ["--", "sh", "-c", "trap '' TERM; echo $$; read line; exec sleep 1000"];
        let lockable = Peer::start(program, run.iter().chain(&script));
        let command = lockable.hear();
        Self { server, lockable, command }
    }

    /// How long the command lives after the moment from which on it is late.
    fn late(mut self, end: fn(&mut Self) -> Duration) -> Duration {
        let end = end(&mut self);
        while self.is_alive() {
            pause();
        }
        let late = boot_time().saturating_sub(end);
        self.lockable.kill();
        late
    }

    fn kill(&mut self) -> Duration {
        let now = boot_time();
        self.lockable.signal(Signal::KILL);
        now
    }

    fn delete(&mut self) -> Duration {
        // The server is asked to tell of changes soon after the grant.
        let admin = self.server.admin();
        while !admin.info("stats").contains("tracking_total_items:1\r") {
            pause();
        }
        let now = boot_time();
        admin.del("disLock:job");
        now
    }

    fn stop(&mut self) -> Duration {
        self.lockable.pause();
        let watcher = field(&self.command, 1).expect("the command lives");
        let line = fs::read_to_string(format!("/proc/{watcher}/cmdline")).expect("so does this");
        let mut words = line.split('\0').skip_while(|word| *word != "--deadline");
        let deadline = words.nth(1).and_then(|word| word.parse().ok());
        Duration::from_nanos(deadline.expect("a watcher has a deadline"))
    }

    fn is_alive(&self) -> bool {
        field(&self.command, 0).is_some_and(|state| !["Z", "X"].contains(&state.as_str()))
    }
}

/// What the system says of a process, behind its name.
fn field(process: &str, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number).map(str::to_owned)
}

/// The program, which `cargo xtask timings` has built.
fn program() -> PathBuf {
    let this = env::current_exe().expect("this program has a file");
    this.ancestors().nth(2).expect("it is in `deps`").join("lockable")
}

fn boot_time() -> Duration {
    clock_gettime(ClockId::Boottime).try_into().expect("it is not negative")
}

#[expect(clippy::disallowed_methods, reason = "nothing announces the end of a process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

const TIMES: usize = 3;
