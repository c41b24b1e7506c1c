//! Words of a command that is offered to be copied.

/// As a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_as_a_shell_reads_it() {
        assert_eq!(quoted("order:7"), "order:7");
        assert_eq!(quoted("a b'$x"), r"'a b'\''$x'");
        assert_eq!(quoted(""), "''");
    }
}
