//! What the library advises to those who write programs, in the words of this one.

/// The text with the options of the command line in the place of the library's methods.
pub(crate) fn for_program(text: &str) -> String {
    let replace = |text: String, (library, program): &(&str, &str)| text.replace(library, program);
    WORDS.iter().fold(text.to_owned(), replace)
}

/// The longer ones first. A test checks that the library still says so.
const WORDS: [(&str, &str); 10] = [
    (
        "put the right user and password into the URL",
        "put the right user and password into LOCKABLE_URL, or the password into a file for --password-file",
    ),
    (
        "the server refuses the user and the password that `LockerBuilder::credentials` gave",
        "the server refuses the user, or the password in --password-file",
    ),
    ("`LockerBuilder::credentials`", "--password-file"),
    (
        "`sentinel_user` and `sentinel_password` in the URL",
        "`?sentinel_user=…&sentinel_password=…` in LOCKABLE_URL",
    ),
    ("`LockerBuilder::sentinel_credentials`", "--sentinel-password-file"),
    ("`LockerBuilder::root_certificate`", "--ca-file"),
    ("`LockerBuilder::client_certificate`", "--cert-file and --key-file"),
    ("`redis+unix://` or `memory://`", "or `redis+unix://`"),
    ("`min_hold` is at most `expire`", "--min-hold is at most --expire"),
    (
        "`rediss://` needs the feature `tls` of lockable-runtime, or `tls-no-provider`",
        "TLS is not in this build",
    ),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// A text of several lines, as the compiler joins it.
    fn joined(code: &str) -> String {
        let lines = code.lines().map(str::trim_start);
        lines
            .map(|line| line.strip_suffix('\\').map_or_else(|| format!("{line}\n"), str::to_owned))
            .collect()
    }

    #[test]
    fn the_library_says_what_is_replaced() {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lockable-runtime/src");
        let code: String =
            files(&library).iter().map(|path| joined(&fs::read_to_string(path).unwrap())).collect();
        // The name of the method is put in where it is said.
        let code = code.replace("LockerBuilder::{method}", "LockerBuilder::root_certificate");
        for (words, _) in WORDS {
            assert!(code.contains(words), "{words}");
        }
    }

    #[test]
    fn an_operator_reads_of_no_method() {
        let text = for_program("x; give one by `LockerBuilder::client_certificate`; otherwise");
        assert_eq!(text, "x; give one by --cert-file and --key-file; otherwise");
    }
}
