use super::*;

fn finding(severity: Severity, code: Code) -> Finding {
    Finding::new(severity, code, format!("{code} it is")).advise("repair it")
}

#[test]
fn bounds() {
    fn all<T: Send + Sync + Unpin + Clone>() {}
    all::<Report>();
    all::<Finding>();
}

#[test]
fn the_worst_finding_is_first_and_the_verdict() {
    let mut report = Report::new("redis://host:6379/0").of("disLock:", "lockable");
    assert!(report.is_ok() && report.worst().is_none());
    report.add([finding(Severity::Warning, Code::Eviction)]);
    report.add([finding(Severity::Info, Code::ClockDiffers)]);
    assert!(report.is_ok());
    report.add([finding(Severity::Error, Code::Replica)]);
    report.add([finding(Severity::Warning, Code::NotPersistent)]);
    let codes: Vec<_> = report.findings().map(Finding::code).collect();
    let expected = [Code::Replica, Code::Eviction, Code::NotPersistent, Code::ClockDiffers];
    assert_eq!(codes, expected);
    assert!(!report.is_ok() && report.worst() == Some(Severity::Error));
}

#[test]
fn a_report_reads_as_lines_of_a_log() {
    let mut report = Report::new("redis://host:6379/0").of("disLock:", "lockable");
    assert_eq!(
        report.to_string(),
        "locks on redis://host:6379/0, prefix `disLock:`, namespace `lockable`: ok (errors: 0, warnings: 0, info: 0)"
    );
    report.server = Some("valkey 9.1.2".to_owned());
    report.clock_difference = Some(Duration::from_millis(12));
    report.add([finding(Severity::Info, Code::MemoryLimit)]);
    report.add([finding(Severity::Warning, Code::Eviction)]);
    assert_eq!(
        report.to_string(),
        "locks on redis://host:6379/0, prefix `disLock:`, namespace `lockable`: ok, with warnings (errors: 0, warnings: 1, info: 1)\n  \
         valkey 9.1.2; its clock differs by 12ms\n  \
         warning [eviction]: eviction it is; do this: repair it\n  \
         info [memory-limit]: memory-limit it is; do this: repair it"
    );
}

#[test]
fn findings_of_a_group_say_where() {
    let mut report = Report::new("redis-sentinel://s1:26379/mm/0").of("", "lockable");
    report.server = Some("redis 8.0.2".to_owned());
    report.add([finding(Severity::Warning, Code::Eviction)]);
    report.address = Some("10.0.0.7:6379".to_owned());
    report.locate();
    report.add([finding(Severity::Warning, Code::SentinelSilent).at("s1:26379")]);
    report.add([finding(Severity::Warning, Code::SentinelsDisagree)]);
    assert_eq!(
        report.to_string(),
        "locks on redis-sentinel://s1:26379/mm/0, prefix ``, namespace `lockable`: ok, with warnings (errors: 0, warnings: 3, info: 0)\n  \
         the primary is 10.0.0.7:6379; redis 8.0.2\n  \
         warning [eviction] at 10.0.0.7:6379: eviction it is; do this: repair it\n  \
         warning [sentinel-silent] at s1:26379: sentinel-silent it is; do this: repair it\n  \
         warning [sentinels-disagree]: sentinels-disagree it is; do this: repair it"
    );
}

#[test]
fn rights_with_one_effect_are_one_line() {
    let lacks =
        |rule: &str| finding(Severity::Error, Code::MissingRight).granting("app", rule, "no lock");
    let mut report = Report::new("redis://host:6379/0");
    report.add([lacks("+set"), lacks("+get")]);
    let text = report.to_string();
    assert_eq!(text.matches("ACL SETUSER").count(), 1, "{text}");
    assert_eq!(text.matches("lacks the rights `+get +set`: no lock").count(), 1, "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}
