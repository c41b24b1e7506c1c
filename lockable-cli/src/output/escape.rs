//! Keys, ids and messages are other people's texts: no escape sequence of theirs may reach a terminal.

/// The text with its control characters written out, and those that turn around what is behind them.
pub(crate) fn printable(text: &str) -> String {
    replaced(text, |c| c.escape_unicode().to_string())
}

/// The text with each such character replaced.
pub(crate) fn replaced(text: &str, write: impl Fn(char) -> String) -> String {
    text.chars().map(|c| if is_harmless(c) { c.to_string() } else { write(c) }).collect()
}

/// By the standard library's list, which has control characters, marks of direction, separators of lines, and what has
/// no width: all of the categories Cc and Cf. The library escapes by the same.
fn is_harmless(c: char) -> bool {
    // Behind another one, a combining character is no reason to escape it.
    let pair = String::from_iter(['x', c]);
    matches!(c, '\\' | '"' | '\'') || pair.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_is_left() {
        assert_eq!(printable("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\u{d}\\u{a}");
        for hidden in ['\u{61c}', '\u{ad}', '\u{200d}', '\u{feff}', '\u{110bd}', '\u{e0041}'] {
            assert_eq!(printable(&format!("a{hidden}b")), format!("a{}b", hidden.escape_unicode()));
        }
        assert_eq!(printable("\u{9b}2J\u{202e}x\u{7f}"), "\\u{9b}2J\\u{202e}x\\u{7f}");
        assert_eq!(printable("café cafe\u{301} 鍵 \\ \" '"), "café cafe\u{301} 鍵 \\ \" '");
    }
}
