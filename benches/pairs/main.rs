//! Acquire and release, uncontended: this crate beside the redis client alone and beside a peer.
//!
//! `cargo bench --bench pairs` (`-- --quick`, `-- --cases <text>`, …); README.md explains its output.

mod arguments;
mod case;
mod contender;
mod entrant;
mod figures;
mod goals;
mod row;
mod table;

use arguments::{Arguments, Task};
use contender::{Contender, Launcher};
use lockable_benches::AwakeCores;

fn main() {
    match arguments::read() {
        Task::Work { name, flavour, url } => contender::work(&name, flavour, &url),
        Task::Measure(arguments) => measure(&arguments),
    }
}

/// Everything that is started ends with a case, or with this process.
fn measure(arguments: &Arguments) {
    let launchers: Vec<Launcher> =
        arguments.contenders().filter_map(|contender| launcher(contender, arguments)).collect();
    let _awake = AwakeCores::start();
    println!("medians (quartiles)");
    let mut summary = Vec::new();
    for case in arguments.cases() {
        eprintln!("{}", case.name());
        let rows = row::measure(&case, &launchers, arguments);
        table::print(&case, &rows);
        goals::print(&case, &rows);
        summary.push((case, rows));
    }
    table::summarize(&summary);
}

/// A contender that cannot be had is left out.
fn launcher(contender: Contender, arguments: &Arguments) -> Option<Launcher> {
    let note = |why| println!("note: {} is left out: {why}", contender.name());
    contender.launcher(arguments.before.as_ref()).map_err(note).ok()
}
