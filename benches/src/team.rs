//! The processes of one contender.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Processes that are ended when this is dropped, and end by themselves when this process does.
#[derive(Debug)]
pub struct Team(Vec<Worker>);

impl Team {
    /// Starts them, and waits until all are ready.
    ///
    /// # Errors
    /// What keeps one of them from it.
    pub fn start(size: usize, command: impl Fn() -> Command) -> Result<Self, String> {
        let workers = (0..size).map(|_| Worker::start(command()));
        let team = Self(workers.collect::<Result<_, _>>()?);
        team.0.iter().try_for_each(|worker| worker.expect("ready"))?;
        Ok(team)
    }

    /// Lets all come to their end, which they do at that of their input.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn end(mut self) -> Result<(), String> {
        self.0.iter_mut().try_for_each(Worker::end)
    }

    /// The first `count` of its processes.
    pub fn first(&mut self, count: usize) -> &mut [Worker] {
        self.0.get_mut(..count).expect("a team that is large enough")
    }
}

/// One process, which is commanded by lines.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    /// In a process group of its own: Ctrl-C is for the bench, whose end ends this.
    fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let lines = read(child.stdout.take().expect("a pipe"));
        Ok(Self { child, lines })
    }

    /// Sends an order.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn say(&mut self, order: &str) -> Result<(), String> {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{order}").map_err(|error| format!("its process is gone: {error}"))
    }

    /// `wait` closes the pipe first.
    fn end(&mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("its process failed: {status}")) }
    }

    /// Waits for a line of one word.
    ///
    /// # Errors
    /// When another line comes, or none in time.
    pub fn expect(&self, word: &str) -> Result<(), String> {
        match self.answer()? {
            line if line == word => Ok(()),
            line => Err(format!("its process said {line:?} in place of {word:?}")),
        }
    }

    /// All lines until the one that says that there are no more.
    ///
    /// # Errors
    /// When one does not come in time.
    pub fn rest(&self) -> Result<Vec<String>, String> {
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

    /// The next line.
    ///
    /// # Errors
    /// When it does not come in time.
    pub fn answer(&self) -> Result<String, String> {
        self.answer_within(LIMIT)
    }

    /// The same, for an order that takes longer.
    ///
    /// # Errors
    /// When it does not come in time.
    pub fn answer_within(&self, limit: Duration) -> Result<String, String> {
        self.line(Instant::now() + limit)
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

/// More than any of them takes for a burst, or for a minute of pairs, on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
