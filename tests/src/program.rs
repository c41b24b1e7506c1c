//! A program that does all its work by itself.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{spawner, wait};

/// A program that is started, needs no input, and ends; at the latest with this process.
#[derive(Debug)]
#[must_use = "a program does nothing until it runs"]
pub struct Program(Command);

impl Program {
    /// Prepares a program, with the environment of this process.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self(spawner::command(program.as_ref()))
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: &str) -> Self {
        self.0.arg(argument);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Removes a variable of its environment.
    pub fn env_remove(mut self, name: &str) -> Self {
        self.0.env_remove(name);
        self
    }

    /// Runs it for `limit` at most, and returns what it wrote to both of its outputs.
    ///
    /// # Errors
    /// Why it did not end well, and what it wrote: it did not start, it ended with another status than
    /// zero, or it was killed at the limit.
    pub fn run(self, limit: Duration) -> Result<String, String> {
        let (why, said) = self.outcome(limit).map_err(|error| error.to_string())?;
        if why.is_empty() { Ok(said) } else { Err(format!("{why}\n{said}")) }
    }

    /// Why it did not end well, if it did not, and what it wrote.
    fn outcome(mut self, limit: Duration) -> io::Result<(String, String)> {
        // Not a pipe, which would have to be emptied while the program runs.
        let mut said: File = tempfile::tempfile()?;
        self.0.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?);
        let mut child = spawner::spawn(self.0)?;
        let ended = wait::poll(limit, || child.try_wait().transpose());
        let why = match ended.transpose()? {
            Some(status) if status.success() => String::new(),
            Some(status) => format!("it ended with {status}"),
            None => {
                child.kill()?;
                child.wait()?;
                format!("it had not ended after {limit:?}")
            }
        };
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        Ok((why, text))
    }
}
