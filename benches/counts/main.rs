//! What a pair and a new connection take, in counts that a busy machine does not change, beside the table `counts.toml`.
//!
//! `cargo xtask counts` runs it; README.md explains its output.

mod case;
mod compare;
mod contender;
mod figures;
mod measure;
mod opening;
mod place;
mod readme;
mod report;
mod table;
mod tools;

use std::process::ExitCode;

use contender::Contender;
use place::Place;
use table::{Part, Table};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check(),
        ["--write"] => write(),
        ["--worker", name, _, url] => {
            contender::work(name, url);
            Ok(())
        }
        _ => Err("usage: counts [--write]".to_owned()),
    };
    outcome.map_or_else(
        |problem| {
            eprintln!("{problem}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Measures, and fails with the differences from the table.
fn check() -> Result<(), String> {
    let (table, place) = (Table::read()?, Place::here()?);
    let (pairs, openings) = (measure::all(Contender::COMPARED)?, opening::all()?);
    println!("{place}\n\n{}\n{}", report::of(&pairs), opening::report(&openings));
    let comparison = compare::compare(&table, &place, &pairs, &openings)?;
    println!("\n{}", comparison.basis);
    if comparison.differences.is_empty() {
        return Ok(());
    }
    let differences = comparison.differences.join("\n");
    Err(format!("{differences}\nif that is meant, run `cargo xtask counts --write`"))
}

/// Measures, and writes the part of the table for this server again.
fn write() -> Result<(), String> {
    let (mut table, place) = (Table::read()?, Place::here()?);
    let (pairs, openings) = (measure::all(Contender::ALL)?, opening::all()?);
    println!("{place}\n\n{}\n{}", report::of(&pairs), opening::report(&openings));
    table.replace(Part { place, pairs, openings });
    table.write()?;
    readme::write(&table)
}
