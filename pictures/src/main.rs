//! Draws the pictures of the documentation: `cargo xtask pictures`, or with the name of one.
//!
//! A picture is two files: `NAME.txt` has its command, the hash of its data and the data, and `NAME.svg` is drawn from
//! these alone. So a picture can be checked without the run that it shows.

#![forbid(unsafe_code)]

mod board;
mod failover;
mod lanes;
mod lease;
mod panels;
mod record;
mod svg;
mod terminal;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use record::Record;

/// A picture, from its recording to its drawing.
struct Picture {
    name: &'static str,
    /// Makes its data, which may take a minute.
    record: fn() -> String,
    draw: fn(&str) -> String,
    /// Every recording gives the same data.
    is_steady: bool,
}

const PICTURES: [Picture; 4] = [
    Picture { name: "ls", record: terminal::record, draw: terminal::draw, is_steady: true },
    Picture { name: "lease", record: lease::record, draw: lanes::draw, is_steady: true },
    Picture { name: "failover", record: failover::record, draw: lanes::draw, is_steady: false },
    Picture { name: "board", record: board::record, draw: panels::draw, is_steady: false },
];

fn main() {
    let names: Vec<_> = env::args().skip(1).collect();
    let is_asked =
        |picture: &&Picture| names.is_empty() || names.iter().any(|it| it == picture.name);
    let asked: Vec<_> = PICTURES.iter().filter(is_asked).collect();
    assert!(!asked.is_empty(), "the pictures are {:?}", PICTURES.map(|picture| picture.name));
    for picture in asked {
        picture.write();
    }
}

impl Picture {
    fn write(&self) {
        let record = self.of((self.record)());
        fs::write(self.file("txt"), record.to_text()).expect("a file that can be written");
        fs::write(self.file("svg"), self.drawn(&record)).expect("a file that can be written");
        println!("{} is drawn", self.file("svg").display());
    }

    fn of(&self, data: String) -> Record {
        let runs = if self.is_steady { "the same in each run" } else { "of one run" };
        Record::new(self.name, runs, data)
    }

    fn drawn(&self, record: &Record) -> String {
        (self.draw)(record.data()) + &format!("<!-- {} -->\n", record.heading())
    }

    fn file(&self, extension: &str) -> PathBuf {
        root().join("pictures").join(self.name).with_extension(extension)
    }
}

/// The folder of the workspace.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("it is in the workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn each_picture_is_drawn_from_the_data_beside_it() {
        for picture in PICTURES {
            let record = Record::of(&read(&picture.file("txt")));
            assert_eq!(record.heading(), picture.of(record.data().into()).heading());
            assert_eq!(read(&picture.file("svg")), picture.drawn(&record), "{}", picture.name);
        }
    }

    #[test]
    fn a_steady_picture_shows_what_happens_today() {
        for picture in PICTURES.iter().filter(|picture| picture.is_steady) {
            let record = Record::of(&read(&picture.file("txt")));
            let name = picture.name;
            assert_eq!((picture.record)(), record.data(), "run `cargo xtask pictures {name}`");
        }
    }

    #[test]
    fn each_picture_is_shown_in_a_text() {
        let folder = root().join("lockable-runtime/guide");
        let pages = fs::read_dir(folder).unwrap().map(|entry| read(&entry.unwrap().path()));
        let texts = pages.collect::<String>() + &read(&root().join("README.md"));
        for Picture { name, .. } in PICTURES {
            assert!(texts.contains(&format!("/main/pictures/{name}.svg?sanitize=true)")), "{name}");
        }
    }
}
