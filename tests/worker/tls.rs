//! A program that connects over TLS with the root certificates of its environment: `faults/tls/roots.rs`
//! starts it.
//!
//! `worker tls URL` prints `connected`, or why not; `worker tls URL FILE` trusts the authority of the file
//! instead. `worker tls URL install FILE ROOTS` prints why it cannot connect, puts the file in the place of
//! the system's root certificates, and connects again.

use std::fs;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, Pem};
use tokio::runtime::Builder;

pub(crate) fn main(arguments: &[String]) {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let limit = Duration::from_secs(10);
    let builder = Locker::builder().url(arguments[0]).connect_deadline(limit);
    let builder = builder.command_deadline(limit);
    let locker = match arguments[1..] {
        [file] => builder.root_certificate(Pem::file(file)),
        _ => builder,
    };
    let locker = locker.connect_lazy().unwrap();
    say(runtime.block_on(locker.lock("k").try_acquire()).map(drop));
    if let [_, "install", file, roots] = arguments[..] {
        fs::copy(file, roots).unwrap();
        say(runtime.block_on(locker.lock("k").try_acquire()).map(drop));
    }
}

fn say(outcome: Result<(), LockError>) {
    match outcome {
        Ok(()) => println!("connected"),
        Err(error) => println!(
            "{:?}: {}",
            error.kind(),
            error.to_string().replacen("lock `disLock:k`: ", "", 1)
        ),
    }
}
