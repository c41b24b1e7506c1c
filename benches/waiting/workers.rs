//! The contenders that are processes of this bench.

mod bare;
mod client;
mod limit;
mod ours;
mod ping;
mod queued;

use lockable_benches::worker;
use tokio::runtime::Runtime;

use self::queued::{Nothing, Queued};

/// The lease, which no round outlives.
const LEASE_MS: u64 = 10_000;
const OWNER: &str = "0123456789abcdef.1234567";

/// On the runtime that `#[tokio::main]` makes.
pub(crate) fn run(name: &str, url: &str) {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        match name {
            "lockable" => worker::serve(ours::contender(url, ours::Order::Default).await).await,
            "lockable fair" => worker::serve(ours::contender(url, ours::Order::Fair).await).await,
            "limit" => worker::serve(Queued::new(limit::contender(url).await)).await,
            "mutex" => worker::serve(Queued::new(Nothing)).await,
            "mutex and PING" => worker::serve(Queued::new(ping::contender(url).await)).await,
            "bare" => worker::serve(bare::contender(url).await).await,
            "ping" => worker::serve(ping::contender(url).await).await,
            _ => panic!("there is no {name}"),
        }
    });
}
