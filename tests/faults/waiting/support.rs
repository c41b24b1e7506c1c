//! What the tests of waiting share: waiters, what they cost, and who is in the queue.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use lockable_runtime::__internals::rechecks_later;
use lockable_runtime::{LockError, LockGuard, Locker, LockerBuilder};
use lockable_tests::{Admin, Peer, Proxy, Server, wait};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{COMMAND, KEY, LIMIT, LONG, WORKER, patient, server_and_proxy};

/// The companion key of the queue, in which the waiters of `k` are stored.
pub(crate) const QUEUE: &str = "lockable:queue:{disLock:k}";

/// A locker whose deadlines no test reaches, and whose waiting calls ask by themselves only once a test hangs: a message
/// serves them.
pub(crate) fn ample(url: &str) -> LockerBuilder {
    rechecks_later(rechecking(url), LONG)
}

/// The same, whose calls ask by themselves as soon as usual.
pub(crate) fn rechecking(url: &str) -> LockerBuilder {
    patient(url).command_deadline(LONG).connect_deadline(LONG)
}

pub(crate) async fn connect(url: &str) -> Locker {
    ample(url).connect().await.unwrap()
}

pub(crate) async fn connect_rechecking(url: &str) -> Locker {
    rechecking(url).connect().await.unwrap()
}

/// Such a locker, which listens: no later query is asked because of its subscription.
pub(crate) async fn listening(server: &Server, url: &str) -> Locker {
    let (locker, holder) = (connect(url).await, connect(&server.url()).await);
    // A subscription that is new has its lines ask once more.
    for _ in 0..2 {
        let guard = holder.lock("k").acquire().await.unwrap();
        let waiter = in_queue(server, &locker).await;
        guard.release().await.unwrap();
        is_served_last(server, waiter).await;
    }
    locker
}

/// Such a locker behind a proxy.
pub(crate) async fn behind_proxy() -> (Server, Proxy, Locker) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    (server, proxy, locker)
}

/// One whose commands have a short deadline.
pub(crate) async fn impatient_behind_proxy() -> (Server, Proxy, Locker) {
    let (server, proxy) = server_and_proxy();
    let locker = rechecking(&proxy.url()).command_deadline(COMMAND).connect().await.unwrap();
    (server, proxy, locker)
}

pub(crate) async fn server_and_locker() -> (Server, Locker) {
    server_and(ample).await
}

pub(crate) async fn server_and(builder: fn(&str) -> LockerBuilder) -> (Server, Locker) {
    let server = Server::start();
    let locker = builder(&server.url()).connect().await.unwrap();
    (server, locker)
}

/// A server with a holder of `k`, and a locker of its own for others.
pub(crate) async fn held() -> (Server, Locker, LockGuard) {
    held_beside(ample).await
}

pub(crate) async fn held_beside(builder: fn(&str) -> LockerBuilder) -> (Server, Locker, LockGuard) {
    let (server, locker) = server_and(builder).await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    (server, locker, guard)
}

/// The same, with a waiter in the queue.
pub(crate) async fn waited_for() -> (Server, LockGuard, JoinHandle<LockGuard>) {
    waited_for_by(ample).await
}

pub(crate) async fn waited_for_by(
    builder: fn(&str) -> LockerBuilder,
) -> (Server, LockGuard, JoinHandle<LockGuard>) {
    let (server, locker, guard) = held_beside(builder).await;
    let waiter = in_queue(&server, &locker).await;
    (server, guard, waiter)
}

/// As [`held`], where the others are behind a proxy.
pub(crate) async fn held_beside_proxy() -> (Server, Proxy, Locker, LockGuard) {
    let (server, proxy) = server_and_proxy();
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let locker = connect(&proxy.url()).await;
    (server, proxy, locker, guard)
}

/// A lock that is waited for by a task of its own.
pub(crate) fn waiter(locker: &Locker) -> JoinHandle<LockGuard> {
    let request = locker.lock("k").wait(LONG);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

/// The same for a call that may fail.
pub(crate) fn call(locker: &Locker) -> JoinHandle<Result<LockGuard, LockError>> {
    tokio::spawn(locker.lock("k").wait(LONG).acquire())
}

/// A waiter of a process that is in the queue from now on.
pub(crate) async fn in_queue(server: &Server, locker: &Locker) -> JoinHandle<LockGuard> {
    let before = places(&server.admin());
    let waiter = waiter(locker);
    queued(server, before + 1).await;
    waiter
}

/// Waits until `count` processes are in the queue of `k`.
pub(crate) async fn queued(server: &Server, count: usize) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || places(&admin) == count).await;
}

/// How many processes are in the queue of `k`.
pub(crate) fn places(admin: &Admin) -> usize {
    admin.command(&["LLEN", QUEUE])
}

/// The owner tokens in the queue of `k`.
pub(crate) fn owners_in_queue(admin: &Admin) -> Vec<String> {
    let entries: Vec<String> = admin.command(&["LRANGE", QUEUE, "0", "-1"]);
    let owner = |entry: &String| Some(entry.split_once(' ')?.1.to_owned());
    entries.iter().map(|entry| owner(entry).expect("an entry has two parts")).collect()
}

/// Where the owner tokens begin of all that wait in the process of this one.
pub(crate) fn origin(owner: &str) -> &str {
    owner.split_once('.').expect("a waiter's token has two parts").0
}

/// Publishes this to the process of that owner token, which hears it.
pub(crate) fn publish(admin: &Admin, owner: &str, text: &str) {
    let channel = format!("lockable:grant:{}", origin(owner));
    assert_eq!(admin.command::<u64>(&["PUBLISH", &channel, text]), 1);
}

/// How many connections have subscribed.
pub(crate) fn subscribers(admin: &Admin) -> usize {
    admin.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count()
}

pub(crate) fn kill_subscribers(admin: &Admin) {
    assert!(admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]) > 0);
}

/// The waiter is served, and releases.
pub(crate) async fn is_served(waiter: JoinHandle<LockGuard>) {
    let guard = wait::ends(waiter).await.unwrap();
    guard.release().await.unwrap();
}

/// The same for the last one: nothing is left behind it.
pub(crate) async fn is_served_last(server: &Server, waiter: JoinHandle<LockGuard>) {
    is_served(waiter).await;
    is_over(server).await;
}

/// Releases the lock, and nothing is left behind it.
pub(crate) async fn release_last(server: &Server, guard: LockGuard) {
    guard.release().await.unwrap();
    is_over(server).await;
}

/// All of them are served, in any order.
pub(crate) async fn are_served(waiters: impl IntoIterator<Item = JoinHandle<LockGuard>>) {
    let served: JoinSet<_> = waiters.into_iter().map(is_served).collect();
    wait::ends(served.join_all()).await;
}

/// In the end the lock has no holder, and the queue is empty.
pub(crate) async fn is_over(server: &Server) {
    let admin = server.admin();
    let is_over = async || admin.command::<usize>(&["EXISTS", KEY, QUEUE]) == 0;
    wait::until_async(LIMIT, is_over).await;
}

/// Waits until a renewal made the lease longer, or it was lost.
pub(crate) async fn renewed(guard: &LockGuard) {
    let mut before = guard.lease().remaining();
    wait::until_async(LIMIT, async || {
        let now = guard.lease().remaining();
        let is_renewed = now > before || guard.lease().is_lost();
        before = now;
        is_renewed
    })
    .await;
}

/// Another number each time.
pub(crate) fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}

/// A process that reads its orders from its input; see `worker/wait.rs`.
pub(crate) fn process(url: &str) -> Peer {
    let peer = Peer::start(WORKER, ["wait", url]);
    assert_eq!(peer.hear(), "ready");
    peer
}
