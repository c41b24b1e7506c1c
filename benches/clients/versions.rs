//! What the figures are of.

use lockable_tests::Server;

/// Of the lock files that the two programs were built with, and as a server says.
pub(crate) fn print() {
    let of = |lock, name| version(lock, name).unwrap_or("?");
    println!(
        "redis: the crate {}, tokio {}\nlockable: {}, the crate redis {}, tokio {}\nserver: {}\n\
         Other versions may do otherwise.",
        of(PEERS, "redis"),
        of(PEERS, "tokio"),
        of(OURS, "lockable-runtime"),
        of(OURS, "redis"),
        of(OURS, "tokio"),
        server(),
    );
}

fn version(lock: &'static str, name: &str) -> Option<&'static str> {
    let start = format!("\nname = \"{name}\"\nversion = \"");
    let (_, rest) = lock.split_once(&start)?;
    rest.split('"').next()
}

/// The lines of `INFO` that name it.
fn server() -> String {
    let info = Server::start().admin().info("server");
    let is_version = |line: &&str| {
        ["server_name:", "redis_version:", "valkey_version:"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    info.lines().filter(is_version).collect::<Vec<_>>().join(", ")
}

const OURS: &str = include_str!("../../Cargo.lock");
const PEERS: &str = include_str!("../peers/rust/Cargo.lock");
