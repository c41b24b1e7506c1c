//! What `lockable` does while the command runs: it passes on deadlines and signals, and says when to end.

use std::io;
use std::pin::pin;
use std::time::Duration;

use lockable_runtime::LockError;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::arguments::Run;
use crate::clock::{Moment, boot_time};
use crate::exit::Exit;
use crate::output::note;
use crate::run::alarm::Alarm;
use crate::run::ending::Ending;
use crate::run::held::Held;
use crate::run::orders::{Event, Order};
use crate::run::signals::{Signals, is_for_terminal, is_of_terminal};
use crate::run::watched::{Watched, unreachable};

/// How a command under a lock ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// How the command ended.
    pub(crate) exit: Option<Exit>,
    /// Why it was ended, if it was.
    pub(crate) stop: Option<Stop>,
    /// Whether it left processes behind.
    pub(crate) left_behind: bool,
    /// Whether the watcher was killed.
    pub(crate) unwatched: bool,
}

/// What the watcher does, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watcher {
    Works,
    /// There is a process that it cannot end: to take over would not help.
    Stuck,
    /// It did not act, and was killed for it: `lockable` acts.
    Replaced,
}

/// Why a command is ended.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The lock is not held any more, or is to be released.
    Lock(LockError),
    /// `--max-hold` is over.
    MaxHold,
    /// The lease was not renewed until its end was near.
    RunsOut,
}

pub(crate) struct Supervision<'a> {
    guard: &'a Held,
    arguments: &'a Run,
    json: bool,
    watched: Watched,
    /// When the lease ends, as the watcher last heard, and what it has to do then.
    deadline: Moment,
    ending: Ending,
    outcome: Outcome,
    watcher: Watcher,
    /// Whether it was said why the command is stopped.
    explains: bool,
}

impl<'a> Supervision<'a> {
    pub(crate) fn new(
        guard: &'a Held,
        arguments: &'a Run,
        json: bool,
        watched: Watched,
        deadline: Moment,
    ) -> Self {
        let ending = Ending::new(deadline, arguments.kill_after());
        let outcome = Outcome::default();
        Self {
            guard,
            arguments,
            json,
            watched,
            deadline,
            ending,
            outcome,
            watcher: Watcher::Works,
            explains: false,
        }
    }

    /// Returns when no process of the command is alive, also where it fails.
    pub(crate) async fn stay(mut self, signals: &mut Signals) -> (io::Result<Outcome>, Watched) {
        let stayed = self.watch(signals).await;
        if stayed.is_err() {
            self.watched.kill();
            self.watched.end_all().await;
        }
        (stayed.map(|()| self.outcome), self.watched)
    }

    async fn watch(&mut self, signals: &mut Signals) -> io::Result<()> {
        let (mut max_hold, mut overdue) = (Alarm::new()?, Alarm::new()?);
        let mut ticks = ticks(self.arguments.expire.0 / LOOKS);
        let end = self.arguments.max_hold.map(|most| boot_time().after(most.0));
        let mut lost = pin!(self.guard.lost());
        let mut is_heard = false;
        loop {
            let late = self.overdue();
            tokio::select! {
                event = self.watched.channel.next() => if self.is_done(event).await {
                    return Ok(());
                },
                error = &mut lost, if !is_heard => {
                    is_heard = true;
                    ticks = self::ticks(RECHECK);
                    self.lose(error);
                }
                number = signals.next() => self.pass_on(number),
                _ = ticks.tick() => self.look().await,
                ended = until(&mut max_hold, end), if self.outcome.stop.is_none() => {
                    ended?;
                    self.end(Stop::MaxHold);
                }
                outcome = overdue.until(late), if self.watcher == Watcher::Works => {
                    outcome?;
                    self.take_over();
                }
            }
        }
    }

    async fn is_done(&mut self, event: Option<Event>) -> bool {
        match event {
            Some(Event::Started(process)) => self.watched.started(process, self.arguments),
            Some(Event::RunsOut) => {
                self.ending.ask(boot_time());
                self.outcome.stop.get_or_insert(Stop::RunsOut);
            }
            Some(Event::Stopped(number)) => self.explain(number),
            Some(Event::Ended(exit)) => self.outcome.exit = Some(exit),
            Some(Event::LeftBehind) => {
                self.ending.ask(boot_time());
                self.outcome.left_behind = true;
            }
            Some(Event::Unreachable(process)) => {
                self.watcher = Watcher::Stuck;
                note(self.json, &unreachable(process));
            }
            Some(Event::Clear) => return true,
            None => {
                self.outcome.unwatched |= self.watcher != Watcher::Replaced;
                self.watched.end_all().await;
                return true;
            }
        }
        false
    }

    /// A command in the background is stopped when it uses the terminal, and would hold the lock for ever.
    fn explain(&mut self, number: i32) {
        let is_reason = is_for_terminal(number) && !self.arguments.foreground;
        if is_reason && !std::mem::replace(&mut self.explains, true) {
            let why =
                "the command was stopped, because it uses the terminal; run it with --foreground";
            note(self.json, why);
        }
    }

    /// A lock that is still held lets the command end by itself; one that is not may be another's already.
    fn lose(&mut self, error: LockError) {
        if error.is_lost() {
            self.outcome.stop = Some(Stop::Lock(error));
            self.ending.kill(boot_time());
            self.order(Order::Kill);
        } else {
            self.end(Stop::Lock(error));
        }
    }

    fn end(&mut self, stop: Stop) {
        self.outcome.stop = Some(stop);
        self.ending.ask(boot_time());
        self.order(Order::End);
    }

    /// What a terminal sends to its foreground has reached the command already.
    fn pass_on(&mut self, number: i32) {
        if !(self.arguments.foreground && is_of_terminal(number)) {
            self.order(Order::Signal(number));
        }
    }

    /// Passes on that the lease was renewed. One that was revoked may be lost as well, while the command ends.
    async fn look(&mut self) {
        if self.watcher != Watcher::Replaced && self.watched.is_stopped() {
            self.replace();
        }
        let deadline = deadline(self.guard, self.arguments.expire.0);
        if deadline > self.deadline.after(STEP) {
            self.deadline = deadline;
            self.ending.set_deadline(deadline);
            self.order(Order::Deadline(deadline));
        }
        let is_known = matches!(&self.outcome.stop, Some(Stop::Lock(error)) if error.is_lost());
        let lost = self.guard.leases().iter().find(|lease| lease.is_lost());
        if let Some(lease) = lost.filter(|_| !is_known) {
            let error = lease.lost().await;
            self.lose(error);
        }
    }

    /// When the watcher has not done what it has to.
    fn overdue(&self) -> Moment {
        self.ending.kill_at().after(lateness(self.arguments.expire.0) / 4)
    }

    /// A watcher that was stopped does nothing; one that is killed leaves its children to this process.
    fn take_over(&mut self) {
        self.watcher = Watcher::Replaced;
        if self.outcome.exit.is_none() {
            self.outcome.stop.get_or_insert(Stop::RunsOut);
        }
        self.watched.kill();
    }

    /// A watcher that is gone shows where its events are read; one that does not read is stopped.
    fn order(&mut self, order: Order) {
        let sent = self.watched.channel.send(order);
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && self.watcher != Watcher::Replaced
        {
            self.replace();
        }
    }

    /// A watcher that was stopped passes nothing on, and does not say how the command ends.
    fn replace(&mut self) {
        self.watcher = Watcher::Replaced;
        self.outcome.unwatched = true;
        self.watched.kill();
    }
}

/// When no process may be alive: the end of the lease by the holder's own count, which is before its end on the
/// server, and before that the time that a busy machine takes to end processes.
pub(crate) fn deadline(guard: &Held, expire: Duration) -> Moment {
    // The clock is read first, so that the moment is not too late.
    let now = boot_time();
    now.after(guard.remaining()).before(lateness(expire))
}

async fn until(alarm: &mut Alarm, end: Option<Moment>) -> io::Result<()> {
    match end {
        Some(end) => alarm.until(end).await,
        None => std::future::pending().await,
    }
}

/// How often the lease is looked at: nothing says that it was renewed.
fn ticks(time: Duration) -> Interval {
    let mut ticks = interval(time.min(Duration::from_secs(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// How often in a lease.
const LOOKS: u32 = 30;

/// How often while a command ends whose lock is to be released.
const RECHECK: Duration = Duration::from_millis(20);

/// What the watcher may be late by, and the kernel with it.
fn lateness(expire: Duration) -> Duration {
    MOST_LATENESS.min(expire / 20)
}

/// Some hundred processes that want the same core.
const MOST_LATENESS: Duration = Duration::from_millis(500);

/// A deadline that is later by less is the same one, measured again.
const STEP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease is renewed after a third of it, which is rounded up by a sixteenth at most. Two looks later the watcher
    /// has heard of that.
    #[test]
    fn a_healthy_command_is_never_asked_to_end() {
        let start = Moment::from_nanos(0);
        for tenths in 10..=600 {
            let expire = Duration::from_millis(100) * tenths;
            let counted = (expire * 99 / 100).saturating_sub(Duration::from_millis(2));
            let ending = Ending::new(start.after(counted).before(lateness(expire)), expire / 3);
            let look = (expire / LOOKS).min(Duration::from_secs(1));
            let known = expire / 3 + expire / 16 + 2 * look;
            assert!(ending.next() > start.after(known), "{expire:?}");
        }
    }
}
