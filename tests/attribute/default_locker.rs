//! The process-wide locker: installed, from the environment, or missing.
//!
//! It is one for the whole process, so each of these tests runs in a process of its own.

use lockable_installed::RuntimeCopy;
use lockable_runtime::LockErrorKind;
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use lockable_runtime::testing::{TestLocks, inherit, scope, sync_scope};
use lockable_runtime::{LockError, Locker, distributed_lock, install};
use lockable_tests::{Admin, Server, wait};
use tokio::runtime::Runtime;

use crate::support::{LIMIT, is_free};

/// The name of the test that a child process is to run.
const CHILD: &str = "LOCKABLE_TEST_CHILD";

/// Runs the body in a process of its own, which has no other locker variables than the given ones.
fn in_own_process(test: &str, variables: &[(&str, &str)], body: impl AsyncFnOnce()) {
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| (*name, OsStr::new(value))).collect();
    in_own_process_with(test, &variables, body);
}

fn in_own_process_with(test: &str, variables: &[(&str, &OsStr)], body: impl AsyncFnOnce()) {
    if env::var(CHILD).is_ok_and(|child| child == test) {
        return Runtime::new().unwrap().block_on(body());
    }
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", &format!("default_locker::{test}"), "--nocapture"]);
    child.env_remove("LOCKABLE_URL").env_remove("REDIS_URL").env(CHILD, test);
    let output = child.envs(variables.iter().copied()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[distributed_lock(key = "k")]
async fn call() -> Result<u8, LockError> {
    Ok(7)
}

#[test]
fn without_a_locker_a_call_is_not_configured() {
    in_own_process("without_a_locker_a_call_is_not_configured", &[], async || {
        let error = call().await.unwrap_err();
        assert!(error.kind() == LockErrorKind::NotConfigured);
        assert!(error.to_string().contains("LOCKABLE_URL"), "{error}");
        install(Locker::connect("memory://").await.unwrap()).unwrap();
        assert_eq!(call().await.unwrap(), 7);
    });
}

/// A copy of the library in another version, which a dependency of the program uses.
static OTHER: RuntimeCopy = RuntimeCopy::new("0.2.0");

/// Goal: a call beside a hold of the program, on a server that no one chose.
#[test]
fn beside_a_locker_of_another_version_none_is_made() {
    let variables = [("REDIS_URL", "memory://another")];
    in_own_process("beside_a_locker_of_another_version_none_is_made", &variables, async || {
        OTHER.claim().unwrap();
        let error = call().await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), LockErrorKind::NotConfigured, "{text}");
        assert!(
            text.contains(" and 0.2.0, and the process-wide locker is that of 0.2.0"),
            "{text}"
        );
        let error = install(Locker::connect("memory://").await.unwrap()).unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::AlreadyInstalled, "{error}");
        assert_eq!(TestLocks::new().scope(call()).await.unwrap(), 7);
    });
}

#[test]
fn another_version_is_named_where_the_environment_names_no_server() {
    in_own_process(
        "another_version_is_named_where_the_environment_names_no_server",
        &[],
        async || {
            OTHER.claim().unwrap();
            let text = call().await.unwrap_err().to_string();
            assert!(text.contains("the process-wide locker is that of 0.2.0"), "{text}");
        },
    );
}

#[test]
fn another_version_hears_of_each_process_wide_locker() {
    let variables = [("REDIS_URL", "memory://first")];
    in_own_process("another_version_hears_of_each_process_wide_locker", &variables, async || {
        assert!(OTHER.other().is_none());
        call().await.unwrap();
        assert!(OTHER.claim().is_err() && OTHER.other().is_some());
    });
}

#[test]
fn a_second_install_names_the_first() {
    in_own_process("a_second_install_names_the_first", &[], async || {
        install(Locker::connect("memory://first").await.unwrap()).unwrap();
        let error = install(Locker::connect("memory://second").await.unwrap()).unwrap_err();
        assert!(error.kind() == LockErrorKind::AlreadyInstalled);
        let message = error.to_string();
        assert!(message.contains("memory://first"), "{message}");
        assert!(message.contains("default_locker.rs"), "{message}");
        assert!(!message.contains("second"), "{message}");
    });
}

#[test]
fn calls_use_the_installed_locker() {
    in_own_process("calls_use_the_installed_locker", &[], async || {
        #[distributed_lock(key = "held")]
        async fn is_held(locks: &Locker) -> Option<bool> {
            Some(!is_free(locks, "held"))
        }
        let locks = Locker::connect("memory://").await.unwrap();
        install(locks.clone()).unwrap();
        assert_eq!(is_held(&locks).await, Some(true));
    });
}

#[test]
fn the_first_call_takes_the_locker_of_the_environment() {
    let variables = [("LOCKABLE_URL", "memory://lazy"), ("REDIS_URL", "nonsense")];
    in_own_process("the_first_call_takes_the_locker_of_the_environment", &variables, async || {
        assert_eq!(call().await.unwrap(), 7);
        let error = install(Locker::connect("memory://").await.unwrap()).unwrap_err();
        assert!(error.to_string().contains("LOCKABLE_URL"), "{error}");
    });
}

/// Other programs read it too.
#[test]
fn a_shared_url_may_have_settings_for_others() {
    let variables = [("REDIS_URL", "redis://127.0.0.1:1?pool_size=5")];
    in_own_process("a_shared_url_may_have_settings_for_others", &variables, async || {
        assert_eq!(Locker::from_env().map(drop).map_err(|error| error.to_string()), Ok(()));
    });
}

#[test]
fn a_url_of_its_own_has_no_other_settings() {
    let variables = [("LOCKABLE_URL", "redis://127.0.0.1:1?pool_size=5")];
    in_own_process("a_url_of_its_own_has_no_other_settings", &variables, async || {
        let error = Locker::from_env().map(drop).unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidUrl, "{error}");
        assert!(error.to_string().contains("`pool_size`"), "{error}");
    });
}

#[test]
fn the_url_of_the_environment_sets_the_defaults() {
    let server = Server::start();
    let url = format!("{}?prefix=shop:&expire=2m&namespace=shop:lockable", server.url());
    let variables = [("LOCKABLE_URL", ""), ("REDIS_URL", url.as_str())];
    in_own_process("the_url_of_the_environment_sets_the_defaults", &variables, async || {
        #[distributed_lock(key = "k", guard = lock)]
        async fn terms() -> Result<(String, u64), LockError> {
            Ok((lock.key().to_string(), lock.remaining().as_secs()))
        }
        // The first answers may be late on a busy machine.
        let mut granted = None;
        let call = async || {
            let answer = terms().await.inspect_err(|error| assert!(error.is_unavailable()));
            granted = answer.ok();
            granted.is_some()
        };
        wait::until_async(LIMIT, call).await;
        let (key, seconds) = granted.unwrap();
        assert_eq!(key, "shop:k");
        assert!((60..120).contains(&seconds), "{seconds}");
        let url = env::var("REDIS_URL").unwrap();
        let admin = Admin::connect(url.split('?').next().unwrap());
        assert_eq!(admin.keys("shop:lockable:fence:*").len(), 1);
    });
}

#[test]
fn an_installed_locker_precedes_the_environment() {
    let variables = [("LOCKABLE_URL", "nonsense")];
    in_own_process("an_installed_locker_precedes_the_environment", &variables, async || {
        install(Locker::connect("memory://").await.unwrap()).unwrap();
        assert_eq!(call().await.unwrap(), 7);
    });
}

#[test]
fn a_wrong_variable_is_named_in_the_error() {
    in_own_process(
        "a_wrong_variable_is_named_in_the_error",
        &[("REDIS_URL", "nonsense")],
        async || {
            let error = call().await.unwrap_err();
            assert!(error.kind() == LockErrorKind::InvalidUrl);
            assert!(error.to_string().contains("REDIS_URL"), "{error}");
        },
    );
}

#[test]
fn a_variable_that_one_would_expect_to_count_is_refused() {
    in_own_process(
        "a_variable_that_one_would_expect_to_count_is_refused",
        &[("LOCKABLE_URL", "memory://"), ("LOCKABLE_PREFIX", "shop:")],
        async || {
            let error = call().await.unwrap_err();
            assert!(error.kind() == LockErrorKind::InvalidOption, "{error:?}");
            let text = error.to_string();
            assert!(text.contains("LOCKABLE_PREFIX") && text.contains("`?prefix=…`"), "{text}");
        },
    );
}

/// The next variable would be another server.
#[test]
fn a_variable_that_is_not_utf_8_is_not_taken_for_none() {
    in_own_process_with(
        "a_variable_that_is_not_utf_8_is_not_taken_for_none",
        &[
            ("LOCKABLE_URL", OsStr::from_bytes(b"memory://\xff")),
            ("REDIS_URL", OsStr::new("memory://")),
        ],
        async || {
            let error = call().await.unwrap_err();
            assert!(error.kind() == LockErrorKind::InvalidOption, "{error:?}");
            assert!(error.to_string().contains("LOCKABLE_URL is not UTF-8"), "{error}");
        },
    );
}

#[test]
fn a_scope_precedes_the_installed_locker_until_it_ends() {
    in_own_process("a_scope_precedes_the_installed_locker_until_it_ends", &[], async || {
        let (installed, locks) = (Locker::in_memory(), TestLocks::new());
        let _guard = installed.lock("k").acquire().await.unwrap();
        install(installed).unwrap();
        assert!(call().await.unwrap_err().is_busy());
        assert_eq!(locks.scope(call()).await.unwrap(), 7);
        assert!(call().await.unwrap_err().is_busy());
        let _other = locks.hold("k");
        assert!(locks.scope(call()).await.unwrap_err().is_busy());
    });
}

#[test]
fn a_spawned_task_inherits_the_scope_only_explicitly() {
    in_own_process("a_spawned_task_inherits_the_scope_only_explicitly", &[], async || {
        let locker = Locker::in_memory();
        scope(&locker, async {
            let error = tokio::spawn(call()).await.unwrap().unwrap_err();
            assert!(error.kind() == LockErrorKind::NotConfigured, "{error}");
            assert_eq!(tokio::spawn(inherit(call())).await.unwrap().unwrap(), 7);
        })
        .await;
        let error = inherit(call()).await.unwrap_err();
        assert!(error.kind() == LockErrorKind::NotConfigured, "{error}");
        // Made inside of a scope, and run after its end.
        let made_inside = sync_scope(&locker, || inherit(call()));
        assert_eq!(made_inside.await.unwrap(), 7);
    });
}
