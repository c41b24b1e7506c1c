//! The end of the process, which gives work in the background a moment.
//!
//! The main thread waits in the destructor of a thread-local value. The standard library runs it when the thread
//! returns from `main`, and when it calls [`std::process::exit`]; by then other values of the thread may be gone. So
//! nothing here uses tokio, `tracing` or a channel, which have such values of their own.
//!
//! See "What happens to a release when the process exits?" in DESIGN.md.

use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::core::process::PerProcess;
use crate::core::process::mutex::Mutex;

/// How much later a process ends at most: far more than a release takes in one network, and hardly noticed at the end
/// of a program.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Work {
    open: AtomicUsize,
    /// Set before the main thread reads the count for the last time, so that it is woken after that.
    is_awaited: AtomicBool,
    mutex: Mutex<()>,
    ended: Condvar,
}

impl Work {
    pub(crate) fn of_this_process() -> &'static Self {
        static WORK: PerProcess<Work> = PerProcess::new();
        WORK.get()
    }

    pub(crate) fn begin(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        let was_last = self.open.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.is_awaited.load(Ordering::SeqCst) {
            // So the main thread is not between its look and its sleep.
            drop(self.mutex.lock());
            self.ended.notify_all();
        }
    }

    fn wait(&self, patience: Duration) {
        self.is_awaited.store(true, Ordering::SeqCst);
        let is_open = || self.open.load(Ordering::SeqCst) > 0;
        if is_open() {
            let guard = self.mutex.lock();
            // Either way the process ends now.
            drop(self.ended.wait_timeout_while(guard, patience, |()| is_open()));
        }
    }
}

/// Lets the calling thread wait for open work when it ends, if it is the main thread.
pub(crate) fn watch_this_thread() {
    // While the thread ends it is too late.
    END.try_with(|_| ()).unwrap_or_default();
}

thread_local! {
    static END: ThreadEnd = ThreadEnd { is_of_main: thread::current().name() == Some("main") };
}

struct ThreadEnd {
    is_of_main: bool,
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        if self.is_of_main {
            Work::of_this_process().wait(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    #[test]
    fn without_open_work_the_end_waits_for_nothing() {
        let work = Work::default();
        work.begin();
        work.end();
        // It would wait for this.
        let _mutex = work.mutex.lock();
        work.wait(Duration::MAX);
    }

    #[test]
    fn the_end_waits_until_the_last_work_has_ended() {
        let work = Arc::new(Work::default());
        work.begin();
        work.begin();
        let (worker, (done, is_done)) = (Arc::clone(&work), mpsc::channel());
        let other = thread::spawn(move || {
            worker.end();
            done.send(()).unwrap();
            worker.end();
        });
        is_done.recv().unwrap();
        work.wait(Duration::from_secs(60));
        assert_eq!(work.open.load(Ordering::SeqCst), 0);
        other.join().unwrap();
    }
}
