use std::future::pending;
use std::io;
use std::thread;

use once_cell::sync::OnceCell;
use tokio::runtime::{Builder, Handle};

use crate::core::process::PerProcess;

pub(crate) mod exit;

/// The process-wide background runtime of releases, renewals, waiters, timers and the requests of sync functions: one
/// thread, started at the first use, never ended. A forked process starts its own.
///
/// It outlives every runtime of the user's, so a task spawned here runs even if a runtime that shuts down dropped the
/// guard. Spawning on it never blocks, and needs no runtime around it.
///
/// # Errors
/// When the system gives no thread or no event queue.
pub(crate) fn background() -> io::Result<Handle> {
    static BACKGROUND: PerProcess<OnceCell<Handle>> = PerProcess::new();
    BACKGROUND.get().get_or_try_init(start_thread).cloned()
}

fn start_thread() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("lockable-background".to_owned())
        .spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
