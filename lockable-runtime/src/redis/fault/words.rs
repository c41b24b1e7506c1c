//! Shows a server's words without what they quote of a command: that may be a redacted key or an owner token.
//!
//! See "Why does `redact_keys` show a keyed hash, and why do server messages lose quotations?" in DESIGN.md.

use std::borrow::Cow;

use ::redis::{ErrorKind, RedisError, Value, parse_redis_value};

/// Errors about the server as a whole: these quote settings.
const OF_SERVER: [&str; 4] = ["DENIED", "MASTERDOWN", "MISCONF", "OOM"];

/// Precedes the arguments of an unknown command in a server's words.
const ARGUMENTS: &str = "with args beginning with";

const LEFT_OUT: &str = "…";

/// The error in words that may be shown, with the same kind and code.
pub(crate) fn shown(error: &RedisError) -> RedisError {
    match (error.kind(), error.code(), error.detail()) {
        // These quote the answer, which may be the value of a lock.
        (kind @ (ErrorKind::Parse | ErrorKind::UnexpectedReturnType), ..) => {
            (kind, OTHER_FORM).into()
        }
        // Where there is no code, the first word of something else is in its place.
        (kind, Some(code), _) if !is_code(code) => (kind, OTHER_FORM).into(),
        (kind, Some(code), Some(detail)) => match unquoted(code, detail) {
            Cow::Borrowed(_) => error.clone(),
            Cow::Owned(detail) => answered(kind, code, detail),
        },
        _ => error.clone(),
    }
}

const OTHER_FORM: &str = "an answer of another form";

fn is_code(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    word.bytes().all(is_part) && owner_token(word).is_none()
}

fn answered(kind: ErrorKind, code: &str, detail: String) -> RedisError {
    let line = format!("-{code} {detail}\r\n");
    let answer = parse_redis_value(line.as_bytes()).and_then(Value::extract_error);
    answer.err().unwrap_or_else(|| (kind, "the server answered", detail).into())
}

/// The words up to a command's arguments or an owner token, without other quotations.
fn unquoted<'a>(code: &str, words: &'a str) -> Cow<'a, str> {
    let mut shown = match words.find(ARGUMENTS) {
        Some(at) => Cow::Owned(words.split_at(at).0.trim_end_matches([' ', ',']).to_owned()),
        None => Cow::Borrowed(words),
    };
    if !OF_SERVER.contains(&code)
        && let Some(cut) = without_quotations(&shown)
    {
        shown = Cow::Owned(cut);
    }
    if let Some(at) = owner_token(&shown) {
        shown = Cow::Owned(format!("{}{LEFT_OUT}", shown.split_at(at).0));
    }
    let is_control = char::is_control;
    if shown.contains(is_control) { Cow::Owned(shown.replace(is_control, " ")) } else { shown }
}

/// `None` if the only quotation is the name of a command. A quotation may contain quotation marks, so all is removed up
/// to the last of them.
fn without_quotations(words: &str) -> Option<String> {
    let mut from = 0;
    while let Some((start, mark)) = opening(words, from) {
        let rest = words.get(start + 1..)?;
        let end = rest.find(mark).map_or(words.len(), |at| start + 1 + at);
        if is_command(words, start, end) {
            from = end + 1;
            continue;
        }
        let (before, quoted) = words.split_at(start + 1);
        let after = quoted.rfind(mark).map_or("", |at| quoted.split_at(at).1);
        return Some(format!("{before}{LEFT_OUT}{after}"));
    }
    None
}

/// The next mark that can open a quotation; an apostrophe follows a letter.
fn opening(words: &str, from: usize) -> Option<(usize, char)> {
    let mut before = words.get(..from)?.chars().next_back();
    for (at, c) in words.get(from..)?.char_indices() {
        if matches!(c, '\'' | '`' | '"') && !before.is_some_and(char::is_alphanumeric) {
            return Some((from + at, c));
        }
        before = Some(c);
    }
    None
}

/// Whether the marks at these places enclose the name of a command.
fn is_command(words: &str, start: usize, end: usize) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"|-_.".contains(&byte);
    let is_word = words.get(start + 1..end).is_some_and(|name| name.bytes().all(is_part));
    let before = words.get(..start).unwrap_or_default();
    let after = words.get(end + 1..).unwrap_or_default();
    is_word && (before.ends_with("command ") || after.starts_with(" command"))
}

/// Where an owner token begins: sixteen hexadecimal digits, a point or a hyphen, and a number.
fn owner_token(words: &str) -> Option<usize> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let is_token = |part: &[u8]| matches!(part, [origin @ .., b'.' | b'-', count] if origin.iter().all(is_hex) && count.is_ascii_digit());
    words.as_bytes().windows(18).position(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered_with(line: &str) -> RedisError {
        let answer = parse_redis_value(format!("-{line}\r\n").as_bytes());
        shown(&answer.unwrap().extract_error().unwrap_err())
    }

    fn everything(error: &(dyn std::error::Error + 'static)) -> String {
        let sources = std::iter::successors(Some(error), |error| error.source());
        sources.fold(String::new(), |all, error| all + &format!("{error} {error:?} "))
    }

    /// Replies of Redis 7 and 8, Valkey 8 and 9, and of proxies and relatives.
    #[test]
    fn what_a_server_quotes_is_not_shown() {
        let token = "0123456789abcdef.7 request 7";
        let quoted = [
            format!(
                "ERR unknown command 'EVALSHA', with args beginning with: 'sha' '3' 'user:7' '{token}' "
            ),
            "ERR unknown command `EVALSHA`, with args beginning with: `sha`, `3`, `user:7`, "
                .to_owned(),
            "NOPERM User app has no permissions to access the 'user:7' key".to_owned(),
            "NOPERM User app has no permissions to access the 'user:7' key' key".to_owned(),
            "NOPERM User app has no permissions to access the 'x' and 'user:7' key".to_owned(),
            "ERR Error in script: 'user:7".to_owned(),
            "ERR unsupported command 'user:7'".to_owned(),
            format!("ERR cannot set user to {token}"),
            format!("BUSYKEY \"{token}\" is there"),
            format!("OOM user cannot be {token}"),
            format!("{token} is no command"),
            "'user:7' is no command".to_owned(),
            "user:7".to_owned(),
        ];
        for line in quoted {
            let all = everything(&answered_with(&line));
            for secret in ["user:7", "0123456789abcdef", "request 7"] {
                assert!(!all.contains(secret), "{line}: {all}");
            }
        }
    }

    #[test]
    fn an_error_keeps_its_kind_and_its_code() {
        let error =
            answered_with("ERR unknown command 'EVALSHA', with args beginning with: 'sha' '3' ");
        assert_eq!(
            (error.code(), error.detail()),
            (Some("ERR"), Some("unknown command 'EVALSHA'"))
        );
        assert_eq!(error.kind(), ::redis::ServerErrorKind::ResponseError.into());
        let error = answered_with("STRANGE this is \"about\" something");
        assert_eq!(
            (error.code(), error.detail()),
            (Some("STRANGE"), Some("this is \"…\" something"))
        );
    }

    #[test]
    fn an_answer_is_shown_in_one_line_without_escape_sequences() {
        for line in ["E\rRR a", "E\u{1b}[31mRR", "ERR a\nb\rc \u{1b}[31m"] {
            let shown = answered_with(line).to_string();
            assert!(!shown.contains(char::is_control), "{line:?}: {shown:?}");
        }
    }

    #[test]
    fn words_that_quote_nothing_stay_as_they_are() {
        for line in [
            "NOPERM User app has no permissions to run the 'script|exists' command",
            "NOPERM The user executing the script can't run this command or subcommand",
            "ERR ACL failure in script: User app has no permissions to run the 'get' command",
            "ERR wrong number of arguments for 'evalsha' command",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "MASTERDOWN BackendContext with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "MISCONF Redis is configured to save RDB snapshots, but it's unable to persist on disk",
            "MOVED 3999 127.0.0.1:6381",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ] {
            let error = answered_with(line);
            let words = format!("{} {}", error.code().unwrap(), error.detail().unwrap());
            assert_eq!(words, line);
        }
    }

    #[test]
    fn an_answer_of_another_form_is_not_quoted() {
        let answer = Value::BulkString(b"0123456789abcdef.7".to_vec());
        let error = ::redis::from_redis_value::<i64>(answer).unwrap_err();
        let error = shown(&error.into());
        assert!(!error.to_string().contains("0123456789abcdef"), "{error}");
    }
}
