//! What the tests share: lockers, limits, and the body that must or must not run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker, LockerBuilder, distributed_lock};
use lockable_tests::{Proxy, Server, ServerBuilder, wait};

/// How long a test waits for what must come.
pub(crate) const LIMIT: Duration = wait::HANG;

/// For leases, deadlines and limits that no test reaches: a test that hangs fails first.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// Deadlines that a test can wait for, and that answers meet where they are to be met.
pub(crate) const COMMAND: Duration = Duration::from_millis(800);
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

/// The processes that tests start: `worker KIND ARGUMENTS`.
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// A locker with the defaults, but for the lease.
pub(crate) async fn connect(url: &str) -> Locker {
    patient(url).connect().await.unwrap()
}

/// The defaults, but for the lease.
pub(crate) fn patient(url: &str) -> LockerBuilder {
    Locker::builder().url(url).expire(LONG)
}

/// A long lease, and deadlines that only a call that hangs reaches: for tests that are about no deadline.
pub(crate) fn ample(url: &str) -> LockerBuilder {
    patient(url).command_deadline(LONG).connect_deadline(LONG)
}

/// A locker with those.
pub(crate) async fn connect_ample(url: &str) -> Locker {
    ample(url).connect().await.unwrap()
}

/// Short deadlines and a long lease.
pub(crate) fn impatient(url: &str) -> LockerBuilder {
    patient(url).command_deadline(COMMAND).connect_deadline(CONNECT)
}

pub(crate) async fn server_and_locker() -> (Server, Locker) {
    let server = Server::start();
    let locker = connect_ample(&server.url()).await;
    (server, locker)
}

pub(crate) fn server_and_proxy() -> (Server, Proxy) {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    (server, proxy)
}

/// The error of a release that found nothing on a new connection: it did it, or the lock was lost before.
pub(crate) fn is_unsure(error: &LockError) {
    assert!(error.is_unavailable() && error.to_string().contains("is unknown"), "{error}");
}

/// The name in the server of the lock that the tests call `k`.
/// The begin of the command by which a client asks for RESP3, as it goes out.
pub(crate) const HELLO_3: &str = "HELLO\r\n$1\r\n3";

pub(crate) const KEY: &str = "disLock:k";

/// The companion key that the fencing tokens of `k` come from.
pub(crate) const FENCE: &str = "lockable:fence:{1S3}";

/// The line for a server that the documentation of `Locker::check` gives, word by word.
pub(crate) fn acl_line() -> Vec<&'static str> {
    acl_lines().next().unwrap()
}

/// The same for a Sentinel.
pub(crate) fn acl_line_of_sentinels() -> Vec<&'static str> {
    acl_lines().nth(1).unwrap()
}

/// The same for a node of a cluster.
pub(crate) fn acl_line_of_nodes() -> Vec<&'static str> {
    acl_lines().nth(2).unwrap()
}

fn acl_lines() -> impl Iterator<Item = Vec<&'static str>> {
    let text = include_str!("../../lockable-runtime/acl.md");
    let lines = text.lines().filter(|line| line.starts_with("ACL SETUSER "));
    lines.map(|line| line.split_whitespace().collect())
}

/// What a user needs, one rule a word.
pub(crate) fn acl_rights() -> Vec<&'static str> {
    rights(acl_line())
}

/// The rules among the words of such a line.
pub(crate) fn rights(line: Vec<&'static str>) -> Vec<&'static str> {
    line.into_iter().filter(|word| word.starts_with(['+', '~', '&'])).collect()
}

/// Adds the user of such a line to servers under another name, without some of its rights.
pub(crate) fn set_user<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    mut line: Vec<&'a str>,
    name: &'a str,
    lacking: &[&str],
) {
    line.retain(|word| !lacking.contains(word));
    line[2] = name;
    for server in servers {
        server.admin().command::<()>(&line);
    }
}

/// A Sentinel of its own that watches the server at this address under each of these names.
pub(crate) fn sentinel_of(server: SocketAddr, names: &[&str]) -> ServerBuilder {
    let monitor = |name: &&str| format!("monitor {name} {} {} 1", server.ip(), server.port());
    let lines = names.iter().map(monitor);
    lines.fold(Server::builder().sentinel(), |builder, line| builder.config("sentinel", &line))
}

#[expect(clippy::disallowed_methods, reason = "a deadline is tested in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets the reply go that is held, and holds the script which the call then asks for.
pub(crate) async fn second_request_held(proxy: &Proxy) {
    let scripts = proxy.commands("EVALSHA");
    proxy.wait_reply_held(LIMIT).await;
    proxy.hold_requests();
    proxy.release_replies();
    proxy.wait_for_command("EVALSHA", scripts + 1, LIMIT).await;
}

/// Waits until the lock `k` has no holder.
pub(crate) async fn freed(server: &Server) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.get(KEY).is_none()).await;
}

/// [`freed`] for a test without a runtime.
pub(crate) fn freed_blocking(server: &Server) {
    let admin = server.admin();
    wait::until(LIMIT, || admin.get(KEY).is_none());
}

/// Counts how often a body, or a callback, has run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<AtomicU64>);

impl Runs {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn add(&self) {
        self.next();
    }

    /// Counts this one, and gives its number, from 1 on.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// A decorated function whose body says that it ran.
#[distributed_lock(key = "k", expire = 300, locker = locker.clone())]
pub(crate) async fn decorated(locker: &Locker, runs: &Runs) -> Result<u64, LockError> {
    runs.add();
    Ok(runs.count())
}

/// Everything that an error shows, in any way.
pub(crate) fn everything(error: &(dyn std::error::Error + 'static)) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.fold(String::new(), |all, error| all + &format!("{error}\n{error:?}\n{error:#?}\n"))
}

/// Time since the machine booted: the clock of the leases, which counts while a process is
/// stopped.
pub(crate) fn boot_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::Boottime).try_into().unwrap()
}

/// How long a holder may count on a lease, from the moment it asked for it.
pub(crate) fn usable(expire: Duration) -> Duration {
    (expire * 99 / 100).saturating_sub(Duration::from_millis(2))
}

/// Lets time itself go by, where that is the subject.
#[expect(clippy::disallowed_methods, reason = "what must not happen has no event")]
pub(crate) async fn elapse(duration: Duration) {
    tokio::time::sleep(duration).await;
}
