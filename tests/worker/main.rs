//! The processes that tests start, stop and kill: `worker KIND ARGUMENTS`. Each kind is a file, which says what its
//! arguments are.
//!
//! One program for all of them links what they share once.

use std::env;

mod clock;
mod exit;
mod fork;
mod late_writer;
mod lead;
mod queue;
mod secrets;
mod step;
mod stock;
mod tls;
mod wait;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (kind, arguments) = arguments.split_first().expect("a kind of worker");
    match kind.as_str() {
        "clock" => clock::main(),
        "exit" => exit::main(arguments),
        "fork" => fork::main(arguments),
        "late_writer" => late_writer::main(arguments),
        "lead" => lead::main(arguments),
        "queue" => queue::main(arguments),
        "secrets" => secrets::main(arguments),
        "step" => step::main(arguments),
        "stock" => stock::main(arguments),
        "tls" => tls::main(arguments),
        "wait" => wait::main(arguments),
        other => panic!("{other}"),
    }
}
