//! What the program says of itself, and of what it does.

use std::process::{Command, Stdio};

use lockable_tests::Server;

use super::names::COMMANDS;
use crate::program::{lockable, outcome, with};

/// No text needs a server.
fn text(arguments: &[&str]) -> String {
    let (code, said, why) = with("", arguments);
    assert_eq!((code, why.as_str()), (0, ""), "{arguments:?}");
    said
}

#[test]
fn each_help_begins_with_two_examples_and_ends_with_the_guide() {
    let of_commands = COMMANDS.iter().map(|command| vec![*command, "--help"]);
    for arguments in of_commands.chain([vec!["--help"]]) {
        let help = text(&arguments);
        let mut lines = help.lines();
        assert_eq!(lines.next(), Some("Examples:"), "{help}");
        let examples: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        assert_eq!(examples.len(), 2, "{help}");
        assert!(examples.iter().all(|line| line.starts_with("  lockable ")), "{help}");
        let last = help.lines().last().unwrap();
        assert!(last.starts_with("Guide: https://docs.rs/lockable-runtime/"), "{last}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    for command in COMMANDS {
        let page = text(&["man", command]);
        assert!(page.contains(".SH SYNOPSIS") && page.contains(command), "{page}");
    }
    let page = text(&["man"]);
    assert!(page.contains("Exit codes") && !page.contains("__watcher"), "{page}");
    let (code, _, why) = with("", &["man", "nothing"]);
    assert!(code == 2 && why.contains("write one of: ls, show,"), "{why}");
}

#[test]
fn completions_are_of_what_a_user_may_write() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&["completions", shell]);
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{script}");
        assert!(script.contains("password-file") && !script.contains("__watcher"), "{script}");
    }
}

/// A shell reads the file that is meant for it.
#[test]
fn bash_completes_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lockable");
    std::fs::write(&file, text(&["completions", "bash"])).unwrap();
    let typed = "source \"$0\"; COMP_WORDS=(lockable re); COMP_CWORD=1; \
                 _lockable lockable re lockable; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let (code, said, why) = outcome(bash.args(["-c", typed]).arg(&file));
    assert_eq!((code, said.as_str()), (0, "release resume\n"), "{why}");
}

#[test]
fn verbose_names_what_is_sent_to_which_server() {
    let server = Server::start();
    server.admin().set("disLock:order:7", "0123456789abcdef.1764000000000000 checkout-7");
    let (code, _, why) = with(&server.url(), &["ls", "--verbose"]);
    assert_eq!(code, 0, "{why}");
    for sent in
        ["commands: SCAN", "commands: GETRANGE, PTTL, LLEN", "commands: CLIENT", &server.url()]
    {
        assert!(why.contains(sent), "{why}");
    }
    let (_, _, why) = with(&server.url(), &["show", "order:7", "--verbose", "--json"]);
    let is_note = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["note"].is_string()
    };
    assert!(why.lines().count() > 1 && why.lines().all(is_note), "{why}");
    assert!(!why.contains("0123456789abcdef"), "{why}");
}

/// A listing takes a second for each 100 000 keys.
#[test]
fn a_long_listing_says_how_far_it_is_on_a_terminal_alone() {
    let server = Server::start();
    let fill = "for key = 1, 150000 do redis.call('SET', 'other:' .. key, '') end";
    server.admin().command::<()>(&["EVAL", fill, "0"]);
    let program = env!("CARGO_BIN_EXE_lockable");
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &format!("{program} ls"), "/dev/null"]);
    terminal.env("LOCKABLE_URL", server.url()).stdin(Stdio::null());
    let (code, said, why) = outcome(&mut terminal);
    assert!(code == 0 && said.contains("% of 150000 keys scanned\u{1b}[K"), "{said}{why}");
    assert!(said.contains("\r\u{1b}[Klockable: no lock"), "{said}");
    let (_, said, why) = outcome(lockable(&server.url()).args(["ls", "--fast"]));
    assert!(!said.contains("scanned") && !why.contains("scanned"), "{said}{why}");
}
