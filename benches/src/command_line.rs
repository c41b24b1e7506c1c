//! The command line of a bench.

use std::path::{Path, PathBuf};
use std::process::exit;

/// What was typed, without the `--bench` that Cargo adds.
#[derive(Debug)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// `switches` stand alone; each of `options` has a text behind it. Anything else ends the program with an error
    /// that says what there is. What one program of a bench tells another, behind `--worker`, may be anything.
    #[must_use]
    pub fn read(switches: &[&str], options: &[&str]) -> Self {
        let typed: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
        if let Some(wrong) = wrong(&typed, switches, options) {
            let all = [switches, options].concat().join(", ");
            eprintln!("{wrong}; there are: {all}");
            exit(2);
        }
        Self(typed)
    }

    /// Whether the switch is there.
    #[must_use]
    pub fn has(&self, switch: &str) -> bool {
        self.after(switch).is_some()
    }

    /// The text behind the option.
    #[must_use]
    pub fn text(&self, option: &str) -> Option<&str> {
        self.after(option)?.first().map(String::as_str)
    }

    /// As [`text`](Self::text), but nothing where there is none, which every name contains.
    #[must_use]
    pub fn part_of_name(&self, option: &str) -> String {
        self.text(option).unwrap_or_default().to_owned()
    }

    /// The path behind the option: as it is typed in the workspace's folder, because Cargo runs a bench in that of its
    /// package.
    #[must_use]
    pub fn path(&self, option: &str) -> Option<PathBuf> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        self.text(option).map(|typed| workspace.join(typed))
    }

    /// All that follows.
    #[must_use]
    pub fn after(&self, word: &str) -> Option<&[String]> {
        let at = self.0.iter().position(|typed| typed == word)?;
        self.0.get(at + 1..)
    }
}

/// What to say of the first word that is wrong.
fn wrong(typed: &[String], switches: &[&str], options: &[&str]) -> Option<String> {
    let mut words = typed.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--worker" => return None,
            _ if switches.contains(&word) => {}
            _ if !options.contains(&word) => return Some(format!("`{word}` is no option")),
            _ if words.next().is_none() => return Some(format!("`{word}` needs a text behind it")),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn a_word_that_means_nothing_is_no_option() {
        let of = |typed: &str| {
            let typed: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
            wrong(&typed, &["--quick"], &["--cases"])
        };
        assert_eq!(of("--quick --cases few"), None);
        assert_eq!(of("--cases --quick"), None, "the text behind an option may be anything");
        assert_eq!(of("--worker lockable url"), None);
        assert_eq!(of("--quik").unwrap(), "`--quik` is no option");
        assert_eq!(of("few").unwrap(), "`few` is no option");
        assert_eq!(of("--quick --cases").unwrap(), "`--cases` needs a text behind it");
    }
}
