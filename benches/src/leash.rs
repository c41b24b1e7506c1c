//! A program that ends with us, however we end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A program that is ended when this is dropped, and also when this process is killed.
///
/// A shell runs in between: it ends the program when the pipe from us closes, and the system closes
/// that when we end. It has a process group of its own, so that Ctrl-C reaches us alone.
#[derive(Debug)]
pub struct Leash(Child);

impl Leash {
    /// Starts a program without input and output.
    ///
    /// # Errors
    /// When there is no shell.
    pub fn start(program: &str, arguments: &[&str]) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh", program]).args(arguments).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().map(Self)
    }

    /// Whether the program still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("a process of ours ends");
    }
}

/// The inner shell waits for the end of its input, the outer one for the end of the program.
const SCRIPT: &str = r#"
exec 3<&0
"$@" </dev/null &
program=$!
{ cat >/dev/null; kill $program 2>/dev/null; } <&3 &
wait $program
kill $! 2>/dev/null
"#;
