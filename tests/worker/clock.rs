//! A process that prints what the clock of its leases shows, in nanoseconds: `faults/suspension.rs` starts it.

use lockable_runtime::__internals::Verbs;

pub(crate) fn main() {
    // Nothing listens there, and nothing connects.
    let verbs = Verbs::open("redis://127.0.0.1:1").unwrap();
    println!("{}", verbs.now().as_nanos());
}
