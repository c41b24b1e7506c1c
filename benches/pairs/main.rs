//! Acquire and release, uncontended: this crate beside the redis client alone and beside a peer.
//!
//! `cargo bench --bench pairs` (`-- --quick`, `-- --cases <text>`, …); README.md explains its output.

mod arguments;
mod case;
mod contender;
mod entrant;
mod figures;
mod goals;
mod runner;
mod same;
mod table;

use arguments::{Arguments, Task};
use lockable_benches::AwakeCores;
use lockable_benches::worker::Flavour;

fn main() {
    match arguments::read() {
        Task::Work { name, flavour, url } => contender::work(&name, flavour, &url),
        Task::Measure(arguments) => measure(&arguments),
    }
}

/// The servers and everything beside them end with the runner, or with this process.
fn measure(arguments: &Arguments) {
    let _awake = AwakeCores::start();
    println!("{} rounds; medians (least to most)", arguments.pace.rounds);
    let flavours = [Flavour::CurrentThread, Flavour::MultiThread].into_iter();
    for flavour in flavours.filter(|flavour| arguments.includes_flavour(*flavour)) {
        let mut runner = runner::Runner::new(flavour, arguments);
        for case in case::all().into_iter().filter(|case| arguments.includes_case(case)) {
            let rows = runner.rows(&case);
            table::print(&case, flavour, &rows);
            goals::print(&case, flavour, &rows);
        }
    }
}
