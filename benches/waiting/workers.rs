//! The contenders that are processes of this bench.

mod limit;
mod ping;
mod queued;

use lockable_benches::contenders::{Bare, Order, Ours};
use lockable_benches::worker::{self, Flavour};

use self::queued::{Nothing, Queued};

/// On the runtime that `#[tokio::main]` makes.
pub(crate) fn run(name: &str, url: &str) {
    worker::run(Flavour::MultiThread, async {
        match name {
            "lockable" => worker::serve(Ours::connect(url, Order::Default).await).await,
            "lockable fair" => worker::serve(Ours::connect(url, Order::Fair).await).await,
            "limit" => worker::serve(Queued::new(limit::contender(url).await)).await,
            "mutex" => worker::serve(Queued::new(Nothing)).await,
            "mutex and PING" => worker::serve(Queued::new(ping::contender(url).await)).await,
            "bare" => worker::serve(Bare::connect(url).await).await,
            "ping" => worker::serve(ping::contender(url).await).await,
            _ => panic!("there is no {name}"),
        }
    });
}
