//! The peers in Rust as a worker of `cargo bench --bench waiting`: `<name> <url>`.

#[path = "../../../src/clock.rs"]
mod clock;
mod distributed_lock;
mod rslock;
#[path = "../../../src/worker/mod.rs"]
mod worker;

use clock::monotonic;

/// The lease where a peer has no default of its own, as long as ours.
const LEASE: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rslock", url] => worker::serve(rslock::contender(url)).await,
        ["distributed-lock", url] => worker::serve(distributed_lock::contender(url).await).await,
        _ => panic!("usage: <name> <url>"),
    }
}
