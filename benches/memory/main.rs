//! What keys that are used once leave at the server, and what calls in vain send.
//!
//! `cargo bench --bench memory` (`-- --quick`); README.md explains its output.

mod in_vain;
mod left;
mod orders;

use lockable_benches::contenders::{Order, Ours};
use lockable_benches::worker::{self, Flavour};
use lockable_benches::{Observer, Server};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments.as_slice() {
        ["--worker", url, ..] => worker::run(Flavour::MultiThread, async {
            worker::serve(Ours::connect(url, Order::Default).await).await;
        }),
        _ if arguments.contains(&"--quick") => measure(100_000),
        _ => measure(1_000_000),
    }
}

/// The server and everything beside it end with this.
fn measure(keys: u32) {
    let server = Server::start();
    let mut observer = Observer::new(&server.url());
    let grown = orders::lock_each(&server.url(), keys, &mut observer);
    left::print(keys, grown, &left::Left::look(observer.connection()));
    in_vain::print(&in_vain::measure(&server.url(), &mut observer));
}
