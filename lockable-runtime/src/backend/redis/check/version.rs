//! What a server reports of itself in its greeting.

use ::redis::Value;

use crate::backend::redis::wire::server::{field, unfit_by_greeting, version};
use crate::check::{Finding, Report};

/// Reads what the server is; the error is one that is unfit for everything else.
pub(super) fn look(hello: &Value, report: &mut Report) -> Result<(), Finding> {
    if let Some(version) = version(hello) {
        let name = field(hello, "server").unwrap_or_else(|| "redis".to_owned());
        report.server = Some(format!("{name} {version}"));
    }
    unfit_by_greeting(hello).map_or(Ok(()), Err)
}

pub(super) fn is_replica(hello: &Value) -> bool {
    field(hello, "role").is_some_and(|role| role != "master")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Code;

    /// A greeting of names and values.
    fn hello(fields: &str) -> Value {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        Value::Array(fields.split_whitespace().map(text).collect())
    }

    #[test]
    fn a_server_is_what_it_reports() {
        let cases = [
            ("server redis version 7.0.15", Some("redis 7.0.15"), None),
            ("server valkey version 9.1.2", Some("valkey 9.1.2"), None),
            ("version 8.0.0", Some("redis 8.0.0"), None),
            ("version 6.2.14", Some("redis 6.2.14"), Some(Code::TooOld)),
            ("version 8.6.3 mode sentinel", Some("redis 8.6.3"), Some(Code::Sentinel)),
            ("proto 2", None, None),
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
    fn a_replica_is_found() {
        assert!(is_replica(&hello("role replica")));
        assert!(!is_replica(&hello("role master")));
        assert!(!is_replica(&hello("")));
    }
}
