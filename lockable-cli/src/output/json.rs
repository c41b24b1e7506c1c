//! One object a line, for programs. The names stay as they are; more may come.

use serde::Serialize;

use super::{escape, write_line};

/// What every object begins with.
#[derive(Serialize)]
struct Line<'a, T> {
    schema: u8,
    #[serde(flatten)]
    rest: &'a T,
}

/// Writes a line; `false` where no one reads it any more.
pub(crate) fn print(object: &impl Serialize) -> bool {
    line(object).is_ok_and(|line| write_line(&line))
}

/// JSON escapes by itself what is below a blank, and nothing else that a terminal obeys.
pub(crate) fn line(object: &impl Serialize) -> serde_json::Result<String> {
    let line = serde_json::to_string(&Line { schema: SCHEMA, rest: object })?;
    let escaped = |unit: &mut u16| format!("\\u{unit:04x}");
    Ok(escape::replaced(&line, |c| c.encode_utf16(&mut [0; 2]).iter_mut().map(escaped).collect()))
}

const SCHEMA: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Lock {
        key: &'static str,
    }

    #[test]
    fn a_line_has_its_schema_and_no_escape_sequence() {
        let line = line(&Lock { key: "a\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{e0041}é" }).unwrap();
        assert_eq!(line, r#"{"schema":1,"key":"a\u001b[31m\u009b2J\u007f\u202e\udb40\udc41é"}"#);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["key"], "a\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{e0041}é");
    }
}
