//! The dashboard and the alerts, which have metrics by their names and labels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::read;

/// What Prometheus adds by itself.
const OF_PROMETHEUS: [&str; 2] = ["instance", "le"];

/// How an expression finds the labels that are more than one lock.
const HAS_HOLE: &str = "[{]";

#[test]
fn the_dashboard_draws_every_metric() {
    let known = metrics();
    assert!(known.len() >= 12, "{known:?}");
    let names: Vec<_> = known.iter().flat_map(|(kind, name)| exported(kind, name)).collect();
    let drawn: BTreeSet<_> = drawn().iter().flat_map(|expr| words(expr)).collect();
    let alerted: Vec<_> = alerts().iter().flat_map(|(_, expr)| words(expr)).collect();
    for word in drawn.iter().chain(&alerted).filter(|word| word.starts_with("lockable_")) {
        assert!(names.contains(word), "{word} is drawn, or in an alert, and not counted");
    }
    for (kind, name) in &known {
        let is_drawn = exported(kind, name).iter().any(|name| drawn.contains(name));
        assert!(is_drawn, "{name} is not drawn");
    }
}

#[test]
fn the_dashboard_selects_by_labels_that_exist() {
    for expr in drawn() {
        assert_grouped_by_labels(&expr);
        // Each is drawn for the chosen locks alone.
        let expr = expr.replace(HAS_HOLE, "");
        for (_, selector) in expr.match_indices('{').map(|(at, _)| expr.split_at(at + 1)) {
            assert!(selector.starts_with("lock=~\"$lock\""), "{expr}");
        }
        assert_eq!(expr.matches('{').count(), expr.matches("lockable_").count(), "{expr}");
    }
}

#[test]
fn the_alerts_are_of_the_first_row_of_the_dashboard() {
    let alerts = alerts();
    let names: Vec<_> = alerts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["LockLost", "LockAcquisitionsFail", "LockWaitsLong", "LockNeverFree"]);
    let counted = |expr: &str| -> BTreeSet<_> {
        words(expr).into_iter().filter(|word| word.starts_with("lockable_")).collect()
    };
    for ((name, alert), number) in alerts.iter().zip(drawn()) {
        assert_grouped_by_labels(alert);
        assert!(counted(alert).is_subset(&counted(&number)), "{name}: {alert}, but {number}");
    }
}

#[track_caller]
fn assert_grouped_by_labels(expr: &str) {
    let labels = labels();
    let is_label = |word: &str| labels.contains(word) || OF_PROMETHEUS.contains(&word);
    let grouped = expr.split("by (").skip(1).map(|rest| rest.split(')').next().unwrap());
    for label in grouped.flat_map(|labels| labels.split(", ")) {
        assert!(is_label(label), "`{label}` in {expr}");
    }
}

#[test]
fn every_metric_is_documented() {
    let documentation = read("lockable-runtime/src/telemetry/mod.rs");
    for (kind, name) in metrics() {
        let row = format!("//! | `{name}` | {kind}");
        let row = documentation.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("{name} has no row in the table"));
        let shown = &exported(&kind, &name)[0];
        assert!(row.contains(&format!("`{shown}`")), "{name} is `{shown}` in Prometheus");
    }
}

/// Without them no panel draws anything, so all who meet the names meet the settings.
#[test]
fn the_two_settings_of_the_recorder_are_where_the_names_are() {
    for text in [
        "lockable-runtime/src/telemetry/mod.rs",
        "lockable-runtime/guide/operating.md",
        "examples/services/prometheus.rs",
        "examples/services/grafana.json",
        "examples/services/alerts.yml",
    ] {
        for setting in ["with_recommended_naming(true)", "set_buckets"] {
            assert!(read(text).contains(setting), "{text} does not name {setting}");
        }
    }
}

#[test]
fn failures_are_counted_under_the_names_of_the_command_line() {
    let text = read("lockable-runtime/src/types/error.rs");
    let (_, names) = text.split_once("fn name(self)").unwrap();
    let (names, _) = names.split_once("\nimpl ").unwrap();
    let names = names.split("Self::").filter_map(|arm| arm.split_once(" => \""));
    let names: BTreeMap<_, _> = names.collect();
    let of_program = read("lockable-cli/src/failure.rs");
    let arms = of_program.split("LockErrorKind::").filter_map(|arm| arm.split_once(" => (\""));
    let arms: Vec<_> = arms.map(|(kind, rest)| (kind, rest.split('"').next().unwrap())).collect();
    assert!(arms.len() >= 7, "{arms:?}");
    for (kind, name) in arms {
        assert!(names[kind].starts_with(&format!("{name}\"")), "{kind} is {name}");
    }
}

/// What the code describes to a recorder: kinds and names.
fn metrics() -> Vec<(String, String)> {
    let code = read("lockable-runtime/src/telemetry/counters.rs");
    let described = code.split("describe_").skip(1);
    let described = described.filter_map(|rest| rest.split_once("!("));
    let metric =
        |(kind, rest): (&str, &str)| (kind.to_owned(), rest.split('"').nth(1).unwrap().to_owned());
    described.map(metric).collect()
}

/// A metric as the exporter names it.
fn exported(kind: &str, name: &str) -> Vec<String> {
    let name = name.replace('.', "_");
    match kind {
        "counter" => vec![format!("{name}_total")],
        "gauge" => vec![name],
        _ => ["bucket", "sum", "count"].map(|part| format!("{name}_seconds_{part}")).into(),
    }
}

/// The labels that the code gives its metrics.
fn labels() -> BTreeSet<String> {
    let code = read("lockable-runtime/src/telemetry/counters.rs");
    let others = code.split("Some((\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let labels: BTreeSet<_> = others.chain(["lock"]).map(str::to_owned).collect();
    assert_eq!(labels.len(), 5, "{labels:?}");
    assert!(read("lockable-runtime/src/types/metric_keys.rs").contains("(\"lock\", lock)"));
    labels
}

/// The expressions of all panels.
fn drawn() -> Vec<String> {
    let board: Value = serde_json::from_str(&read("examples/services/grafana.json")).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let drawn: Vec<_> = targets.map(|one| one["expr"].as_str().unwrap().to_owned()).collect();
    assert!(drawn.len() >= 20, "{drawn:?}");
    drawn
}

/// The alerts by their names, with their expressions.
fn alerts() -> Vec<(String, String)> {
    let rules = read("examples/services/alerts.yml");
    let alert = |rule: &str| {
        let (name, rest) = rule.split_once('\n').unwrap();
        let (_, expr) = rest.split_once("expr:").unwrap();
        let end = ["for:", "labels:"].iter().filter_map(|key| expr.find(key)).min();
        let expr = expr[..end.unwrap()].trim_start_matches(" >-");
        (name.trim().to_owned(), expr.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    rules.split("- alert:").skip(1).map(alert).collect()
}

fn words(expr: &str) -> Vec<String> {
    let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.map(str::to_owned).collect()
}
