//! What the project's texts ask a reader to write, to run and to read exists, and works.

mod design;
mod first_function;
mod names;
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
