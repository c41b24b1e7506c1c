//! The JSON of a check's report and of its findings.

use serde_core::ser::{Serialize, SerializeStruct, Serializer};

use super::check::Report;
use crate::findings::{Code, Finding, Severity};

/// With the fields that [`check`](crate::check#as-json) lists.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let difference = self.clock_difference().map(|by| by.as_millis());
        let milliseconds = difference.map(|by| u64::try_from(by).unwrap_or(u64::MAX));
        let findings: Vec<_> = self.findings().collect();
        let mut fields = serializer.serialize_struct("Report", 9)?;
        fields.serialize_field("ok", &self.is_ok())?;
        fields.serialize_field("worst", &self.worst())?;
        fields.serialize_field("backend", &self.backend)?;
        fields.serialize_field("prefix", &self.prefix)?;
        fields.serialize_field("namespace", &self.namespace)?;
        fields.serialize_field("server", &self.server())?;
        fields.serialize_field("address", &self.address())?;
        fields.serialize_field("clock_difference_ms", &milliseconds)?;
        fields.serialize_field("findings", &findings)?;
        fields.end()
    }
}

/// With the fields that [`check`](crate::check#as-json) lists.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 6)?;
        fields.serialize_field("severity", &self.severity())?;
        fields.serialize_field("code", &self.code())?;
        fields.serialize_field("subject", &self.subject())?;
        fields.serialize_field("address", &self.address())?;
        fields.serialize_field("message", self.message())?;
        fields.serialize_field("advice", self.advice())?;
        fields.end()
    }
}

/// As its text: `info`, `warning` or `error`.
impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As its [stable text](Code::as_str).
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_report_has_stable_fields() {
        let mut report = Report::new("redis://host:6379/0").of("shop:", "lockable");
        let empty = json!({
            "ok": true, "worst": null, "backend": "redis://host:6379/0", "prefix": "shop:",
            "namespace": "lockable", "server": null, "address": null, "clock_difference_ms": null, "findings": [],
        });
        assert_eq!(to_value(&report).unwrap(), empty);
        report.server = Some("valkey 9.1.2".to_owned());
        report.clock_difference = Some(Duration::from_micros(12_900));
        let finding = Finding::new(Severity::Error, Code::MissingRight, "it is missing");
        report.add([finding.advise("grant it")]);
        report.address = Some("10.0.0.7:6379".to_owned());
        report.locate();
        let finding = json!({
            "severity": "error", "code": "missing-right", "subject": null,
            "address": "10.0.0.7:6379", "message": "it is missing", "advice": "grant it",
        });
        let full = json!({
            "ok": false, "worst": "error", "backend": "redis://host:6379/0", "prefix": "shop:",
            "namespace": "lockable", "server": "valkey 9.1.2", "address": "10.0.0.7:6379", "clock_difference_ms": 12, "findings": [finding],
        });
        assert_eq!(to_value(&report).unwrap(), full);
    }

    #[test]
    fn every_severity_is_its_text() {
        for severity in [Severity::Info, Severity::Warning, Severity::Error] {
            assert_eq!(to_value(severity).unwrap(), json!(severity.to_string()));
        }
    }
}
