//! The dashboard and the alerts, which have metrics by their names and labels.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Mutex;

use lockable_runtime::Locker;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::Value;
use tokio::runtime::Builder;

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
    assert_eq!(labels.len(), 5, "{labels:?}");
    let is_label = |word: &str| labels.contains(word) || OF_PROMETHEUS.contains(&word);
    let grouped = expr.split("by (").skip(1).map(|rest| rest.split(')').next().unwrap());
    for label in grouped.flat_map(|labels| labels.split(", ")) {
        assert!(is_label(label), "`{label}` in {expr}");
    }
}

#[test]
fn every_metric_is_documented() {
    let documentation = read("lockable-runtime/src/core/telemetry/mod.rs");
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
        "lockable-runtime/src/core/telemetry/mod.rs",
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

/// What a recorder hears of a lock that is handed off: kinds and names of all metrics, and the labels of those that count
/// something.
#[derive(Default)]
struct Heard {
    metrics: Mutex<BTreeSet<(String, String)>>,
    labels: Mutex<BTreeSet<String>>,
}

impl Heard {
    fn now() -> Self {
        let heard = Self::default();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        metrics::with_local_recorder(&heard, || runtime.block_on(hand_off()));
        heard
    }

    fn describe(&self, kind: &str, name: &KeyName) {
        self.metrics.lock().unwrap().insert((kind.to_owned(), name.as_str().to_owned()));
    }

    fn register(&self, key: &Key) {
        self.labels.lock().unwrap().extend(key.labels().map(|label| label.key().to_owned()));
    }
}

async fn hand_off() {
    let locker = Locker::connect("memory://").await.unwrap();
    let holder = locker.lock("k").acquire().await.unwrap();
    let next = pin!(locker.lock("k").acquire());
    let (next, released) = tokio::join!(next, async {
        tokio::task::yield_now().await;
        holder.release().await
    });
    released.unwrap();
    next.unwrap().release().await.unwrap();
}

impl Recorder for Heard {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe("counter", &name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe("gauge", &name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe("histogram", &name);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.register(key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.register(key);
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.register(key);
        Histogram::noop()
    }
}

fn metrics() -> BTreeSet<(String, String)> {
    Heard::now().metrics.into_inner().unwrap()
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

fn labels() -> BTreeSet<String> {
    Heard::now().labels.into_inner().unwrap()
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
