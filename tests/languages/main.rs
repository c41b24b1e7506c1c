//! redis-py's lock and ours are one lock: the same key, the same expiry, the same respect for others.

use std::path::Path;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::wait::HANG;
use lockable_tests::{Admin, Peer, Server, python, unless_busy, wait};

mod beside;

#[tokio::test]
async fn pythons_lock_is_busy_for_us_until_released() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    assert_eq!(python.ask("acquire 300"), "True");
    let error = locker.lock(KEY).wait(Duration::ZERO).acquire().await.unwrap_err();
    assert!(error.is_busy() && error.key() == Some(NAME), "{error}");
    assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    assert_eq!(python.ask("owned"), "True");
    assert_eq!(python.ask("release"), "released");
    hold(&locker).await.release().await.unwrap();
    assert_eq!(locks(&admin), [""; 0]);
    python.finish();
}

#[tokio::test]
async fn our_lock_is_busy_for_python_until_released() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    let ends: [fn(LockGuard); 2] = [drop, |guard| drop(tokio::spawn(guard.release()))];
    for end in ends {
        let guard = hold(&locker).await;
        assert_eq!(python.ask("acquire 300"), "False");
        assert!(guard.lease().is_held());
        end(guard);
        wait::until_async(LIMIT, async || locks(&admin).is_empty()).await;
        assert_eq!(python.ask("acquire 300"), "True");
        assert_eq!(python.ask("release"), "released");
    }
    python.finish();
}

#[tokio::test]
async fn python_cannot_release_what_we_hold() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    assert_eq!(python.ask("acquire 0.1"), "True");
    wait::until_async(LIMIT, async || locks(&admin).is_empty()).await;
    let guard = hold(&locker).await;
    assert_eq!(python.ask("owned"), "False");
    assert_eq!(python.ask("release"), "LockNotOwnedError");
    assert_eq!(python.ask("acquire 300"), "False");
    assert_eq!(python.ask("release"), "LockError");
    assert_eq!(locks(&admin), [NAME]);
    guard.release().await.unwrap();
    python.finish();
}

#[tokio::test]
async fn pythons_expired_lock_is_free_for_us() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    assert_eq!(python.ask("acquire 0.2"), "True");
    let life = admin.pttl(NAME);
    assert!(life <= 200, "{life}");
    let guard = wait_for_grant(&locker).await;
    assert_eq!(python.ask("owned"), "False");
    guard.release().await.unwrap();
    python.finish();
}

#[tokio::test]
async fn our_expired_lock_is_free_for_python() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    let late = locker.lock(KEY).expire(Duration::from_secs(1)).acquire().await.unwrap();
    wait::until_async(LIMIT, async || locks(&admin).is_empty()).await;
    assert_eq!(python.ask("acquire 300"), "True");
    assert!(!late.lease().is_held());
    python.finish();
}

#[tokio::test]
async fn a_late_release_of_ours_leaves_pythons_lock_alone() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    let (late, dropped) = (hold(&locker).await, locker.lock("other").acquire().await.unwrap());
    admin.del(NAME);
    assert_eq!(python.ask("acquire 300"), "True");
    let owner = admin.get(NAME);
    let error = late.release().await.unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(python.ask("owned"), "True");
    // The same by a guard that is dropped, under a name that is then python's.
    admin.set("disLock:other", "python's");
    drop(dropped);
    lockable_runtime::shutdown(LIMIT).await.unwrap();
    assert_eq!(admin.get("disLock:other").as_deref(), Some("python's"));
    assert_eq!((admin.get(NAME), python.ask("release").as_str()), (owner, "released"));
    python.finish();
}

/// Goal: sections of both languages at the same time.
/// Method: both count on one number that each section reads, and writes back some time later.
#[tokio::test]
async fn sections_of_both_languages_never_overlap() {
    let Setting { _server, admin, locker, mut python } = Setting::new().await;
    admin.set("count", "0");
    python.say(&format!("count {TIMES}"));
    for _ in 0..TIMES {
        let guard = wait_for_grant(&locker).await;
        let number: u32 = admin.get("count").unwrap().parse().unwrap();
        pause().await;
        admin.set("count", &(number + 1).to_string());
        guard.release().await.unwrap();
        pause().await;
    }
    assert_eq!(python.hear(), "counted");
    assert_eq!(admin.get("count"), Some((2 * TIMES).to_string()));
    python.finish();
}

const KEY: &str = "order:7";
const NAME: &str = "disLock:order:7";

/// The sections of each language.
const TIMES: u32 = 100;

/// Of locks that are not meant to pass. Python may still be starting when the first is held.
const LEASE: Duration = Duration::from_secs(300);

/// Shorter than that.
const LIMIT: Duration = HANG;

struct Setting {
    _server: Server,
    admin: Admin,
    locker: Locker,
    python: Peer,
}

impl Setting {
    async fn new() -> Self {
        let server = Server::start();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/redis_py_lock.py");
        let arguments =
            [script.as_os_str(), server.url().as_ref(), NAME.as_ref()].map(ToOwned::to_owned);
        Self {
            admin: server.admin(),
            locker: connect(&server).await,
            python: Peer::start(python::interpreter(), arguments),
            _server: server,
        }
    }
}

async fn connect(server: &Server) -> Locker {
    let builder = Locker::builder().url(server.url()).expire(LEASE);
    builder.command_deadline(LEASE).connect_deadline(LEASE).connect().await.unwrap()
}

async fn hold(locker: &Locker) -> LockGuard {
    locker.lock(KEY).try_acquire().await.unwrap()
}

/// The lock, as soon as it is free.
async fn wait_for_grant(locker: &Locker) -> LockGuard {
    let mut granted = None;
    wait::until_async(LIMIT, async || {
        granted = unless_busy(locker.lock(KEY).try_acquire().await);
        granted.is_some()
    })
    .await;
    granted.unwrap()
}

/// All names but for our fence counters and what the tests count.
fn locks(admin: &Admin) -> Vec<String> {
    admin.keys("disLock:*")
}

#[expect(clippy::disallowed_methods, reason = "a section that takes its time is the subject")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}
