//! What the texts show of a terminal is what a terminal shows.
//!
//! A text has ids, times and machines that another run does not have. They are compared by their form alone.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use lockable_tests::Server;
use tempfile::TempDir;
use trycmd::TestCases;

use super::holders::incident;

#[test]
fn the_incident_of_the_guide_is_real() {
    let server = Server::start();
    let running = incident(&server);
    compare("lockable-runtime/guide/incident.md", &server);
    drop(running);
}

#[test]
fn the_shell_scripts_of_the_guide_are_real() {
    compare("lockable-runtime/guide/shell_script.md", &Server::start());
}

#[test]
fn the_maintenance_of_the_guide_is_real() {
    compare("lockable-runtime/guide/maintenance.md", &Server::start());
}

#[test]
fn mistakes_are_answered_by_what_to_do() {
    compare("lockable-cli/tests/transcripts/mistakes.md", &Server::start());
}

#[test]
fn a_lock_on_its_way_to_another_process_is_said_to_be() {
    let server = Server::start();
    let since = UNIX_EPOCH.elapsed().unwrap().as_micros();
    let ticket = format!("@0a1b2c3456789abc.{since} cart-12");
    server.admin().command::<()>(&["SET", "disLock:order:7", &ticket, "PX", "60000"]);
    compare("lockable-cli/tests/transcripts/tickets.md", &server);
}

fn compare(text: &str, server: &Server) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(text);
    let folder = TempDir::new().unwrap();
    let case = folder.path().join("case.trycmd");
    fs::write(&case, transcript(&fs::read_to_string(path).unwrap())).unwrap();
    let cases = TestCases::new();
    cases.env("LOCKABLE_URL", server.url()).env("USER", "ana").case(&case).run();
}

/// The blocks of a terminal, with wildcards for what differs from run to run.
fn transcript(text: &str) -> String {
    let mut is_shown = false;
    let mut lines = String::new();
    for line in text.lines() {
        match line {
            "```console" => is_shown = true,
            "```" if is_shown => {
                is_shown = false;
                // An empty line stands for the end of the last line.
                lines += "\n```\n";
                continue;
            }
            _ => {}
        }
        if is_shown {
            let is_output = !line.starts_with(['$', '?', '>', '`']);
            lines += &if is_output { pattern(line) } else { line.to_owned() };
            lines += "\n";
        }
    }
    lines
}

/// The columns of a table are as wide as what is in them, so more than one blank is a wildcard too.
pub(super) fn pattern(line: &str) -> String {
    let wildcard = |word| if str::is_empty(word) || varies(word) { ANY } else { word };
    let words = line.split(' ').filter(|_| !line.is_empty()).map(wildcard);
    words.fold(String::new(), |pattern, word| match word {
        ANY if pattern.ends_with(ANY) => pattern,
        ANY => pattern + ANY,
        _ if pattern.is_empty() || pattern.ends_with(ANY) => pattern + word,
        _ => pattern + " " + word,
    })
}

/// A time, an id, a machine or an address.
fn varies(word: &str) -> bool {
    let word = word.trim_matches(['(', ')', ',', ':', '<', ';']);
    let is_hex =
        |it: &str| [6, 8].contains(&it.len()) && it.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = |end: &&str| {
        word.strip_suffix(*end).is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()))
    };
    is_hex(word) || word.contains('@') || UNITS.iter().any(has_digit) || word.starts_with("10.")
}

const ANY: &str = "[..]";

/// What times end with.
const UNITS: [&str; 4] = ["s", "m", "h", "Z"];

#[test]
fn what_differs_from_run_to_run_is_a_wildcard() {
    let row = "order:7      checkout-7  checkout@web-3:4711  41m    29.1s  1";
    assert_eq!(pattern(row), "order:7[..]checkout-7[..]1");
    assert_eq!(
        pattern("order:7: released by 3fa91c02 after 0.1s"),
        "order:7: released by[..]after[..]"
    );
    assert_eq!(pattern("1  cart-12"), "1[..]cart-12");
}
