//! The panics and the memory of this process.

use std::fs;
use std::panic;
use std::sync::{Arc, Mutex, PoisonError};

/// Every panic from now on, on any thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    pub(crate) fn watch() -> Self {
        let this = Self::default();
        let (panics, before) = (this.clone(), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            panics.0.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            before(panic);
        }));
        this
    }

    /// # Errors
    /// When there were some; they are forgotten.
    pub(crate) fn none(&self) -> Result<(), String> {
        let mut panics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if panics.is_empty() {
            Ok(())
        } else {
            Err(panics.drain(..).collect::<Vec<_>>().join("; "))
        }
    }
}

/// What this process had in memory at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(u64);

impl Memory {
    pub(crate) fn now() -> Self {
        Self(resident())
    }

    /// # Errors
    /// When it has grown by too much since.
    pub(crate) fn check(self) -> Result<(), String> {
        let grown = resident().saturating_sub(self.0);
        if grown < MOST { Ok(()) } else { Err(format!("the process has grown by {grown} bytes")) }
    }
}

const MOST: u64 = 64 << 20;

/// The bytes that are in memory now.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1_024
}
