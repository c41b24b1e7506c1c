//! The dashboard, which draws metrics by their names and labels.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::read;

/// What Prometheus adds by itself.
const OF_PROMETHEUS: [&str; 2] = ["instance", "le"];

#[test]
fn the_dashboard_draws_every_metric() {
    let known = metrics();
    assert!(known.len() >= 12, "{known:?}");
    let names: Vec<_> = known.iter().flat_map(|(kind, name)| exported(kind, name)).collect();
    let drawn: BTreeSet<_> = drawn().iter().flat_map(|expr| words(expr)).collect();
    for word in drawn.iter().filter(|word| word.starts_with("lockable_")) {
        assert!(names.contains(word), "the dashboard draws {word}, which is not counted");
    }
    for (kind, name) in &known {
        let is_drawn = exported(kind, name).iter().any(|name| drawn.contains(name));
        assert!(is_drawn, "{name} is not drawn");
    }
}

#[test]
fn the_dashboard_selects_by_labels_that_exist() {
    let labels = labels();
    let is_label = |word: &str| labels.contains(word) || OF_PROMETHEUS.contains(&word);
    for expr in drawn() {
        let grouped = expr.split("by (").skip(1).map(|rest| rest.split(')').next().unwrap());
        for label in grouped.flat_map(|labels| labels.split(", ")) {
            assert!(is_label(label), "`{label}` in {expr}");
        }
        // Each is drawn for the chosen locks alone.
        for (_, selector) in expr.match_indices('{').map(|(at, _)| expr.split_at(at + 1)) {
            assert!(selector.starts_with("lock=~\"$lock\""), "{expr}");
        }
        assert_eq!(expr.matches('{').count(), expr.matches("lockable_").count(), "{expr}");
    }
}

#[test]
fn every_metric_is_documented() {
    let documentation = read("lockable-runtime/src/telemetry/mod.rs");
    for (kind, name) in metrics() {
        let row = format!("//! | `{name}` | {kind}");
        assert!(documentation.contains(&row), "{name} has no row in the table");
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
    assert_eq!(labels.len(), 4, "{labels:?}");
    assert!(read("lockable-runtime/src/types/metric_keys.rs").contains("(\"lock\", lock)"));
    labels
}

/// The expressions of all panels.
fn drawn() -> Vec<String> {
    let board: Value = serde_json::from_str(&read("examples/services/grafana.json")).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let drawn: Vec<_> = targets.map(|one| one["expr"].as_str().unwrap().to_owned()).collect();
    assert!(drawn.len() >= 20, "{drawn:?}");
    drawn
}

fn words(expr: &str) -> Vec<String> {
    let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.map(str::to_owned).collect()
}
