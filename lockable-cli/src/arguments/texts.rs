//! The arguments of the commands that print what a package installs.

use clap::Args;
use clap_complete::Shell;

use super::help::{examples, guide};

/// Prints what completes the command line of `lockable` in a shell.
#[derive(Args, Clone, Copy, Debug)]
#[command(before_help = examples(OF_SHELLS), after_help = guide("", "shell_script/"))]
pub(crate) struct Completions {
    pub(crate) shell: Shell,
}

const OF_SHELLS: [&str; 2] = [
    "lockable completions bash > /etc/bash_completion.d/lockable",
    "lockable completions fish > ~/.config/fish/completions/lockable.fish",
];

/// Prints the manual page of `lockable`, or of one of its commands.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_PAGES), after_help = guide("", ""))]
pub(crate) struct Man {
    /// The command, such as `run`.
    pub(crate) command: Option<String>,
}

const OF_PAGES: [&str; 2] =
    ["lockable man > /usr/local/share/man/man1/lockable.1", "lockable man run | man -l -"];
