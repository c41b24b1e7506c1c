//! What a waiter writes down.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The times of one waiter, which only it writes; read when the round is over.
#[derive(Default)]
pub(super) struct Log(Mutex<Times>);

#[derive(Default)]
struct Times {
    asked: Option<u64>,
    sections: Vec<[u64; 3]>,
}

impl Log {
    /// The waiter wants the lock from now on.
    pub(super) fn ask(&self, now: u64) {
        self.with(|times| times.asked = Some(now));
    }

    /// The waiter was inside, and has begun to release.
    pub(super) fn leave(&self, entered: u64, now: u64) {
        self.with(|times| {
            let asked = times.asked.take().unwrap_or(entered);
            times.sections.push([asked, entered, now]);
        });
    }

    pub(super) fn write(&self, waiter: usize, at: u64, out: &mut impl Write) -> io::Result<()> {
        self.with(|times| {
            for section in &times.sections {
                let [asked, entered, left] = section.map(|time| time.saturating_sub(at));
                writeln!(out, "s {waiter} {asked} {entered} {left}")?;
            }
            let pending = times.asked.map(|asked| asked.saturating_sub(at));
            pending.map_or(Ok(()), |asked| writeln!(out, "p {waiter} {asked}"))
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Times) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
