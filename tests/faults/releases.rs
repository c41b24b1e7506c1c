//! Many releases at once, which are batched.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use lockable_runtime::{LockError, LockGuard, LockRequest, Locker};
use lockable_tests::{Admin, Proxy, Server, cluster, wait};
use rstest::rstest;

use crate::support::{LIMIT, LONG};
use crate::waiting::support::{behind_proxy, connect};

/// More than may be in flight, and more than one batch.
pub(crate) const MANY: usize = 100;

#[tokio::test]
async fn a_hundred_releases_at_once_take_eleven_commands() {
    let (server, proxy, locker) = behind_proxy().await;
    for _ in 0..3 {
        let guards = hold_many(&locker).await;
        let start = scripts(&proxy);
        all_are_released(begin(guards)).await;
        // Eight by themselves, and the others in batches of thirty-two.
        assert_eq!(scripts(&proxy) - start, 8 + 3);
        assert_eq!(held(&server.admin()), 0);
    }
}

/// Calls by name, and by text where the server did not know the name.
fn scripts(proxy: &Proxy) -> u64 {
    proxy.commands("EVALSHA") + proxy.commands("EVAL")
}

/// No release waits for an answer to another one.
#[tokio::test]
async fn many_releases_are_sent_before_any_is_answered() {
    const CROWD: usize = 600;
    let (_server, proxy, locker) = behind_proxy().await;
    let guards = hold(&locker, CROWD, |request| request).await;
    let start = scripts(&proxy);
    proxy.hold_open_replies();
    let releases = begin(guards);
    let commands = 8 + (CROWD - 8).div_ceil(32);
    let end = start + u64::try_from(commands).unwrap();
    wait::until_async(LIMIT, async || scripts(&proxy) >= end).await;
    proxy.release_replies();
    all_are_released(releases).await;
}

#[tokio::test]
async fn releases_do_not_wait_for_unpolled_ones() {
    let (_server, proxy, locker) = behind_proxy().await;
    let mut releases = begin(hold_many(&locker).await);
    releases.reverse();
    all_are_released(releases).await;
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn each_of_many_releases_returns_its_own_result() {
    let (server, _proxy, locker) = behind_proxy().await;
    let admin = server.admin();
    let guards = hold_many(&locker).await;
    for n in (0..MANY).step_by(5) {
        admin.del(&name(n));
        admin.set(&name(n + 1), "another's");
        admin.del(&name(n + 2));
        admin.command::<u64>(&["RPUSH", &name(n + 2), "data"]);
        admin.set(&format!("lockable:queue:{{{}}}", name(n + 3)), "data");
    }
    for (n, release) in begin(guards).into_iter().enumerate() {
        let found = release.await.map_err(|error| (error.is_lost(), error.is_taken()));
        let expected = match n % 5 {
            0 => Err((true, false)),
            1 | 2 => Err((true, true)),
            _ => Ok(()),
        };
        assert_eq!(found, expected, "{n}");
    }
    assert_eq!(held(&admin), 2 * MANY / 5, "what belongs to others stays");
}

#[tokio::test]
async fn a_batched_release_hands_off_to_its_waiter() {
    let (server, _proxy, locker) = behind_proxy().await;
    let other = connect(&server.url()).await;
    let guards = hold_many(&locker).await;
    let waiting = tokio::spawn(other.lock(key(MANY - 1)).wait(LONG).acquire());
    let admin = server.admin();
    queued(&admin, MANY - 1).await;
    let granted = admin.command_calls("publish");
    all_are_released(begin(guards)).await;
    // The waiter would find a free lock when it asks again, and would be granted that without a message.
    assert_eq!(admin.command_calls("publish"), granted + 1);
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(held(&admin), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn many_releases_at_once_keep_their_minimum_holds() {
    let (server, _proxy, locker) = behind_proxy().await;
    let guards = hold(&locker, MANY, |request| request.min_hold(LONG)).await;
    all_are_released(begin(guards)).await;
    assert_eq!(held(&server.admin()), MANY);
    for n in [0, MANY - 1] {
        assert!(locker.lock(key(n)).try_acquire().await.unwrap_err().is_busy(), "{n}");
    }
}

/// Those in flight alone, or all of them.
#[rstest]
#[tokio::test]
async fn dropped_releases_are_still_done(#[values(8, MANY)] count: usize) {
    let (server, proxy, locker) = behind_proxy().await;
    let guards = hold_many(&locker).await;
    proxy.hold_open_requests();
    let mut releases = begin(guards);
    drop(releases.drain(..count).collect::<Vec<_>>());
    proxy.release_requests();
    all_are_released(releases).await;
    all_are_freed(&server.admin()).await;
}

/// A cluster of one server refuses a command whose keys have different slots.
#[tokio::test]
async fn releases_go_one_by_one_where_batches_are_refused() {
    let server = cluster::start(&Server::builder(), 1).remove(0);
    let admin = server.admin();
    let locker = connect(&server.url()).await;
    all_are_released(begin(hold_many(&locker).await)).await;
    assert_eq!(held(&admin), 0);
    assert!(admin.info("errorstats").contains("CROSSSLOT"), "they were refused");
}

/// A call that has asked, and was not answered yet.
pub(crate) type Call<T> = Pin<Box<dyn Future<Output = T>>>;

pub(crate) fn begun<T>(call: impl Future<Output = T> + 'static) -> Call<T> {
    let mut call: Call<T> = Box::pin(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    call
}

/// Asks for all of the releases before any of them can be answered.
pub(crate) fn begin(guards: Vec<LockGuard>) -> Vec<Call<Result<(), LockError>>> {
    guards.into_iter().map(|guard| begun(guard.release())).collect()
}

pub(crate) async fn all_are_released(releases: Vec<Call<Result<(), LockError>>>) {
    for release in releases {
        release.await.unwrap();
    }
}

/// Whether their callers waited for the releases or not.
pub(crate) async fn all_are_freed(admin: &Admin) {
    wait::until_async(LIMIT, async || held(admin) == 0).await;
}

async fn hold_many(locker: &Locker) -> Vec<LockGuard> {
    hold(locker, MANY, |request| request).await
}

async fn hold(
    locker: &Locker,
    count: usize,
    with: fn(LockRequest) -> LockRequest,
) -> Vec<LockGuard> {
    let mut guards = Vec::with_capacity(count);
    for n in 0..count {
        guards.push(with(locker.lock(key(n))).acquire().await.unwrap());
    }
    guards
}

pub(crate) fn key(n: usize) -> String {
    format!("many:{n}")
}

pub(crate) fn name(n: usize) -> String {
    format!("disLock:{}", key(n))
}

pub(crate) fn held(admin: &Admin) -> usize {
    admin.keys("disLock:*").len()
}

async fn queued(admin: &Admin, n: usize) {
    let queue = format!("lockable:queue:{{{}}}", name(n));
    wait::until_async(LIMIT, async || !admin.keys(&queue).is_empty()).await;
}
