//! The processes that a command has started: its group, and on Linux whatever left that group.
//!
//! The process that has adopted a family reaps each of its members: see
//! "Why does `lockable run` have a watcher process?" in DESIGN.md.

use std::cell::Cell;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, test_kill_process,
    test_kill_process_group, wait,
};

use crate::exit::Exit;

/// The processes under this one.
#[derive(Debug)]
pub(crate) struct Family {
    /// The command.
    head: Pid,
    /// Whether the command leads a group of its own.
    has_group: bool,
    /// Children of this process that are none of the command's.
    foreign: Vec<Pid>,
    /// Whether the group has ended: its number may be another's from then on.
    is_group_over: Cell<bool>,
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// The command has ended like this.
    Command(Exit),
    /// Another one has.
    Other,
    /// The command was stopped by this signal.
    Stopped(i32),
    /// No child has ended since the last one.
    Nothing,
    /// There is no child at all.
    NoChild,
}

impl Family {
    pub(crate) fn new(head: Pid, has_group: bool) -> Self {
        Self { head, has_group, foreign: Vec::new(), is_group_over: Cell::new(false) }
    }

    pub(crate) fn but_for(mut self, foreign: Vec<Pid>) -> Self {
        self.foreign = foreign;
        self
    }

    /// Passes a signal on: to the group, or to the command alone where it shares its group with others.
    pub(crate) fn signal(&self, signal: Signal) {
        // Who has ended needs no signal.
        if !self.has_group {
            kill_process(self.head, signal).ok();
        } else if !self.is_group_gone() {
            kill_process_group(self.head, signal).ok();
        }
    }

    /// Sends a signal to all of the family.
    pub(crate) fn signal_all(&self, signal: Signal) {
        if self.has_group {
            self.signal(signal);
        }
        for process in outside(self.has_group.then_some(self.head), &self.foreign) {
            // Who has ended needs no signal.
            kill_process(process, signal).ok();
        }
        if !tree::IS_KNOWN && !self.has_group {
            self.signal(signal);
        }
    }

    /// One that no signal of ours reaches, because it runs as another user.
    pub(crate) fn unreachable(&self) -> Option<Pid> {
        let is_refused = |process: &Pid| test_kill_process(*process) == Err(Errno::PERM);
        outside(None, &self.foreign).into_iter().find(is_refused)
    }

    /// Takes note of a child that has ended.
    pub(crate) fn reap(&self) -> Reaped {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((process, status))) if status.stopped() => {
                let signal = status.stopping_signal().filter(|_| process == self.head);
                signal.map_or(Reaped::Other, Reaped::Stopped)
            }
            Ok(Some((process, status))) if process == self.head => Reaped::Command(exit(status)),
            Ok(Some(_)) | Err(Errno::INTR) => Reaped::Other,
            Ok(None) => Reaped::Nothing,
            Err(_) => Reaped::NoChild,
        }
    }

    /// Whether the group has ended too, where this process is not the parent of all that is in it.
    pub(crate) fn is_group_gone(&self) -> bool {
        if self.has_group && !self.is_group_over.get() {
            let is_over = test_kill_process_group(self.head) == Err(Errno::SRCH);
            self.is_group_over.set(is_over);
        }
        !self.has_group || self.is_group_over.get()
    }

    /// Whether none is alive, for a process that has other children too.
    pub(crate) fn is_gone(&self) -> bool {
        // Who was started while the first look went on is seen by the second.
        let is_none = || outside(None, &self.foreign).is_empty();
        self.is_group_gone() && is_none() && is_none()
    }
}

fn exit(status: WaitStatus) -> Exit {
    let code = || u8::try_from(status.exit_status().unwrap_or(255)).unwrap_or(u8::MAX);
    status.terminating_signal().map_or_else(|| Exit::Code(code()), Exit::Signal)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod tree;

/// Where nothing says whose child a process is, a group is all that is known.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod tree {
    use rustix::process::Pid;

    pub(crate) const IS_KNOWN: bool = false;

    pub(crate) fn adopt() {}

    pub(crate) fn outside(_group: Option<Pid>, _foreign: &[Pid]) -> Vec<Pid> {
        Vec::new()
    }
}

pub(crate) use tree::{adopt, outside};
