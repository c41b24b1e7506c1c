//! What the project's texts ask a reader to write, to run and to read exists, and works.

mod board;
mod design;
mod faults;
mod figures;
mod first_function;
mod links;
mod names;
mod observability;
mod operating;

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files in a folder and in those inside of it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What readers see beside the code, by the paths from the workspace.
fn texts() -> Vec<String> {
    let folders = [
        "",
        "design",
        "lockable-installed",
        "lockable-macros",
        "lockable-cli",
        "lockable-runtime/guide",
        "examples",
        "benches",
        "tests",
    ];
    folders.into_iter().flat_map(markdown).collect()
}

/// The texts in a folder. Those of the packages' folders are links to the ones above.
fn markdown(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let names = texts.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names.map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") }).collect()
}

/// The code blocks of a language, in their order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let (opening, mut blocks) = (format!("```{language}"), Vec::new());
    let mut lines = text.lines();
    while lines.any(|line| line == opening) {
        let block = lines.by_ref().take_while(|line| *line != "```");
        blocks.push(block.fold(String::new(), |block, line| block + line + "\n"));
    }
    blocks
}
