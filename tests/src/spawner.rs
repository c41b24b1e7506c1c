//! Child processes that do not outlive the test process, however it ends.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Starts `command`, which ends at the latest with this process, where `setpriv` is there to see to
/// it. Without it, a process that is killed leaves its children behind.
///
/// The kernel ends such a child when the *thread* that started it ends, so one thread that lives as
/// long as the process starts them all.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Request>> = OnceLock::new();
    let (reply, child) = channel();
    let spawner = SPAWNER.get_or_init(start);
    spawner.send(Request { command, reply }).expect("the spawner ends with the process");
    child.recv().expect("the spawner answers every request")
}

/// A command that runs `program` under the parent's death signal, in a process of the same id.
pub(crate) fn command(program: &OsStr) -> Command {
    if !has_setpriv() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Stops a child, and returns when it has stopped.
pub(crate) fn pause(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).expect("a child can be sent a signal");
    waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).expect("a stopped child can be seen");
}

/// Resumes a child that was paused.
pub(crate) fn resume(child: &Child) {
    kill_process(Pid::from_child(child), Signal::CONT).expect("a child can be sent a signal");
}

struct Request {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

fn start() -> Sender<Request> {
    let (requests, inbox) = channel();
    let name = "harness-spawner".to_owned();
    thread::Builder::new().name(name).spawn(move || serve(&inbox)).expect("a thread can start");
    requests
}

fn serve(inbox: &Receiver<Request>) {
    for Request { mut command, reply } in inbox {
        reply.send(command.spawn()).expect("the caller waits for its answer");
    }
}

/// Not every system has it, and older ones have it without the option.
fn has_setpriv() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}
