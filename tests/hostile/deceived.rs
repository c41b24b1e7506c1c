//! A grant that no one can tell from a true one.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Server, wait};

use crate::forger::now;

/// Goal: a forged grant with a possible token gives a body the lock beside its holder for as long as the message says.
/// Method: it says five minutes, as the call does, which is not renewed. The call learns of the holder by its claim.
#[tokio::test]
async fn a_possible_forged_grant_lasts_a_second_at_most() {
    let server = Server::start();
    let holder = connect(&server).await.lock("k").acquire().await.unwrap();
    let (locker, admin) = (connect(&server).await, server.admin());
    let waiter = tokio::spawn(locker.lock("k").wait(LIMIT).acquire());
    wait::until_async(wait::HANG, async || {
        forge(&admin);
        waiter.is_finished()
    })
    .await;
    let deceived: LockGuard =
        waiter.await.unwrap().expect("nothing tells the message from a true one");
    let rest = deceived.lease().remaining();
    assert!(rest <= Duration::from_secs(1), "{rest:?}");
    let error = wait::ends(deceived.lease().lost()).await;
    assert!(error.is_lost(), "{error}");
    assert!(holder.lease().is_held());
    drop(deceived);
    holder.release().await.unwrap();
}

/// To the one that waits, if it is in the queue.
fn forge(admin: &Admin) {
    let entries = admin.command::<Vec<String>>(&["LRANGE", QUEUE, "0", "-1"]);
    let Some((_, owner)) = entries.first().and_then(|entry| entry.split_once(' ')) else { return };
    let (process, _) = owner.split_once('.').expect("a token has a process");
    let (now, lease) = (now(admin), LONG.as_millis());
    let grant = format!("{now}\n{now}\n{lease}\n{owner}\ndisLock:k");
    admin.command::<u64>(&["PUBLISH", &format!("lockable:grant:{process}"), &grant]);
}

async fn connect(server: &Server) -> Locker {
    let builder = Locker::builder().url(server.url()).expire(LONG);
    builder.command_deadline(LIMIT).connect_deadline(LIMIT).connect().await.unwrap()
}

const QUEUE: &str = "lockable:queue:{disLock:k}";
const LONG: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(200);
