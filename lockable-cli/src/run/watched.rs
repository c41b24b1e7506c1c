//! Starting the watcher, and what is left to do when it is killed.

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, kill_process, waitid, waitpid,
};
use tokio::time::interval;

use crate::arguments::{Run, Watcher};
use crate::clock::Moment;
use crate::output::note;
use crate::run::channel::Channel;
use crate::run::family::{self, Family, Reaped};
use crate::run::imitation::own_program;
use crate::run::stdin;

/// The watcher, and the command under it.
pub(crate) struct Watched {
    pub(crate) channel: Channel,
    watcher: Pid,
    /// The command, or the watcher until that one has said what the command is.
    family: Family,
    /// Children that this process had before it became `lockable`.
    foreign: Vec<Pid>,
    json: bool,
}

impl Watched {
    /// Starts the watcher in a process group of its own, which no signal of a terminal reaches.
    pub(crate) fn start(
        arguments: &Run,
        deadline: Moment,
        variables: [(&str, String); 3],
        json: bool,
    ) -> io::Result<Self> {
        let (ours, its) = UnixStream::pair()?;
        stdin::send(&ours)?;
        let channel = Channel::new(ours)?;
        // If the watcher is killed, this process is the next to adopt what is left.
        family::adopt();
        let foreign = family::outside(None, &[]);
        let mut command = Command::new(own_program()?);
        // Killing `lockable` by its name leaves the watcher to end the command.
        command
            .arg0("lock-watcher")
            .args(json.then_some("--json"))
            .args([Watcher::NAME, "--deadline"]);
        command.arg(deadline.as_nanos().to_string());
        command.args(["--kill-after", &arguments.kill_after().as_millis().to_string()]);
        if arguments.foreground {
            command.args(["--group", &getpgrp().as_raw_pid().to_string()]);
        }
        command.arg("--").args(&arguments.command).envs(variables).process_group(0);
        let child = command.stdin(Stdio::from(std::os::fd::OwnedFd::from(its))).spawn()?;
        let watcher = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let watcher = watcher.ok_or(io::ErrorKind::Other)?;
        let family = Family::new(watcher, false).but_for(foreign.clone());
        Ok(Self { channel, watcher, family, foreign, json })
    }

    /// The watcher has started the command, as this process.
    pub(crate) fn started(&mut self, process: i32, arguments: &Run) {
        if let Some(head) = Pid::from_raw(process) {
            let family = Family::new(head, !arguments.foreground);
            self.family = family.but_for(self.foreign.clone());
        }
    }

    /// Kills the watcher, whose events end then, and the command with it.
    pub(crate) fn kill(&self) {
        // It is a child of this process that was not waited for, so the id is no other's.
        kill_process(self.watcher, Signal::KILL).ok();
        self.family.signal_all(Signal::KILL);
    }

    /// Whether the watcher was stopped by a signal.
    pub(crate) fn is_stopped(&self) -> bool {
        let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.watcher), how), Ok(Some(status)) if status.stopped())
    }

    /// Waits until the watcher has ended, which has nothing left to do: no zombie of it is left to others.
    pub(crate) async fn reap(&self) {
        let mut looks = interval(SWEEP);
        for _ in 0..LOOKS {
            if self.is_reaped(WaitOptions::NOHANG) {
                return;
            }
            looks.tick().await;
        }
        kill_process(self.watcher, Signal::KILL).ok();
        self.is_reaped(WaitOptions::empty());
    }

    /// Whether there is no such child any more.
    fn is_reaped(&self, options: WaitOptions) -> bool {
        !matches!(waitpid(Some(self.watcher), options), Ok(None))
    }

    /// The watcher is gone: ends what it left, until no process of the command is alive.
    pub(crate) async fn end_all(&self) {
        let (mut sweep, mut is_stuck) = (interval(SWEEP), false);
        loop {
            self.family.signal_all(Signal::KILL);
            if !is_stuck && let Some(process) = self.family.unreachable() {
                is_stuck = true;
                sweep = interval(SLOW_SWEEP);
                note(self.json, &unreachable(process.as_raw_pid()));
            }
            while matches!(
                self.family.reap(),
                Reaped::Command(_) | Reaped::Other | Reaped::Stopped(_)
            ) {}
            if self.family.is_gone() {
                return;
            }
            sweep.tick().await;
        }
    }
}

/// What is said of a process that cannot be ended.
pub(crate) fn unreachable(process: i32) -> String {
    let what = format!("process {process} of the command runs as another user and cannot be ended");
    format!("{what}; run `lockable` as that user")
}

const SWEEP: Duration = Duration::from_millis(5);

/// Sets the pause between two sweeps while a process is alive that cannot be ended.
const SLOW_SWEEP: Duration = Duration::from_millis(200);

/// Limits how often the end of the watcher is looked for: a tenth of a second, for what takes some milliseconds.
const LOOKS: usize = 20;
