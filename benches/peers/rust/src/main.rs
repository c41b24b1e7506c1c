//! The peers in Rust as a worker of the benches: `<name> <kind of runtime> <url>`, or `clients …`.

mod clients;
#[path = "../../../src/clock.rs"]
mod clock;
mod distributed_lock;
#[path = "../../../clients/load/mod.rs"]
mod load;
mod rslock;
#[path = "../../../src/worker/mod.rs"]
mod worker;

use clock::{cpu_time, monotonic};
use worker::Flavour;

/// The lease where a peer has no default of its own, as long as ours.
const LEASE: std::time::Duration = std::time::Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == "clients"
    {
        return clients::work(rest);
    }
    let [name, flavour, url] = arguments.as_slice() else {
        panic!("usage: <name> <kind of runtime> <url>");
    };
    worker::run(Flavour::of(flavour).expect("a kind of runtime"), async {
        match name.as_str() {
            "rslock" => worker::serve(rslock::contender(url)).await,
            "distributed-lock" => worker::serve(distributed_lock::contender(url).await).await,
            _ => panic!("there is no {name}"),
        }
    });
}
