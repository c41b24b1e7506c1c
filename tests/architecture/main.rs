//! Which room of the code may know which.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of `lockable-runtime/src`, top first: a room imports from those below it only.
///
/// A lease releases what it holds when its last handle is gone, so it stands above the releaser.
const ROOMS: [&str; 34] = [
    "guide",
    "tower",
    "testing",
    "attribute",
    "global",
    "blocking",
    "locker",
    "lock_request",
    "internals",
    "inspect",
    "hold",
    "acquire",
    "guard",
    "waiters",
    "renewal",
    "caller",
    "lease",
    "releaser",
    "worker",
    "agenda",
    "telemetry",
    "backend",
    "background",
    "exit",
    "check",
    "options",
    "fencing",
    "token",
    "clock",
    "request",
    "key",
    "error",
    "hidden",
    "process",
];

/// A line of code, without its comment, and where it stands.
struct Line {
    /// The file, from the folder that was read.
    file: String,
    number: usize,
    code: String,
}

impl Line {
    fn room(&self) -> &str {
        self.file.split(['/', '.']).next().unwrap()
    }

    /// The words that follow `prefix` wherever it stands as a word of its own.
    fn names_after(&self, prefix: &str) -> Vec<&str> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let starts = self.code.match_indices(prefix).map(|(at, _)| self.code.split_at(at));
        let whole = starts.filter(|(before, _)| !before.ends_with(is_part));
        whole
            .map(|(_, after)| after[prefix.len()..].split(|c| !is_part(c)).next().unwrap())
            .collect()
    }
}

/// Every line of the Rust files in a folder of this workspace.
fn lines(folder: &str) -> Vec<Line> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut folders = vec![root.clone()];
    let mut lines = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                lines.extend(lines_of(&root, path));
            }
        }
    }
    assert!(!lines.is_empty(), "no code in {folder}");
    lines
}

fn lines_of(root: &Path, path: PathBuf) -> Vec<Line> {
    let file = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let text = fs::read_to_string(path).unwrap();
    let code = text.lines().map(|line| line.split("//").next().unwrap().to_owned());
    code.enumerate().map(|(at, code)| Line { file: file.clone(), number: at + 1, code }).collect()
}

/// Fails with every line that breaks the rule.
fn assert_none(rule: &str, breaks: impl Iterator<Item = Line>) {
    let all: Vec<_> =
        breaks.map(|line| format!("{}:{}: {}", line.file, line.number, line.code.trim())).collect();
    assert!(all.is_empty(), "{rule}:\n{}", all.join("\n"));
}

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

#[test]
fn imports_point_down_and_name_the_defining_module() {
    // What is re-exported at the crate's root is in no room, and so above all of them.
    let points_up = |line: &Line| {
        let from = level(line.room());
        line.names_after("crate::").iter().any(|to| *to != line.room() && level(to) <= from)
    };
    let code = lines("lockable-runtime/src").into_iter().filter(|line| line.file != "lib.rs");
    assert_none("imports of a room above, or through the crate's root", code.filter(points_up));
}

#[test]
fn every_file_is_in_a_known_room() {
    let code = lines("lockable-runtime/src").into_iter();
    let outside = |line: &Line| line.file != "lib.rs" && level(line.room()).is_none();
    assert_none("a room that has no place yet", code.filter(outside));
}

#[test]
fn only_the_redis_backend_knows_the_redis_crate() {
    // Beside its own module of that name, `backend/mod.rs` could name the crate as `::redis` only.
    let names_crate = |line: &Line| match line.file.as_str() {
        file if file.starts_with("backend/redis/") => false,
        "backend/mod.rs" => line.code.contains("::redis"),
        _ => !line.names_after("redis::").is_empty() || line.code.contains("extern crate redis"),
    };
    let code = lines("lockable-runtime/src").into_iter();
    assert_none("the redis crate outside of its backend", code.filter(names_crate));
}

#[test]
fn the_backends_do_not_know_each_other() {
    let foreign = |line: &Line| match line.file.as_str() {
        "backend/memory.rs" => line.code.contains("redis"),
        file => file.starts_with("backend/redis/") && line.code.contains("backend::memory"),
    };
    let code = lines("lockable-runtime/src").into_iter();
    assert_none("one backend names another", code.filter(foreign));
}

#[test]
fn the_macro_names_the_runtime_in_one_place() {
    let names_runtime = |line: &Line| {
        line.code.contains("__private")
            && line.file != "expand.rs"
            && !line.file.starts_with("tests/")
    };
    let code = lines("lockable-macros/src").into_iter();
    assert_none("names of the runtime outside of expand.rs", code.filter(names_runtime));
}
