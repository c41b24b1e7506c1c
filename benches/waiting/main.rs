//! Waiting for a lock: this crate beside its peers, in turns, against one server.
//!
//! `cargo bench --bench waiting` (`-- --quick`, `-- --any-core`, `-- --plot <file>`, `-- --scenarios <text>`, …); README.md explains
//! its output.

mod arguments;
mod contender;
mod figures;
mod goals;
mod launcher;
mod plot;
mod round;
mod runner;
mod scenario;
mod svg;
mod table;
mod workers;

use arguments::{Selection, Task};
use lockable_benches::{AwakeCores, Cores};
use runner::Runner;

fn main() {
    match arguments::read() {
        Task::Work { name, url } => workers::run(&name, &url),
        Task::Tables(pace, cores, selection) => {
            with_runner(cores, &selection, |runner| {
                table::print_all(runner, &pace, &selection.scenarios);
            });
        }
        Task::Plot(file, pace, cores, selection) => {
            with_runner(cores, &selection, |runner| plot::draw(runner, &pace, &file));
        }
    }
}

/// The server and everything beside it end with the runner, or with this process.
fn with_runner(cores: Cores, selection: &Selection, run: impl FnOnce(&mut Runner)) {
    let server = cores.server();
    let _awake = AwakeCores::start();
    let mut runner = Runner::new(server.url(), cores, &selection.contenders);
    run(&mut runner);
    runner.print_notes();
}
