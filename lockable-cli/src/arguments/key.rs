//! The arguments of the command that makes a key.

use clap::Args;

use super::help::{examples, guide};

/// Prints the key that a key template and its values make, as the attribute and `lock_key!` make it.
///
/// Values are escaped, so that two values always make two keys. It needs no server. What it prints is without the
/// prefix, as all commands take a key. A value that is empty makes no key.
#[derive(Args, Debug)]
#[command(before_help = examples(EXAMPLES), after_help = guide("", "shell_script/"))]
pub(crate) struct Key {
    /// The key template as the program has it, with a hole for each value: 'file:{path}' or 'file:{}'.
    pub(crate) template: String,
    /// The values, in the order of their holes; write `--` before one that may begin with a dash.
    pub(crate) values: Vec<String>,
}

const EXAMPLES: [&str; 2] = [
    "lockable run --key \"$(lockable key 'file:{path}' -- \"$path\")\" -- ./convert \"$path\"",
    "lockable show \"$(lockable key '{tenant}:{user}' -- \"$tenant\" \"$user\")\"",
];
