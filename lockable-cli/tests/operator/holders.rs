//! Processes that hold locks, and that wait for them.

use lockable_tests::Server;

use crate::program::{Running, listening, lockable, queued};

/// A service that has a lock, or waits for it, as a process of its own.
pub(crate) fn service(server: &Server, name: &str, key: &str, options: &[&str]) -> Running {
    service_at(&server.url(), name, key, options)
}

/// The same where there are several servers.
pub(crate) fn service_at(url: &str, name: &str, key: &str, options: &[&str]) -> Running {
    let mut command = lockable(url);
    command.env("OTEL_SERVICE_NAME", name).args(["run", "--key", key, "--kill-after", "2s"]);
    command.args(options).args(["--", "sh", "-c", "echo $$; read line"]);
    let waits = options.contains(&"--wait");
    Running::of(command, usize::from(!waits))
}

/// A service with the lock `order:7`, which hears an operator.
pub(crate) fn shop() -> (Server, Running) {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &[]);
    listening(&server, 1);
    (server, holder)
}

/// The incident of the texts: one service holds an order for long, another one waits for it.
pub(crate) fn incident(server: &Server) -> Vec<Running> {
    let holder = service(server, "checkout", "order:7", &["--request-id", "checkout-7"]);
    let job = service(server, "batch", "report:2026", &["--request-id", "nightly"]);
    let options = ["--request-id", "cart-12", "--wait"];
    let waiter = service(server, "cart", "order:7", &options);
    queued(server, "order:7");
    listening(server, 2);
    vec![holder, job, waiter]
}
