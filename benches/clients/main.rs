//! Two clients for a Redis Cluster and for Sentinels under load, while something happens to the servers: ours and that of
//! the crate `redis`, in turns, each with servers of its own.
//!
//! `cargo bench --bench clients` (`-- --quick`, `-- --only <text>`); README.md explains its output.

mod arguments;
mod contender;
mod load;
mod moments;
mod ours;
mod outcome;
mod run;
mod scenario;
mod servers;
mod table;
mod timeline;
mod versions;

use arguments::{Selection, Task};
use contender::Contender;
use load::Tags;
// `load` finds it here in each program.
use lockable_benches::monotonic;
use scenario::Scenario;

fn main() {
    match arguments::read() {
        Task::Work { url, tags: [concerned, others] } => {
            ours::work(&url, &Tags::parse([&concerned, &others]));
        }
        Task::Tables(selection) => print_all(&selection),
    }
}

fn print_all(selection: &Selection) {
    versions::print();
    for scenario in Scenario::ALL {
        let contenders = Contender::ALL.into_iter();
        let chosen: Vec<_> = contenders.filter(|it| selection.has(scenario, *it)).collect();
        if !chosen.is_empty() {
            table::print(scenario, &chosen, selection.pace);
        }
    }
}
