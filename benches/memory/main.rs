//! What keys that are used once leave at the server, and what calls in vain send.
//!
//! `cargo bench --bench memory` (`-- --quick`); README.md explains its output.

mod in_vain;
mod left;
mod orders;

use lockable_benches::contenders::{Order, Ours};
use lockable_benches::worker::{self, Flavour};
use lockable_benches::{CommandLine, Observer, Server};

fn main() {
    let typed = CommandLine::read(&["--quick"], &[]);
    match typed.text("--worker") {
        Some(url) => worker::run(Flavour::MultiThread, async {
            worker::serve(Ours::connect(url, Order::Default).await).await;
        }),
        None => measure(if typed.has("--quick") { 100_000 } else { 1_000_000 }),
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
