//! Keys, ids and messages are other people's texts: no escape sequence of theirs may reach a terminal.

/// The text with its control characters written out, and those that turn around what is behind them.
pub(crate) fn printable(text: &str) -> String {
    replaced(text, |c| c.escape_unicode().to_string())
}

/// The text with each such character replaced.
pub(crate) fn replaced(text: &str, write: impl Fn(char) -> String) -> String {
    text.chars().map(|c| if is_harmless(c) { c.to_string() } else { write(c) }).collect()
}

fn is_harmless(c: char) -> bool {
    !c.is_control() && !INVISIBLE.iter().any(|range| range.contains(&c))
}

/// Marks of direction, separators of lines, and what has no width.
const INVISIBLE: [std::ops::RangeInclusive<char>; 5] = [
    '\u{61c}'..='\u{61c}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_is_left() {
        assert_eq!(printable("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\u{d}\\u{a}");
        assert_eq!(printable("a\u{61c}b"), "a\\u{61c}b");
        assert_eq!(printable("\u{9b}2J\u{202e}x\u{7f}"), "\\u{9b}2J\\u{202e}x\\u{7f}");
        assert_eq!(printable("café 鍵 \\ \""), "café 鍵 \\ \"");
    }
}
