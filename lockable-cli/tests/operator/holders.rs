//! Processes that hold locks, and that wait for them.

use lockable_tests::{Server, wait};

use crate::program::{LIMIT, Running, lockable};

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

/// The incident of the texts: one service holds an order for long, another one waits for it.
pub(crate) fn incident(server: &Server) -> Vec<Running> {
    let holder = service(server, "checkout", "order:7", &["--request-id", "checkout-7"]);
    let job = service(server, "batch", "report:2026", &["--request-id", "nightly"]);
    let options = ["--request-id", "cart-12", "--wait"];
    let waiter = service(server, "cart", "order:7", &options);
    let admin = server.admin();
    wait::until(LIMIT, || admin.command::<i64>(&["LLEN", "lockable:queue:{disLock:order:7}"]) == 1);
    listening(server, 2);
    vec![holder, job, waiter]
}

/// Waits until that many holders hear an operator: a second after their grants.
pub(crate) fn listening(server: &Server, holders: usize) {
    let admin = server.admin();
    wait::until(LIMIT, || {
        let channels: Vec<String> = admin.command(&["PUBSUB", "CHANNELS", "lockable:revoke:*"]);
        channels.len() == holders
    });
}
