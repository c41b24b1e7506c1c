//! How long things take: each row is a figure beside its bound, and beside what the machine itself was late by.
//!
//! `cargo xtask timings` runs it, alone on a quiet machine; with an argument, the groups that have it in their names.
//! What must hold on every machine is a test, and in no row.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

mod contract;
mod crowds;
mod deadlines;
mod failovers;
mod machine;
mod program;
mod shares;
mod waiting;

use machine::Machine;

/// One thing that was measured.
struct Figure {
    name: String,
    took: Duration,
    bound: Duration,
}

impl Figure {
    fn new(name: impl Into<String>, took: Duration, bound: Duration) -> Self {
        Self { name: name.into(), took, bound }
    }
}

/// What belongs together, and is measured in one go.
type Measure = fn() -> Vec<Figure>;

const GROUPS: &[(&str, Measure)] = &[
    ("hand-off", waiting::hand_off),
    ("alternation", waiting::all_permits),
    ("once", contract::once),
    ("failovers with Sentinels", failovers::sentinel),
    ("failovers in a cluster", failovers::cluster),
    ("sets", shares::sets),
    ("permits", shares::permits),
    ("lockable run", program::command),
    ("deadlines", deadlines::deadlines),
    ("losses", deadlines::losses),
    ("frozen Sentinels", deadlines::sentinels),
    ("leaders", deadlines::leaders),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let wanted =
        env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let groups: Vec<_> = GROUPS.iter().filter(|(group, _)| group.contains(&wanted)).collect();
    if groups.is_empty() {
        let names: Vec<_> = GROUPS.iter().map(|(group, _)| *group).collect();
        eprintln!("no group has `{wanted}` in its name; there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    println!("{:<60} {:>12} {:>12} {:>12}", "", "took", "bound", "machine late");
    let mut missed = 0;
    for (group, measure) in groups {
        let machine = Machine::watch();
        let figures = measure();
        let late = machine.late();
        for Figure { name, took, bound } in figures {
            let mark = if took <= bound { "" } else { "  MISSED" };
            missed += usize::from(took > bound);
            let name = format!("{group}: {name}");
            println!("{name:<60} {:>12} {:>12} {:>12}{mark}", ms(took), ms(bound), ms(late));
        }
    }
    println!("{missed} missed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Runs a measurement on a runtime of its own.
fn block_on<T>(measurement: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime").block_on(measurement)
}

#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
