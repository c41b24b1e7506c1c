//! A program of tests that hangs is ended, so that a run always comes to its report.

use std::process::{Child, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a program may print nothing: several times what its slowest test takes on a busy machine.
pub(super) const SILENCE: Duration = Duration::from_secs(600);

/// A program that is ended when it is silent for too long.
pub(super) struct Watched {
    child: Arc<Mutex<Child>>,
    lines: Sender<()>,
}

impl Watched {
    pub(super) fn new(child: Child, silence: Duration) -> Self {
        let (lines, printed) = channel();
        let child = Arc::new(Mutex::new(child));
        let watched = Arc::clone(&child);
        thread::spawn(move || {
            loop {
                match printed.recv_timeout(silence) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Timeout) => break drop(lock(&watched).kill()),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        Self { child, lines }
    }

    /// It has printed a line.
    pub(super) fn is_alive(&self) {
        // Nobody listens to one that was ended.
        self.lines.send(()).ok();
    }

    /// How it ended; to be asked when its output has.
    pub(super) fn wait(self) -> Option<ExitStatus> {
        lock(&self.child).wait().ok()
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    // It is only ended and waited for, so a panic elsewhere leaves it sound.
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::Watched;

    #[test]
    fn a_silent_program_is_ended() {
        let mut child = Command::new("sleep").arg("3600").stdout(Stdio::piped()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let watched = Watched::new(child, Duration::from_millis(20));
        output.read_to_string(&mut String::new()).unwrap();
        assert!(!watched.wait().unwrap().success());
    }
}
