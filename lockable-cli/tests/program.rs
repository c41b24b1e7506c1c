//! `lockable` as a process of the test, and the processes of its command.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio,
};
use std::time::Duration;

use lockable_tests::wait::HANG;
use lockable_tests::{Server, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything that a process of these tests does.
pub(crate) const LIMIT: Duration = HANG;

/// `lockable` with the server of an URL, which has time to answer however busy the machine is.
pub(crate) fn lockable(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockable"));
    command.env("LOCKABLE_URL", url).env_remove("REDIS_URL").env_remove("LOCKABLE_REQUEST_ID");
    command.args(["--timeout", "5m"]).stdin(Stdio::null());
    in_own_group(&mut command);
    command
}

/// The same where no answer comes, and that is the subject.
pub(crate) fn impatient(url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockable"));
    command.env("LOCKABLE_URL", url).env_remove("REDIS_URL").env_remove("LOCKABLE_REQUEST_ID");
    command.args(["--timeout", "200ms"]).stdin(Stdio::null());
    command
}

/// A command in the foreground is in the group of `lockable`, and its parent is not. When it ends while another process
/// of that group is stopped, the kernel hangs up on the whole group, if no shell has control of it.
fn in_own_group(command: &mut Command) {
    command.process_group(0);
}

/// `lockable` with these arguments.
pub(crate) fn with(url: &str, arguments: &[&str]) -> (i32, String, String) {
    outcome(lockable(url).args(arguments))
}

/// The same, of which the answer is an object of JSON; without `--json` among the arguments.
pub(crate) fn json(url: &str, arguments: &[&str]) -> (i32, Value) {
    let (code, said, why) = outcome(lockable(url).args(arguments).arg("--json"));
    let text = if said.is_empty() { why } else { said };
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The id of a hold.
pub(crate) fn id(server: &Server, key: &str) -> String {
    json(&server.url(), &["show", key]).1["id"].as_str().unwrap().to_owned()
}

/// Waits until a call waits for a lock.
pub(crate) fn queued(server: &Server, key: &str) {
    let (admin, queue) = (server.admin(), format!("lockable:queue:{{disLock:{key}}}"));
    wait::until(LIMIT, || admin.command::<i64>(&["LLEN", &queue]) == 1);
}

/// Waits until so many calls wait for a permit of a key.
pub(crate) fn queued_for_permits(server: &Server, key: &str, count: i64) {
    let (admin, queue) = (server.admin(), format!("lockable:queue:#:disLock:{{{key}}}"));
    wait::until(LIMIT, || admin.command::<i64>(&["LLEN", &queue]) == count);
}

/// Waits until that many holders hear an operator: a second after their grants.
pub(crate) fn listening(server: &Server, holders: usize) {
    let admin = server.admin();
    wait::until(LIMIT, || {
        let channels: Vec<String> = admin.command(&["PUBSUB", "CHANNELS", "lockable:revoke:*"]);
        channels.len() == holders
    });
}

/// `lockable run` with the lock `job`, more options, and a script.
pub(crate) fn run(url: &str, options: &[&str], script: &str) -> Command {
    let mut command = lockable(url);
    command.args(["run", "--key", "job"]).args(options).args(["--", "sh", "-c", script]);
    command
}

/// A script of `sh` or `bash` in which `$0` is `lockable`, and `$@` gives it time as [`lockable`] does.
pub(crate) fn script(shell: &str, url: &str, script: &str) -> Command {
    let mut command = Command::new(shell);
    command.args(["-c", script, env!("CARGO_BIN_EXE_lockable"), "--timeout", "5m"]);
    command.env("LOCKABLE_URL", url);
    command
}

/// The exit code, and what was written.
pub(crate) fn outcome(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (code(status), text(stdout), text(stderr))
}

/// A `lockable run` whose command has written the ids of its processes.
pub(crate) struct Running {
    child: Child,
    /// Open until the test waits for the end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    pub(crate) family: Vec<i32>,
}

impl Running {
    /// Starts [`FAMILY`] under the lock `job`.
    pub(crate) fn start(url: &str, options: &[&str]) -> Self {
        Self::of(run(url, options, FAMILY), 3)
    }

    /// Starts a command that writes that many ids.
    pub(crate) fn of(mut command: Command, processes: usize) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        in_own_group(&mut command);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self { child, input, output, errors, family: Vec::new() };
        running.family = (0..processes).map(|_| running.process()).collect();
        running
    }

    /// The next process that the command names.
    fn process(&mut self) -> i32 {
        let line = self.line();
        line.parse().unwrap_or_else(|_| panic!("`{line}` is no process: {}", self.said()))
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn send(&self, signal: Signal) {
        send(self.id(), signal);
    }

    /// Whether a process of the command runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.family.iter().any(|process| is_alive(*process))
    }

    /// The process between `lockable` and the command.
    pub(crate) fn watcher(&self) -> i32 {
        parent(*self.family.last().unwrap()).unwrap()
    }

    /// Closes the input, and waits until `lockable` has ended; its exit code, and what it wrote to standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.input = None;
        let ended = |child: &mut Child| child.try_wait().unwrap();
        wait::until(LIMIT, || ended(&mut self.child).is_some());
        let said = self.said();
        (ended(&mut self.child).map(code), said)
    }

    /// The next line of standard error.
    pub(crate) fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).unwrap();
        line
    }

    /// What is written to standard error until its end.
    fn said(&mut self) -> String {
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, but in a test that fails.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

/// As a shell has it.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|number| number + 128)).unwrap()
}

pub(crate) fn send(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// A process that has ended and was not reaped yet does nothing any more.
pub(crate) fn is_alive(process: i32) -> bool {
    state(process).is_some_and(|state| !["Z", "X"].contains(&state.as_str()))
}

pub(crate) fn state(process: i32) -> Option<String> {
    field(process, 0)
}

pub(crate) fn parent(process: i32) -> Option<i32> {
    field(process, 1)?.parse().ok()
}

pub(crate) fn group(process: i32) -> Option<i32> {
    field(process, 2)?.parse().ok()
}

/// What the system says of a process, behind its name.
fn field(process: i32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(number).map(str::to_owned)
}

/// One of them has left the group, none ends by itself, and none heeds a polite word.
const FAMILY: &str =
    "trap '' TERM; sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; wait";
