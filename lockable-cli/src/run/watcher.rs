//! The process between `lockable run` and the command: it ends the command in time, also when `lockable` cannot.
//!
//! See "Why does `lockable run` have a watcher process?" in DESIGN.md.

use std::io;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::arguments::{Command, Watcher};
use crate::clock::{Moment, boot_time};
use crate::failure::Failure;
use crate::run::alarm::Alarm;
use crate::run::channel::Channel;
use crate::run::ending::{Due, Ending};
use crate::run::family::{self, Family, Reaped};
use crate::run::imitation::own_program;
use crate::run::orders::{Event, Order};
use crate::run::signals::{Signals, ends};
use crate::run::stdin;

/// What `lockable __watcher` does.
pub(crate) async fn watch(arguments: Watcher, json: bool) -> Result<u8, Failure> {
    let failed = |error| Failure::internal(format!("the watcher: {error}"));
    let channel = stdin::receive().and_then(Channel::new).map_err(failed)?;
    Watch::start(&arguments, channel, json).await.map_err(failed)?;
    Ok(0)
}

struct Watch {
    channel: Channel,
    family: Family,
    ending: Ending,
    stage: Stage,
    /// Whether the command has ended.
    is_over: bool,
    /// Until when what the command left behind may end by itself.
    rest_until: Option<Moment>,
    /// Whether a process cannot be ended.
    is_stuck: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The command runs.
    Runs,
    /// The command has ended; what it left behind may end by itself, and is asked to soon.
    LeftBehind,
    /// All are killed, as often as it takes.
    Kills,
    /// None is left.
    Clear,
}

impl Watch {
    /// Starts the command and stays until no process of it is alive.
    async fn start(arguments: &Watcher, mut channel: Channel, json: bool) -> io::Result<()> {
        // A signal to everyone here, as a service manager sends it, must not end this process.
        let _ignored = Signals::listen()?;
        let mut ended = signal(SignalKind::child())?;
        family::adopt();
        // Not to be killed by the name of the program.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::thread::set_name(c"lock-watcher").ok();
        let deadline = Moment::from_nanos(arguments.deadline);
        if boot_time() >= deadline {
            return channel.send(Event::Clear);
        }
        let head = spawn(arguments, json)?;
        let family = Family::new(head, arguments.group.is_none());
        let ending = Ending::new(deadline, Duration::from_millis(arguments.kill_after));
        let mut watch = Self {
            channel,
            family,
            ending,
            stage: Stage::Runs,
            is_over: false,
            rest_until: None,
            is_stuck: false,
        };
        watch.report(Event::Started(head.as_raw_pid()));
        watch.stay(&mut ended).await
    }

    async fn stay(&mut self, ended: &mut tokio::signal::unix::Signal) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        let mut sweep = sweeps(SWEEP);
        while self.stage < Stage::Clear {
            self.act();
            if self.notices_stuck() {
                sweep = sweeps(SLOW_SWEEP);
            }
            tokio::select! {
                order = self.channel.next::<Order>(), if self.stage < Stage::Kills => self.obey(order),
                _ = ended.recv() => {}
                _ = sweep.tick(), if self.stage > Stage::Runs => {}
                outcome = alarm.until(self.ending.next()), if self.stage < Stage::Kills => outcome?,
            }
            self.reap();
        }
        Ok(())
    }

    /// What the time demands, and again what may not have reached everyone.
    fn act(&mut self) {
        self.ask_the_rest();
        match self.ending.due(boot_time()) {
            _ if self.stage == Stage::Kills => self.family.signal_all(Signal::KILL),
            Due::Kill => self.kill(),
            Due::Ask => {
                self.ask();
                self.report(Event::RunsOut);
            }
            Due::Nothing => {}
        }
    }

    /// Whether it shows now that a process cannot be ended, which to try as often as others helps no one.
    fn notices_stuck(&mut self) -> bool {
        if self.is_stuck || self.stage != Stage::Kills {
            return false;
        }
        let Some(process) = self.family.unreachable() else { return false };
        self.is_stuck = true;
        self.report(Event::Unreachable(process.as_raw_pid()));
        true
    }

    /// Without the other end there is no one left who renews the lease.
    fn obey(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Deadline(deadline)) => self.ending.set_deadline(deadline),
            Some(Order::Signal(number)) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.pass_on(signal);
                }
            }
            Some(Order::End) => self.ask(),
            Some(Order::Kill) | None => self.kill(),
        }
    }

    fn pass_on(&self, signal: Signal) {
        self.family.signal(signal);
        if ends(signal.as_raw()) {
            // Who is stopped would not hear it.
            self.family.signal(Signal::CONT);
        }
    }

    fn ask(&mut self) {
        if self.ending.ask(boot_time()) {
            self.family.signal_all(Signal::TERM);
            self.family.signal_all(Signal::CONT);
        }
    }

    fn kill(&mut self) {
        self.stage = Stage::Kills;
        self.family.signal_all(Signal::KILL);
    }

    fn reap(&mut self) {
        loop {
            match self.family.reap() {
                Reaped::Command(exit) => self.report(Event::Ended(exit)),
                Reaped::Stopped(number) => self.report(Event::Stopped(number)),
                Reaped::Other => {}
                Reaped::NoChild if self.family.is_group_gone() => return self.clear(),
                Reaped::Nothing | Reaped::NoChild => return self.wait_for_rest(),
            }
        }
    }

    /// The command's end is also that of what it left behind.
    fn wait_for_rest(&mut self) {
        if self.is_over && self.stage == Stage::Runs {
            self.stage = Stage::LeftBehind;
            self.rest_until = Some(boot_time().after(BY_ITSELF));
        }
    }

    /// What has not ended by itself is asked, as the command is.
    fn ask_the_rest(&mut self) {
        if self.stage == Stage::LeftBehind && self.rest_until.is_some_and(|end| boot_time() >= end)
        {
            self.rest_until = None;
            self.report(Event::LeftBehind);
            self.ask();
        }
    }

    fn clear(&mut self) {
        self.stage = Stage::Clear;
        self.report(Event::Clear);
    }

    /// A `lockable` that does not read is stopped, or gone, and what becomes of the command does not wait for it.
    fn report(&mut self, event: Event) {
        self.is_over |= matches!(event, Event::Ended(_));
        self.channel.send(event).ok();
    }
}

/// [`Family::reap`] waits for it.
fn spawn(arguments: &Watcher, json: bool) -> io::Result<Pid> {
    let mut command = std::process::Command::new(own_program()?);
    command.arg0("lockable");
    command.args(json.then_some("--json")).args([Command::NAME, "--parent"]);
    command.arg(getpid().as_raw_pid().to_string()).arg("--").args(&arguments.command);
    let child = command.process_group(arguments.group.unwrap_or(0)).spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other.into())
}

fn sweeps(pause: Duration) -> Interval {
    let mut sweep = interval(pause);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    sweep
}

/// Sets how often processes are looked for that a signal may have missed, because they were being started.
const SWEEP: Duration = Duration::from_millis(5);

/// Sets how often processes are looked for while one is alive that cannot be ended.
const SLOW_SWEEP: Duration = Duration::from_millis(200);

/// What ends with its input, such as the `tee` of `exec > >(tee log)`, ends in milliseconds.
const BY_ITSELF: Duration = Duration::from_millis(500);
