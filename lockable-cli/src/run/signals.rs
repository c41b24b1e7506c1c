//! The signals that are passed on to the command.

use std::io;
use std::task::{Context, Poll};

use nix::sys::signal::SigSet;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// Signals to this process that are the command's.
pub(crate) struct Signals(Vec<(i32, unix::Signal)>);

impl Signals {
    /// Those that are passed on, but for those that this process was started to ignore, as `nohup` does it.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let kinds = PASSED_ON.into_iter().filter(|kind| !ignored.contains(kind));
        let listen = |kind: SignalKind| Ok((kind.as_raw_value(), signal(kind)?));
        Ok(Self(kinds.map(listen).collect::<io::Result<_>>()?))
    }

    /// The number of the next one.
    ///
    /// # Cancel safety
    /// No signal is lost.
    pub(crate) async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<i32> {
        let arrived = |(number, signal): &mut (i32, unix::Signal)| match signal.poll_recv(cx) {
            Poll::Ready(Some(())) => Some(*number),
            _ => None,
        };
        self.0.iter_mut().find_map(arrived).map_or(Poll::Pending, Poll::Ready)
    }
}

/// Lets this process hear that a child has ended, also where its parent had that signal blocked: the mask is inherited.
pub(crate) fn hear_children() {
    // Where it stays blocked, children are looked at every other second.
    SigSet::from_iter([nix::sys::signal::Signal::SIGCHLD]).thread_unblock().ok();
}

/// The number of a signal that asks this process to end; without handlers it ends as any other does.
pub(crate) async fn asked_to_end() -> i32 {
    let Ok(mut signals) = Signals::listen() else { return std::future::pending().await };
    loop {
        let number = signals.next().await;
        if ends(number) {
            return number;
        }
    }
}

/// Whether a signal asks to end: a call that still waits for its lock does.
pub(crate) fn ends(number: i32) -> bool {
    let ending = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    ending.iter().any(|kind| kind.as_raw_value() == number)
}

/// Whether the terminal sends a signal to all of its foreground, and so to the command too.
pub(crate) fn is_of_terminal(number: i32) -> bool {
    let typed = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::window_change()];
    typed.iter().any(|kind| kind.as_raw_value() == number)
}

/// Whether a signal stops who uses a terminal in the background.
pub(crate) fn is_for_terminal(number: i32) -> bool {
    [Signal::TTIN, Signal::TTOU].iter().any(|signal| signal.as_raw() == number)
}

/// The signals that the parent of this process has made it ignore.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn ignored() -> Vec<SignalKind> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let is_ignored = |kind: &SignalKind| mask >> (kind.as_raw_value() - 1) & 1 == 1;
    PASSED_ON.into_iter().filter(is_ignored).collect()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn ignored() -> Vec<SignalKind> {
    Vec::new()
}

const PASSED_ON: [SignalKind; 7] = [
    SignalKind::terminate(),
    SignalKind::interrupt(),
    SignalKind::hangup(),
    SignalKind::quit(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
    SignalKind::window_change(),
];
