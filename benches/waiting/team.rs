//! The processes of one contender.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Processes that are ended when this is dropped, and end by themselves when this process does.
pub(crate) struct Team(Vec<Worker>);

impl Team {
    pub(crate) fn start(size: usize, command: impl Fn() -> Command) -> Result<Self, String> {
        let workers = (0..size).map(|_| Worker::start(command()));
        let team = Self(workers.collect::<Result<_, _>>()?);
        team.0.iter().try_for_each(|worker| worker.expect("ready"))?;
        Ok(team)
    }

    /// The first `count` of its processes.
    pub(crate) fn first(&mut self, count: usize) -> &mut [Worker] {
        self.0.get_mut(..count).expect("a team that is large enough")
    }
}

/// One process, which is commanded by lines.
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Worker {
    /// In a process group of its own: Ctrl-C is for the bench, whose end ends this.
    fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let input = child.stdin.take().expect("a pipe");
        let lines = read(child.stdout.take().expect("a pipe"));
        Ok(Self { child, input, lines })
    }

    pub(crate) fn say(&mut self, order: &str) -> Result<(), String> {
        writeln!(self.input, "{order}").map_err(|error| format!("its process is gone: {error}"))
    }

    pub(crate) fn expect(&self, word: &str) -> Result<(), String> {
        match self.line(Instant::now() + LIMIT)? {
            line if line == word => Ok(()),
            line => Err(format!("its process said {line:?} in place of {word:?}")),
        }
    }

    /// All lines until the one that says that there are no more.
    pub(crate) fn rest(&self) -> Result<Vec<String>, String> {
        let (mut lines, by) = (Vec::new(), Instant::now() + LIMIT);
        loop {
            match self.line(by)? {
                line if line == "over" => return Ok(lines),
                // It reached its end just when the order to end was sent.
                line if line == "done" => {}
                line => lines.push(line),
            }
        }
    }

    fn line(&self, by: Instant) -> Result<String, String> {
        let line = self.lines.recv_timeout(by.saturating_duration_since(Instant::now()));
        line.map_err(|error| format!("its process said nothing in time: {error}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("a process of ours ends");
    }
}

fn read(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// More than any of them takes for a burst, on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
