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
mod waiting;

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
    let table = Table::read()?;
    let counted = measured(Contender::COMPARED)?;
    let comparison = compare::compare(&table, &counted)?;
    println!("\n{}", comparison.basis);
    if comparison.differences.is_empty() {
        return Ok(());
    }
    let differences = comparison.differences.join("\n");
    Err(format!("{differences}\nif that is meant, run `cargo xtask counts --write`"))
}

/// Measures, and writes the part of the table for this server again.
fn write() -> Result<(), String> {
    let mut table = Table::read()?;
    table.replace(measured(Contender::ALL)?);
    table.write()?;
    readme::write(&table)
}

/// Measures all, and prints it.
fn measured(contenders: &[Contender]) -> Result<Part, String> {
    let place = Place::here()?;
    let (pairs, openings, waiting) = (measure::all(contenders)?, opening::all()?, waiting::all()?);
    println!(
        "{place}\n\n{}\n{}\n{}",
        report::of(&pairs),
        opening::report(&openings),
        waiting::report(&waiting)
    );
    Ok(Part { place, pairs, openings, waiting })
}
