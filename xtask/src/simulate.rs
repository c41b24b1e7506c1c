//! `cargo xtask simulate`: the simulation of the client, with more seeds than a test run has.

use crate::shell;

/// The arguments, and the variables by which the simulation knows them.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("--seeds", "LOCKABLE_SIMULATION_SEEDS", "10000"),
    ("--from", "LOCKABLE_SIMULATION_FROM", "1"),
    ("--millis", "LOCKABLE_SIMULATION_MILLIS", "10000"),
];

const TEST: &str = "simulation::every_seed_keeps_the_rules";

pub(crate) const USAGE: &str = "simulate [--seeds N] [--from SEED] [--millis M]";

/// Runs the simulation in optimised code; one seed alone prints all that happens in it.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let mut values = OPTIONS.map(|(.., default)| default.to_owned());
    while let Some(name) = arguments.next() {
        let place = OPTIONS.iter().position(|(known, ..)| *known == name);
        let value = arguments.next().filter(|value| value.parse::<u64>().is_ok());
        let (Some(place), Some(value)) = (place, value) else {
            return Err(format!("usage: cargo xtask {USAGE}"));
        };
        if let Some(slot) = values.get_mut(place) {
            *slot = value;
        }
    }
    let mut cargo = shell::cargo(&["test", "--profile", "simulation", "-p", "lockable-runtime"]);
    cargo.args(["--all-features", "--lib", "--", "--exact", TEST, "--nocapture"]);
    cargo.envs(OPTIONS.iter().zip(values).map(|((_, variable, _), value)| (variable, value)));
    Ok(shell::show(&mut cargo))
}
