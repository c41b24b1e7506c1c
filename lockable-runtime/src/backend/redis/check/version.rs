//! What a server says of itself in its greeting.

use ::redis::Value;

use crate::backend::redis::wire::server::{Unfit, told, version};
use crate::check::{Code, Finding, Report, Severity};

/// Notes what the server is; the error is one that is unfit for everything else.
pub(super) fn look(hello: &Value, report: &mut Report) -> Result<(), Finding> {
    let Some(version) = version(hello) else {
        report.add([untold()]);
        return Ok(());
    };
    let name = told(hello, "server").unwrap_or_else(|| "redis".to_owned());
    report.set_server(format!("{name} {version}"));
    if let Some(unfit) = Unfit::by_greeting(hello) {
        return Err(unfit.finding());
    }
    if !is_known(&name, &version) {
        report.add([untried(&name, &version)]);
    }
    Ok(())
}

pub(super) fn is_replica(hello: &Value) -> bool {
    told(hello, "role").is_some_and(|role| role != "master")
}

/// Whether the tests of this crate have run on the like.
fn is_known(name: &str, version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let known = if name == "valkey" { 8..=9 } else { 7..=8 };
    major.is_some_and(|major| known.contains(&major))
}

fn untried(name: &str, version: &str) -> Finding {
    Finding::new(
        Severity::Note,
        Code::UnknownVersion,
        format!("{name} {version} has not been tried: Redis 7.0 to 8 and Valkey 8 to 9 have"),
        "nothing, if the rest of this report is good",
    )
}

fn untold() -> Finding {
    Finding::new(
        Severity::Note,
        Code::UnknownVersion,
        "the server does not tell its version",
        "see that it is Redis 7.0 or later, or Valkey",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting of names and values.
    fn hello(fields: &str) -> Value {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        Value::Array(fields.split_whitespace().map(text).collect())
    }

    #[test]
    fn a_server_is_what_it_says() {
        let cases = [
            ("server redis version 7.0.15", Some("redis 7.0.15"), None),
            ("server valkey version 9.1.2", Some("valkey 9.1.2"), None),
            ("server valkey version 7.2.5", Some("valkey 7.2.5"), Some(Code::UnknownVersion)),
            ("version 8.0.0", Some("redis 8.0.0"), None),
            ("server redis version 9.0.0", Some("redis 9.0.0"), Some(Code::UnknownVersion)),
            ("version 6.2.14", Some("redis 6.2.14"), Some(Code::TooOld)),
            ("version 8.6.3 mode sentinel", Some("redis 8.6.3"), Some(Code::Sentinel)),
            ("proto 2", None, Some(Code::UnknownVersion)),
        ];
        for (fields, server, code) in cases {
            let mut report = Report::new("redis://host");
            if let Err(finding) = look(&hello(fields), &mut report) {
                report.add([finding]);
            }
            assert_eq!(report.server(), server);
            assert_eq!(
                report.findings().map(Finding::code).collect::<Vec<_>>(),
                Vec::from_iter(code)
            );
        }
    }

    #[test]
    fn a_replica_says_so() {
        assert!(is_replica(&hello("role replica")));
        assert!(!is_replica(&hello("role master")));
        assert!(!is_replica(&hello("")));
    }
}
