//! Processes whose machine seems to have been suspended: the clock that counts suspension is ahead for them.

use std::time::Duration;

use crate::program::Program;
use crate::skip;

/// Whether there can be such processes: on Linux, where `unshare` may make namespaces. Prints a line where it
/// may not.
pub fn can_be_imitated() -> bool {
    let outcome = after(Duration::ZERO, "true").run(LIMIT);
    if let Err(why) = &outcome {
        let why = why.trim_end().replace('\n', "; ");
        skip::say(&format!(
            "a machine that is suspended, because `unshare --time` fails here: {why}"
        ));
    }
    outcome.is_ok()
}

/// Prepares a program that runs as after whole seconds of suspension, since the machine booted.
pub fn after(suspended: Duration, program: &str) -> Program {
    let seconds = suspended.as_secs().to_string();
    let unshare = Program::new("unshare").arg("--user").arg("--map-root-user").arg("--time");
    unshare.arg("--kill-child").arg("--boottime").arg(&seconds).arg(program)
}

/// Far more than a start takes.
const LIMIT: Duration = Duration::from_secs(20);
