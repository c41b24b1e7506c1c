//! Cores that do not go to sleep between requests.

use std::process::{Command, Stdio};

use crate::{Leash, number_of_cores};

/// Keeps the cores awake while it lives: waking a sleeping one costs more than a lock does.
///
/// The loops run at idle priority, so they take nothing from processes that have work to do.
#[derive(Debug)]
pub struct AwakeCores {
    _spinners: Vec<Leash>,
}

impl AwakeCores {
    /// One loop a core; none, with a note, where `chrt` is missing.
    #[must_use]
    pub fn start() -> Self {
        if !has_chrt() {
            println!("note: no `chrt` here, so idle cores go to sleep between requests");
            return Self { _spinners: Vec::new() };
        }
        let spinner =
            || Leash::start("chrt", &["-i", "0", "sh", "-c", "while :; do :; done"]).expect("sh");
        Self { _spinners: (0..number_of_cores()).map(|_| spinner()).collect() }
    }
}

fn has_chrt() -> bool {
    let mut chrt = Command::new("chrt");
    chrt.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}
