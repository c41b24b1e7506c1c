//! What a picture is drawn from.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Data, below a heading with the command that made them and their hash.
pub(crate) struct Record {
    heading: String,
    data: String,
}

impl Record {
    pub(crate) fn new(name: &str, runs: &str, data: String) -> Self {
        let command = format!("cargo xtask pictures {name}");
        let heading =
            format!("{command}; SHA-256 of the data in {name}.txt, {runs}: {}", hash(&data));
        Self { heading, data }
    }

    /// From the text of a file.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let (heading, data) = text.split_once("\n\n").expect("a heading");
        Self { heading: heading.to_owned(), data: data.to_owned() }
    }

    pub(crate) fn to_text(&self) -> String {
        format!("{}\n\n{}", self.heading, self.data)
    }

    pub(crate) fn heading(&self) -> &str {
        &self.heading
    }

    pub(crate) fn data(&self) -> &str {
        &self.data
    }
}

fn hash(data: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(data) {
        write!(digits, "{byte:02x}").expect("memory");
    }
    digits
}
