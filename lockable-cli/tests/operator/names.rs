//! The names that the texts mention exist, and none is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::program::with;

pub(crate) const COMMANDS: [&str; 11] = [
    "ls",
    "show",
    "release",
    "wait",
    "pause",
    "resume",
    "check",
    "run",
    "key",
    "completions",
    "man",
];

/// What is tried: the texts beside the code.
const TEXTS: [&str; 3] = [
    "lockable-cli/README.md",
    "lockable-runtime/guide/incident.md",
    "lockable-runtime/guide/shell_script.md",
];

/// The options of `run` are in its page of the guide.
#[test]
fn the_readme_names_every_command_option_and_exit_code() {
    let (readme, run) = (text(TEXTS[0]), text(TEXTS[2]));
    // The last one is of a program that an example runs.
    let others = ["--help", "--version", "--all"];
    for name in options().iter().filter(|name| !others.contains(&name.as_str())) {
        assert!(readme.contains(name) || run.contains(&format!("| `{name}")), "{name}");
    }
    let (_, help, _) = with("", &["--help"]);
    for command in COMMANDS {
        assert!(
            readme.contains(&format!("`{command}`")) && help.contains(&format!("\n  {command} "))
        );
    }
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    let codes = codes
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    for code in codes.flat_map(|codes| codes.split('/')) {
        assert!(
            readme.contains(&format!("| {code}")) || readme.contains(&format!(", {code} |")),
            "{code}"
        );
    }
}

#[test]
fn the_texts_name_no_other_options() {
    let options = options();
    for path in TEXTS {
        let text = text(path);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let foreign = ["--all", "--locked", "--check", "--extract", "--gzip", "--file"];
        for word in words.filter(|word| word.starts_with("--") && word.len() > 3) {
            assert!(options.contains(word) || foreign.contains(&word), "{path}: {word}");
        }
    }
}

fn options() -> BTreeSet<String> {
    let helps = COMMANDS.map(|command| with("", &[command, "--help"]).1);
    let words = helps
        .iter()
        .flat_map(|help| help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')));
    words.filter(|word| word.starts_with("--") && word.len() > 3).map(str::to_owned).collect()
}

pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}
