//! Another process that a test talks with.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::spawner;
use crate::wait::{self, HANG};

/// A child process that reads and writes one line at a time. It ends with this value, also by a
/// panic, and when the test process is killed.
///
/// Its standard error is that of the test.
pub struct Peer {
    child: Child,
    /// `None` once the test has closed it.
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Peer {
    /// Starts a program.
    pub fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let mut command = spawner::command(program.as_ref());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = spawner::spawn(command);
        let mut child =
            child.unwrap_or_else(|error| panic!("{}: {error}", program.as_ref().display()));
        let input = child.stdin.take();
        let (sender, output) = channel();
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, input, output }
    }

    /// Sends a line.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open until the end");
        writeln!(input, "{line}").expect("the process reads its input");
    }

    /// Waits for the next line that the process writes.
    pub fn hear(&self) -> String {
        self.output.recv_timeout(HANG).expect("the process writes a line in time")
    }

    /// Sends a line and waits for the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    /// Stops the process, and returns when it has stopped.
    pub fn pause(&self) {
        spawner::pause(&self.child);
    }

    /// Resumes a paused process.
    pub fn resume(&self) {
        spawner::resume(&self.child);
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the process a signal, unless it has ended by itself.
    pub fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            let sent = kill_process(Pid::from_child(&self.child), signal);
            sent.expect("a child can be sent a signal");
        }
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be seen").is_some()
    }

    /// Ends the process by SIGKILL; returns the lines that the test has not read yet.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
        self.output.iter().collect()
    }

    /// Closes the input of the process, waits until it has ended well, and returns the lines until then.
    pub fn hear_out(mut self) -> Vec<String> {
        self.input = None;
        let said = self.output.iter().collect();
        self.finish();
        said
    }

    /// Closes the input of the process, and waits until it has ended well.
    pub fn finish(mut self) {
        self.input = None;
        let status = wait::poll(HANG, || self.child.try_wait().expect("a child can be seen"));
        let status = status.expect("the process ends in time");
        assert!(status.success(), "the process ended with {status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has ended already, but in a test that fails.
        drop(self.child.kill());
        self.child.wait().expect("a child can be waited for");
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Peer").field("pid", &self.child.id()).finish_non_exhaustive()
    }
}
