//! The programs that count: how they are called, and what they write.

use std::collections::BTreeMap;
use std::path::Path;

/// Counts the instructions of a program, which may be a script that becomes the program.
pub(crate) fn callgrind(log: &Path) -> Vec<String> {
    let log = format!("--log-file={}", log.display());
    let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    words.map(str::to_owned).into_iter().chain(["--trace-children=yes".to_owned(), log]).collect()
}

/// The instructions of a whole process, from the last line of callgrind.
pub(crate) fn instructions(log: &str) -> Option<u64> {
    let (_, count) = log.rsplit_once("Collected : ")?;
    count.lines().next()?.trim().parse().ok()
}

/// Counts the system calls of a program and its threads.
pub(crate) fn strace(log: &Path) -> Vec<String> {
    let words = ["strace", "-f", "-c", "-U", "calls,name", "-o"];
    words.map(str::to_owned).into_iter().chain([log.display().to_string()]).collect()
}

/// The system calls by name, from the table of strace.
pub(crate) fn calls(log: &str) -> BTreeMap<String, u64> {
    let rows = log.lines().filter_map(|line| line.trim().split_once(' '));
    let rows = rows.filter_map(|(calls, name)| Some((name.trim().to_owned(), calls.parse().ok()?)));
    rows.filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())).collect()
}

/// The prefix of owner tokens is random, another one each millisecond: how many pairs share one depends on the
/// machine.
const LEFT_OUT: [&str; 2] = ["total", "getrandom"];

#[cfg(test)]
mod tests {
    use super::{calls, instructions};

    #[test]
    fn the_last_program_of_a_process_is_counted() {
        let log = "==7== Collected : 12\n==7== \n==7== Events    : Ir\n==7== Collected : 345\n";
        assert_eq!(instructions(log), Some(345));
        assert_eq!(instructions("==7== Process terminating with signal 11\n"), None);
    }

    #[test]
    fn system_calls_are_those_of_the_table() {
        let log = "    calls syscall\n--------- ----------------\n     1281 writev\n        7 getpid\n        1 getrandom\n\
                   --------- ----------------\n     1289 total\n";
        let expected = [("getpid".to_owned(), 7), ("writev".to_owned(), 1281)];
        assert_eq!(calls(log), expected.into());
    }
}
